"""Calls of runs whose loop is elsewhere, performed here.

A worker reads a run's journal as far as the record that started the call, so it prepares the call from what the run's
own loop knew. What comes of it is left in the pool. Who claims a call a second time can't know what the first worker
did: a call that mutates is then lost, and the core decides what that means.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from msgspec.structs import replace

from gonogo.core.commands import LetAttempt, StartCall
from gonogo.core.events import AnyEvent, CallDone, CallFailed, CallLost, RunStarted
from gonogo.core.faults import Effect, Fault, cancellation
from gonogo.core.gated import lose
from gonogo.core.plan import Plan
from gonogo.core.state import State
from gonogo.errors import Bug, GonogoError, JournalError
from gonogo.hosts.answers import Answers
from gonogo.hosts.attempts import Attempts, limits_attempts
from gonogo.hosts.base import Surroundings
from gonogo.hosts.clock import RunClock
from gonogo.hosts.slots import Slots
from gonogo.hosts.sure import Overtaken
from gonogo.hosts.vault import Vault
from gonogo.hosts.workplace import Workplace
from gonogo.journal.lines import NewerJournal
from gonogo.journal.pool import Claim, Leave
from gonogo.journal.restoring import Follower
from gonogo.journal.sharing import SharedRuns
from gonogo.provider import ChildResult

VISITS_MAX = 64
"""Runs whose state is kept between calls; the one that was longest without any goes first."""

AGAIN_S = (0.1, 0.5, 2.0, 2.0, 2.0)
"""Pauses before a call is performed again that couldn't be for a reason that isn't its own; then it is given up."""

log = logging.getLogger("gonogo.worker")

_SHOWN = "restore it from a backup; 'gonogo show {}' tells what is there"


class TooNew(JournalError):  # noqa: N818 - the name says what is wrong
    """Only a newer gonogo can perform a call; nothing of it was begun."""


AroundOf = Callable[[RunStarted, Plan], Surroundings]
"""What a call of a run is given on this worker, under the plan that the run has by now: the worker's own environment,
with the secrets in it.
"""


class Errands:
    """The calls that one worker performs for runs elsewhere. Made and used within one asyncio event loop."""

    def __init__(self, worker: str, runs: SharedRuns, around_of: AroundOf) -> None:
        self._worker = worker
        self._pool = runs.pool
        self._runs = runs
        self._around_of = around_of
        self._visits: dict[str, _Visit] = {}
        self._answers = Answers(runs.pool)

    async def perform(self, run_id: str, call: int, *, takes_over: bool) -> bool:
        """Claim a call, perform it and leave what came of it; one that was claimed before only if this `takes_over`.

        False for one that is for a newer worker: it is as it was. Raises JournalError when the pool can't be used;
        StoreAway when the call isn't claimed, or may be, and others may reach the store.
        """
        claim = self._pool.at_once(lambda: self._pool.claim(run_id, call, self._worker, again=takes_over))
        try:
            if claim is not None:
                await self._answer_somehow(claim)
        except TooNew as problem:
            self._pass_over(claim, problem)
            return False
        return True

    async def perform_free(
        self, run_id: str, calls: Sequence[int], ended: Callable[[int], None], *, tries: int
    ) -> list[int]:
        """Perform those of these calls that no worker has; a call that was claimed `tries` times before is given up.
        `ended` is told how many are over, or aren't for this worker, as soon as they are.

        Those that are for newer workers, which are as they were. Raises JournalError when the pool can't be used.
        """
        claims = self._pool.claim_free(run_id, calls, self._worker)
        ended(len(calls) - len(claims))
        passed: list[int] = []

        async def perform(claim: Claim) -> None:
            try:
                if claim.before >= tries and claim.ticket.command.effects != "mutates":
                    await self._leave(claim, _poison(claim, claim.before))
                else:
                    await self._answer_somehow(claim)
            except TooNew as problem:
                self._pass_over(claim, problem)
                passed.append(claim.ticket.command.call)
            finally:
                ended(1)

        for done in await asyncio.gather(*map(perform, claims), return_exceptions=True):
            if isinstance(done, BaseException):
                raise done
        return passed

    async def give_up(self, run_id: str, call: int, takeovers: int) -> None:
        """Answer a call that ended every worker that performed it. Raises JournalError."""
        claim = self._pool.claim(run_id, call, self._worker)
        if claim is not None:
            await self._leave(claim, _poison(claim, takeovers))

    def hear(self) -> None:
        """Stop the calls that their runs want stopped, and tell those that wait for leave what was said."""
        for run_id, call in self._pool.to_stop(self._worker):
            visit = self._visits.get(run_id)
            if visit is not None:
                visit.stop(call)
        if any(visit.waits_for_leave for visit in self._visits.values()):
            for leave in self._pool.let_to(self._worker):
                if leave.run_id in self._visits:
                    self._visits[leave.run_id].let(leave)

    @property
    def under_way(self) -> int:
        """How many calls are performed here now."""
        return sum(visit.under_way for visit in self._visits.values())

    async def close(self) -> None:
        """End whatever is under way, without a word: whoever claims it next decides."""
        visits = list(self._visits.values())
        self._visits.clear()
        for visit in visits:
            await visit.close()

    async def _answer_somehow(self, claim: Claim) -> None:
        """What stops a call here may pass, or be otherwise elsewhere; what never passes ends the call."""
        told = ""
        ticket = claim.ticket
        for pause_s in AGAIN_S:
            try:
                await self._answer(claim)
                return
            except TooNew:
                raise
            except Exception as problem:  # noqa: BLE001 - whatever it is, the run waits for an answer (law 2)
                log.warning(
                    "call %d of run %s can't be performed: %s", ticket.command.call, ticket.run_id, problem
                )
                told = problem.message if isinstance(problem, GonogoError) else type(problem).__name__
            await asyncio.sleep(pause_s)
            again = self._pool.claim(ticket.run_id, ticket.command.call, self._worker)
            if again is None:
                return
            claim = again
        await self._leave(claim, _unperformable(claim, told))

    def _pass_over(self, claim: Claim | None, problem: TooNew) -> None:
        """Nothing was begun."""
        assert claim is not None
        ticket = claim.ticket
        why = f"worker {self._worker} is older than the run: {problem.message}"
        call = ticket.command.call
        log.warning("call %d of run %s is left to a newer worker: %s", call, ticket.run_id, problem.message)
        self._pool.pass_over(claim, self._worker, why)

    async def _answer(self, claim: Claim) -> None:
        """Raises TooNew."""
        if claim.newer:
            raise TooNew(claim.newer)
        event = _unperformed(claim)
        if event is None:
            event = await self._performed(claim)
        await self._leave(claim, event)

    async def _leave(self, claim: Claim, event: AnyEvent) -> None:
        ticket = claim.ticket
        told = replace(event, by=self._worker) if isinstance(event, CallDone | CallFailed) else event
        await self._answers.leave(ticket.run_id, ticket.command.call, told, claim.before)

    async def _performed(self, claim: Claim) -> AnyEvent:
        command = claim.ticket.command
        try:
            visit = await self._visit(claim.ticket.run_id, claim.ticket.seq)
            wanted = visit.wants(command) if command.effects == "mutates" or claim.before else True
        except NewerJournal as problem:
            raise TooNew(problem.message) from problem
        if not wanted and command.effects == "mutates":
            return CallLost(call=command.call)
        if claim.before:
            visit.lose(command.call)
        return await visit.perform(
            command,
            lambda event: self._pool.leave(
                visit.run_id, command.call, event, last=False, before=claim.before
            ),
            lambda: self._pool.holds(visit.run_id, command.call, claim.before),
        )

    async def _visit(self, run_id: str, seq: int) -> _Visit:
        visit = self._visits.pop(run_id, None)
        if visit is not None:
            visit.catch_up(seq)
            if visit.is_outdated and not visit.is_busy:
                await visit.close()
                visit = None
        if visit is None:
            visit = _Visit(run_id, self._runs, self._around_of)
            await self._make_room()
            visit.catch_up(seq)
        self._visits[run_id] = visit
        return visit

    async def _make_room(self) -> None:
        idle = [run_id for run_id, visit in self._visits.items() if not visit.is_busy]
        for run_id in idle[: max(0, len(self._visits) + 1 - VISITS_MAX)]:
            await self._visits.pop(run_id).close()


class _Visit:
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
        self._holds: dict[int, Callable[[], bool]] = {}
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
        self, command: StartCall, leave: Callable[[AnyEvent], bool], holds: Callable[[], bool]
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
        if holds is None or not holds():
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


def _unperformed(claim: Claim) -> AnyEvent | None:
    """What becomes of a call that isn't to be performed now; None when it is."""
    command = claim.ticket.command
    if claim.before and command.effects == "mutates":
        return CallLost(call=command.call, by=claim.had)
    if claim.stop:
        return CallFailed(call=command.call, fault=cancellation(command.step, "stopped before it started"))
    return None


def _poison(claim: Claim, times: int) -> CallFailed:
    return _failed(
        claim, "call.poison", f"{times} workers ended while they performed {claim.ticket.command.step}"
    )


def _unperformable(claim: Claim, why: str) -> CallFailed:
    return _failed(claim, "call.unperformed", f"{claim.ticket.command.step} can't be performed: {why}")


def _failed(claim: Claim, kind: str, message: str) -> CallFailed:
    command = claim.ticket.command
    fault = Fault(kind, "bug", f"{command.step}/execution_error", message)
    effect: Effect = "unknown" if command.effects == "mutates" else "none"
    return CallFailed(call=command.call, fault=fault, effect=effect)


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
