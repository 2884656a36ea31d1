"""From plain data (`reliability:` of a workflow) to a Policy. Pure. Every problem is told with its place in the data.

A rule's `when` is JavaScript (a text) or a filter (`{error.status: {gte: 500}}`). What a policy means, and whether it
makes sense, is for `checking.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

import msgspec
import msgspec.inspect
from msgspec import Struct

from gonogo.errors import ConfigError, Problem
from gonogo.gate.breaker import BreakerPolicy
from gonogo.gate.policy import Backoff, Bounds, Hedge, Policy, Rule, Target, Timers, rule

PARTS: dict[str, type[Struct]] = {
    "bounds": Bounds,
    "timers": Timers,
    "backoff": Backoff,
    "breaker": BreakerPolicy,
    "hedge": Hedge,
}
"""The keys of a policy that hold keys of their own."""
LISTS: dict[str, type[Struct]] = {"targets": Target, "before": Rule, "after": Rule}
"""The keys of a policy that hold lists, and what is in them."""
OFF = frozenset({"breaker", "hedge"})
"""What may be switched off with `false` or null."""
_WORDS = MappingProxyType(
    {"float": "a number", "int": "a whole number", "str": "text", "bool": "true or false",
     "object": "keys and values", "array": "a list", "null": "nothing"}
)  # fmt: skip


def policy_of(data: Mapping[str, Any]) -> Policy:
    """The policy that the data says. Raises ConfigError with every problem of its form."""
    problems = (*_unknown(data),)
    known = {field.name for field in msgspec.structs.fields(Policy)}
    formless = {problem.path.partition("[")[0] for problem in problems if problem.code == "policy.form"}
    made: dict[str, Any] = {}
    for key, value in data.items():
        if key not in known or key in formless:
            continue
        try:
            made[key] = _value(key, value)
        except _Wrong as wrong:
            problems = (*problems, Problem("policy.form", wrong.message, wrong.place))
    if problems:
        raise ConfigError(problems)
    return Policy(**made)


class _Wrong(Exception):  # noqa: N818 - the name says what happened
    def __init__(self, place: str, message: str) -> None:
        super().__init__(message)
        self.place = place
        self.message = message


def _value(key: str, value: Any) -> Any:
    if key in OFF and (value is None or value is False):
        return None
    if key in ("before", "after"):
        return tuple(_rule(f"{key}[{index}]", each) for index, each in enumerate(value))
    types = msgspec.structs.fields(Policy)
    wanted = next(field.type for field in types if field.name == key)
    return _converted(key, value, wanted)


def _rule(place: str, data: Mapping[str, Any]) -> Rule:
    when = data.get("when")
    if not isinstance(when, str | Mapping) or not when:
        raise _Wrong(f"{place}.when", "expected JavaScript, or a filter such as {error.status: {gte: 500}}")
    if not isinstance(data.get("then"), str):
        raise _Wrong(f"{place}.then", "expected a verb")
    made = rule(data["then"], when)
    rest = {name: value for name, value in data.items() if name not in ("when", "then")}
    checked: Rule = _converted(
        place, {"when": {"type": "expression", "text": ""}, "then": made.then, **rest}, Rule
    )
    return msgspec.structs.replace(checked, when=made.when)


def _converted(place: str, value: Any, wanted: Any) -> Any:
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as problem:
        told, _, where = str(problem).partition(" - at `$")
        path, choices = where.rstrip("`"), ""
        if told.startswith("Expected `"):
            told = re.sub("`([^`]+)`", _in_words, told)
        if told.startswith("Invalid enum value"):
            choices = f"; there are: {', '.join(_choices(wanted, path))}"
        raise _Wrong(place + path, f"{told[:1].lower()}{told[1:]}{choices}") from problem


def _in_words(types: re.Match[str]) -> str:
    return " or ".join(_WORDS.get(each, each) for each in types[1].split(" | "))


def _choices(wanted: Any, path: str) -> list[str]:
    """The words that may stand at a place within a value of this type."""
    found = msgspec.inspect.type_info(wanted)
    for name in re.findall(r"\w+|\[", path):
        if isinstance(found, msgspec.inspect.UnionType):
            found = next(each for each in found.types if not isinstance(each, msgspec.inspect.NoneType))
        if isinstance(found, msgspec.inspect.StructType):
            found = next((each.type for each in found.fields if each.name == name), found)
        elif isinstance(found, msgspec.inspect.VarTupleType):
            found = found.item_type
    return [str(value) for value in found.values] if isinstance(found, msgspec.inspect.LiteralType) else []


def _unknown(data: Mapping[str, Any]) -> Iterator[Problem]:
    """Keys that no policy has, and parts that aren't what can hold keys."""
    yield from _strangers("", data, Policy)
    for key, part in PARTS.items():
        value = data.get(key)
        if isinstance(value, Mapping):
            yield from _strangers(f"{key}.", value, part)
    for key, part in LISTS.items():
        values = data.get(key, ())
        if not isinstance(values, list | tuple):
            yield Problem("policy.form", "expected a list", key)
            continue
        for index, each in enumerate(values):
            place = f"{key}[{index}]"
            if isinstance(each, Mapping):
                yield from _strangers(f"{place}.", each, part)
            else:
                yield Problem("policy.form", "expected keys and values", place)


def _strangers(place: str, data: Mapping[str, Any], part: type[Struct]) -> Iterator[Problem]:
    known = [field.name for field in msgspec.structs.fields(part)]
    for key in data:
        if key not in known and not str(key).startswith("x-"):
            near = get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
            yield Problem("policy.key", f"unknown key '{key}'", f"{place}{key}", suggestion=hint)
