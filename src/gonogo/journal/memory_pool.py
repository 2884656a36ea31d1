"""A pool and its bells within one process: for tests, and for programs that embed several hosts.

Same contract as `postgres/pool.py`, tested by the same tests: events go through their JSON.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Sequence

import msgspec

from gonogo.core.events import AnyEvent
from gonogo.journal.pool import Bell, Claim, Leave, Pool, Ticket

__all__ = ["MemoryBell", "MemoryBells", "MemoryPool"]

_encode = msgspec.json.Encoder().encode
_decode: Callable[[bytes], AnyEvent] = msgspec.json.Decoder(AnyEvent).decode


class MemoryBells:
    """Who listens to which names."""

    def __init__(self) -> None:
        self._bells: list[MemoryBell] = []

    def listen(self, names: Collection[str]) -> MemoryBell:
        """A bell for these names."""
        bell = MemoryBell(names, self._bells)
        self._bells.append(bell)
        return bell

    def ring(self, *names: str) -> None:
        """Let all hear who listen to one of these."""
        for bell in tuple(self._bells):
            bell.ring(names)


class MemoryBell(Bell):
    """Names in a set; a pipe has a byte to read while there are any."""

    def __init__(self, names: Collection[str], among: list[MemoryBell]) -> None:
        self._names = set(names)
        self._among = among
        self._heard: set[str] = set()
        self._guard = threading.Lock()
        self._outer, self._inner = os.pipe()

    def fileno(self) -> int:
        """Readable while something was heard."""
        return self._outer

    def add(self, name: str) -> None:
        """Listen to this name, too."""
        self._names.add(name)

    def remove(self, name: str) -> None:
        """Listen to it no more."""
        self._names.discard(name)
        self.forget({name})

    def heard(self) -> set[str]:
        """What was heard since."""
        return self.forget(self._names)

    def forget(self, names: Collection[str]) -> set[str]:
        """Take these out of what was heard; which were in it."""
        with self._guard:
            taken = self._heard.intersection(names)
            self._heard -= taken
            if taken and not self._heard:
                os.read(self._outer, 1)
            return taken

    def ring(self, names: Collection[str]) -> None:
        """Let those of the names be heard that are listened to."""
        new = self._names.intersection(names)
        with self._guard:
            if new and not self._heard:
                os.write(self._inner, b"x")
            self._heard |= new

    def close(self) -> None:
        """Hear no more."""
        if self in self._among:
            self._among.remove(self)
            os.close(self._inner)
            os.close(self._outer)


class _Entry:
    """A ticket and what became of it."""

    def __init__(self, ticket: Ticket) -> None:
        self.ticket = ticket
        self.claims = 0
        self.worker = self.had = ""
        self.stop = False
        self.ended = False
        self.passed = ""
        self.lets: list[Leave] = []


class MemoryPool(Pool):
    """Tickets until the process ends."""

    def __init__(self, bells: MemoryBells | None = None) -> None:
        self._bells = bells or MemoryBells()
        self._entries: dict[tuple[str, int], _Entry] = {}
        self._answers: dict[int, tuple[str, int, bytes]] = {}
        self._last_id = 0
        self._guard = threading.RLock()

    def offer(self, tickets: Sequence[Ticket]) -> None:
        """Let these calls be claimed."""
        with self._guard:
            for ticket in tickets:
                self._entries.setdefault((ticket.run_id, ticket.command.call), _Entry(ticket))

    def claim(
        self, run_id: str, call: int, worker: str, *, again: bool = True, below: int | None = None
    ) -> Claim | None:
        """Perform this call; None when there is nothing to perform."""
        with self._guard:
            entry = self._entries.get((run_id, call))
            if entry is None or entry.ended or (entry.worker and not again):
                return None
            if below is not None and entry.claims >= below:
                return None
            entry.claims += 1
            had, entry.had = entry.had, worker
            entry.worker = worker
            entry.lets = []
            return Claim(entry.ticket, entry.claims - 1, entry.stop, had=had)

    def claim_free(
        self, run_id: str, calls: Collection[int], worker: str, *, below: int | None = None
    ) -> list[Claim]:
        """Perform those that nobody has."""
        with self._guard:
            found = (self.claim(run_id, call, worker, again=False, below=below) for call in sorted(calls))
            return [claim for claim in found if claim is not None]

    def suspects(self, run_id: str, calls: Collection[int], least: int) -> list[int]:
        """Those that have had so many claims, and no end."""
        with self._guard:
            entries = ((call, self._entries.get((run_id, call))) for call in sorted(calls))
            return [call for call, entry in entries if entry and entry.claims >= least and not entry.ended]

    def lose(self, worker: str) -> list[tuple[str, int, str]]:
        """Let others claim what this worker has; all that is free like this."""
        with self._guard:
            for entry in self._entries.values():
                if entry.worker == worker and not entry.ended:
                    entry.worker = ""
            return sorted(
                (run_id, call, entry.ticket.label)
                for (run_id, call), entry in self._entries.items()
                if entry.claims and not entry.worker and not entry.ended
            )

    def pass_over(self, claim: Claim, worker: str, why: str) -> None:
        """As if it had never been claimed."""
        with self._guard:
            entry = self._entries.get((claim.ticket.run_id, claim.ticket.command.call))
            if entry is not None and (entry.worker, entry.claims) == (worker, claim.before + 1):
                entry.claims, entry.worker, entry.passed = claim.before, "", why

    def passed_over(self, run_id: str, call: int) -> str:
        """Why, if somebody did."""
        with self._guard:
            entry = self._entries.get((run_id, call))
            return entry.passed if entry is not None else ""

    def let(self, leave: Leave) -> None:
        """Answer a wish."""
        with self._guard:
            entry = self._entries.get((leave.run_id, leave.call))
            if entry is None or entry.ended:
                return
            entry.lets.append(leave)
        self._bells.ring(entry.worker)

    def let_to(self, worker: str) -> list[Leave]:
        """What was said to the wishes of its calls."""
        with self._guard:
            entries = [entry for entry in self._entries.values() if entry.worker == worker]
            return [leave for entry in entries if not entry.ended for leave in entry.lets]

    def leave(
        self, run_id: str, call: int, event: AnyEvent, last: bool = True, *, before: int | None = None
    ) -> bool:
        """Leave what came of a call; False when nobody waits for it any more."""
        with self._guard:
            entry = self._entries.get((run_id, call))
            if entry is None or entry.ended or (before is not None and entry.claims != before + 1):
                return False
            entry.ended = last
            self._last_id += 1
            self._answers[self._last_id] = run_id, call, _encode(event)
        self._bells.ring(run_id)
        return True

    def leave_all(self, run_id: str, answers: Sequence[tuple[int, AnyEvent, int]]) -> set[int]:
        """Leave what came of several; which of them somebody waits for."""
        with self._guard:
            return {call for call, event, before in answers if self.leave(run_id, call, event, before=before)}

    def take(self, run_id: str, after: int = 0) -> list[tuple[int, AnyEvent]]:
        """What was left for a run, by id."""
        with self._guard:
            answers = sorted(self._answers.items())
        return [
            (number, _decode(data)) for number, (run, _, data) in answers if run == run_id and number > after
        ]

    def done(self, run_id: str, ids: Collection[int]) -> None:
        """Forget answers, and tickets with their last one."""
        with self._guard:
            gone = {
                (run_id, self._answers.pop(number)[1])
                for number in ids
                if number in self._answers and self._answers[number][0] == run_id
            }
            left = {(run, call) for run, call, _ in self._answers.values()}
            for key in gone - left:
                if key in self._entries and self._entries[key].ended:
                    del self._entries[key]

    def withdraw(self, run_id: str, call: int, instead: AnyEvent | None = None) -> bool:
        """Take a call back, or ask it to stop."""
        with self._guard:
            entry = self._entries.get((run_id, call))
            if entry is None or entry.ended:
                return False
            if entry.claims == 0:
                if instead is not None:
                    return self.leave(run_id, call, instead)
                del self._entries[run_id, call]
                return True
            entry.stop = True
        self._bells.ring(entry.worker)
        return False

    def to_stop(self, worker: str) -> set[tuple[str, int]]:
        """What this worker should stop."""
        with self._guard:
            entries = list(self._entries.items())
        return {key for key, entry in entries if entry.worker == worker and entry.stop and not entry.ended}

    def open(self, run_id: str) -> set[int]:
        """Calls that aren't gone."""
        with self._guard:
            return {call for run, call in self._entries if run == run_id}

    def holds(self, run_id: str, call: int, before: int) -> bool:
        """Whether a claim is still the last one."""
        with self._guard:
            entry = self._entries.get((run_id, call))
            return entry is not None and not entry.ended and entry.claims == before + 1

    def unclaimed(self, run_id: str) -> list[tuple[int, str]]:
        """Call and label of those that nobody ever claimed."""
        with self._guard:
            mine = sorted((call, entry) for (run, call), entry in self._entries.items() if run == run_id)
            return [(call, entry.ticket.label) for call, entry in mine if not (entry.claims or entry.ended)]

    def ring(self, names: Collection[str]) -> None:
        """Ring with each of these names."""
        self._bells.ring(*names)

    def clear(self, run_id: str) -> None:
        """Forget all of a run."""
        with self._guard:
            self._entries = {key: entry for key, entry in self._entries.items() if key[0] != run_id}
            self._answers = {
                number: answer for number, answer in self._answers.items() if answer[0] != run_id
            }

    def bell(self, names: Collection[str]) -> MemoryBell:
        """Hears what is rung with these names."""
        return self._bells.listen(names)
