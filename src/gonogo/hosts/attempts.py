"""Attempts that the gates of a run's calls make: written in the run's journal, let go by its core (semantics.md 23).

    gate ─▶ AttemptAsked ─▶ core: budgets, slot, stop ─▶ record ─▶ LetAttempt ─▶ the attempt ─▶ AttemptEnded

Where a run above has a budget, it is asked first (`above.py`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from gonogo.core import events as e
from gonogo.core.budgets import has_a_reserve
from gonogo.core.commands import LetAttempt, StartCall
from gonogo.core.faults import Fault
from gonogo.core.plan import Budget
from gonogo.core.state import State
from gonogo.hosts.above import Above, Loan
from gonogo.hosts.slots import Slots
from gonogo.journal.normalise import normalise

if TYPE_CHECKING:
    from gonogo.gate.budgets import Amounts
    from gonogo.gate.events import Carried
    from gonogo.gate.ledger import Ended, Opens, Told, Wanted
    from gonogo.gate.step import Step
    from gonogo.hosts.base import Surroundings
    from gonogo.hosts.clock import RunClock

DATA_BYTES_MAX = 16 * 1024
"""The most evidence that a decision of a gate brings into a record."""
TOLD_MAX = 200
"""The most decisions that an event brings; a gate makes a handful between two attempts."""
_EVIDENT = frozenset({"rule_decided", "breaker_changed", "guard_blocked", "target_skipped"})
"""Decisions that stand on more than their sentence says."""
_FALLBACK = "fallback"


class Attempts:
    """Those of one run. Made and used within one asyncio event loop."""

    def __init__(
        self,
        state: State,
        around: Surroundings,
        clock: RunClock,
        post: Callable[[e.AnyEvent], None],
        sure: Callable[[], Awaitable[None]],
        first: int = 0,
        slots: Slots | None = None,
    ) -> None:
        """`sure` returns while the run is this process' to go on with, and raises JournalError else. The numbers of
        wishes begin behind `first`. `slots`: what calls wait for, unless that is what the run shares.
        """
        self.state = state
        self.around = around
        self.clock = clock
        self.post = post
        self.sure = sure
        self.slots = slots or Slots(around.slots, around.places)
        self._waiting: dict[int, asyncio.Future[str]] = {}
        self._last = first

    @property
    def budget(self) -> Budget:
        """What the run may spend."""
        return self.state.graph.plan.budget

    def now(self) -> float:
        """Seconds on the run's clock."""
        return self.clock.now()

    def masked(self, text: str) -> str:
        """A text as the run's records may hold it."""
        return self.around.redactor.text(text)

    @property
    def are_waiting(self) -> bool:
        """Whether any waits for leave."""
        return bool(self._waiting)

    def ticket(self) -> int:
        """Tells wishes of this process apart; a call that is made again has another number."""
        self._last += 1
        return self._last

    async def leave(self, event: e.AttemptAsked) -> str | None:
        """Ask the core; None is leave, a text says why not."""
        answer = self._waiting[event.ticket] = asyncio.get_running_loop().create_future()
        self.post(event)
        try:
            return await answer or None
        finally:
            del self._waiting[event.ticket]

    def answer(self, command: LetAttempt) -> None:
        """What the core says; nobody may be there any more to hear it."""
        waiting = self._waiting.get(command.ticket)
        if waiting is not None and not waiting.done():
            waiting.set_result(command.refusal)

    def opener(self, command: StartCall, targets: Mapping[str, str], requests: Iterator[int]) -> Opens:
        """Opens the ledgers of a call's requests; `targets` are the true names by those that records hold."""

        def open_one(step: Step) -> _Ledger:
            return _Ledger(self, command, targets, next(requests))

        return open_one

    def beneath(self, call: int) -> Above | None:
        """Where a run beneath a call asks before it spends; None where nobody has a budget for it."""
        budget, above = self.budget, self.around.above
        if budget.calls is None and budget.tokens is None and budget.money is None:
            return above
        return Above(self, call, above)

    async def may_call(self, command: StartCall) -> Fault | None:
        """Ask those above for one more call; the fault of a call that mayn't be made."""
        above = self.around.above
        if above is None or not above.counts_calls or has_a_reserve(self.state):
            return None
        loan = await above.ask(f"{self.state.run_id}: {command.step}", calls=1)
        if isinstance(loan, Loan):
            return None
        return Fault("budget.calls", "logical", f"{command.step}/budget_exceeded", loan)


def limits_attempts(state: State) -> bool:
    """Whether the run has a budget that attempts are held against, beside that of calls."""
    budget = state.graph.plan.budget
    return budget.tokens is not None or budget.money is not None or budget.retries is not None


