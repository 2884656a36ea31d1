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
    """Nothing for a call that worked at once, without tools."""
    gate = step.gate
    tried = [] if gate is None else _tried(gate)
    return [*tried, *_shortened([_use(each) for each in step.tool_calls], "more use of a tool")]


def _tried(gate: Mapping[str, Any]) -> list[str]:
    attempts = [each for each in _listed(gate.get("attempts")) if isinstance(each, Mapping)]
    if attempts and all(each.get("kind") == "ok" for each in attempts):
        return []
    lines = _shortened([_attempt(each) for each in attempts], "more attempt")
    return [*lines, *_afterwards(gate, attempts)]


def _shortened(told: list[str], noun: str) -> list[str]:
    more = len(told) - LINES_MAX
    return told if more <= 0 else [*told[: LINES_MAX - 1], count(more, noun), told[-1]]


def _use(use: Mapping[str, Any]) -> str:
    """`tool find_order {"number": 17}: order 17 left on Monday`; what failed says so."""
    failed = "" if use.get("ok") else "failed: "
    arguments = brief(str(use.get("arguments", "")), TEXT_MAX // 3)
    return brief(f"tool {use.get('tool')} {arguments}: {failed}{use.get('answer')}", TEXT_MAX)


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
