"""What would run again for a person's wish, and why; what stays. Tells of what `app.foresee` found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any

from gonogo.core.asking_again import Look
from gonogo.core.revising import Place, has_run, is_among
from gonogo.core.scope import step_at
from gonogo.core.state import State
from gonogo.report.layout import Style, cells, count, padded, plain, wrapped
from gonogo.report.text import beside

_WHY = MappingProxyType(
    {
        "asked": "asked for",
        "given": "its output is given",
        "behind": "depends on what runs again",
        "stopped": "the end of the run kept it from running",
        "undone": "what it did was undone",
        "changed": "was skipped, and is changed",
        "never_ran": "is needed and never ran",
    }
)


def stays(state: State, look: Look) -> list[str]:
    """The steps of which all that ran is reused."""
    return [
        name
        for name, nodes in state.nodes.items()
        if any(has_run(node) for node in nodes.values())
        and not any(is_among(node, look.members) for node in nodes.values())
        and not any(step == name for step, _ in look.unrouted)
    ]


def as_json(state: State, look: Look) -> dict[str, Any]:
    """Plain data for `--format json`."""
    return {
        "run_id": state.run_id,
        "runs_again": [
            {"step": step, "scope": scope, "why": why, "acts_again": (step, scope) in look.acts_again}
            for (step, scope), why in look.members.items()
        ],
        "begins": list(look.begins),
        "waits_for_a_route": [{"step": step, "scope": scope} for step, scope in look.unrouted],
        "spared": [{"step": step, "scope": scope} for step, scope in look.spared],
        "stays": stays(state, look),
    }


def text(state: State, look: Look, style: Style) -> str:
    """For people, ending in a line end."""
    return "\n".join(_lines(state, look, style)) + "\n"


def _lines(state: State, look: Look, style: Style) -> Iterator[str]:
    kept = stays(state, look)
    head = f"run {state.run_id}: {count(len(look.members), 'step')} would run again; as they are stay {len(kept)}"
    yield from wrapped(head, style.width)
    width = min(40, max((cells(_name(place)) for place in _all(look)), default=0))
    yield ""
    for place, why in look.members.items():
        told = _WHY[why]
        if place in look.acts_again:
            told += "; has changed something outside, and would again (--yes)"
        yield from _row(place, told, "waiting" if place in look.acts_again else "running", width, style)
    for name in look.begins:
        yield from _row((name, ""), "the run hasn't come to it yet", "running", width, style)
    for place in look.unrouted:
        yield from _row(place, "waits for a route again", "excluded", width, style)
    for place in look.spared:
        yield from _row(place, "has had its one run (one_shot)", "excluded", width, style)
    if kept:
        yield ""
        yield from wrapped(f"stay: {', '.join(map(plain, kept))}", style.width)


def _all(look: Look) -> Sequence[Place]:
    return (*look.members, *look.unrouted, *look.spared, *((name, "") for name in look.begins))


def _name(place: Place) -> str:
    return plain(step_at(*place))


def _row(place: Place, told: str, symbol: str, width: int, style: Style) -> list[str]:
    name = padded(_name(place), width)
    start = f"{style.symbol(symbol)} {style.paint(name, 'bold')}"
    return beside(start, 2 + cells(name), style.typography(told), "dim", style)
