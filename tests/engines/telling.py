"""What a run decided, in a form that is the same wherever it ran: no times, and no numbers that hosts give out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from gonogo.core.decisions import Finished, Stopping
from gonogo.core.state import State
from gonogo.journal.records import Record
from gonogo.journal.restoring import state_of

_UNFIXED = frozenset(
    "batch call ticket timer due_s since_s wake_s remind_s escalate_s fault wave delay_s duration_ms detail".split()
)
"""Numbers of calls, batches, waves and timers go by the order in which things come in, and times are times."""
_UNFIXED_TEXT = re.compile(
    rb'(?<=its breaker is open)[^;]*(?=;)|(?<=again in )[0-9.]+(?= s )|(?<="retry_after_s":)[0-9.]+'
    rb"|(?<= )[0-9a-f]{32}(?=\])"
)
"""For whom and how long a breaker stays open, and the tags of secrets, which go by the key that each store has."""
_OF_THE_RUN = (Stopping, Finished)


def told(records: Iterable[Record]) -> dict[str, Any]:
    """Verdict, outcomes, and what was decided of each step, in its order. What of steps that don't depend on each other
    is decided first is nobody's promise; nor is when a run that waits is left and taken up.
    """
    records = list(records)
    state = state_of(records)
    assert state.finished is not None
    decided: dict[str, list[Any]] = {}
    for decision in (each for record in records for each in record.decisions):
        if isinstance(decision, _OF_THE_RUN) and not getattr(decision, "parked", False):
            said = type(decision).__name__, _fixed(decision)
            if said not in decided.setdefault(
                "", []
            ):  # a run that is over may be looked at again, and ends as it was
                decided[""].append(said)
        elif step := getattr(decision, "step", ""):
            place = f"{step}@{getattr(decision, 'scope', '')}"
            decided.setdefault(place, []).append((type(decision).__name__, _fixed(decision)))
    return {"verdict": state.finished.verdict, "outcomes": _outcomes(state), "decided": decided}


def _outcomes(state: State) -> dict[str, Any]:
    return {
        f"{node.step}@{node.scope}": (node.outcome, node.fault.kind if node.fault else None, node.reason)
        for node in state.all_nodes()
    }


def _fixed(decision: Any) -> Any:
    fields = {name: getattr(decision, name) for name in decision.__struct_fields__ if name not in _UNFIXED}
    fault = getattr(decision, "fault", None)
    if isinstance(fault, msgspec.Struct):
        fields["fault"] = fault
    return msgspec.json.decode(_UNFIXED_TEXT.sub(b"0", msgspec.json.encode(fields)))


def differences(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Where two tellings differ, with both."""
    differ = {}
    for part, other in expected.items():
        one = found[part]
        if isinstance(other, dict):
            for place in {**one, **other}:
                if one.get(place) != other.get(place):
                    differ[f"{part} {place}"] = one.get(place), other.get(place)
        elif one != other:
            differ[part] = one, other
    return differ
