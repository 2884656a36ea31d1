"""Renders a run's templates right before they are needed. Liquid is imported when the first text holds a tag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gonogo.expressions.results import Failure, Result, TemplateProblem, Value

if TYPE_CHECKING:
    from gonogo.expressions.template import Renderer


def has_tags(value: Any) -> bool:
    """Whether a text, or any text in a value, holds a template tag."""
    if isinstance(value, str):
        return "{{" in value or "{%" in value
    if isinstance(value, dict):
        return any(has_tags(part) for part in value.values())
    return isinstance(value, list | tuple) and any(has_tags(part) for part in value)


class Templates:
    """The renderer of a run, made when it is first needed."""

    def __init__(self) -> None:
        self._renderer: Renderer | None = None

    def text(self, text: str, names: Mapping[str, Any]) -> str:
        """A text with its tags replaced. Raises TemplateProblem."""
        if not has_tags(text):
            return text
        return self._ready().render(text, names)

    def result(self, text: str, names: Mapping[str, Any]) -> Result:
        """A text as a result: one output tag alone gives the value itself."""
        try:
            return Value(self._ready().render_value(text, names))
        except TemplateProblem as problem:
            return Failure("template", problem.message, problem.line, problem.column)

    def _ready(self) -> Renderer:
        if self._renderer is None:
            from gonogo.expressions.template import Renderer

            self._renderer = Renderer()
        return self._renderer
