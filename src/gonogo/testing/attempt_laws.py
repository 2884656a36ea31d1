"""What must hold of the attempts of a simulated run's gated calls, from its records alone.

attempts   numbered without gaps, no more of them than there may be, crashes or not; none after a stop
acts       none of a mutating call after one that may have acted, unless under a key or a person's word
set aside  never more tokens spent or set aside than the run may spend
"""

from __future__ import annotations

from dataclasses import dataclass

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import lifecycle as life
from gonogo.core.budgets import has_a_reserve
from gonogo.core.plan import Plan
from gonogo.core.state import State
from gonogo.testing.attempts import ATTEMPTS_MAX
from gonogo.testing.broken import Broken

Place = tuple[str, str]


@dataclass(slots=True)
class _Seen:
    """The attempts of a call and of its repeats: the latest number, which are under way, whether one may have acted."""

    number: int = 0
    flying: frozenset[int] = frozenset()
    lost: bool = False
    acted: bool = False
    stopped: bool = False


class AttemptLaws:
    """Follows the attempts of one run."""

    def __init__(self) -> None:
        self.seen: dict[Place, _Seen] = {}
        self.calls: dict[int, Place] = {}

    def note(self, event: e.AnyEvent) -> None:
        """What an event says of them."""
        place = self.calls.get(getattr(event, "call", 0))
        seen = None if place is None else self.seen.get(place)
        if place is None or seen is None:
            return
        if isinstance(event, e.CallDone | e.CallFailed):
            del self.seen[place]
        elif isinstance(event, e.AttemptEnded):
            seen.flying -= {event.ticket}
            seen.acted = seen.acted or event.effect != "none"
            if event.over:
                seen.number, seen.lost = 0, False
        elif isinstance(event, e.CallLost):
            seen.lost = seen.lost or bool(seen.flying)
            seen.acted = seen.acted or seen.lost
            seen.flying, seen.stopped = frozenset(), False

    def see(self, state: State, decision: d.AnyDecision, plan: Plan) -> None:
        """Judge one decision, before it is applied."""
        if isinstance(decision, d.Started):
            self._started(decision)
        elif isinstance(decision, d.Answered):
            self.seen.pop((decision.step, decision.scope), None)  # a person's word begins another call
        elif isinstance(decision, d.CallStopping):
            self.seen[decision.step, decision.scope].stopped = True
        elif isinstance(decision, d.AttemptStarted):
            self._attempt(state, decision, plan)

    def _started(self, decision: d.Started) -> None:
        place = (decision.step, decision.scope)
        self.calls[decision.call] = place
        if not decision.again or place not in self.seen:
            self.seen[place] = _Seen()

    def _attempt(self, state: State, decision: d.AttemptStarted, plan: Plan) -> None:
        place, step = (decision.step, decision.scope), plan.steps[decision.step]
        seen, where = (
            self.seen[place],
            f"attempt {decision.number} of {decision.step} in {decision.scope or '(run)'}",
        )
        again = seen.lost and decision.number == seen.number == ATTEMPTS_MAX
        if not again and (decision.number != seen.number + 1 or decision.number > ATTEMPTS_MAX):
            raise Broken("attempts", f"{where} after {seen.number}")
        if seen.stopped:
            raise Broken("attempts", f"{where} goes out although its call was told to stop")
        node = state.existing(*place)
        if node.call != decision.call or node.status not in life.CALLED:
            raise Broken("attempts", f"{where} goes out, but its call is over")
        if step.effects == "mutates" and seen.acted and step.idempotency_key is None:
            raise Broken("acts", f"{where} goes out after one that may have acted")
        self._check_budget(state, decision, plan, where)
        seen.number, seen.lost, seen.flying = decision.number, False, seen.flying | {decision.ticket}

    def _check_budget(self, state: State, decision: d.AttemptStarted, plan: Plan, where: str) -> None:
        allowed, gated = plan.budget.tokens, state.existing(decision.step, decision.scope).gate
        if allowed is None or has_a_reserve(state) or gated is None:
            return
        total = state.spent.tokens + state.spent.tokens_kept + gated.wishes[decision.ticket].tokens
        if total > allowed:
            raise Broken("set aside", f"{where}: {total} tokens of {allowed}")
