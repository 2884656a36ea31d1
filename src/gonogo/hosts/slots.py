"""How many calls go on at once: of a run and those beneath it (its slots), and on a worker, whatever runs they are of.

Whoever comes first has a place first. A call waits for its slot before its worker's place, so whoever waits for a place
keeps no slot from a call that has one. A call that waits long in its gate lets go of both meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Protocol

TURN_S = 5.0
"""So often calls that come by a door have a place, though others wait within."""
TURN_LASTS_S = 0.25
"""So long the place is kept for them."""


class Door(Protocol):
    """Where calls come in that nobody waits with, as long as there are places."""

    def shut(self) -> None:
        """There are none."""
        ...

    def open(self) -> None:
        """There are some again."""
        ...


class Places:
    """So many at once. Within one event loop."""

    __slots__ = ("_all", "_doors", "_free", "_is_turn", "_lines", "_looking", "_next", "_shut_s")

    def __init__(self, places: int) -> None:
        self._all = places
        self._free = places
        self._doors: list[Door] = []
        self._lines: tuple[deque[asyncio.Future[None]], ...] = (deque(), deque())
        self._next = 0
        self._looking: set[asyncio.Future[None]] = set()
        self._shut_s: float | None = None
        self._is_turn = False

    def add_door(self, door: Door) -> None:
        """Shut it while there are no places."""
        self._doors.append(door)

    @property
    def busy(self) -> float:
        """The part of them that is taken."""
        return 1.0 - self._free / self._all

    def is_free_for(self, calls: int) -> bool:
        """Whether so many may begin now."""
        return calls <= self._free

    def take(self, most: int) -> int:
        """As many as there are, up to `most`, without waiting."""
        taken = max(0, min(most, self._free))
        self._free -= taken
        if self._free <= 0:
            self._shut()
        return taken

    def seize(self) -> asyncio.Future[None]:
        """As `ask`, at once, though there may be none: for a call that is under way already."""
        self._free -= 1
        had: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        had.set_result(None)
        return had

    def ask(self, line: int = 0) -> asyncio.Future[None]:
        """Done once a place is taken for whoever asks. There are two lines, which take turns: calls that come from a
        queue (1) would else wait behind all that the runs here have to do (0), or these behind them.
        """
        waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._free > 0 and not any(self._lines):
            self.take(1)
            waits.set_result(None)
        else:
            self._lines[line].append(waits)
        return waits

    async def wait(self) -> None:
        """Take one, in the order in which calls come for it."""
        waits = self.ask()
        try:
            await waits
        except asyncio.CancelledError:
            self.withdraw(waits)
            raise

    def withdraw(self, asked: asyncio.Future[None]) -> None:
        """Whoever asked wants none any more, or has no use for the one it was given."""
        if asked.done() and not asked.cancelled():
            self.give(1)
        else:
            asked.cancel()

    def give(self, places: int) -> None:
        """These are free again."""
        self._free += places
        if places:
            self._hand_out()

    async def freed(self, within_s: float) -> bool:
        """Wait until some are free for whoever comes by a door; whether there may be any."""
        waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._looking.add(waits)
        try:
            await asyncio.wait([waits], timeout=within_s)
        finally:
            self._looking.discard(waits)
        return waits.done()

    def _hand_out(self) -> None:
        """To those who wait within; now and then one is left to those at the doors."""
        if not self._is_others_turn():
            while self._free > 0 and (first := self._first()) is not None:
                self._free -= 1
                first.set_result(None)
        if self._free > 0:
            self._open()

    def _first(self) -> asyncio.Future[None] | None:
        for line in (self._next, 1 - self._next):
            while self._lines[line]:
                waits = self._lines[line].popleft()
                if not waits.done():
                    self._next = 1 - line
                    return waits
        return None

    def _is_others_turn(self) -> bool:
        loop = asyncio.get_running_loop()
        if not self._is_turn and self._shut_s is not None and loop.time() - self._shut_s >= TURN_S:
            self._is_turn = True
            loop.call_later(TURN_LASTS_S, self._end_turn)
        return self._is_turn

    def _end_turn(self) -> None:
        self._is_turn = False
        self._hand_out()
        if self._free <= 0:
            self._shut()

    def _shut(self) -> None:
        if self._shut_s is None and self._doors:
            self._shut_s = asyncio.get_running_loop().time()
            for door in self._doors:
                door.shut()

    def _open(self) -> None:
        if self._shut_s is not None:
            self._shut_s = None
            for door in self._doors:
                door.open()
        for each in self._looking:
            if not each.done():
                each.set_result(None)


class Slots:
    """Those of one run's calls. `tree`: of the run and all that are above and beneath it; None where its own count of
    slots is enough. `worker`: the places of the process; None where it has as many as it likes. `lent`: whoever has
    the calls performed has taken these for them, and gives them back.
    """

    __slots__ = ("_held", "_lent", "_wanted", "tree", "worker")

    def __init__(self, tree: Places | None, worker: Places | None = None, *, lent: bool = False) -> None:
        self._lent = lent
        self.tree = tree
        self.worker = worker
        self._wanted: dict[int, tuple[Places, ...]] = {}
        self._held: set[int] = set()

    def of(self, call: int, *, outside: bool) -> AbstractAsyncContextManager[None]:
        """A call's slot, as long as the block lasts; and a place of the worker, if it does something `outside`."""
        wanted = (self.tree, self.worker if outside else None)
        places = tuple(each for each in wanted if each is not None)
        return self._of(call, places) if places else nullcontext()

    @asynccontextmanager
    async def _of(self, call: int, places: tuple[Places, ...]) -> AsyncIterator[None]:
        self._wanted[call] = places
        try:
            if self._lent:
                self._held.add(call)
            await self.take(call)
            yield
        finally:
            self._end(call)

    def _end(self, call: int) -> None:
        if self._lent:
            for each in self._wanted[call] if call not in self._held else ():
                each.seize()
            self._held.discard(call)
        self.let_go(call)
        del self._wanted[call]

    def is_waiting(self, call: int) -> bool:
        """Whether the call has come for what it needs, and hasn't got it."""
        return call in self._wanted and call not in self._held

    def let_go(self, call: int) -> None:
        """Others may have what the call has. Nothing happens to a call that has nothing."""
        if call in self._held:
            self._held.discard(call)
            for each in self._wanted[call]:
                each.give(1)

    async def take(self, call: int) -> None:
        """Wait for what the call needs; one that has it goes on."""
        wanted = self._wanted.get(call, ())
        if call in self._held or not wanted:
            return
        had: list[Places] = []
        try:
            for each in wanted:
                await each.wait()
                had.append(each)
            if call not in self._held:  # another of its attempts may have been there first
                self._held.add(call)
                had.clear()
        finally:
            for each in had:
                each.give(1)
