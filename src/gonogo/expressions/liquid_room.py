"""The Liquid dialect of gonogo: which tags and filters there are, how values are written, and what bounds a rendering.

Imported by `template.py` alone and only when a template is met, because Liquid costs tens of milliseconds.
Templates read no files, no clock and no attributes: only keys of objects, indexes of lists, `size`, `first`
and `last` (case EXP-3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial, wraps
from typing import Any, TextIO

from liquid import BoundTemplate, Environment, RenderContext, Tag, Token, TokenStream, is_undefined  # noqa: TID253
from liquid.builtin.expressions import BooleanExpression, tokenize  # noqa: TID253
from liquid.builtin.output import Output, OutputNode  # noqa: TID253
from liquid.builtin.tags.echo_tag import EchoNode, EchoTag  # noqa: TID253
from liquid.exceptions import (  # noqa: TID253
    FilterError,
    LiquidError,
    LiquidSyntaxError,
    LoopIterationLimitError,
    ResourceLimitError,
)
from liquid.output import LimitedStringIO  # noqa: TID253
from liquid.token import TOKEN_EXPRESSION, TOKEN_TAG  # noqa: TID253
from liquid.utils import ReadOnlyChainMap  # noqa: TID253

from gonogo.expressions.filters import CONTEXT_FILTERS, FILTERS, as_text

LOOPS_MAX = 100_000
OUTPUT_BYTES_MAX = 1 << 20
NESTING_MAX = 64
LOCALS_BYTES_MAX = 8 << 20
TEXT_CHARACTERS_MAX = 4 << 20
LIST_ITEMS_MAX = 1_000_000
INTEGER_BITS_MAX = 1024

_DIRECTIVE = re.compile(r"%[-_0^#]?[A-Za-z%]")
_NOTHING: Mapping[str, Any] = {}


def _write(node: OutputNode, context: RenderContext, buffer: TextIO) -> int:
    value = node.expression.evaluate(context)
    return buffer.write("" if is_undefined(value) else as_text(value))


class PlainOutputNode(OutputNode):
    """`{{ … }}`: objects are written as JSON, not as Python shows them."""

    render_to_output = _write


class PlainEchoNode(EchoNode):
    """`{% echo … %}`, written as `{{ … }}`."""

    render_to_output = _write


class PlainOutput(Output):
    """Makes PlainOutputNode."""

    node_class = PlainOutputNode


class PlainEcho(EchoTag):
    """Makes PlainEchoNode."""

    node_class = PlainEchoNode


class RefusedTag(Tag):
    """A tag that would read files or other templates."""

    block = False
    advice = "pass the text in by a name instead"

    def parse(self, stream: TokenStream) -> Any:
        token = stream.eat(TOKEN_TAG)
        raise LiquidSyntaxError(
            f"the tag '{token.value}' is not available: templates read no files; {self.advice}", token=token
        )


class Context(RenderContext):
    """Where names are looked up: the template's own, then those given; nothing else, no clock."""

    __slots__ = ("_loops_left",)

    def __init__(self, template: BoundTemplate, *, globals: Any = None, **settings: Any) -> None:
        super().__init__(template, globals=globals, **settings)
        self.scope = ReadOnlyChainMap(self.locals, self.globals, self.counters)
        self._loops_left = LOOPS_MAX

    @contextmanager
    def loop(self, namespace: Mapping[str, object], forloop: Any) -> Iterator[RenderContext]:
        self._loops_left -= forloop.length
        if self._loops_left < 0:
            raise LoopIterationLimitError(
                f"expected at most {LOOPS_MAX} loop turns in a template", token=None
            )
        with super().loop(namespace, forloop) as context:
            yield context

    def get_buffer(self, buf: TextIO | None = None) -> LimitedStringIO:
        """Without newline translation: a carriage return in a value stays one (case SEC-1)."""
        carry = buf.size if isinstance(buf, LimitedStringIO) else 0
        return LimitedStringIO(limit=OUTPUT_BYTES_MAX - carry, newline="")

    def get(self, path: list[object], **settings: Any) -> object:
        """`outputs.history.x` is `outputs_history.x` (engine spec B.5), unless a step is called history."""
        if len(path) > 1 and path[0] == "outputs" and path[1] == "history":
            outputs = self.resolve("outputs", default=_NOTHING)
            if isinstance(outputs, Mapping) and "history" not in outputs:
                path = ["outputs_history", *path[2:]]
        return super().get(path, **settings)

    def get_item(self, obj: Any, key: Any) -> Any:
        """Only JSON data can be entered; a whole number that came as a float finds its item."""
        if not isinstance(obj, (Mapping, list, tuple, str, range)):
            raise TypeError("no members")
        return super().get_item(obj, key)


class Bound(BoundTemplate):
    """A parsed template that renders with Context."""

    context_class = Context


