"""An `if` that reads the output of a step that runs once per item as if it were one item: it is judged once, before its
own step is spread, and sees the list of them all (spec C.13).

Only what is sure is told: an `if` of a step that an item may route to may be judged within that item.
"""

from __future__ import annotations

from collections.abc import Iterator

from gonogo.config.collect import Collector
from gonogo.config.expressions import Use
from gonogo.config.nodes import Scalar, walk
from gonogo.config.order import Order, routes
from gonogo.core.plan import Step
from gonogo.expressions.analyse import Reading

_LISTS = ("outputs", "outputs_raw")
_HOLDS = ("remind", "escalate")
_OF_ITEMS = ("on_success", "on_fail")
_BLOCKS = (*_OF_ITEMS, "on_finish")
"""A list's own on_finish comes once, for the whole list."""
_OF_ARRAYS = frozenset({
    "at", "concat", "constructor", "copyWithin", "entries", "every", "fill", "filter", "find", "findIndex",
    "findLast", "findLastIndex", "flat", "flatMap", "forEach", "includes", "indexOf", "join", "keys",
    "lastIndexOf", "length", "map", "pop", "push", "reduce", "reduceRight", "reverse", "shift", "slice",
    "some", "sort", "splice", "toLocaleString", "toReversed", "toSorted", "toSpliced", "toString", "unshift",
    "values", "with", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "valueOf",
})  # fmt: skip
_ASKS_WHAT_IT_IS = ("isArray", "instanceof", "typeof")


def check_ifs(
    order: Order, sources: dict[str, str], uses: list[tuple[Use, Reading]], notes: Collector
) -> None:
    """Warn of each. `sources`: for each step that runs once per item the step whose list it is."""
    wholes = {name for name, source in sources.items() if _is_list(order.steps[name], source, sources)}
    if not wholes:
        return
    inner = _within_items(order, sources)
    for use, reading in uses:
        if use.construct != "if" or use.step is None or inner is None or use.step in inner:
            continue
        if sources.get(use.step) in sources or _asks(use, notes):
            continue
        for read, member in _members(reading):
            if read in wholes and read not in inner and read != use.step and read not in order.aliases:
                _warn(use, read, member, alike=sources.get(use.step) == sources[read], notes=notes)


def _is_list(step: Step, source: str, sources: dict[str, str]) -> bool:
    """Whether a step's output, seen from outside its items, is a list of what is no list itself."""
    return source not in sources and not step.for_each


def _members(reading: Reading) -> Iterator[tuple[str, str]]:
    """Step and member, of what is read of a step's output and can't be read of an array."""
    for path in dict.fromkeys(
        (path[1], path[2]) for path in reading.paths if path[0] in _LISTS and len(path) > 2
    ):
        step, member = path
        named = isinstance(step, str) and isinstance(member, str) and not member.isdecimal()
        if named and member not in _OF_ARRAYS:
            yield str(step), str(member)


def _asks(use: Use, notes: Collector) -> bool:
    """Whether the condition knows that it may be a list."""
    node = walk(notes.root, use.path)
    return not isinstance(node, Scalar) or any(word in node.text for word in _ASKS_WHAT_IT_IS)


def _within_items(order: Order, sources: dict[str, str]) -> frozenset[str] | None:
    """The steps that may run within an item that routed to them, or to what they depend on; None: any may."""
    found = 0
    for position, (name, step) in enumerate(order.steps.items()):
        if name not in sources and not step.for_each:
            continue
        blocks = _BLOCKS if name in sources else _OF_ITEMS
        if _by_script(step, blocks):
            return None
        named = [order.index[target] for (key, *_), target in routes(step) if key in blocks or key in _HOLDS]
        for target in (*named, *order.before[position]):
            found |= order.leads_to[target] | 1 << target
    return frozenset(name for position, name in enumerate(order.names) if found >> position & 1)


def _by_script(step: Step, blocks: tuple[str, ...]) -> bool:
    written = (block for name in blocks if (block := getattr(step, name)) is not None)
    return step.on_init_js is not None or any(
        block.run_js is not None or block.goto_js is not None for block in written
    )


def _warn(use: Use, read: str, member: str, *, alike: bool, notes: Collector) -> None:
    if notes.only_counted():
        return
    message = (
        f"{read} runs once per item, and if sees the list of all: outputs.{read}.{member} is never there"
    )
    whole = f"ask the list, as outputs.{read}.some(one => one.{member})"
    advice = f"write it under assume:, which is asked for each item; or {whole}" if alike else whole
    notes.warn("expression.whole_list", message, use.path, advice)
