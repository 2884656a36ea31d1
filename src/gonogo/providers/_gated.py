"""What step types that call out through a gate have in common: the record in `meta`, and a GateError as their fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gonogo.core.faults import Fault, FaultClass
from gonogo.gate.decisions import TargetSkipped
from gonogo.gate.failures import CircuitOpen, DeadlineExceeded, Exhausted, GateError, Misconfigured
from gonogo.gate.record import CallRecord
from gonogo.gate.summary import ATTEMPTS_MAX, SENTENCES_MAX, summary, usage
from gonogo.provider import Call, Effect, Failed
from gonogo.providers._faults import fault

_TRANSIENT = frozenset(
    "timeout-connect timeout-first-token timeout-idle timeout-total network server-5xx overloaded rate-limit"
    " truncated-stream malformed-stream circuit-open empty-response".split()
)
"""Kinds that another attempt of the step, later, may get past (gate/taxonomy.py)."""

_OPEN = "left alone, its breaker is open"
"""What a breaker calls `open` sounds like good news to who doesn't know breakers."""


def meta_of(record: CallRecord) -> dict[str, Any]:
    """`gate`: the record in short; `usage`: tokens and cost, if anybody told, which the run's budget counts.

    Empty for a call that may be made once, was, and told nothing of what it used.
    """
    used = usage(record)
    if not used and _says_nothing(record):
        return {}
    return {"gate": summary(record), "usage": used} if used else {"gate": summary(record)}


def joined(records: Sequence[CallRecord]) -> dict[str, Any]:
    """As `meta_of`, of a step that made several calls: their attempts in one row; `calls` says how many there were."""
    parts = [part for record in records if (part := meta_of(record))]
    if len(parts) < 2:
        return parts[0] if parts else {}
    summaries = [part["gate"] for part in parts]
    attempts = [each for one in summaries for each in one["attempts"]]
    whole = {
        **summaries[-1],
        "calls": len(parts),
        "attempts": [{**each, "n": n} for n, each in enumerate(attempts[:ATTEMPTS_MAX], 1)],
        "decisions": [each for one in summaries for each in one["decisions"]][:SENTENCES_MAX],
    }
    found: dict[str, Any] = {"gate": whole}
    for key, place in (("wasted", whole), ("usage", found)):
        told = [part[key] for part in (summaries if key == "wasted" else parts) if key in part]
        if told:
            place[key] = {name: sum(each[name] for each in told) for name in ("tokens", "cost")}
    return found


def _says_nothing(record: CallRecord) -> bool:
    """A call that may be made once and worked: there is nothing to tell that the step's own record doesn't."""
    once = record.policy.bounds.attempts_max == 1 and record.policy.breaker is None
    return once and len(record.attempts) == 1 and not record.notes


def meta_of_error(error: GateError) -> dict[str, Any]:
    """As `meta_of`, of a call that failed."""
    return meta_of(error.record) if error.record is not None else {}


def fault_class(error: GateError) -> FaultClass:
    """Transient when another attempt of the step could help: it failed in passing, or out of time or by a breaker.

    What a step type's own function broke is a bug of it (law 4).
    """
    if isinstance(error, Misconfigured) and error.kind == "step-error":
        return "bug"
    if isinstance(error, CircuitOpen | DeadlineExceeded):
        return "transient"
    last = error.attempts[-1].failure if error.attempts else None
    passing = last is not None and last.kind in _TRANSIENT
    return (
        "transient" if passing and (isinstance(error, Exhausted) or error.kind in _TRANSIENT) else "logical"
    )


def effect_of(error: GateError) -> Effect:
    """What the call did outside. An answer that failed for what it said was given all the same."""
    return error.effect


def told(error: GateError) -> str:
    """What to tell people: where nothing was called, why, and when that may change."""
    if error.record is None or error.attempts:
        return error.message
    skipped = {each.target: each.reason for each in error.record.decisions if isinstance(each, TargetSkipped)}
    if not skipped:
        return error.message
    reasons = ", ".join(f"{target} is {_plain(reason)}" for target, reason in list(skipped.items())[:5])
    when = "" if error.retry_after_s is None else f"; it may be asked again in {_span(error.retry_after_s)}"
    return f"nothing was called: {reasons}{when} ('gonogo breakers' shows it)"


def _span(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:,.0f} s"


def _plain(reason: str) -> str:
    is_open, more = reason == "open" or reason.startswith(("open:", "open ")), reason[len("open") :]
    return f"{_OPEN}{more}" if is_open else reason


def fault_of(call: Call, rule: str, error: GateError) -> Fault:
    """The fault of a call that its gate gave up; `gate.<kind>`."""
    return fault(
        call,
        f"gate.{error.kind or 'failed'}",
        rule,
        told(error),
        fault_class=fault_class(error),
        cause=error.kind or None,
        retry_after_s=error.retry_after_s,
    )


def failed(call: Call, rule: str, error: GateError, output: Any = None) -> Failed:
    """The outcome of a call that its gate gave up; `output` may hold what is known."""
    given = {"error": True, "message": told(error)} if output is None else output
    return Failed(
        fault_of(call, rule, error), output=given, meta=meta_of_error(error), effect=effect_of(error)
    )
