"""Why: the life of a step, or of a whole run, as sentences from its records, with the values that were read.

What `explain` prints. The sentences are the decisions' own (`core/decisions.py`); nothing is reconstructed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from gonogo.core import decisions as d
from gonogo.core.events import (
    AnyEvent,
    AttemptAsked,
    AttemptEnded,
    CallDone,
    CallFailed,
    CallLost,
    GateEnded,
    GateWaits,
    RerunAsked,
    Resumed,
    RunStarted,
    Told,
)
from gonogo.core.plan import Plan
from gonogo.journal.records import Record

__all__ = ["Line", "story"]

_UNTOLD = (d.Asked, d.Settled, d.TimerCleared, d.Completed, d.WaitsOn)
"""Bookkeeping: recorded so that a state can be rebuilt, no news to a person."""


_ATTEMPTS = (AttemptAsked, AttemptEnded, GateWaits, GateEnded)
_OF_CALLS = (*_ATTEMPTS, CallDone, CallFailed, CallLost)


class Line(Struct, frozen=True, omit_defaults=True):
    """One sentence. `at_s` is the run's clock; `step` is empty for what concerns the whole run.

    `expression` is the source that was judged and `evidence` the values it read, as path → value.
    """

    seq: int
    at_s: float
    text: str
    step: str = ""
    scope: str = ""
    kind: str = ""
    expression: str | None = None
    evidence: dict[str, Any] = {}


def story(records: Iterable[Record], step: str | None = None, scope: str | None = None) -> list[Line]:
    """What happened to a step (in one scope, or all of them), or without a step everything, in the order it happened.

    A step's story includes what others decided about it: why it was left out, who routed to it, what stopped
    it.
    """
    plan: Plan | None = None
    lines: list[Line] = []
    calls: dict[int, tuple[str, str]] = {}
    told: set[int] = set()
    for record in records:
        event = record.event
        lines.extend(_of_host(record) if step is None else ())
        if isinstance(event, RunStarted):
            plan = event.plan
        elif isinstance(event, RerunAsked):
            plan = event.plan or plan
        elif isinstance(event, _OF_CALLS) and event.call in calls:
            where = calls[event.call]
            if step in (None, where[0]) and scope in (None, where[1]):
                lines.extend(_of_call(record, event, *where, told))
        for decision in record.decisions:
            if isinstance(decision, d.Started):
                calls[decision.call] = (decision.step, decision.scope)
            lines.extend(_lines(record, decision, plan, step, scope))
    return lines


def _of_host(record: Record) -> Iterator[Line]:
    """Who decides from here on, and makes the calls that no other worker is said to have made."""
    event = record.event
    host = event.by if isinstance(event, Resumed) else getattr(event, "host", "")
    if host:
        yield Line(record.seq, event.at, f"with {host}", kind="host")


def _lines(
    record: Record, decision: d.AnyDecision, plan: Plan | None, step: str | None, scope: str | None
) -> Iterator[Line]:
    if isinstance(decision, _UNTOLD):
        return
    text = decision.sentence() if step is None else _about(decision, step, scope)
    if text is None:
        return
    expression = None
    if isinstance(decision, d.Judged) and plan is not None:
        expression = plan.expressions[decision.expression].source
    yield Line(
        record.seq,
        record.event.at,
        text,
        getattr(decision, "step", None) or "",
        getattr(decision, "scope", ""),
        str(decision.__struct_config__.tag),
        expression,
        getattr(decision, "evidence", {}),
    )


def _of_call(record: Record, event: AnyEvent, step: str, scope: str, told: set[int]) -> Iterator[Line]:
    """What happened within a call. `told`: calls whose attempts the records hold."""
    if isinstance(event, CallDone | CallFailed | CallLost) and event.by:
        how = "was lost with" if isinstance(event, CallLost) else "made by"
        yield Line(record.seq, event.at, f"call: {how} {event.by}", step, scope, "host")
    if isinstance(event, CallDone | CallFailed):
        yield from _of_end(record, event, step, scope, event.call in told)
    elif isinstance(event, _ATTEMPTS):
        told.add(event.call)
        for each in event.told:
            text = f"call: {each.at_s:.3f} s: {each.text}"
            yield Line(record.seq, event.at, text, step, scope, "gate", None, _reads(each))


def _reads(told: Told) -> dict[str, Any]:
    """What the rules of a gate's decision read, as path → value."""
    reads = told.data.get("reads")
    return {
        str(read["path"]): read.get("value")
        for read in (reads if isinstance(reads, list | tuple) else ())
        if isinstance(read, dict) and "path" in read
    }


def _of_end(
    record: Record, event: CallDone | CallFailed, step: str, scope: str, told: bool
) -> Iterator[Line]:
    """What the call's gate decided, where no record before has it, and which tools were used."""
    gate = event.meta.get("gate")
    sentences = gate.get("decisions") if isinstance(gate, dict) and not told else None
    for text in sentences if isinstance(sentences, list | tuple) else ():
        if isinstance(text, str):
            yield Line(record.seq, event.at, f"call: {text}", step, scope, "gate")
    uses = event.meta.get("tool_calls")
    for use in uses if isinstance(uses, list | tuple) else ():
        if isinstance(use, dict):
            did = "used" if use.get("ok") else "used in vain"
            text = f"call: round {use.get('round')}: the tool {use.get('tool')} was {did}"
            yield Line(record.seq, event.at, text, step, scope, "tool")


def _about(decision: d.AnyDecision, step: str, scope: str | None) -> str | None:
    """The sentence if it is about the step, from its point of view; None if it isn't."""
    if isinstance(decision, d.Planned):
        return _planned(decision, step)
    if isinstance(decision, d.Stopping):
        return decision.sentence()
    if isinstance(decision, d.Finished):
        waits = decision.parked and step in {place.partition("@")[0] for place in decision.because}
        return decision.sentence() if waits or step in decision.because else None
    if getattr(decision, "step", None) == step and scope in (None, getattr(decision, "scope", None)):
        return decision.sentence()
    if isinstance(decision, d.Rerun):
        return decision.sentence() if step in {name for name, _ in decision.members} else None
    if isinstance(decision, d.Routed):
        members = {where for name, where in decision.members if name == step}
        asked = bool(members) if scope is None else scope in members
        return f"asked to run by {decision.step} ({decision.trigger}, {decision.action})" if asked else None
    return None


def _planned(decision: d.Planned, step: str) -> str | None:
    if step in decision.excluded:
        return f"left out: {decision.excluded[step]}"
    if step in decision.held_back:
        return "planned, but waits until something routes to it"
    return "planned" if step in decision.included else None
