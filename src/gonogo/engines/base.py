"""What an engine does for runs, and what a worker does for an engine. Neither knows anything of plans or records.

The truth about a run is its journal. An engine carries names only: "go on with this run", "perform this call". It may
carry one twice, and it must carry it again when the worker that had it is gone; the store's locks and claims see to it
that nothing is done twice for that.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

WIRE = "2"
"""What workers and those who hand work over must agree on: the names of workflows, queues and steps, and what they are
given. Workers take work of their own version only. Journals, tickets and tables have versions of their own, by which a
worker leaves what is newer than itself to others.
"""
NEWER_S = 10.0
"""What only a newer worker can do is offered again so soon, for as long as it takes."""
TAKEOVERS_MAX = 5
"""Work that lost so many workers is set aside: more likely it ends them than that they happened to end."""


class Errand(Struct, frozen=True):
    """A call for any worker with the label."""

    run_id: str
    call: int
    label: str = ""


def together(errands: Sequence[Errand], most: int) -> Iterator[tuple[tuple[str, str], list[int]]]:
    """Calls of one run and one label, at most so many each time."""
    found: dict[tuple[str, str], list[int]] = {}
    for errand in errands:
        found.setdefault((errand.run_id, errand.label), []).append(errand.call)
    for key, calls in found.items():
        for start in range(0, len(calls), most):
            yield key, calls[start : start + most]


class Door(Protocol):
    """What lets calls in from a queue."""

    def shut(self) -> None:
        """There are no places."""
        ...

    def open(self) -> None:
        """There are some again."""
        ...


class Places(Protocol):
    """How many calls may still begin in this process, whichever queue they come from; those that its runs make without
    a queue count, too. Within the worker's event loop.
    """

    @property
    def busy(self) -> float:
        """The part of them that is taken."""
        ...

    def is_free_for(self, calls: int) -> bool:
        """Whether so many may begin now."""
        ...

    def take(self, most: int) -> int:
        """As many as there are, up to `most`, without waiting."""
        ...

    def ask(self, line: int = 0) -> asyncio.Future[None]:
        """Done once one is taken for whoever asks; `line` 1 is for calls from queues."""
        ...

    def withdraw(self, asked: asyncio.Future[None]) -> None:
        """Whoever asked wants none any more, or gives back the one it was given."""
        ...

    def give(self, places: int) -> None:
        """These are free again."""
        ...

    async def freed(self, within_s: float) -> bool:
        """Wait until there are some; whether there may be any."""
        ...

    def add_door(self, door: Door) -> None:
        """Shut it while there are none."""
        ...


class Work(Protocol):
    """What a worker can do. The functions may be called again for the same thing, at any time."""

    @property
    def places(self) -> Places:
        """For its calls: whoever has one performed takes one before, and gives it back."""
        ...

    async def free(self, run_id: str, call: int | None) -> bool:
        """Wait until a run, or a call of one, can be taken over: not while a worker has it that lives, though the
        engine doesn't hear of it. False when that can't be told, since this worker doesn't reach the store; that is no
        fault of the work. Raises JournalError.
        """
        ...

    async def segment(
        self, run_id: str, *, reopens: bool = False, takes_over: bool = False, alone: bool = False
    ) -> float | None:
        """Go on with a run until it is over or only waits. The answer: after how many seconds it must be woken,
        None for not before somebody asks. With `reopens`, what a cancel ended goes on; with `takes_over`, whoever has
        the run now is gone or stands still, and loses it; with `alone`, the engine gives a run to one worker at a time,
        so one that another process has all the same is looked at again: the engine may have lost sight of that one.
        """
        ...

    @property
    def is_cut_off(self) -> bool:
        """Whether this worker doesn't reach the store just now, as far as it knows. Others may."""
        ...

    async def call(self, run_id: str, call: int, *, takes_over: bool) -> bool:
        """Perform a call, unless somebody has, or does; with `takes_over`, whoever had it is gone or stands still.

        False: it is for a newer worker, and to be offered again after `NEWER_S`.
        """
        ...

    async def calls(self, run_id: str, calls: Sequence[int], ended: Callable[[int], None]) -> Sequence[int]:
        """Perform those of these calls that no worker has, all at once. `ended` is told how many are over, or aren't
        for this worker, as soon as they are.

        Those that are for a newer worker, to be offered again after `NEWER_S`.
        """
        ...

    async def lost(self, worker: str) -> None:
        """This worker is gone for good: the calls it had are handed over once more, to whoever takes them. Asked again
        when it fails (EngineError, JournalError), nothing is missed.
        """
        ...

    def listen(self, name: str, then: Callable[[], None]) -> Callable[[], None]:
        """Have `then` called whenever this name is rung for in the store, until the answer is called."""
        ...

    async def wake(self, run_id: str, delay_s: float) -> None:
        """See to it that somebody goes on with the run then."""
        ...

    async def leave(self) -> None:
        """End what is under way, at once and without a word: it will be carried to others."""
        ...

    async def aside(self, run_id: str, call: int | None, takeovers: int) -> None:
        """Work that lost so many workers: it won't be carried again unless somebody asks, and a run says so."""
        ...


UNLIMITED = 0
"""As `calls_everywhere`, or as the calls of a `rate`."""


class Limits(Struct, frozen=True):
    """How much a worker takes. `calls_everywhere` and `rate` (so many calls in so many seconds) bound each queue of
    calls as a whole, where the engine can: None leaves what others have set, UNLIMITED lifts it. `labels`: what calls
    with `runs_on` it takes, beside those without.
    """

    segments: int = 100
    calls: int = 16
    calls_everywhere: int | None = None
    rate: tuple[int, float] | None = None
    labels: tuple[str, ...] = ()
    drain_s: float = 30.0


class Engine(Protocol):
    """Hands work to workers. Methods may block on the network; they raise EngineError when the engine can't be had."""

    def submit(self, run_id: str, *, delay_s: float = 0.0, reopens: bool = False) -> None:
        """Have somebody go on with a run, not before `delay_s`. Asked again, the earlier time holds."""
        ...

    def begin(self, errands: Sequence[Errand]) -> Sequence[Errand]:
        """Calls of runs that are here: begin at once with what this process's own worker has room for. The others, to
        be handed over. On the worker's event loop; never blocks.
        """
        ...

    def perform(self, errands: Sequence[Errand], *, delay_s: float = 0.0) -> None:
        """Have these calls performed, not before `delay_s`. One that was handed over before stays as it is."""
        ...

    def close(self) -> None:
        """Let go of connections. May be called twice."""
        ...


class EngineWorker(Protocol):
    """Takes work from an engine."""

    @property
    def engine(self) -> Engine:
        """Hands over work, also while it takes some."""
        ...

    async def serve(self, work: Work, limits: Limits, stopping: Stopping, ready: Callable[[], None]) -> None:
        """Take work until told to stop; then take no more, and give what is under way `limits.drain_s` to end.

        `ready` is called once work can be handed over and is taken.
        """
        ...


def new_worker_id() -> str:
    """Never used again: an id that comes back would be taken for the worker that had it."""
    return f"gonogo-{os.uname().nodename[:24]}-{secrets.token_hex(5)}"


class Stopping(Protocol):
    """Asked to stop: `asyncio.Event` is one."""

    async def wait(self) -> object:
        """Returns when it is time."""
        ...

    def is_set(self) -> bool:
        """Whether it is."""
        ...
