"""How a gate call ends: with an answer, with one error that carries every attempt, or broken off. Pure."""

from __future__ import annotations

from gonogo.gate import commands as c
from gonogo.gate import decisions as d
from gonogo.gate import guards, lifecycle
from gonogo.gate.events import NOTHING_USED, Cancelled
from gonogo.gate.guards import Block
from gonogo.gate.policy import Rule
from gonogo.gate.signals import Classification
from gonogo.gate.state import Turn
from gonogo.gate.verdicts import category_of


def settle(turn: Turn, verb: str, rule: Rule | None) -> None:
    """ok or fail-fast."""
    state = turn.state
    failure = state.failure
    if verb == "ok" and failure is None:
        finish(turn)
    elif verb == "ok":
        if state.began.streaming and state.last is not None and state.last.held:
            end(turn, "partial", state.target.name, failure.kind if failure else "")
            turn.commands.append(c.Return(partial=True))
        else:
            fail(turn, "not-retryable", "no-response", "after", "a rule accepts an answer that isn't there")
    elif rule is not None:
        category = "stuck" if guards.is_stuck(state) else "failed"
        fail(turn, category, rule.kind or (failure.kind if failure else "fail-fast"), "after", rule.named)
    else:
        category = "deadline" if failure and failure.kind == "deadline" else "not-retryable"
        fail(turn, category, failure.kind if failure else "fail-fast", "after")


def finish(turn: Turn, target: str | None = None) -> None:
    """The answer is good."""
    end(turn, "ok", target or turn.policy.targets[turn.state.current].name)
    turn.commands.append(c.Return())


def blocked(turn: Turn, block: Block, wanted: str, phase: str) -> None:
    """A guard ends the call."""
    turn.decisions.append(d.GuardBlocked(turn.offset_ms, block.guard, wanted, block.detail))
    fail(turn, block.category, block.kind, phase, f"{block.guard}: {block.detail}")


def give_up(turn: Turn, category: str, kind: str) -> None:
    """There is no way on. What may have been done outside is told before all else."""
    failure = turn.state.failure
    unsafe = guards.side_effect(turn.state, None)
    if unsafe is not None:
        blocked(turn, unsafe, "call", "after")
        return
    fail(
        turn, category or category_of(turn.state), kind or (failure.kind if failure else "exhausted"), "after"
    )


def fail(turn: Turn, category: str, kind: str, phase: str, label: str = "") -> None:
    """The call fails, with one error that carries every attempt."""
    state = turn.state
    wish = state.failure.retry_after_s if state.failure else None
    if wish is None and state.refused:
        wish = max(0.0, min(state.refused.values()) - turn.at)
    end(turn, "failed", None, kind, category)
    turn.commands.append(c.Raise(category, kind, phase, label, wish))


def break_off(turn: Turn, event: Cancelled) -> None:
    """What was under way is an attempt all the same, with what it used (B23, F16); of two the first is billed."""
    state = turn.state
    told = "the caller went away" if event.broken is None else f"{event.broken} of the step failed"
    failure = Classification("cancelled" if event.broken is None else "unknown", "the gate saw it", told)
    usage = event.usage
    for number, (index, began_at) in state.flying.items():
        ended = d.AttemptEnded(
            turn.offset_ms, number, turn.policy.targets[index].name, turn.at - began_at, failure, usage, "unknown",
            event.delivered, event.held,
        )  # fmt: skip
        usage = NOTHING_USED
        state.attempts.append(ended)
        turn.decisions.append(ended)
    state.flying = {}
    if state.status == lifecycle.FALLING_BACK:
        latency_s = turn.at - state.attempt_at
        turn.decisions.append(
            d.FallbackEnded(turn.offset_ms, state.number + 1, latency_s, failure, event.usage)
        )


def end(turn: Turn, outcome: str, target: str | None = None, kind: str = "", category: str = "") -> None:
    """The last decision."""
    state = turn.state
    state.move(lifecycle.ENDED)
    wasted = NOTHING_USED
    if state.used is not NOTHING_USED:
        for attempt in state.attempts:
            wasted = wasted if attempt.failure is None else wasted + attempt.usage
    turn.decisions.append(
        d.GateEnded(turn.offset_ms, outcome, len(state.attempts), target, kind, category, state.used, wasted)
    )
