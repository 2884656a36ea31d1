"""What a step's latest call tried, in a line an attempt: from the gate's record in its meta (`gate/summary.py`).

Records are read as what they are, data of another process: what has no sense is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gonogo.journal.view import StepView
from gonogo.report.layout import brief, count, duration

LINES_MAX = 8
TEXT_MAX = 120


def call_lines(step: StepView) -> list[str]:
    """Nothing for a call that worked at once."""
    gate = step.gate
    if gate is None:
        return []
    attempts = [each for each in _listed(gate.get("attempts")) if isinstance(each, Mapping)]
    if len(attempts) == 1 and attempts[0].get("kind") == "ok":
        return []
    told = [_attempt(each) for each in attempts]
    more = len(told) - LINES_MAX
    lines = told if more <= 0 else [*told[: LINES_MAX - 1], count(more, "more attempt"), told[-1]]
    return [*lines, *_afterwards(gate, attempts)]


def _attempt(attempt: Mapping[str, Any]) -> str:
    """`attempt 2 on shop after 0.3 s: overloaded (503)`."""
    wait_ms = attempt.get("wait_ms")
    after = f" after {duration(wait_ms)}" if isinstance(wait_ms, int) and wait_ms > 0 else ""
    status = f" ({attempt['status']})" if isinstance(attempt.get("status"), int) else ""
    return brief(
        f"attempt {attempt.get('n')} on {attempt.get('target')}{after}: {attempt.get('kind')}{status}",
        TEXT_MAX,
    )


def _afterwards(gate: Mapping[str, Any], attempts: list[Mapping[str, Any]]) -> Iterator[str]:
    """Why nothing was called, or not again; what failed attempts cost."""
    if not attempts:
        yield "no attempt: its target is out (gonogo breakers)"
    blocked = gate.get("blocked_by")
    if isinstance(blocked, str):
        yield f"not again: {brief(blocked, TEXT_MAX)}"
    wasted = gate.get("wasted")
    tokens = wasted.get("tokens") if isinstance(wasted, Mapping) else None
    if isinstance(tokens, int) and tokens > 0:
        yield f"failed attempts used {count(tokens, 'token')}"


def _listed(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
