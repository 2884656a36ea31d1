"""Liquid templates: check them when a file is loaded, find what they read, render them right before a call.

A value is never rendered a second time (case SEC-1). Rendering is bounded by counts, never by time: loop
turns, output and nesting. Which fields are templates, and which of them go to a shell, is left to the
callers. Text without a tag costs nothing, and tags that only name a value little (`plain_template.py`); Liquid
is imported for the first text that holds more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from gonogo.expressions.analyse import Path, Reading
from gonogo.expressions.filters import NUMERIC, QUOTING, READS, as_text
from gonogo.expressions.plain_template import COMPUTED, NotPlain, PlainTemplate, read_plain
from gonogo.expressions.results import TemplateProblem

if TYPE_CHECKING:
    from liquid import BoundTemplate, Environment
    from liquid.ast import Node
    from liquid.exceptions import LiquidError
    from liquid.expression import Expression

T = TypeVar("T")
PARSED_MAX = 1000
ADVICE_FILTER = "unknown filter '{}'; see the list of filters, or write the value in an expression field"


def is_template(text: str) -> bool:
    """Whether `text` holds a tag at all."""
    return "{{" in text or "{%" in text


def check(text: str) -> list[TemplateProblem]:
    """Everything wrong with a template: its syntax, tags that aren't available, unknown filters."""
    if not is_template(text) or read_plain(text):
        return []
    try:
        parsed = _parse(text)
    except TemplateProblem as problem:
        return [problem]
    known = _environment().filters
    return [
        TemplateProblem(ADVICE_FILTER.format(name), *_place(text, span.index))
        for name, spans in parsed.analyze(include_partials=False).filters.items()
        if name not in known
        for span in spans
    ]


def names(text: str) -> Reading:
    """What a template reads, as `analyse` says it of an expression; raises TemplateProblem."""
    if not is_template(text):
        return Reading()
    if (plain := read_plain(text)) is not None:
        return _names_of(plain)
    analysis = _parse(text).analyze(include_partials=False)
    found: set[str] = {READS[name] for name in analysis.filters if name in READS}
    dynamic = set(found)
    paths: dict[Path, None] = {}
    for variables in analysis.globals.values():
        for variable in variables:
            path = _known(variable.segments)
            if not path:
                continue
            found.add(str(path[0]))
            paths[path] = None
            if len(path) == 1:
                dynamic.add(str(path[0]))
    if "date" in analysis.filters:
        found.add("now")
    return Reading(names=tuple(sorted(found)), paths=tuple(paths), dynamic=tuple(sorted(dynamic)))


def _names_of(plain: PlainTemplate) -> Reading:
    """As of any template: paths by their first names, in the order these come."""
    by_name: dict[str, dict[Path, None]] = {}
    for tag in plain.tags:
        by_name.setdefault(tag.path[0], {})[_known(list(tag.path))] = None
    paths = [path for found in by_name.values() for path in found]
    dynamic = sorted(path[0] for path in paths if len(path) == 1)
    return Reading(names=tuple(sorted(by_name)), paths=tuple(paths), dynamic=tuple(map(str, dynamic)))


def unescaped(text: str) -> list[str]:
    """Dotted paths that output tags write without `shell_escape` as the last filter, in order; raises TemplateProblem.

    Numbers are harmless. Names assigned in the template are listed too, since they may hold data.
    """
    if not is_template(text):
        return []
    if (plain := read_plain(text)) is not None:
        return list(dict.fromkeys(".".join(tag.path) for tag in plain.tags if tag.filter not in QUOTING))
    return list(dict.fromkeys(path for node in _nodes(_parse(text).nodes) for path in _written(node)))


