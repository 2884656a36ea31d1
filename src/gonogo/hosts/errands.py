"""Calls of runs whose loop is elsewhere, performed here.

A worker reads a run's journal as far as the record that started the call, so it prepares the call from what the run's
own loop knew. What comes of it is left in the pool. Who claims a call a second time can't know what the first worker
did: a call that mutates is then lost, and the core decides what that means.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from gonogo.core.events import AnyEvent, CallDone, CallFailed, CallLost
from gonogo.core.faults import Effect, Fault, cancellation
from gonogo.errors import GonogoError, JournalError
from gonogo.hosts.answers import Answers
from gonogo.hosts.pen import answered
from gonogo.hosts.visits import AroundOf, Visit
from gonogo.journal.lines import NewerJournal
from gonogo.journal.pool import Claim, Ticket
from gonogo.journal.sharing import SharedRuns
from gonogo.journal.store import StoreAway

VISITS_MAX = 64
"""Runs whose state is kept between calls; the one that was longest without any goes first."""

AGAIN_S = (0.1, 0.5, 2.0, 2.0, 2.0)
"""Pauses before a call is performed again that couldn't be for a reason that isn't its own; then it is given up."""

KEPT_S = (0.1, 0.5, 2.0, 5.0, 10.0)
"""Pauses before the store is asked again to keep what this worker makes of a call; the last one for as long as it
takes. Nobody else performs a call that a living worker has.
"""

SUSPECT = 3
"""A call that has lost so many workers is performed with no other such call beside it: one of them ends its workers,
and the others would be taken for it.
"""

T = TypeVar("T")

log = logging.getLogger("gonogo.worker")
taken = logging.getLogger("gonogo.worker.taken")


class TooNew(JournalError):  # noqa: N818 - the name says what is wrong
    """Only a newer gonogo can perform a call; nothing of it was begun."""


class Errands:
    """The calls that one worker performs for runs elsewhere. Made and used within one asyncio event loop."""

    def __init__(self, worker: str, runs: SharedRuns, around_of: AroundOf) -> None:
        self._worker = worker
        self._pool = runs.pool
        self._runs = runs
        self._around_of = around_of
        self._visits: dict[str, Visit] = {}
        self._answers = Answers(runs.pool)
        self._suspect = asyncio.Lock()
        """Held by whoever performs a suspect."""

    async def perform(self, run_id: str, call: int, *, takes_over: bool, tries: int) -> bool:
        """Claim a call, perform it and leave what came of it; one that was claimed before only if this `takes_over`.
        One that was claimed `tries` times before is given up.

        False for one that is for a newer worker: it is as it was. Raises JournalError when the pool can't be used;
        StoreAway when the call isn't claimed, or may be, and others may reach the store.
        """

        def claimed(below: int | None = None) -> Claim | None:
            return self._pool.at_once(
                lambda: self._pool.claim(run_id, call, self._worker, again=takes_over, below=below)
            )

        claim = claimed(SUSPECT)
        if claim is not None:
            return await self._over(claim, tries)
        if not self._pool.at_once(lambda: self._pool.suspects(run_id, [call], SUSPECT)):
            return True
        async with self._suspect:
            claim = claimed()
            return claim is None or await self._over(claim, tries)

    async def perform_free(
        self, run_id: str, calls: Sequence[int], ended: Callable[[int], None], *, tries: int
    ) -> list[int]:
        """Perform those of these calls that no worker has; a call that was claimed `tries` times before is given up.
        `ended` is told how many are over, or aren't for this worker, as soon as they are.

        Those that are for newer workers, which are as they were. Raises JournalError when the pool can't be used.
        """
        claims = self._pool.claim_free(run_id, calls, self._worker, below=SUSPECT)
        others = sorted(set(calls) - {claim.ticket.command.call for claim in claims})
        passed: list[int] = []

        async def perform(claim: Claim) -> None:
            try:
                if not await self._over(claim, tries):
                    passed.append(claim.ticket.command.call)
            finally:
                ended(1)

        async def alone(call: int) -> None:
            async with self._suspect:
                free = self._pool.claim_free(run_id, [call], self._worker)
                if free:
                    await perform(free[0])
                else:
                    ended(1)

        async def rest() -> None:  # if it fails, those that are claimed are performed all the same
            suspects = self._pool.suspects(run_id, others, SUSPECT) if others else []
            ended(len(others) - len(suspects))
            await _all(map(alone, suspects))

        await _all((*map(perform, claims), rest()))
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

    async def _over(self, claim: Claim, tries: int) -> bool:
        """Perform it, or give it up; False for one that is for a newer worker."""
        _tell(claim)
        try:
            if claim.before >= tries and claim.ticket.command.effects != "mutates":
                await self._leave(claim, _poison(claim, claim.before))
            else:
                await self._answer_somehow(claim)
        except TooNew as problem:
            await self._pass_over(claim, problem)
            return False
        return True

    async def _answer_somehow(self, claim: Claim) -> None:
        """What stops a call here may pass, or be otherwise elsewhere; what never passes ends the call."""
        told = ""
        ticket = claim.ticket
        for pause_s in AGAIN_S:
            try:
                event = await self._answer(claim)
            except TooNew:
                raise
            except Exception as problem:  # noqa: BLE001 - whatever it is, the run waits for an answer (law 2)
                log.warning(
                    "call %d of run %s can't be performed: %s", ticket.command.call, ticket.run_id, problem
                )
                told = _told(problem)
            else:
                await self._leave(claim, event)
                return
            await asyncio.sleep(pause_s)
            again = await self._claimed_again(ticket)
            if again is None:
                return
            claim = again
        await self._leave(claim, _unperformable(claim, told))

    async def _claimed_again(self, ticket: Ticket) -> Claim | None:
        def claim() -> Claim | None:
            return self._pool.claim(ticket.run_id, ticket.command.call, self._worker)

        return await _kept(ticket, lambda _: answered(self._pool.at_once, claim))

    async def _pass_over(self, claim: Claim, problem: TooNew) -> None:
        """Nothing was begun."""
        ticket = claim.ticket
        why = f"worker {self._worker} is older than the run: {problem.message}"
        call = ticket.command.call
        log.warning("call %d of run %s is left to a newer worker: %s", call, ticket.run_id, problem.message)

        def pass_over() -> None:
            self._pool.pass_over(claim, self._worker, why)

        await _kept(ticket, lambda _: answered(self._pool.at_once, pass_over))

    async def _answer(self, claim: Claim) -> AnyEvent:
        """Raises TooNew."""
        if claim.newer:
            raise TooNew(claim.newer)
        return _unperformed(claim) or await self._performed(claim)

    async def _leave(self, claim: Claim, event: AnyEvent) -> None:
        """As long as it takes. What the store refuses again and again is tried without those that end with it."""
        told = replace(event, by=self._worker) if isinstance(event, CallDone | CallFailed) else event
        run_id, call = claim.ticket.run_id, claim.ticket.command.call

        async def left(tries: int) -> None:
            if tries < len(KEPT_S):
                await self._answers.leave(run_id, call, told, claim.before)
            else:
                self._pool.at_once(lambda: self._leave_alone(claim, told))

        await _kept(claim.ticket, left)

    def _leave_alone(self, claim: Claim, event: AnyEvent) -> None:
        """At least that it can't be kept, where the store refuses it; one that is away takes all of it later. Raises
        JournalError, StoreAway.
        """
        run_id, call = claim.ticket.run_id, claim.ticket.command.call
        try:
            self._pool.leave_all(run_id, [(call, event, claim.before)])
        except StoreAway:
            raise
        except Exception as problem:  # noqa: BLE001 - whatever it is, the run waits for an answer (law 2)
            instead = replace(_unperformable(claim, _told(problem)), by=self._worker)
            self._pool.leave_all(run_id, [(call, instead, claim.before)])

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
            lambda: answered(
                self._pool.at_once, lambda: self._pool.holds(visit.run_id, command.call, claim.before)
            ),
        )

    async def _visit(self, run_id: str, seq: int) -> Visit:
        """Calls of a run have one between them: while another is closed, they may come, and it may get busy."""
        await self._make_room(run_id)
        while True:
            visit = self._visits.pop(run_id, None) or Visit(run_id, self._runs, self._around_of)
            self._visits[run_id] = visit
            visit.catch_up(seq)
            if visit.is_busy or not visit.is_outdated:
                return visit
            await self._visits.pop(run_id).close()

    async def _make_room(self, run_id: str) -> None:
        idle = [other for other, visit in self._visits.items() if other != run_id and not visit.is_busy]
        others = len(self._visits) - (run_id in self._visits)
        for visit in [self._visits.pop(other) for other in idle[: max(0, others + 1 - VISITS_MAX)]]:
            await visit.close()


async def _all(work: Iterable[Awaitable[None]]) -> None:
    """Raises what one of them raised once all are over."""
    for done in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(done, BaseException):
            raise done


async def _kept(ticket: Ticket, keep: Callable[[int], Awaitable[T]]) -> T:
    """What `keep` makes, which is told how often it failed before; asked until it fails no more."""
    tries = 0
    while True:
        try:
            return await keep(tries)
        except Exception as problem:  # noqa: BLE001 - whatever it is, nobody else would have the call
            if tries == 0:
                call = ticket.command.call
                log.warning(
                    "call %d of run %s waits until the store keeps what became of it: %s",
                    call,
                    ticket.run_id,
                    problem,
                )
        await asyncio.sleep(KEPT_S[min(tries, len(KEPT_S) - 1)])
        tries += 1


def _told(problem: Exception) -> str:
    return problem.message if isinstance(problem, GonogoError) else type(problem).__name__


def _unperformed(claim: Claim) -> AnyEvent | None:
    """What becomes of a call that isn't to be performed now; None when it is."""
    command = claim.ticket.command
    if claim.before and command.effects == "mutates":
        return CallLost(call=command.call, by=claim.had)
    if claim.stop:
        return CallFailed(call=command.call, fault=cancellation(command.step, "stopped before it started"))
    return None


def _tell(claim: Claim) -> None:
    """That this worker has it, for its log."""
    call, run_id = claim.ticket.command.call, claim.ticket.run_id
    if claim.before:
        had = claim.had or "another worker"
        log.warning("takes over call %d of run %s, which %s had", call, run_id, had)
    else:
        taken.info("takes call %d of run %s", call, run_id)


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
