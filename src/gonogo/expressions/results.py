"""What an evaluation comes back with: plain data, journaled as it is, so that a replay evaluates nothing."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class MemoryOp(Struct, frozen=True, omit_defaults=True):
    """One change an expression, script or memory step makes to the run's memory, applied by the core in order.

    `op` is set, append, increment, delete or clear; `clear` without a namespace clears everything.
    """

    op: str
    key: str | None = None
    value: Any = None
    namespace: str | None = None


class Value(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="value"):
    """A result: a JSON value (a boolean for conditions), memory changes asked for and lines logged."""

    value: Any = None
    undefined: bool = False
    memory: tuple[MemoryOp, ...] = ()
    logs: tuple[str, ...] = ()


class Failure(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="failure"):
    """An evaluation that gave nothing. `kind`: syntax, error, limit, memory, crash, result or template."""

    kind: str
    message: str
    line: int | None = None
    column: int | None = None


Result = Value | Failure


class TemplateProblem(ValueError):  # noqa: N818 - what is wrong with the text, in the words of errors.py
    """A template that can't be used or rendered: `message`, and where, `line` and `column` from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