class _Ledger:
    """One request's (`gate/ledger.py`)."""

    def __init__(
        self, attempts: Attempts, command: StartCall, targets: Mapping[str, str], request: int
    ) -> None:
        self._attempts = attempts
        self._call = command.call
        self._tool = command.tool
        self._request = request
        self._who = f"{attempts.state.run_id}: {command.step}"
        self._tickets: dict[int, tuple[int, Loan | None]] = {}
        self.carried = carried(attempts.state, command, request, attempts.now(), targets)

    async def ask(self, wanted: Wanted, told: Told) -> str | None:
        """Those above are asked first: what the run's own journal says has started does go out."""
        attempts, amounts = self._attempts, wanted.amounts
        loan = await self._borrow(amounts)
        if isinstance(loan, str):
            return loan
        ticket = attempts.ticket()
        refusal = await attempts.leave(
            e.AttemptAsked(
                at=attempts.now(),
                call=self._call,
                ticket=ticket,
                request=self._request,
                tool=self._tool,
                number=wanted.number,
                target=self._clean(wanted.target),
                effects=wanted.effects,
                tokens=amounts.tokens,
                money=amounts.cost_usd,
                elapsed_s=wanted.elapsed_s,
                told=self._told(told),
            )
        )
        if refusal is not None:
            self._settle(loan)
            return refusal
        self._tickets[wanted.number] = ticket, loan
        await attempts.slots.take(self._call)
        if wanted.effects == "mutates":
            await attempts.sure()
        return None

    def ended(self, ended: Ended, told: Told) -> None:
        """An attempt without a ticket never had leave."""
        ticket, loan = self._tickets.pop(ended.attempt.attempt, (0, None))
        if not ticket:
            return
        attempt, used = ended.attempt, ended.attempt.usage
        self._settle(loan, used.input_tokens + used.output_tokens, used.cost_usd)
        failure = attempt.failure
        self._attempts.post(
            e.AttemptEnded(
                at=self._attempts.now(),
                call=self._call,
                ticket=ticket,
                kind=failure.kind if failure is not None else "",
                status=failure.status if failure is not None else None,
                effect=attempt.effect,
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                money=used.cost_usd,
                out=ended.out,
                wrong=None if attempt.validation is None else self._clean(attempt.validation),
                next=self._clean(ended.next),
                over=ended.over,
                elapsed_s=ended.elapsed_s,
                told=self._told(told),
            )
        )

    def waits(self, wait_s: float, target: str, elapsed_s: float, told: Told) -> None:
        """Others may have the slot, of the run and of the whole tree."""
        self._attempts.post(
            e.GateWaits(
                at=self._attempts.now(),
                call=self._call,
                wait_s=wait_s,
                request=self._request,
                tool=self._tool,
                target=self._clean(target),
                elapsed_s=elapsed_s,
                told=self._told(told),
            )
        )
        if not self._tickets:
            self._attempts.slots.let_go(self._call)

    def over(self, told: Told) -> None:
        """The request is over without another attempt."""
        at = self._attempts.now()
        self._attempts.post(
            e.GateEnded(at=at, call=self._call, request=self._request, tool=self._tool, told=self._told(told))
        )

    async def _borrow(self, amounts: Amounts) -> Loan | str | None:
        """What the runs above set aside; None where there are none, or this run has a reserve of its own."""
        above = self._attempts.around.above
        if above is None or has_a_reserve(self._attempts.state):
            return None
        return await above.ask(self._who, tokens=amounts.tokens, money=amounts.cost_usd)

    def _settle(self, loan: Loan | None, tokens: int = 0, money: float = 0.0) -> None:
        above = self._attempts.around.above
        if above is not None and loan is not None:
            above.settle(loan, tokens, money)

    def _clean(self, text: str) -> str:
        return self._attempts.masked(str(normalise(text)))

    def _told(self, told: Told) -> tuple[e.Told, ...]:
        return tuple(self._one(decision) for decision in told[:TOLD_MAX])

    def _one(self, decision: Any) -> e.Told:
        kind = str(decision.__struct_config__.tag)
        return e.Told(
            kind,
            self._clean(decision.sentence()),
            round(decision.offset_ms / 1000, 6),
            self._evidence(decision) if kind in _EVIDENT else {},
        )

    def _evidence(self, decision: Any) -> dict[str, Any]:
        data = msgspec.to_builtins(decision)
        kept = {name: value for name, value in data.items() if name not in ("type", "offset_ms")}
        plain: dict[str, Any] = self._attempts.around.redactor.value(normalise(kept))
        size = len(json.dumps(plain))
        return plain if size <= DATA_BYTES_MAX else {"$left_out": f"{size} bytes"}


def carried(
    state: State, command: StartCall, request: int, now_s: float, targets: Mapping[str, str]
) -> Carried | None:
    """What an earlier part of a request has used up, before the run was interrupted; None for one that begins."""
    node = state.calls.get(command.call)
    gated = node.gate if node is not None else None
    found = gated.requests.get((command.tool, request)) if gated is not None else None
    if found is None:
        return None
    from gonogo.gate.events import Carried, Usage

    def named(target: str | None) -> str | None:
        return None if target is None else targets.get(target, target)

    made = {targets.get(target, target): count for target, count in found.per_target.items()}
    fallbacks = made.pop(_FALLBACK, 0) if _FALLBACK not in targets else 0
    return Carried(
        found.number,
        made,
        found.elapsed_s,
        Usage(found.input_tokens, found.output_tokens, found.money),
        {targets.get(target, target): why for target, why in found.out.items()},
        tuple(found.wrong),
        fallbacks - (fallbacks > 0 and found.lost == _FALLBACK),
        named(found.unclear),
        named(found.lost),
        named(found.next or None),
        0.0 if found.wait_until is None else max(0.0, found.wait_until - now_s),
    )
