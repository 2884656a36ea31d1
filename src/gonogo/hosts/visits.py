"""A run whose loop is elsewhere, as a worker knows it that performs calls of it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn

from gonogo.core.commands import LetAttempt, StartCall
from gonogo.core.events import AnyEvent, RunStarted
from gonogo.core.gated import lose
from gonogo.core.plan import Plan
from gonogo.core.state import State
from gonogo.errors import Bug, JournalError
from gonogo.hosts.attempts import Attempts, limits_attempts
from gonogo.hosts.base import Surroundings
from gonogo.hosts.clock import RunClock
from gonogo.hosts.slots import Slots
from gonogo.hosts.sure import Overtaken
from gonogo.hosts.vault import Vault
from gonogo.hosts.workplace import Workplace
from gonogo.journal.pool import Leave
from gonogo.journal.restoring import Follower
from gonogo.journal.sharing import SharedRuns
from gonogo.provider import ChildResult

_SHOWN = "restore it from a backup; 'gonogo show {}' tells what is there"

AroundOf = Callable[[RunStarted, Plan], Surroundings]
"""What a call of a run is given on this worker, under the plan that the run has by now: the worker's own environment,
with the secrets in it.
"""


class Visit:
    """A run as this worker knows it, and what performs its calls here."""

    def __init__(self, run_id: str, runs: SharedRuns, around_of: AroundOf) -> None:
        """Raises JournalError when the run's journal isn't there or can't be trusted."""
        self.run_id = run_id
        self._runs = runs
        records = list(runs.records_after(run_id, -1))
        first = records[0].event if records else None
        if not isinstance(first, RunStarted):
            raise JournalError(
                f"the journal of {run_id} doesn't begin with its start", advice=_SHOWN.format(run_id)
            )
        self._follower = Follower(records[0])
        self._follower.follow(records[1:])
        state = self._follower.state
        self.plan = state.graph.plan
        around = around_of(first, self.plan)
        self._answers: dict[int, asyncio.Future[AnyEvent]] = {}
        self._leave: dict[int, Callable[[AnyEvent], bool]] = {}
        self._holds: dict[int, Callable[[], Awaitable[bool]]] = {}
        vault = Vault(state, runs.seals(run_id), around.redactor, resumed=True)
        vault.load()
        clock = RunClock()
        self._attempts = _attempts(state, around, clock, self._post)
        self._place = Workplace(
            state,
            runs.blobs(run_id),
            vault,
            around,
            clock,
            _no_child,
            post=self._post,
            fail=self._fail,
            attempts=self._attempts,
            sure=self._sure,
        )

    @property
    def is_busy(self) -> bool:
        return bool(self._answers)

    @property
    def under_way(self) -> int:
        return len(self._answers)

    @property
    def is_outdated(self) -> bool:
        """Whether the run has another plan by now than this worker prepared itself for."""
        return self._follower.state.graph.plan is not self.plan

    def catch_up(self, seq: int) -> None:
        """Know the run up to this record at least. Raises JournalError when the journal doesn't hold it."""
        if self._follower.seq < seq:
            self._follow()
        if self._follower.seq < seq:
            raise JournalError(
                f"the journal of {self.run_id} ends before record {seq}, which started a call",
                advice=_SHOWN.format(self.run_id),
            )

    def wants(self, command: StartCall) -> bool:
        """Whether the run still waits for this call. Raises JournalError.

        A host that stood still after it had written the call, and lost the run meanwhile, offers it once it wakes up:
        the next host may have had it performed, and its ticket be gone.
        """
        self._follow()
        return command.call in self._follower.state.calls

    def lose(self, call: int) -> None:
        """Whoever performed it is gone: what that one had under way counts, and is repeated as after a crash. The run's
        core hears nothing of it, and keeps what it set aside for that until the call's end.
        """
        node = self._follower.state.calls.get(call)
        if node is not None and node.gate is not None:
            lose(node.gate, self._follower.state.at)

    def _follow(self) -> None:
        self._place.evaluations.state_moves()
        self._follower.follow(self._runs.records_after(self.run_id, self._follower.seq))

    async def perform(
        self, command: StartCall, leave: Callable[[AnyEvent], bool], holds: Callable[[], Awaitable[bool]]
    ) -> AnyEvent:
        """The event that ends the call; those before it are left as they come. `holds`: whether the claim does."""
        answer = self._answers[command.call] = asyncio.get_running_loop().create_future()
        self._leave[command.call], self._holds[command.call] = leave, holds
        try:
            self._place.calls.start(command)
            event: AnyEvent = await answer
            return event
        finally:
            self._answers.pop(command.call, None)
            self._leave.pop(command.call, None)
            self._holds.pop(command.call, None)

    async def _sure(self, command: StartCall) -> None:
        """Right before something changes outside: this worker may have stood still since its claim (law 3)."""
        holds = self._holds.get(command.call)
        if holds is None or not await holds():
            raise Overtaken

    @property
    def waits_for_leave(self) -> bool:
        return self._attempts is not None and self._attempts.are_waiting

    def let(self, leave: Leave) -> None:
        """What the run's core says to a wish."""
        if self._attempts is not None:
            self._attempts.answer(LetAttempt(leave.call, leave.ticket, leave.refusal))

    def stop(self, call: int) -> None:
        self._place.calls.stop(call)

    async def close(self) -> None:
        for answer in self._answers.values():
            answer.cancel()  # first: what a gate tells as it is cancelled isn't the call's end
        await self._place.calls.close()
        await self._place.evaluations.close()

    def _post(self, event: AnyEvent) -> None:
        call = getattr(event, "call", None)
        answer = self._answers.get(call) if call is not None else None
        if answer is None or answer.done():
            return
        if self._place.calls.is_under_way(event.call):  # type: ignore[union-attr]
            if not self._leave[event.call](event):  # type: ignore[union-attr]
                self._place.calls.stop(event.call)  # type: ignore[union-attr]  # another has it, and nobody would answer
        else:
            answer.set_result(event)

    def _fail(self, error: BaseException) -> None:
        """The sandbox or the journal can't go on: so can't the calls; whoever claims them next may."""
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(error)


def _attempts(
    state: State, around: Surroundings, clock: RunClock, post: Callable[[AnyEvent], None]
) -> Attempts | None:
    """Where the gates of calls ask the run's core, in a run that may spend so much only. Else attempts are told of with
    the call's end: each would cost a way through the pool and back.

    Whoever performs a call again must not take what was said to the one before for an answer.
    """
    if not limits_attempts(state):
        return None
    first, slots = secrets.randbits(40) << 8, Slots(None, around.places, lent=True)
    return Attempts(state, around, clock, post, _let_by_the_core, first, slots)


async def _let_by_the_core() -> None:
    """An attempt here has its core's leave, which is asked for under the claim: who lost it hears nothing."""


async def _no_child(
    command: StartCall,
    workflow: str,
    inputs: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    shares_memory: bool,
    above: object = None,
) -> ChildResult:
    _refuse(command.step)


def _refuse(step: str) -> NoReturn:
    raise Bug(f"{step} wants a child run, which only the worker with its run's loop can give")
