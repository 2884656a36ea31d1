"""What an expression reads, found without running it: names, member paths, calls.

The host offers what `names` and `dynamic` say, the core keeps the values at `paths` as evidence, and
validation refuses `unknown_names`. Reading too much is harmless here, reading too little costs a round trip
to the sandbox. Whether the text compiles is left to `Sandbox.prepare`; values and truth are left to the
sandbox altogether.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from gonogo.expressions.names import BUILTINS, HELPERS, KNOWN_NAMES, Kind
from gonogo.expressions.scopes import FUNCTIONS, block_names, function_names, pattern_names
from gonogo.expressions.syntax import ExpressionProblem, parse, place_of, refuse_what_is_no_expression

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = [
    "HELPERS",
    "KNOWN_NAMES",
    "ExpressionProblem",
    "Kind",
    "Reading",
    "analyse",
    "locate",
    "unknown_names",
]

Path = tuple[str | int, ...]


class Reading(msgspec.Struct, frozen=True):
    """What an expression reads.

    `names`: free names, sorted, builtins such as Math left out. `paths`: member paths from a free name; a
    trailing method or `length` is dropped. `calls`: free functions called. `dynamic`: names read as a whole
    or with a computed member, so that everything in them must be offered. `outputs.history.x` is reported as
    `outputs_history.x`.
    """

    names: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()
    calls: tuple[str, ...] = ()
    dynamic: tuple[str, ...] = ()


@lru_cache(maxsize=2048)
def analyse(source: str) -> Reading:
    """Read `source`; raises ExpressionProblem for blank text, templates and absurd nesting or length.

    All kinds accept the same text: one expression, or a statement body (engine spec B.7 D, B.8 D).
    """
    refuse_what_is_no_expression(source)
    root = parse(source)
    if all(child.type == "comment" for child in root.children):
        raise ExpressionProblem(
            "expected an expression, found only comments; write `true` or leave the key out"
        )
    walk = _Walk()
    try:
        walk.scope(root, function_names(root))
    except RecursionError:
        raise ExpressionProblem("expected less nesting; split the expression") from None
    return walk.reading()


def unknown_names(reading: Reading) -> tuple[str, ...]:
    """The free names that are neither data, helpers nor part of the language; validation refuses them (B.2 D)."""
    return tuple(
        name
        for name in reading.names
        if name not in KNOWN_NAMES and name not in HELPERS and name not in BUILTINS
    )


def locate(source: str, name: str) -> tuple[int, int]:
    """Line and column, from 1, of the first use of `name` in `source`; (1, 1) when it isn't there."""
    pending = [parse(source)]
    while pending:
        node = pending.pop()
        if node.type in _READS and node.text == name.encode():
            return place_of(source.encode(), node.start_byte)
        pending.extend(reversed(node.children))
    return 1, 1


_READS = frozenset(("identifier", "shorthand_property_identifier"))
_BLOCKS = frozenset(
    ("statement_block", "for_statement", "for_in_statement", "catch_clause", "class_body", "switch_body")
)
_MEMBERS = frozenset(("member_expression", "subscript_expression"))
_BINDERS = frozenset(("variable_declarator", "class_declaration", "class"))
_PATTERN_PARTS = frozenset(("identifier", "shorthand_property_identifier_pattern"))


