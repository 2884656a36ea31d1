"""Calls of runs beneath one that is taken over: they go on elsewhere before anybody goes on with those runs.

Till then their slots are kept, for what the run above starts meanwhile would else be more than may be under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import suppress

from gonogo.core.commands import StartCall
from gonogo.core.lifecycle import PAUSED
from gonogo.core.machine import outstanding
from gonogo.core.state import CONTAINER, State
from gonogo.errors import JournalError
from gonogo.hosts.away import LAST, LOOK_S
from gonogo.hosts.base import Surroundings
from gonogo.hosts.children import child_id
from gonogo.hosts.slots import Places
from gonogo.hosts.spread import Spread
from gonogo.journal.restoring import state_of
from gonogo.journal.store import Runs, StoreAway

KEPT_S = 3600.0
"""So long slots are kept for a run that nobody goes on with (law 2): as long as a call may wait for a worker."""


def keep_slots(state: State, around: Surroundings) -> None:
    """Those of calls of all runs beneath this one, until their run has a host, or they end. Raises JournalError."""
    tree, spread = around.slots, around.spread
    if tree is None or spread is None:
        return
    for child in _beneath(state, around.runs):
        offered = spread.pool.open(child.run_id)
        calls = [call for call, node in child.calls.items() if call in offered and node.status != PAUSED]
        if calls:
            around.kept.keep(child.run_id, Outlived(child.run_id, calls, state, tree, spread).end)


def _beneath(state: State, runs: Runs) -> Iterator[State]:
    for command in outstanding(state):
        if not isinstance(command, StartCall) or state.graph.steps[command.step].type != CONTAINER:
            continue
        try:
            child = state_of(runs.read(child_id(state.run_id, command)).records)
        except StoreAway:
            raise
        except JournalError:
            continue  # it never began; what else is wrong with it its host will tell
        yield child
        yield from _beneath(child, runs)


class Outlived:
    """Calls of one run that has no host yet, and the slots they have. `above`: the run that was taken over; once that
    is stopping nobody goes on with those beneath, and what it has to clean up needs slots.
    """

    def __init__(
        self, run_id: str, calls: Collection[int], above: State, tree: Places, spread: Spread
    ) -> None:
        self._run_id = run_id
        self._above = above
        self._tree = tree
        self._pool = spread.pool
        self._slots = {call: tree.seize() for call in calls}
        self._last_id = 0
        self._deaf = spread.listen(run_id, self._look)
        self._loop = asyncio.get_running_loop()
        self._until_s = self._loop.time() + KEPT_S
        self._next = self._loop.call_later(LOOK_S, self._look_again)
        self._look()

    def end(self) -> None:
        """Give back what is left of them. May be called twice: it ends by itself, too, and tells nobody."""
        self._next.cancel()
        deaf, self._deaf = self._deaf, _nothing
        deaf()
        for call in tuple(self._slots):
            self._give_back(call)

    def _look(self) -> None:
        """What was left for the run stays there."""
        with suppress(JournalError):  # the next look may find more
            for number, event in self._pool.at_once(lambda: self._pool.take(self._run_id, self._last_id)):
                self._last_id = number
                if isinstance(event, LAST):
                    self._give_back(event.call)

    def _look_again(self) -> None:
        """A bell may have been missed while a connection was down. Nothing is looked for once no slot is left."""
        if not self._slots or self._above.stopping or self._loop.time() >= self._until_s:
            self.end()
        else:
            self._next = self._loop.call_later(LOOK_S, self._look_again)
            self._look()

    def _give_back(self, call: int) -> None:
        slot = self._slots.pop(call, None)
        if slot is not None:
            self._tree.withdraw(slot)


def _nothing() -> None:
    """Nobody listens any more."""
