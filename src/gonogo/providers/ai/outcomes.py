"""What a call's end means for the step: its output and findings, its record in `meta`, and faults that tell apart why
there is no answer (spec E.11).
"""

from __future__ import annotations

from typing import Any

from gonogo.gate.events import Usage
from gonogo.gate.failures import GateError, ValidationStuck
from gonogo.gate.record import CallRecord
from gonogo.gate.summary import ATTEMPTS_MAX, SENTENCES_MAX, summary
from gonogo.provider import Call, Done, Failed, Fault
from gonogo.providers import _gated
from gonogo.providers._faults import fault
from gonogo.providers._issues import are_issues, as_issues
from gonogo.providers.ai.conversation import Given, kept
from gonogo.providers.ai.talk import Talk

RULE = "ai/no_answer"
_ADVICE = {
    "length-stop": "raise max_tokens, or ask for less",
    "auth": "look at api_key",
    "quota-exhausted": "look at the account",
}


def done(call: Call, talk: Talk, given: Given) -> Done:
    """The answer. With a schema, a list under `issues` in which everything has a message becomes findings."""
    value = talk.value(given)
    found: Any = value.get("issues") if isinstance(value, dict) else None
    return Done(
        value,
        as_issues(found, "ai") if are_issues(found) else (),
        {**_about(talk, given), **meta(talk)},
        tuple(talk.tools.memory),
        content=given.reply.text or None,
        effect="done" if talk.tools.changed else "none",
    )


def gave_up(call: Call, talk: Talk, error: GateError) -> Failed:
    """The gate's end of it: `ai.<kind>`, so that a refusal, a cut, a filter and silence are told apart."""
    kind = "schema-fail" if isinstance(error, ValidationStuck) else error.kind or "failed"
    tried = "; ".join(_told(record) for record in talk.records[-1:])
    told = [
        error.message.removeprefix(f"{call.step}: "),
        f"tried {tried}" if tried else "",
        _ADVICE.get(kind, ""),
    ]
    of_call = fault(
        call,
        f"ai.{kind.replace('-', '_')}",
        RULE,
        "; ".join(part for part in told if part),
        fault_class=_gated.fault_class(error),
        cause=error.kind or None,
        retry_after_s=error.retry_after_s,
    )
    return failed(talk, of_call)


def _told(record: CallRecord) -> str:
    """Every target that was tried, and what came of it (LLM-2)."""
    kinds: dict[str, dict[str, None]] = {}
    for attempt in record.attempts:
        kinds.setdefault(attempt.target, {})[attempt.failure.kind if attempt.failure else "ok"] = None
    return ", ".join(f"{target} ({', '.join(seen)})" for target, seen in kinds.items())


def failed(talk: Talk, of_call: Fault, *, in_doubt: bool = False) -> Failed:
    """A failure with all that is known. What tools changed stays changed."""
    effect = "unknown" if in_doubt else "done" if talk.tools.changed else "none"
    return Failed(of_call, meta=meta(talk), memory=tuple(talk.tools.memory), effect=effect)  # type: ignore[arg-type]


def meta(talk: Talk) -> dict[str, Any]:
    """`gate`, `usage` of all requests, and each use of a tool."""
    found: dict[str, Any] = {}
    if talk.records:
        found["gate"] = _joined(talk.records)
        used = _used(talk)
        if used != Usage():
            tokens = used.input_tokens + used.output_tokens
            found["usage"] = {"tokens": tokens, "cost": round(used.cost_usd, 9)}
    if talk.tools.records:
        found["tool_calls"] = talk.tools.records
    return found


def _used(talk: Talk) -> Usage:
    """By all requests and all their attempts."""
    return sum((record.used for record in talk.records), Usage())


def _about(talk: Talk, given: Given) -> dict[str, Any]:
    reply, way = given.reply, given.way
    tokens = {
        "input": reply.usage.input_tokens,
        "output": reply.usage.output_tokens,
        "cached": reply.usage.cached_tokens,
        "reasoning": reply.usage.reasoning_tokens,
    }
    found: dict[str, Any] = {
        "provider": way.vendor,
        "target": way.name,
        "model": reply.model or way.model,
        "finish_reason": reply.finish_raw or reply.finish,
        "tokens": {name: count for name, count in tokens.items() if count is not None},
        "cost": round(_used(talk).cost_usd, 9),
    }
    by = talk.pricing.by(way, reply.model) if found["cost"] else None
    if by is not None:
        found["priced_by"] = by
    conversation = kept(talk.messages)
    warnings = [*reply.notes, *talk.tools.warnings]
    if conversation is None:
        warnings.append("the conversation is too long to be kept; no session can go on from it")
    else:
        found["conversation"] = conversation
    return found | ({"warnings": warnings} if warnings else {})


def _joined(records: list[CallRecord]) -> dict[str, Any]:
    """One summary of all requests: one with tools makes several, each with its own attempts (`calls` says how many)."""
    parts = [summary(record) for record in records]
    if len(parts) == 1:
        return parts[0]
    attempts = [each for part in parts for each in part["attempts"]]
    joined = {
        **parts[-1],
        "calls": len(parts),
        "attempts": [{**each, "n": n} for n, each in enumerate(attempts[:ATTEMPTS_MAX], 1)],
        "decisions": [each for part in parts for each in part["decisions"]][:SENTENCES_MAX],
    }
    wasted = [part["wasted"] for part in parts if "wasted" in part]
    if wasted:
        joined["wasted"] = {name: sum(each[name] for each in wasted) for name in ("tokens", "cost")}
    return joined