class _Walk:
    """One pass over the tree, with the declared names of every enclosing scope at hand."""

    def __init__(self) -> None:
        self._scopes: list[frozenset[str]] = []
        self._names: set[str] = set()
        self._paths: dict[Path, None] = {}
        self._calls: set[str] = set()
        self._dynamic: set[str] = set()

    def reading(self) -> Reading:
        return Reading(
            names=tuple(sorted(self._names)),
            paths=tuple(self._paths),
            calls=tuple(sorted(self._calls)),
            dynamic=tuple(sorted(self._dynamic)),
        )

    def scope(self, node: Node, declared: frozenset[str]) -> None:
        self._scopes.append(declared)
        for child in node.named_children:
            self.visit(child)
        self._scopes.pop()

    def visit(self, node: Node) -> None:
        kind = node.type
        if kind in _READS:
            self._whole(_text(node))
        elif kind in _MEMBERS:
            self._member(node, called=False)
        elif kind == "call_expression":
            self._call(node)
        elif kind in FUNCTIONS:
            self.scope(node, function_names(node))
        elif kind in _BLOCKS:
            self.scope(node, block_names(node))
        elif kind in _BINDERS:
            self._binder(node)
        elif kind == "shorthand_property_identifier_pattern":
            self._whole(_text(node))
        else:
            for child in node.named_children:
                self.visit(child)

    def _binder(self, node: Node) -> None:
        """A declaration: its own names are no reads, but defaults inside its pattern are."""
        name = node.child_by_field_name("name")
        for child in node.named_children:
            if child != name:
                self.visit(child)
            elif child.type not in _PATTERN_PARTS:
                self.scope(child, frozenset(pattern_names(child)))

    def _call(self, node: Node) -> None:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is not None:
            if function.type == "identifier":
                self._called(_text(function))
            elif function.type in _MEMBERS:
                self._member(function, called=True)
            else:
                self.visit(function)
        if arguments is not None:
            self.visit(arguments)

    def _called(self, name: str) -> None:
        if self._free(name):
            self._names.add(name)
            self._calls.add(name)

    def _whole(self, name: str) -> None:
        if self._free(name):
            self._names.add(name)
            if name not in HELPERS:
                self._dynamic.add(name)
                self._paths[(name,)] = None

    def _free(self, name: str) -> bool:
        return name not in BUILTINS and not any(name in scope for scope in self._scopes)

    def _member(self, node: Node, *, called: bool) -> None:
        root, keys, computed = _chain(node)
        for index in computed:
            self.visit(index)
        if root.type != "identifier":
            self.visit(root)
            return
        name = _text(root)
        if self._free(name):
            self._names.add(name)
            self._record(name, keys, called)

    def _record(self, name: str, keys: list[str | int | None], called: bool) -> None:
        """Keep the path down to its first computed member; None stands for one."""
        if name == "outputs" and keys[0] == "history" and (len(keys) > 1 or not called):
            name, keys = "outputs_history", keys[1:]
            self._names.add(name)
        known = keys[: keys.index(None)] if None in keys else keys
        if len(known) == len(keys) and keys and (called or keys[-1] == "length"):
            known = known[:-1]
        if known:
            self._paths[(name, *(key for key in known if key is not None))] = None
        else:
            self._dynamic.add(name)
            if not keys or None not in keys:
                self._paths[(name,)] = None


def _chain(node: Node) -> tuple[Node, list[str | int | None], list[Node]]:
    """A member expression taken apart: what it starts from, its keys (None if computed), the computed indexes."""
    keys: list[str | int | None] = []
    computed: list[Node] = []
    while node.type in _MEMBERS or node.type == "parenthesized_expression":
        if node.type == "parenthesized_expression":
            inner = node.named_children
            if len(inner) != 1:
                break
            node = inner[0]
            continue
        keys.append(_key(node, computed))
        target = node.child_by_field_name("object")
        if target is None:
            break
        node = target
    return node, keys[::-1], computed


def _key(node: Node, computed: list[Node]) -> str | int | None:
    if node.type == "member_expression":
        name = node.child_by_field_name("property")
        return _text(name) if name is not None else None
    index = node.child_by_field_name("index")
    if index is None:
        return None
    if index.type == "string" and all(part.type == "string_fragment" for part in index.named_children):
        return "".join(_text(part) for part in index.named_children)
    if index.type == "number" and _text(index).isdecimal():
        return int(_text(index))
    computed.append(index)
    return None


def _text(node: Node) -> str:
    return (node.text or b"").decode()
