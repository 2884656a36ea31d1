"""Turn what the child says about one run or compilation into a Value or a Failure, with places in the user's text."""

from __future__ import annotations

import re
from types import MappingProxyType

import msgspec
from msgspec import Struct

from gonogo.expressions.frames import decode_value
from gonogo.expressions.results import Failure, MemoryOp, Result, Value
from gonogo.expressions.shape import Shape

BOOTSTRAP_LINE = 100_000
ANSWERS = MappingProxyType({"t": Value(value=True), "f": Value(value=False)})
"""What most runs come to: a condition without effects."""
MEMORY = "the expression used up its memory; make it build less"
_PLACE = re.compile(r"<input>:(\d{1,9}):(\d{1,9})")
_CHAIN = re.compile(r"[\w$]+(?:\??\.[\w$]+|\[(?:\d+|'[^'\n]*'|\"[^\"\n]*\")\])*")
_CHAIN_SHOWN_MAX = 60
_TOO_EARLY = re.compile(r"SyntaxError: unexpected token in expression: '[\])]'$")
"""What closes the wrapper came where the text should have gone on."""
_UNREADABLE = re.compile(r"cannot read property '.*' of (undefined|null)$")


class Needs(Struct, frozen=True):
    """The run read data that wasn't sent: (view, key) pairs; the key is None for the list of all keys."""

    wanted: tuple[tuple[str, str | None], ...]


def outcome(text: str, source: str, shape: Shape, limit_s: float) -> Result | Needs:
    """What a run came to; raises ValueError for text the child's own code would never write."""
    if text in ANSWERS:
        return ANSWERS[text]
    if text.startswith("!"):
        return _stopped(text[1:], source, shape, limit_s)
    said = decode_value(text)
    if "n" in said:
        return Needs(tuple((str(view), key) for view, key in said["n"]))
    if "e" in said:
        name, message, stack = said["e"]
        return _thrown(name, message, stack, source, shape)
    if "m" not in said:  # no effects, as most
        return Value(said.get("v"), "u" in said)
    ops = msgspec.convert(said["m"], tuple[MemoryOp, ...])
    logs = msgspec.convert(said["l"], tuple[str, ...])
    return Value(value=said.get("v"), undefined="u" in said, memory=ops, logs=logs)


def syntax_failure(complaints: str, source: str, shape: Shape) -> Failure:
    """Of the complaints about text as an expression and as a body, the one that got further.

    Kind `memory` when the engine had none left to compile with: that says nothing about the text.
    """
    if "Error" not in complaints or "InternalError: out of memory" in complaints:
        return Failure("memory", MEMORY)
    failures = [_complaint("syntax", text, source, shape) for text in complaints.split("\x01")]
    if len(failures) > 1 and (shape.body == "" or not shape.trusted):
        return max(failures, key=lambda found: (found.line or 0, found.column or 0))
    return failures[-1]


def limit_failure(limit_s: float) -> Failure:
    """The evaluation was ended for time."""
    return Failure("limit", f"the expression didn't end within {limit_s:g} s; make it do less")


def _stopped(text: str, source: str, shape: Shape, limit_s: float) -> Failure:
    if "interrupted" in text:
        return limit_failure(limit_s)
    if "out of memory" in text or text.startswith(("MemoryError", "null")):
        return Failure("memory", MEMORY)
    return _complaint("error", text, source, shape)


def _thrown(name: str, message: str, stack: str, source: str, shape: Shape) -> Failure:
    if name == "Unusable":
        return Failure("result", message)
    if name == "InternalError" and message == "out of memory":
        return Failure("memory", MEMORY)
    if name == "thrown" and message == "null":
        return Failure("error", "the expression threw null, or had no memory left to say what went wrong")
    text = message if name in ("thrown", "Error") else f"{name}: {message}"
    return _failure("error", text, stack, source, shape)


def _complaint(kind: str, text: str, source: str, shape: Shape) -> Failure:
    """From the engine's own text, which has the stack below the message."""
    message, _, stack = text.partition("\n    at ")
    return _failure(kind, message.strip(), stack, source, shape)


def _failure(kind: str, message: str, stack: str, source: str, shape: Shape) -> Failure:
    line, column = _place(stack, source, shape)
    if _TOO_EARLY.match(message) and (line, column) >= _end(source):
        message = "SyntaxError: the expression ends too early"
    if line is not None and column is not None and _UNREADABLE.search(message):
        message += _shown(source, line, column)
    return Failure(kind, message or "the expression failed", line, column)


def _end(source: str) -> tuple[int, int]:
    """Line and column of the first character behind all that isn't blank."""
    lines = source.rstrip().split("\n")
    return len(lines), len(lines[-1]) + 1


def _shown(source: str, line: int, column: int) -> str:
    """QuickJS names the property that can't be read, not what it was read from."""
    found = _CHAIN.match(source.split("\n")[line - 1], column - 1)
    return f", at `{found.group()[:_CHAIN_SHOWN_MAX]}`" if found else ""


def _place(stack: str, source: str, shape: Shape) -> tuple[int | None, int | None]:
    """Line and column from 1, in characters: the wrapper's line and what `shape` put in are taken off again."""
    lines = source.split("\n")
    for found in _PLACE.finditer(stack):
        row, byte_column = int(found.group(1)) - 2, int(found.group(2)) - 1
        if row >= BOOTSTRAP_LINE - 2:
            continue
        if not 0 <= row < len(lines):  # what closes the wrapper: the text ended too early
            return len(lines), len(lines[-1]) + 1
        for at_row, at_column, size in shape.insertions:
            if at_row == row and byte_column > at_column:
                byte_column = max(at_column, byte_column - size)
        before = lines[row].encode()[:byte_column]
        return row + 1, len(before.decode(errors="ignore")) + 1
    return None, None
