"""Problems of a workflow file on a terminal: what `config.problems` writes, in colour where that is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gonogo.config.problems import count_text, one_text

if TYPE_CHECKING:
    from gonogo.errors import Problem
    from gonogo.report.layout import Style

_COLOURS = {"error": "red", "warning": "yellow", "info": "blue"}


def problems_text(problems: Sequence[Problem], style: Style) -> str:
    """All of them, a blank line between, the count at the end."""
    return "\n\n".join([*(_painted(problem, style) for problem in problems), count_text(problems)])


def _painted(problem: Problem, style: Style) -> str:
    text = one_text(problem)
    if not style.colour:
        return text
    head, *rest = text.split("\n")
    where, mark, message = head.partition(f"{problem.severity}: ")
    colour = _COLOURS[problem.severity]
    lines = [f"{style.paint(where, 'bold')}{style.paint(mark, colour)}{message}"]
    for line in rest:
        is_caret = line.strip() == "^"
        is_advice = line.startswith("  ") and not line.startswith("    ")
        lines.append(
            style.paint(line, colour) if is_caret else style.paint(line, "cyan") if is_advice else line
        )
    return "\n".join(lines)
