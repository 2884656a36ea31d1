"""Decides again from recorded events, calls nothing, and says where the decisions differ.

Within a version a difference is a bug; across versions, or with another plan, it is a report (semantics.md
12). After a difference the rest follows from it, so nothing more is compared until a record from which the
state was rebuilt (a resume).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import msgspec
from msgspec import Struct

from gonogo.core.decisions import AnyDecision
from gonogo.core.events import AnyEvent, RerunAsked, Resumed, RunStarted
from gonogo.core.machine import advance, begin
from gonogo.core.plan import Plan
from gonogo.core.state import State
from gonogo.errors import JournalError
from gonogo.journal.records import Record
from gonogo.journal.restoring import state_of

__all__ = ["Difference", "replay"]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[AnyDecision, ...]).decode


class Difference(Struct, frozen=True, omit_defaults=True):
    """One decision that isn't what was recorded. `seq` is the record, `position` the decision's place in it, from 0.

    `recorded` or `decided` is None when one side has fewer decisions; `error` is set when deciding broke
    down.
    """

    seq: int
    position: int
    event: str
    recorded: AnyDecision | None = None
    decided: AnyDecision | None = None
    error: str | None = None

    def sentence(self) -> str:
        """The difference in words."""
        place = f"record {self.seq} ({self.event}), decision {self.position + 1}"
        if self.error is not None:
            return f"{place}: deciding again failed: {self.error}"
        return f"{place}: recorded {_words(self.recorded)}; decided again: {_words(self.decided)}"


def replay(records: Sequence[Record], *, plan: Plan | None = None) -> list[Difference]:
    """Every first difference between what was recorded and what is decided now; empty when all is the same.

    With `plan`, the run's events meet another plan, which stays when the run was given a new one later.

    Raises:
        JournalError: the records don't start with the start of a run.
    """
    first = records[0].event if records else None
    if not isinstance(first, RunStarted):
        raise JournalError("there is nothing to replay: the start of the run is missing")
    found: list[Difference] = []
    state: State | None = begin(first if plan is None else _with_plan(first, plan))
    for number, record in enumerate(records):
        if isinstance(record.event, Resumed | RerunAsked) and plan is None:
            state = state_of(records[:number])
        if state is None:
            continue
        differences = _differences(state, record, plan)
        if differences:
            found += differences
            state = None
    return found


def _differences(state: State, record: Record, plan: Plan | None) -> list[Difference]:
    """What one record says otherwise. Changes `state`."""
    event = record.event
    if plan is not None and isinstance(event, RunStarted):
        event = _with_plan(event, plan)
    elif plan is not None and isinstance(event, RerunAsked):
        event = msgspec.structs.replace(event, plan=None)
    try:
        decided = _as_recorded(advance(state, event).decisions)
    except Exception as error:  # noqa: BLE001 - whatever breaks while deciding is the difference
        return [Difference(record.seq, 0, _tag(event), error=f"{type(error).__name__}: {error}")]
    if decided == record.decisions:
        return []
    return [
        Difference(record.seq, position, _tag(event), one, other)
        for position, (one, other) in enumerate(zip_longest(record.decisions, decided))
        if one != other
    ]


def _as_recorded(decisions: tuple[AnyDecision, ...]) -> tuple[AnyDecision, ...]:
    """As a reader would see them, so that a tuple that became a list is no difference."""
    return _decode(_encode(decisions))


def _with_plan(event: RunStarted, plan: Plan) -> RunStarted:
    return msgspec.structs.replace(event, plan=plan)


def _tag(event: AnyEvent) -> str:
    return str(event.__struct_config__.tag)


def _words(decision: AnyDecision | None) -> str:
    if decision is None:
        return "nothing"
    step = getattr(decision, "step", None)
    scope = getattr(decision, "scope", "")
    where = f"{step}{f' in {scope}' if scope else ''}: " if step else ""
    return f"{where}{decision.sentence()}"
