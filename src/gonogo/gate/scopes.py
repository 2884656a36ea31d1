"""The names that rules see, and what wrote each of them. Pure. Source: reliability-gate, A.5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gonogo.gate.rules import Entry, Read, small, value_at
from gonogo.gate.state import State

NAMES = frozenset(
    """
    phase step attempt target_attempt target target_index targets_count can_switch has_fallback error_kind error
    response latency_s validation_error validation_errors attempts_per_target cost_usd input_tokens output_tokens tokens
    delivered streaming elapsed_s left_s effect effects integrity fallbacks waits
    """.split()
)
"""Every name, for the check of filters when a gate is built."""

_BY_ATTEMPT = frozenset(
    "error_kind error response latency_s validation_error delivered effect integrity".split()
)


def scope_of(state: State, at: float, phase: str) -> dict[str, Any]:
    """The scope of a phase. `attempt` counts calls finished in this call, `target_attempt` those on this target."""
    policy, last, failure = state.policy, state.last, state.failure
    index = state.candidate if phase == "before" else state.current
    return {
        "phase": phase,
        "step": state.began.step,
        "attempt": state.number,
        "target_attempt": state.made_on(index),
        "target": policy.targets[index].name,
        "target_index": index,
        "targets_count": len(policy.targets),
        "can_switch": bool(state.others()),
        "has_fallback": state.began.has_fallback,
        "error_kind": failure.kind if failure else "ok",
        "error": _error(state),
        "response": last.response if last and failure is None else None,
        "latency_s": state.attempts[-1].latency_s if state.attempts else 0.0,
        "validation_error": last.validation if last else None,
        "validation_errors": list(state.validation_errors),
        "attempts_per_target": dict(state.per_target),
        "cost_usd": state.used.cost_usd,
        "input_tokens": state.used.input_tokens,
        "output_tokens": state.used.output_tokens,
        "tokens": state.used.input_tokens + state.used.output_tokens,
        "delivered": state.delivered,
        "streaming": state.began.streaming,
        "elapsed_s": at - state.start_at,
        "left_s": state.deadline_at - at,
        "effect": last.effect if last else "none",
        "effects": state.began.effects,
        "integrity": last.integrity if last else "ok",
        "fallbacks": state.fallbacks,
        "waits": state.waits,
    }


def _error(state: State) -> dict[str, Any] | None:
    """A failure as plain data (B1)."""
    failure = state.failure
    if failure is None:
        return None
    return {
        "type": failure.type,
        "message": failure.message,
        "status": failure.status,
        "code": failure.code,
        "retry_after_s": failure.retry_after_s,
        "request_id": failure.request_id,
        "body_excerpt": failure.body_excerpt,
        "target": state.target.name,
    }


def reads_of(state: State, entries: tuple[Entry, ...]) -> tuple[Read, ...]:
    """What the conditions of a decision read, each once, with what wrote it: an attempt, a count, the policy."""
    found: dict[str, Read] = {}
    for entry in entries:
        for compared in entry.conditions:
            root = compared.path.partition(".")[0]
            found.setdefault(compared.path, Read(compared.path, compared.actual, _producer(state, root)))
        for read in entry.reads:
            root = read.path.partition(".")[0]
            found.setdefault(read.path, Read(read.path, read.value, read.producer or _producer(state, root)))
    return tuple(found.values())


def _producer(state: State, root: str) -> str:
    if root in _BY_ATTEMPT:
        return f"attempt {state.number}" if state.attempts else "nothing yet"
    return (
        "the policy" if root in ("targets_count", "has_fallback", "effects", "step") else "the call's count"
    )


def read_along(scope: Mapping[str, Any], paths: tuple[str, ...]) -> tuple[Read, ...]:
    """The values at these paths, for evaluators that know what a text reads."""
    return tuple(Read(path, small(value_at(scope, path))) for path in paths)
