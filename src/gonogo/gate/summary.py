"""A call's record as plain data of bounded size: what a step's event keeps of it (`meta["gate"]`), and what it used.

The record itself holds everything; this holds what people ask about afterwards.
"""

from __future__ import annotations

from typing import Any

from gonogo.gate.decisions import AttemptEnded, GuardBlocked, RuleDecided, WaitStarted
from gonogo.gate.events import Usage
from gonogo.gate.record import CallRecord

ATTEMPTS_MAX = 50
SENTENCES_MAX = 100
SENTENCE_CHARACTERS_MAX = 300


def summary(record: CallRecord) -> dict[str, Any]:
    """The attempts, the decisions in sentences, who served, the policy's digest, and what was wasted."""
    waits = _waits_ms(record)
    attempts = record.attempts
    sentences = [*record.story(), *_broken_rules(record)]
    found: dict[str, Any] = {
        "attempts": [_attempt(each, waits.get(each.attempt, 0.0)) for each in attempts[:ATTEMPTS_MAX]],
        "decisions": [_cut(each) for each in (*sentences[:SENTENCES_MAX], *record.notes[:5])],
        "policy": record.policy_hash,
    }
    left_out = len(attempts) - ATTEMPTS_MAX, len(sentences) - SENTENCES_MAX
    if max(left_out) > 0:
        found["left_out"] = {"attempts": max(left_out[0], 0), "decisions": max(left_out[1], 0)}
    ended = record.outcome
    if ended is not None and ended.outcome in ("ok", "partial"):
        found["served"] = ended.target
    blocked = [each.guard for each in record.decisions if isinstance(each, GuardBlocked)]
    if blocked:
        found["blocked_by"] = blocked[-1]
    wasted = record.wasted
    if wasted != Usage():
        found["wasted"] = _used(wasted)
    return found


def usage(record: CallRecord) -> dict[str, float]:
    """What a run's budget counts: all tokens and money of the call, failed attempts included; empty when nothing."""
    used = record.used
    return {} if used == Usage() else _used(used)


def _used(used: Usage) -> dict[str, float]:
    return {"tokens": used.input_tokens + used.output_tokens, "cost": round(used.cost_usd, 9)}


def _attempt(ended: AttemptEnded, wait_ms: float) -> dict[str, Any]:
    failure = ended.failure
    found: dict[str, Any] = {
        "n": ended.attempt,
        "target": ended.target,
        "kind": failure.kind if failure is not None else "ok",
        "wait_ms": round(wait_ms),
        "ms": round(ended.latency_s * 1000),
    }
    if failure is not None and failure.status is not None:
        found["status"] = failure.status
    if ended.usage != Usage():
        found |= _used(ended.usage)
    return found


def _waits_ms(record: CallRecord) -> dict[int, float]:
    """How long was waited before each attempt, by its number."""
    found: dict[int, float] = {}
    number = 1
    for each in record.decisions:
        if isinstance(each, WaitStarted):
            found[number] = found.get(number, 0.0) + each.wait_s * 1000
        elif isinstance(each, AttemptEnded):
            number = each.attempt + 1
    return found


def _broken_rules(record: CallRecord) -> list[str]:
    """Rules that couldn't be evaluated, each error once: they count as no match (B14), so it must be said."""
    found = {
        f"{each.phase} rule {entry.index + 1} '{entry.label}' can't be evaluated: {entry.error}": None
        for each in record.decisions
        if isinstance(each, RuleDecided)
        for entry in each.entries
        if entry.error is not None
    }
    return list(found)


def _cut(text: str) -> str:
    return text if len(text) <= SENTENCE_CHARACTERS_MAX else text[: SENTENCE_CHARACTERS_MAX - 1] + "…"
