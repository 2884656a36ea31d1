"""JSON out of what a model wrote: strict about what counts as JSON, patient about what stands around it.

Whether it has the form that was asked for is for the caller to validate. Nothing is repaired: half an answer
that is mended looks like a whole one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

from gonogo.models.conversation import Schema, ToolCall
from gonogo.models.reply import NoAnswer, Reply

Want = Literal["object", "array", "any"]
TEXT_CHARACTERS_MAX = 4 * 1024 * 1024
_STARTS_TRIED_MAX = 200
_FENCE = re.compile(r"^[ \t]*```[ \t]*([\w+-]*)[ \t]*\r?\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)
_LOOKS_LIKE_JSON = re.compile(r'\{\s*"|\[\s*["{\[]')
_OPENING = {"object": re.compile(r"\{"), "array": re.compile(r"\["), "any": re.compile(r"[{\[]")}


Found = Literal["text", "fence", "prose", "tool"]


class Extracted(Struct, frozen=True):
    """The value, and whether it was all of the text, in a fence, in prose, or a tool's arguments."""

    value: Any
    found: Found


class _NotStrict(ValueError):  # noqa: N818 - the name says what happened
    """JSON that readers understand in different ways: a name twice, or a number that is none."""


def extract_json(text: str, want: Want = "any") -> Extracted | NoAnswer:
    """The one JSON value in a text: all of it, else the only fenced one, else the only one in its prose.

    Several that differ, one that is broken or cut off, a name twice in one object, NaN and halves of surrogate
    pairs are `schema-fail`.
    """
    if len(text) > TEXT_CHARACTERS_MAX:
        return _no(f"the answer is longer than {TEXT_CHARACTERS_MAX:,} characters")
    stages: tuple[tuple[Found, Iterator[Any]], ...] = (
        ("text", _whole(text)),
        ("fence", _fenced(text)),
        ("prose", _in_prose(text, want)),
    )
    try:
        for found, candidates in stages:
            values = _different(candidates)
            if values:
                return _only(values, want, found)
    except _NotStrict as problem:
        return _no(str(problem))
    return _no(f"the answer holds no JSON {'value' if want == 'any' else want}")


def answer_json(reply: Reply, schema: Schema) -> Extracted | NoAnswer:
    """What a reply says in answer to a schema: the call of its tool where that was the way, else its text."""
    kind = schema.schema.get("type")
    want: Want = kind if kind in ("object", "array") else "any"
    calls = [call for call in reply.tool_calls if call.name == schema.name]
    if schema.mode != "tool" or not calls:
        return extract_json(reply.text, want)
    if len(calls) > 1:
        return _no(f"the model called '{schema.name}' {len(calls)} times; once was asked for")
    arguments = arguments_of(calls[0])
    return arguments if isinstance(arguments, NoAnswer) else Extracted(arguments, "tool")


def arguments_of(call: ToolCall) -> dict[str, Any] | NoAnswer:
    """The arguments of a tool call, an object; no arguments at all are an empty one."""
    if not call.arguments.strip():
        return {}
    try:
        value = _strict(call.arguments)
    except _NotStrict as problem:
        return _no(f"the arguments for '{call.name}' aren't clear: {problem}")
    except ValueError:
        return _no(f"the arguments for '{call.name}' are no JSON")
    return value if isinstance(value, dict) else _no(f"the arguments for '{call.name}' are no object")


def _whole(text: str) -> Iterator[Any]:
    try:
        yield _strict(text.strip().removeprefix("\ufeff"))
    except _NotStrict:
        raise
    except ValueError:
        return


def _fenced(text: str) -> Iterator[Any]:
    """Blocks in fences: those marked as JSON if there are any, else the unmarked ones."""
    blocks = _FENCE.findall(text) if "```" in text else []
    marked = [body for language, body in blocks if language.lower() in ("json", "jsonc", "json5")]
    for body in marked or [body for language, body in blocks if not language]:
        yield from _whole(body)


def _in_prose(text: str, want: Want) -> Iterator[Any]:
    """Values that begin within prose. What looks like JSON and isn't ends the search: its parts aren't the answer."""
    decoder = json.JSONDecoder()
    position = 0
    for _ in range(_STARTS_TRIED_MAX):
        opening = _OPENING[want].search(text, position)
        if opening is None:
            return
        start = opening.start()
        try:
            _, position = decoder.raw_decode(text, start)
            yield _strict(text[start:position])
        except _NotStrict:
            raise
        except (ValueError, RecursionError) as problem:
            if _LOOKS_LIKE_JSON.match(text, start):
                raise _NotStrict("the answer holds JSON that is broken or cut off") from problem
            position = start + 1
    # So many openings without a value aren't an answer with JSON in it.


def _different(candidates: Iterator[Any]) -> list[Any]:
    """The candidates without repetitions (models like to say it twice)."""
    values: dict[str, Any] = {}
    for value in candidates:
        values.setdefault(json.dumps(value, sort_keys=True), value)
    return list(values.values())


def _only(values: list[Any], want: Want, found: Found) -> Extracted | NoAnswer:
    if len(values) > 1:
        return _no(f"the answer holds {len(values)} different JSON values; one was asked for")
    value = values[0]
    if want == "any" or isinstance(value, dict if want == "object" else list):
        return Extracted(value, found)
    return _no(f"the answer's JSON is no {want}")


def _strict(text: str) -> Any:
    """The value of a JSON text. Raises ValueError for no JSON, its child _NotStrict for unclear JSON.

    A text is judged when it has been read to its end: prose that begins with "NaN" is no JSON at all.
    """
    unclear: list[str] = []
    try:
        json.loads(text, object_pairs_hook=_pairs(unclear), parse_constant=_constant(unclear))
        if unclear:
            raise _NotStrict(unclear[0])
        return msgspec.json.decode(text)
    except RecursionError as problem:
        raise ValueError("too deep") from problem
    except UnicodeError as problem:
        raise _NotStrict("the answer holds half of a character") from problem


def _pairs(unclear: list[str]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            unclear.append("the answer holds an object with the same name twice")
        return value

    return made


def _constant(unclear: list[str]) -> Callable[[str], None]:
    return lambda name: unclear.append(f"the answer holds {name}, which is no JSON")


def _no(message: str) -> NoAnswer:
    return NoAnswer("schema-fail", message, "the answer's text")
