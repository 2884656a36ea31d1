"""Hard guards: what no rule can overrule. Pure. Each names itself in the record. Source: reliability-gate, B12, F.7."""

from __future__ import annotations

from typing import NamedTuple

from gonogo.gate.state import State

_RESTARTABLE = frozenset({"restart"})


class Block(NamedTuple):
    """A guard said no. `category` is the error it leads to; `exhausts`: the fallback may still be asked."""

    guard: str
    detail: str
    category: str
    kind: str
    exhausts: bool = False


def before_attempt(state: State, at: float) -> Block | None:
    """Time, attempts, money: may there be another attempt at all?"""
    bounds = state.policy.bounds
    if at >= state.deadline_at:
        return _deadline(state, at)
    if state.number >= bounds.attempts_max:
        detail = f"{state.number} of {bounds.attempts_max} attempts are made"
        return Block("attempts", detail, "exhausted", "attempts", exhausts=True)
    return None if bounds.tokens_max is None is bounds.cost_usd_max else spent(state)


def spent(state: State) -> Block | None:
    """Tokens and money of this call."""
    bounds, used = state.policy.bounds, state.used
    if bounds.tokens_max is not None and used.input_tokens + used.output_tokens >= bounds.tokens_max:
        detail = f"{used.input_tokens + used.output_tokens} of {bounds.tokens_max} tokens are used"
        return Block("budget", detail, "budget", "budget-exceeded")
    if bounds.cost_usd_max is not None and used.cost_usd >= bounds.cost_usd_max:
        detail = f"${used.cost_usd:.4f} of ${bounds.cost_usd_max:.4f} are spent"
        return Block("budget", detail, "budget", "budget-exceeded")
    return None


def repeat(state: State, at: float, wanted: str) -> Block | None:
    """After an attempt: may `wanted` (retry, retry-other, fallback) happen?"""
    if at >= state.deadline_at:
        return _deadline(state, at)
    block = spent(state)
    if block is None and wanted != "fallback":
        block = before_attempt(state, at)
    return (
        block
        or boundary(state, wanted)
        or side_effect(state, state.current if wanted == "retry" else None)
        or stuck(state, wanted)
    )


def boundary(state: State, wanted: str) -> Block | None:
    """What a consumer has seen can't be unsaid, except in a mode that can (F11). A fallback goes on from nothing."""
    if not state.delivered or state.policy.mode in _RESTARTABLE:
        return None
    last = state.last
    if state.policy.mode == "continue" and wanted != "fallback" and last is not None and last.continuable:
        return None
    detail = "part of the answer is with the consumer"
    return Block("commit boundary", detail, "not-retryable", "mid-stream-not-retryable")


def side_effect(state: State, target: int | None) -> Block | None:
    """A call that changes something, and may have: again only under a key, at the target that knows the key (F27).

    `target` None: any other target, or the fallback.
    """
    if state.unclear is None:
        return None
    if target == state.unclear and state.began.has_key and state.policy.targets[target].key_honoured:
        return None
    done = state.last is not None and state.last.effect == "done"
    kind = state.failure.kind if done and state.failure else "side-effect-unsafe"
    detail = f"{state.policy.targets[state.unclear].name} {'has' if done else 'may have'} done it"
    return Block("side effect", detail, "not-retryable", kind)


def stuck(state: State, wanted: str) -> Block | None:
    """Two equal complaints about the answer: a third would be the same (B22)."""
    if wanted != "retry" or not is_stuck(state):
        return None
    return Block("stuck loop", "the last two answers are wrong in the same way", "stuck", "schema-stuck-loop")


def is_stuck(state: State) -> bool:
    """Whether the last two validation messages are equal."""
    errors = state.validation_errors
    wrong = state.failure is not None and state.failure.kind == "schema-fail"
    return wrong and len(errors) > 1 and errors[-1] == errors[-2]


def _deadline(state: State, at: float) -> Block:
    limit_s = state.deadline_at - state.start_at
    return Block("deadline", f"{at - state.start_at:.3g} of {limit_s:.3g} s are over", "deadline", "deadline")
