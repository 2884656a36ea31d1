"""Give a statement body a value: its last expression, where no `return` says another.

`$c=(` and `)` are put around the expression statements in last position, also inside the branches of a last `if`,
`try`, loop or block, so that `$c` is what the body came to. Text that is one expression is left alone. Whether the
text is valid, before and after, is decided by the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from gonogo.expressions.syntax import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

OPENING = b"$c=("
CLOSING = b")"

_VALUELESS = frozenset(
    (
        "lexical_declaration",
        "variable_declaration",
        "function_declaration",
        "generator_function_declaration",
        "class_declaration",
        "empty_statement",
        "break_statement",
        "continue_statement",
        "comment",
    )
)
_TRANSPARENT = frozenset(
    (
        "if_statement",
        "else_clause",
        "try_statement",
        "catch_clause",
        "for_statement",
        "for_in_statement",
        "while_statement",
        "do_statement",
        "labeled_statement",
        "switch_statement",
        "switch_body",
    )
)
_LISTS = frozenset(("program", "statement_block", "switch_case", "switch_default"))


class Shape(Struct, frozen=True):
    """`body` is the text to compile as statements, "" when `source` is one expression.

    `insertions` are (line, byte column, bytes) from 0 in `source`. `trusted` is False where the parser
    stumbled.
    """

    body: str
    insertions: tuple[tuple[int, int, int], ...]
    trusted: bool


def shape(source: str) -> Shape:
    """Shape `source`; raises ExpressionProblem as `syntax.parse` does."""
    root = parse(source)
    statements = [child for child in root.children if child.type != "comment"]
    text = source.encode()
    if root.has_error or b"$c" in text:
        return Shape(source, (), not root.has_error)
    if (
        len(statements) == 1
        and statements[0].type == "expression_statement"
        and not _ends_with_semicolon(statements[0])
    ):
        return Shape("", (), True)
    marks: list[tuple[int, int, int, bytes]] = []
    for node in _last_expressions(root):
        marks.append((node.start_byte, *node.start_point, OPENING))
        marks.append((node.end_byte, *node.end_point, CLOSING))
    marks.sort()
    pieces: list[bytes] = []
    done = 0
    for offset, _, _, mark in marks:
        pieces += (text[done:offset], mark)
        done = offset
    pieces.append(text[done:])
    insertions = tuple((row, column, len(mark)) for _, row, column, mark in marks)
    return Shape(b"".join(pieces).decode(), insertions, True)


def _ends_with_semicolon(statement: Node) -> bool:
    return statement.children[-1].type == ";"


def _last_expressions(node: Node) -> Iterator[Node]:
    if node.type == "expression_statement":
        yield node.named_children[0]
    elif node.type in _LISTS:
        for child in reversed(node.named_children):
            if child.type not in _VALUELESS:
                yield from _last_expressions(child)
                break
    elif node.type in _TRANSPARENT:
        for child in node.named_children:
            yield from _last_expressions(child)
