"""Parse JavaScript into a tree, and say what is wrong with text that isn't an expression at all.

The tree is for reading only: whether text is valid is decided by the engine's own compiler in the sandbox,
which is never more lenient and gives line and column. What a tree means is left to `analyse` and `shape`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

SOURCE_BYTES_MAX = 256 * 1024
NESTING_MAX = 500

_OPENING = re.compile(r"""['"`]|//|/\*""")
_INSIDE = {
    "'": (re.compile(r"(?:[^'\\\n]+|\\.)*", re.DOTALL), "'"),
    '"': (re.compile(r'(?:[^"\\\n]+|\\.)*', re.DOTALL), '"'),
    "`": (re.compile(r"(?:[^`\\]+|\\.)*", re.DOTALL), "`"),
    "//": (re.compile(r"[^\n]*"), ""),
    "/*": (re.compile(r"(?:[^*]+|\*(?!/))*"), "*/"),
}
"""What strings and comments hold, and how they end."""
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
    from tree_sitter import Language, Parser

    return Parser(Language(_grammar().language()))


def _grammar() -> Any:
    """The grammar alone: the package around it imports what reads its query files, which takes longer than itself."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    name = "tree_sitter_javascript"
    package = PathFinder.find_spec(name)
    spec = PathFinder.find_spec(f"{name}._binding", package.submodule_search_locations) if package else None
    if spec is None or spec.loader is None:
        import tree_sitter_javascript

        return tree_sitter_javascript
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    braces = _BRACES.search(_without_literals(source))
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
    for found in _BRACKETS.finditer(_without_literals(source)):
        depth += 1 if found.group() in "([{" else -1
        if depth > NESTING_MAX:
            raise ExpressionProblem(
                f"expected brackets nested at most {NESTING_MAX} deep; split the expression"
            )


def _without_literals(source: str) -> str:
    """`source` with blanks for its strings and comments; what opens one that nothing closes stays.

    Linear: up to where one wasn't closed, none of its kind that opens later is closed either.
    """
    parts: list[str] = []
    done = searched = 0
    unclosed_to = dict.fromkeys(_INSIDE, 0)
    while found := _OPENING.search(source, searched):
        inside, closing = _INSIDE[found.group()]
        searched = found.end()
        if searched <= unclosed_to[found.group()]:
            continue
        end = _end_of(inside, source, searched)
        if not source.startswith(closing, end):
            unclosed_to[found.group()] = end
            continue
        searched = end + len(closing)
        parts += (source[done : found.start()], " " * (searched - found.start()))
        done = searched
    return "".join([*parts, source[done:]])


def _end_of(inside: re.Pattern[str], source: str, start: int) -> int:
    found = inside.match(source, start)
    return found.end() if found else start


def place_of(source: bytes, offset: int) -> tuple[int, int]:
    """Line and column, from 1 and in characters, of a byte offset."""
    before = source[:offset]
    line_start = before.rfind(b"\n") + 1
    return before.count(b"\n") + 1, len(before[line_start:].decode(errors="replace")) + 1
