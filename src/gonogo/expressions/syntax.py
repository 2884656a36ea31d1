"""Parse JavaScript into a tree, and say what is wrong with text that isn't an expression at all.

The tree is for reading only: whether text is valid is decided by the engine's own compiler in the sandbox,
which is never more lenient and gives line and column. What a tree means is left to `analyse` and `shape`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

SOURCE_BYTES_MAX = 256 * 1024
NESTING_MAX = 500

_STRINGS_AND_COMMENTS = re.compile(
    r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|//[^\n]*|/\*.*?\*/""", re.DOTALL
)
_BRACKETS = re.compile(r"[()\[\]{}]")
_BRACES = re.compile(r"\$?\{\{|\{%")


class ExpressionProblem(ValueError):  # noqa: N818 - what is wrong with the text, in the words of errors.py
    """Text that can't be used as an expression: `message`, and where, `line` and `column` from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


@lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter_javascript
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_javascript.language()))


def encode(source: str) -> bytes:
    """`source` as UTF-8; raises ExpressionProblem when it is too long or holds half a character."""
    try:
        data = source.encode()
    except UnicodeEncodeError as error:
        before = source[: error.start]
        line = before.count("\n") + 1
        column = error.start - (before.rfind("\n") + 1) + 1
        raise ExpressionProblem(
            "expected text; this character is half a surrogate pair", line, column
        ) from None
    if len(data) > SOURCE_BYTES_MAX:
        raise ExpressionProblem(
            f"expected at most {SOURCE_BYTES_MAX // 1024} KiB of text, got {len(data) // 1024}"
        )
    return data


@lru_cache(maxsize=4)
def parse(source: str) -> Node:
    """The root node of `source`, whatever state it is in; raises ExpressionProblem as `encode` does."""
    return _parser().parse(encode(source)).root_node


def refuse_what_is_no_expression(source: str) -> None:
    """Raise ExpressionProblem for blank text and for templates (case EXP-1).

    `{{ x }} == 'y'` rendered first and tested afterwards is true whatever x is, so it is never evaluated.
    """
    if not source.strip():
        raise ExpressionProblem("expected an expression, found nothing; write `true` or leave the key out")
    _refuse_absurd_nesting(source)
    if "{{" not in source and "{%" not in source:
        return
    bare = _STRINGS_AND_COMMENTS.sub(lambda found: " " * len(found.group()), source)
    braces = _BRACES.search(bare)
    if braces is None:
        return
    before = source[: braces.start()]
    raise ExpressionProblem(
        "expression, not template: write the name without braces, as in outputs.build.ok",
        before.count("\n") + 1,
        braces.start() - (before.rfind("\n") + 1) + 1,
    )


def _refuse_absurd_nesting(source: str) -> None:
    """Before anything parses it: both parsers are slow on tens of thousands of open brackets."""
    if sum(map(source.count, "([{")) <= NESTING_MAX:
        return
    depth = 0
    for found in _BRACKETS.finditer(_STRINGS_AND_COMMENTS.sub("", source)):
        depth += 1 if found.group() in "([{" else -1
        if depth > NESTING_MAX:
            raise ExpressionProblem(
                f"expected brackets nested at most {NESTING_MAX} deep; split the expression"
            )


def place_of(source: bytes, offset: int) -> tuple[int, int]:
    """Line and column, from 1 and in characters, of a byte offset."""
    before = source[:offset]
    line_start = before.rfind(b"\n") + 1
    return before.count(b"\n") + 1, len(before[line_start:].decode(errors="replace")) + 1
