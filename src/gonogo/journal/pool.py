"""Calls of runs that any worker may perform: what a host of several machines asks of the place that keeps them.

A host offers a call as a ticket once its record is in the journal; a worker claims it, performs it and leaves what came
of it; the host takes that, journals it, and only then says that it is done with it. Who tells a worker that there is a
ticket is an engine's business, not the pool's: `claim` is safe to be called by several, at any time, after any crash.

    offered ──claim──▶ under way ──leave(last)──▶ answered ──take, journal, done──▶ gone
       └──────withdraw──────▶ gone, or answered with what the host gave instead

`postgres/` keeps a pool for several machines, `memory_pool.py` one for tests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from gonogo.core.commands import StartCall
from gonogo.core.events import AnyEvent

T = TypeVar("T")

__all__ = ["Bell", "Claim", "Leave", "Pool", "Ticket"]


class Ticket(Struct, frozen=True):
    """A call on offer. `seq` is the record that started it: what a worker must have read to prepare it. `label`: which
    workers may perform it, for whoever tells them; the pool lets anybody claim it.
    """

    run_id: str
    command: StartCall
    seq: int
    label: str = ""


class Claim(Struct, frozen=True):
    """The right to perform a call. `before`: how many claims there were before this one; a call that mutates and was
    claimed before may have been performed already. `stop`: it was asked to stop meanwhile, so it needn't be begun.
    `newer`: why only a newer gonogo can read the ticket, whose command then says nothing but which call it is. `had`:
    the worker that claimed it last before, as far as that is known.
    """

    ticket: Ticket
    before: int = 0
    stop: bool = False
    newer: str = ""
    had: str = ""


class Leave(Struct, frozen=True):
    """What a run's host says to a wish of a call elsewhere (`AttemptAsked`): it may go out, or a `refusal` why not."""

    run_id: str
    call: int
    ticket: int
    refusal: str = ""


class Bell(Protocol):
    """Tells that there is something to look at. `fileno` stays the same and is readable while `heard` has names; a
    name too many may be heard (after a lost connection all of them are), one too few never.
    """

    def fileno(self) -> int:
        """For `asyncio`'s `add_reader`, or select."""
        ...

    def add(self, name: str) -> None:
        """Listen to this name, too. It may be heard at once, in case it was rung for before."""
        ...

    def remove(self, name: str) -> None:
        """Listen to this name no more; what was heard of it is forgotten."""
        ...

    def heard(self) -> set[str]:
        """The names rung since it was last asked. Never blocks."""
        ...

    def close(self) -> None:
        """Hear no more. May be called twice."""
        ...


class Pool(Protocol):
    """Tickets and what came of them. Everything is durable when a method returns; every method may raise JournalError.

    Methods may block on the network. They may be called from several threads.
    """

    def offer(self, tickets: Sequence[Ticket]) -> None:
        """Let these calls be claimed. One that is offered already stays as it is."""
        ...

    def claim(
        self, run_id: str, call: int, worker: str, *, again: bool = True, below: int | None = None
    ) -> Claim | None:
        """Perform this call; None when it was taken back, is answered, was never offered, or has had `below` claims.

        With `again`, a call under way can be claimed: that its worker is dead is for the caller to know.
        """
        ...

    def claim_free(
        self, run_id: str, calls: Collection[int], worker: str, *, below: int | None = None
    ) -> list[Claim]:
        """Perform those of these calls that no worker has, by number: nobody claimed them, or who did was lost. Without
        those that have had `below` claims.
        """
        ...

    def suspects(self, run_id: str, calls: Collection[int], least: int) -> list[int]:
        """Those of these calls that have had so many claims, and no end, by number."""
        ...

    def lose(self, worker: str) -> list[tuple[str, int, str]]:
        """This worker is gone for good: whatever it claimed and didn't end is for who claims it next.

        Run, call and label of all that a lost worker had and nobody has claimed since, in order.
        """
        ...

    def pass_over(self, claim: Claim, worker: str, why: str) -> None:
        """This worker claimed a call that it can't perform and didn't begin: it is as if it had never claimed it, and
        `why` is kept.
        """
        ...

    def passed_over(self, run_id: str, call: int) -> str:
        """Why a worker passed the call over, the last one that did; empty when none did."""
        ...

    def let(self, leave: Leave) -> None:
        """Answer a wish of a call that a worker performs. Rings the worker."""
        ...

    def let_to(self, worker: str) -> list[Leave]:
        """What was said to the wishes of all calls that this worker has, again and again until they end."""
        ...

    def leave(
        self, run_id: str, call: int, event: AnyEvent, last: bool = True, *, before: int | None = None
    ) -> bool:
        """Leave what came of a call, behind what was left before; `last` ends the ticket. Rings the run.

        False, and nothing is left: the ticket has ended or is gone, or, when the claim's `before` is given, somebody
        has claimed the call since (-1: at all).
        """
        ...

    def leave_all(self, run_id: str, answers: Sequence[tuple[int, AnyEvent, int]]) -> set[int]:
        """Leave what ends several calls (call, event, the claim's `before`) in this order, all or none durable; which
        of them were left.
        """
        ...

    def take(self, run_id: str, after: int = 0) -> list[tuple[int, AnyEvent]]:
        """What was left for a run with ids above `after`, by id. It stays until it is `done`.

        Ids rise in the order in which things can be seen: what has a lower id never turns up later.
        """
        ...

    def done(self, run_id: str, ids: Collection[int]) -> None:
        """Forget what the journal holds now; a ticket goes with its last event."""
        ...

    def withdraw(self, run_id: str, call: int, instead: AnyEvent | None = None) -> bool:
        """Take a call back. One that nobody claimed is answered with `instead`, or goes away when that is None (True).
        One under way is asked to stop, which rings its worker, and still answers (False); so for one that has ended.
        """
        ...

    def to_stop(self, worker: str) -> set[tuple[str, int]]:
        """Run and call of what this worker has claimed last, was asked to stop and didn't end yet."""
        ...

    def open(self, run_id: str) -> set[int]:
        """Calls that were offered and aren't gone: whoever resumes the run must not take these for lost."""
        ...

    def holds(self, run_id: str, call: int, before: int) -> bool:
        """Whether a claim, by its `before`, is still the last one, and the call hasn't ended."""
        ...

    def unclaimed(self, run_id: str) -> list[tuple[int, str]]:
        """Call and label of those that nobody ever claimed, in order."""
        ...

    def ring(self, names: Collection[str]) -> None:
        """Ring with each of these names."""
        ...

    def clear(self, run_id: str) -> None:
        """Forget all of a run that is over."""
        ...

    def at_once(self, work: Callable[[], T]) -> T:
        """What `work` makes with this pool, without waiting. Raises StoreAway where that would take a wait; what was
        begun may have been done.
        """
        return work()

    def bell(self, names: Collection[str]) -> Bell:
        """Rung with a run's id by `leave`, `withdraw` and requests in its inbox; with a worker's id when a
        call of it is asked to stop, or a wish of one is answered; and by `ring`.
        """
        ...
