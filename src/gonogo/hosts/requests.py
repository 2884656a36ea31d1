"""What other processes ask of a run: answers and cancels that they left in its inbox become events, each once.

The inbox keeps a request until the journal holds it. What a request means is the core's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeGuard

from msgspec.structs import replace

from gonogo.core.events import AnswerGiven, AnyEvent, CancelAsked, RerunAsked
from gonogo.hosts.clock import RunClock
from gonogo.hosts.pen import when_back
from gonogo.hosts.vault import Vault
from gonogo.journal.records import Record
from gonogo.journal.store import Request, RunJournal, StoreAway

REQUESTS = (AnswerGiven, CancelAsked, RerunAsked)
POLL_S = 0.5
"""How often the inbox is looked at."""


class Requests:
    """Those to one run. Made and used within one asyncio event loop."""

    def __init__(
        self,
        journal: RunJournal,
        vault: Vault,
        clock: RunClock,
        *,
        post: Callable[[AnyEvent], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._journal = journal
        self._inbox = journal.inbox
        self._vault = vault
        self._clock = clock
        self._post = post
        self._fail = fail
        self._seen = requests_in(journal.records)
        self._poll: asyncio.TimerHandle | None = None
        self._is_closed = False

    def watch(self) -> None:
        """Look now, and again and again until `close`; not while the store is away."""
        if self._poll is not None:
            self._poll.cancel()
        if self.look():
            self._poll = asyncio.get_running_loop().call_later(POLL_S, self.watch)

    def look(self) -> bool:
        """Post what was asked since the last time; False when the inbox can't be read now. If that doesn't pass, it
        ends the run here.
        """
        try:
            for request in self._journal.at_once(lambda: self._inbox.take(self._seen)):
                if isinstance(request, RerunAsked):
                    continue  # for whoever goes on with the run next
                self._seen.add(request.request)
                self._post(self._stamped(request))
        except StoreAway as away:
            when_back(asyncio.get_running_loop(), away, self._watch_again, self._fail)
            return False
        except Exception as error:  # noqa: BLE001 - a run that hears nobody any more can't be cancelled
            self._fail(error)
            return False
        return True

    def written(self, records: Sequence[Record]) -> None:
        """These records are durable: what they hold needs no other place. What can't be forgotten now is at the next
        look. Raises JournalError.
        """
        names = [record.event.request for record in records if is_from_inbox(record.event)]
        with suppress(StoreAway):
            for name in names:
                self._journal.at_once(partial(self._inbox.done, name))

    def _watch_again(self) -> None:
        if not self._is_closed:
            self.watch()

    def close(self) -> None:
        """Look no more."""
        self._is_closed = True
        if self._poll is not None:
            self._poll.cancel()

    def _stamped(self, request: Request) -> AnyEvent:
        if isinstance(request, AnswerGiven):
            text = self._vault.answer(request.step, request.scope, request.text)
            output = self._vault.given(request.step, request.output)
            return replace(request, at=self._clock.now(), text=text, output=output)
        return replace(request, at=self._clock.now())


def is_from_inbox(event: AnyEvent) -> TypeGuard[Request]:
    """Whether an event was a request that the inbox keeps until the journal does."""
    return isinstance(event, REQUESTS) and bool(event.request)


def requests_in(records: Sequence[Record]) -> set[str]:
    """The ids of requests the journal holds."""
    return {record.event.request for record in records if is_from_inbox(record.event)}
