"""What a gate call knows: owned by the core, changed by nobody else. Everything in it follows from the events."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from gonogo.errors import Bug
from gonogo.gate import lifecycle
from gonogo.gate.decisions import AnyDecision, AttemptEnded, Budget
from gonogo.gate.events import NOTHING_USED, Answered, Began, Carried, Usage
from gonogo.gate.ordering import order_of
from gonogo.gate.policy import Policy, Target
from gonogo.gate.signals import Classification


class State(Struct):
    """One call. `current` is the target at hand, `candidate` the one proposed next (places in the policy's list).

    `flying` holds attempts under way by number: target and start. `unclear` is a target that may have done what the
    call is to do. `stay` is a target worth waiting for, and until when.
    """

    policy: Policy
    began: Began
    start_at: float
    deadline_at: float
    order: tuple[int, ...]
    current: int
    candidate: int
    attempt_at: float
    status: str = lifecycle.BEFORE
    called: int | None = None
    cycle: int = 1
    number: int = 0
    per_target: dict[str, int] = {}
    out: dict[str, str] = {}
    refused: dict[int, float] = {}
    used: Usage = NOTHING_USED
    validation_errors: list[str] = []
    fallbacks: int = 0
    unclear: int | None = None
    waits: int = 0
    stay: tuple[int, float] | None = None
    kinds: dict[tuple[int, str], int] = {}
    failure: Classification | None = None
    last: Answered | None = None
    spoke: int = -1
    flying: dict[int, tuple[int, float]] = {}
    attempts: list[AttemptEnded] = []
    delivered: bool = False
    feedback: str | None = None
    resume: bool = False
    forced: bool = False
    judging: str = ""

    @property
    def target(self) -> Target:
        """The target at hand."""
        return self.policy.targets[self.current]

    def move(self, status: str) -> None:
        """Change the status. Raises Bug on a move that the table doesn't list."""
        if status not in lifecycle.MOVES[self.status]:
            story = "; ".join(attempt.sentence() for attempt in self.attempts)
            raise Bug(f"a gate call can't go from {self.status} to {status} (so far: {story or 'nothing'})")
        self.status = status

    def offset_ms(self, at: float) -> float:
        """Milliseconds since the call's start, to the microsecond."""
        return int((at - self.start_at) * 1e6 + 0.5) / 1000

    def budget(self, at: float) -> Budget:
        """How much of the bounds is used."""
        used = self.used
        return Budget(
            self.number, used.input_tokens + used.output_tokens, used.cost_usd, round(at - self.start_at, 6)
        )

    def budget_before(self) -> Budget:
        """How much of them was used before the attempt that ended last."""
        used, last = self.used, self.last.usage if self.last is not None else NOTHING_USED
        return Budget(
            self.number - 1,
            used.input_tokens + used.output_tokens - last.input_tokens - last.output_tokens,
            round(used.cost_usd - last.cost_usd, 12),
            round(self.attempt_at - self.start_at, 6),
        )

    def made_on(self, index: int) -> int:
        """Attempts on a target."""
        return self.per_target.get(self.policy.targets[index].name, 0)

    def carried(self, at: float) -> Carried:
        """What a resume must go on with."""
        unclear = None if self.unclear is None else self.policy.targets[self.unclear].name
        return Carried(
            self.number,
            dict(self.per_target),
            at - self.start_at,
            self.used,
            {name: reason for name, reason in self.out.items() if name not in self.began.unfit},
            tuple(self.validation_errors),
            self.fallbacks,
            unclear,
        )

    def fits(self, index: int) -> bool:
        """Whether a target may serve this call at all: not out, not short of attempts, fit for what went wrong."""
        policy = self.policy
        target = policy.targets[index]
        if target.name in self.out or self.made_on(index) >= policy.bounds.attempts_per_target:
            return False
        if self.delivered and self.resume_needed() and "prefill" not in target.capabilities:
            return False
        if self.failure is not None and self.failure.kind == "context-too-long":
            failed_on = policy.targets[self.current if self.called is None else self.called]
            return (target.window_tokens or 0) > (failed_on.window_tokens or 0)
        return True

    def resume_needed(self) -> bool:
        """Whether the next attempt has to go on from what the consumer already has."""
        return self.delivered and self.policy.mode == "continue"

    def others(self) -> list[int]:
        """Targets to move on to, best first: those behind the one at hand, then a new cycle if the policy has more."""
        place = self.order.index(self.current)
        behind = [index for index in self.order[place + 1 :] if self.fits(index)]
        if not behind and self.cycle < self.policy.bounds.cycles:
            return [index for index in self.order[:place] if self.fits(index)]
        return behind


def begin(policy: Policy, began: Began) -> State:
    """The state of a call that is about to begin."""
    at = began.at
    deadline_at = at + policy.bounds.deadline_s
    if began.deadline_at is not None:
        deadline_at = min(deadline_at, began.deadline_at)
    order = (0,) if len(policy.targets) == 1 else order_of(policy, began)
    state = State(policy, began, at, deadline_at, order, order[0], order[0], at)
    if began.unfit:
        state.out = dict(began.unfit)
    if began.carried is not None:
        _carry(state, began.carried)
    return state


def _carry(state: State, carried: Carried) -> None:
    """Go on with what an earlier part of the call has used up."""
    state.start_at -= carried.elapsed_s
    state.deadline_at = min(state.deadline_at, state.start_at + state.policy.bounds.deadline_s)
    state.number = carried.attempts
    state.per_target = dict(carried.per_target)
    if carried.lost is not None:
        _give_back(state, carried.lost)
    state.out = {**state.out, **carried.out}
    state.used = carried.used
    state.validation_errors = list(carried.validation_errors)
    state.fallbacks = carried.fallbacks
    state.unclear = index_of(state.policy, carried.unclear)


def _give_back(state: State, lost: str) -> None:
    """A crash alone fails no call: where the attempt it cut short was the last one, it is made again.

    Crash after crash may have cut it short, so that more were made than the bounds allow.
    """
    bounds, made = state.policy.bounds, state.per_target.get(lost, 0)
    if state.number >= bounds.attempts_max or made >= bounds.attempts_per_target:
        state.number = max(0, min(state.number, bounds.attempts_max) - 1)
        state.per_target[lost] = max(0, min(made, bounds.attempts_per_target) - 1)


def index_of(policy: Policy, name: str | None) -> int | None:
    """The place of a target in the policy's list; None when it isn't there."""
    return next((index for index, target in enumerate(policy.targets) if target.name == name), None)


class Turn(Struct):
    """What one event leads to: decisions and commands, collected. All commands but the last need no answer.

    `offset_ms` is when this is, in the record's terms.
    """

    policy: Policy
    state: State
    at: float
    offset_ms: float
    decisions: list[AnyDecision] = []
    commands: list[Any] = []