class Renderer:
    """Renders templates, keeping the parsed ones. Not thread safe."""

    def __init__(self) -> None:
        self._parsed: OrderedDict[str, BoundTemplate] = OrderedDict()
        self._plain: OrderedDict[str, PlainTemplate | None] = OrderedDict()

    def render(self, text: str, names: Mapping[str, object]) -> str:
        """`text` with its tags replaced; unknown variables render empty. Raises TemplateProblem."""
        if not is_template(text):
            return text
        if (plain := self._plain_template(text)) is not None:
            try:
                return plain.render(names)
            except NotPlain:
                pass  # Liquid renders it, or says what is wrong
        from liquid.exceptions import LiquidError

        template = self._template(text)
        context = template.context_class(template, globals=names)
        buffer = context.get_buffer()
        try:
            template.render_with_context(context, buffer)
        except LiquidError as error:
            raise _problem(error, text) from error
        except (RecursionError, ArithmeticError, TypeError, ValueError, LookupError) as error:
            raise TemplateProblem(f"the template can't be rendered: {error}") from error
        return buffer.getvalue()

    def render_value(self, text: str, names: Mapping[str, object]) -> Any:
        """As `render`, but text that is exactly one output tag gives the value itself (engine spec C.10 R3 D)."""
        if not is_template(text):
            return text
        if (plain := self._plain_template(text.strip())) is not None:
            if plain.alone is None:
                return self.render(text, names)
            try:
                return _json_value(plain.alone.value(names))
            except NotPlain:
                pass  # Liquid finds it, or says what is wrong
        return self._value_by_liquid(text, names)

    def _value_by_liquid(self, text: str, names: Mapping[str, object]) -> Any:
        from liquid import is_undefined
        from liquid.builtin.output import OutputNode
        from liquid.exceptions import LiquidError

        template = self._template(text.strip())
        node = template.nodes[0] if len(template.nodes) == 1 else None
        if type(node).__name__ != "PlainOutputNode" or not isinstance(node, OutputNode):
            return self.render(text, names)
        try:
            value = node.expression.evaluate(template.context_class(template, globals=names))
        except LiquidError as error:
            raise _problem(error, text) from error
        return None if is_undefined(value) else _json_value(value)

    def _template(self, text: str) -> BoundTemplate:
        return _kept(self._parsed, text, _parse)

    def _plain_template(self, text: str) -> PlainTemplate | None:
        return _kept(self._plain, text, read_plain)


def _kept(parsed: OrderedDict[str, T], text: str, parse: Callable[[str], T]) -> T:
    """What `parse` makes of the text, made once as long as there is room."""
    if text not in parsed:
        parsed[text] = parse(text)
        if len(parsed) > PARSED_MAX:
            parsed.popitem(last=False)
    return parsed[text]


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from gonogo.expressions.liquid_room import Room

    return Room()


def _parse(text: str) -> BoundTemplate:
    from liquid.exceptions import LiquidError

    try:
        return _environment().from_string(text)
    except LiquidError as error:
        raise _problem(error, text) from error
    except (RecursionError, ValueError) as error:
        raise TemplateProblem(f"the template can't be read: {error}") from error


def _problem(error: LiquidError, text: str) -> TemplateProblem:
    token = error.token
    offset = token.start_index if token is not None and token.start_index >= 0 else 0
    message = str(error.message or "the template can't be used").strip()
    return TemplateProblem(message[:1].lower() + message[1:], *_place(text, offset))


def _place(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _known(segments: list[Any]) -> Path:
    """The part of a path before the first computed segment, with `outputs.history` under its own name."""
    known: list[str | int] = []
    for segment in segments:
        if not isinstance(segment, (str, int)):
            break
        known.append(segment)
    if known[:2] == ["outputs", "history"]:
        known = ["outputs_history", *known[2:]]
    if known and known[-1] in COMPUTED:
        known = known[:-1]
    return tuple(known)


def _json_value(value: Any) -> Any:
    if isinstance(value, (tuple, range)):
        return [_json_value(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str, list, dict)):
        return value
    return dict(value) if isinstance(value, Mapping) else as_text(value)


def _nodes(nodes: list[Node]) -> Iterator[Node]:
    from liquid import RenderContext

    for node in nodes:
        yield node
        children = list(node.children(RenderContext(_parse("")), include_partials=False))
        yield from _nodes(children)


def _written(node: Node) -> Iterator[str]:
    from liquid.builtin.output import OutputNode
    from liquid.builtin.tags.cycle_tag import CycleNode

    if isinstance(node, OutputNode):
        filters = (
            getattr(node.expression, "tail_filters", None) or getattr(node.expression, "filters", None) or []
        )
        if not filters or filters[-1].name not in QUOTING | NUMERIC:
            yield from _paths(node.expression)
    elif isinstance(node, CycleNode):
        for expression in node.args:
            yield from _paths(expression)


def _paths(expression: Expression) -> Iterator[str]:
    from liquid.builtin.expressions import Path as LiquidPath

    if isinstance(expression, LiquidPath):
        if expression.path[0] not in ("forloop", "tablerowloop"):
            yield str(expression)
        return
    for child in expression.children():
        yield from _paths(child)
