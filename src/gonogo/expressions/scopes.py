"""Which names a JavaScript function or block declares itself, so that `analyse` can tell the free ones.

`var` and parameters belong to the function, `let`, `const`, classes and functions to the block. Strictness
rules and the dead zone before a `let` are left to the engine: taking a name for declared too early misses no
read of a known name that a working expression makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

FUNCTIONS = frozenset(
    (
        "arrow_function",
        "function_expression",
        "function_declaration",
        "generator_function",
        "generator_function_declaration",
        "method_definition",
    )
)
_NAMED = frozenset(("class_declaration", "function_declaration", "generator_function_declaration"))


def function_names(node: Node) -> frozenset[str]:
    """The parameters of a function, its own name, and every `var` in it; for a program also its top-level names."""
    names: set[str] = set()
    for field in ("parameter", "parameters"):
        parameters = node.child_by_field_name(field)
        if parameters is not None:
            names.update(pattern_names(parameters))
    own = node.child_by_field_name("name")
    if own is not None and own.type == "identifier":
        names.add(_text(own))
    if node.type == "program":
        names |= block_names(node)
    names.update(_vars(node))
    return frozenset(names)


def block_names(node: Node) -> frozenset[str]:
    """The names a block, loop head, `catch` or `switch` declares for itself."""
    names: set[str] = set()
    if node.type == "catch_clause":
        parameter = node.child_by_field_name("parameter")
        return frozenset(pattern_names(parameter)) if parameter is not None else frozenset()
    if node.type == "for_in_statement" and node.child_by_field_name("kind") is not None:
        left = node.child_by_field_name("left")
        names.update(pattern_names(left) if left is not None else ())
    for child in node.named_children:
        if child.type == "lexical_declaration":
            names.update(_declared(child))
        elif child.type in _NAMED:
            names.update(_own_name(child))
        elif child.type in ("switch_case", "switch_default"):
            names |= block_names(child)
    return frozenset(names)


def pattern_names(node: Node) -> Iterator[str]:
    """The names a parameter list or destructuring pattern binds; defaults and computed keys bind nothing."""
    kind = node.type
    if kind in ("identifier", "shorthand_property_identifier_pattern"):
        yield _text(node)
    elif kind in ("assignment_pattern", "object_assignment_pattern"):
        left = node.child_by_field_name("left")
        yield from pattern_names(left) if left is not None else ()
    elif kind == "pair_pattern":
        value = node.child_by_field_name("value")
        yield from pattern_names(value) if value is not None else ()
    elif kind in ("formal_parameters", "object_pattern", "array_pattern", "rest_pattern"):
        for child in node.named_children:
            yield from pattern_names(child)


def _declared(declaration: Node) -> Iterator[str]:
    for declarator in declaration.named_children:
        name = declarator.child_by_field_name("name")
        if name is not None:
            yield from pattern_names(name)


def _own_name(node: Node) -> Iterator[str]:
    name = node.child_by_field_name("name")
    if name is not None:
        yield _text(name)


def _vars(node: Node) -> Iterator[str]:
    """Names of `var` declarations below `node`, nested functions left out. Skips the search for plain expressions."""
    pending = list(node.named_children)
    while pending:
        child = pending.pop()
        if child.type in FUNCTIONS or child.type.endswith("expression"):
            continue
        if child.type == "variable_declaration":
            yield from _declared(child)
        elif child.type == "for_in_statement":
            yield from _for_in_var(child)
        pending.extend(child.named_children)


def _for_in_var(node: Node) -> Iterator[str]:
    kind, left = node.child_by_field_name("kind"), node.child_by_field_name("left")
    if kind is not None and _text(kind) == "var" and left is not None:
        yield from pattern_names(left)


def _text(node: Node) -> str:
    return (node.text or b"").decode()