class Room(Environment):
    """The dialect itself. `unknown_filters` are refused when a template is checked."""

    template_class = Bound
    block_nesting_limit = NESTING_MAX
    context_depth_limit = NESTING_MAX
    output_stream_limit = OUTPUT_BYTES_MAX
    local_namespace_limit = LOCALS_BYTES_MAX
    ternary_expressions = True
    logical_not_operator = True
    logical_parentheses = True

    def setup_tags_and_filters(self, *, extra: bool = False) -> None:
        super().setup_tags_and_filters(extra=extra)
        self.add_tag(PlainOutput)
        self.add_tag(PlainEcho)
        for name in ("include", "render", "readfile"):
            self.add_tag(type(f"Refused_{name}", (RefusedTag,), {"name": name}))
        for unwanted in ("safe", "escapejs"):
            self.filters.pop(unwanted, None)
        self.filters["date"] = _keeping_flags(_date, with_context=True)
        self.filters["where_exp"] = _keeping_flags(_where_exp, with_context=True)
        self.filters.update(FILTERS)
        for name, function in CONTEXT_FILTERS.items():
            self.filters[name] = _keeping_flags(_with_names(function), with_context=True)
        for name, function in list(self.filters.items()):
            self.filters[name] = _bounded(name, function)


def _keeping_flags(function: Callable[..., Any], **flags: bool) -> Callable[..., Any]:
    made = partial(function)
    for name, value in flags.items():
        setattr(made, name, value)
    return made


def _with_names(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(value: Any, *arguments: Any, context: RenderContext) -> Any:
        return function(context.globals, value, *arguments)

    return call


def _bounded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that sees null for undefined, says what went wrong, and can't make things without end."""

    def call(value: Any, *arguments: Any, **named: Any) -> Any:
        given = [None if is_undefined(each) else each for each in (value, *arguments)]
        _refuse_growth(name, given)
        try:
            result = function(*given, **named)
        except LiquidError:
            raise
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
            raise FilterError(f"filter '{name}': {error}", token=None) from error
        _refuse_size(name, result)
        return result

    for flag in ("with_context", "with_environment"):
        if getattr(function, flag, False):
            setattr(call, flag, True)
    return wraps(function, assigned=())(call) if not isinstance(function, partial) else call


def _refuse_growth(name: str, given: list[Any]) -> None:
    """`replace` and `join` multiply, ranges cost nothing until they are read: refused before anything is made."""
    if any(isinstance(each, range) and abs(each.stop - each.start) > LOOPS_MAX for each in given):
        raise ResourceLimitError(
            f"filter '{name}': expected a range of at most {LOOPS_MAX} numbers", token=None
        )
    if name in ("replace", "replace_first", "replace_last") and len(given) > 2:
        subject, old, new = map(as_text, given[:3])
        if subject.count(old) * len(new) > TEXT_CHARACTERS_MAX:
            raise ResourceLimitError(f"filter '{name}' makes too long a text", token=None)
    if name == "join" and isinstance(given[0], (list, tuple)) and len(given) > 1:
        glue = len(as_text(given[1]))
        if len(given[0]) * glue > TEXT_CHARACTERS_MAX:
            raise ResourceLimitError("filter 'join' makes too long a text", token=None)


def _refuse_size(name: str, result: Any) -> None:
    too_long = isinstance(result, str) and len(result) > TEXT_CHARACTERS_MAX
    too_many = isinstance(result, (list, tuple)) and len(result) > LIST_ITEMS_MAX
    too_big = isinstance(result, int) and result.bit_length() > INTEGER_BITS_MAX
    if too_long or too_many or too_big:
        raise ResourceLimitError(f"filter '{name}' makes too large a value", token=None)


def _date(value: Any, form: Any = "%Y-%m-%d", *, context: RenderContext) -> str:
    """A moment in UTC as strftime writes it: ISO text, seconds since 1970, or `now`, which is the run's own."""
    if value is None:
        return ""
    if value in ("now", "today"):
        value = _run_started_s(context)
    if isinstance(value, str) and not value.isdecimal():
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return value
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    else:
        moment = datetime.fromtimestamp(float(value), tz=UTC)
    if re.search("%", _DIRECTIVE.sub("", as_text(form))):
        raise ValueError("expected strftime directives without a width, as in %Y-%m-%d")
    return moment.astimezone(UTC).strftime(as_text(form))


def _run_started_s(context: RenderContext) -> float:
    now_ms = context.globals.get("now", 0)
    return now_ms / 1000 if isinstance(now_ms, (int, float)) else 0.0


def _where_exp(items: Any, name: Any, condition: Any, *, context: RenderContext) -> list[Any]:
    """The items for which a Liquid condition on `name` holds: `list | where_exp: "item", "item.n > 2"`."""
    if not isinstance(items, (list, tuple)):
        return []
    text = as_text(condition)
    token = Token(TOKEN_EXPRESSION, text, 0, text)
    test = BooleanExpression.parse(context.env, TokenStream(tokenize(text, token)))
    kept = []
    for item in items:
        with context.extend({as_text(name): item}):
            if test.evaluate(context):
                kept.append(item)
    return kept
