"""Evaluates rules that aren't plain data, for the core: texts by the given evaluator, predicates by their functions.

An error is an answer; what it means is the policy's matter. Rules behind the first match are not evaluated.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from msgspec import structs

from gonogo.gate.commands import Judge
from gonogo.gate.policy import Expression, Filter, Policy, Predicate, Rule
from gonogo.gate.rules import Answer, Entry, Read, answered, entry_of, small

Evaluator = Callable[[str, Mapping[str, Any]], "Answer | Awaitable[Answer]"]
"""Judges a text over a scope; may be async. It should raise nothing, and put errors into its answer."""

Predicates = Mapping[str, Callable[[Mapping[str, Any]], bool]]
"""Functions by `name@version`."""

_ERROR_MAX = 300


async def judge(
    policy: Policy,
    command: Judge,
    evaluate: Evaluator | None,
    predicates: Predicates,
    clean: Callable[[str], str],
) -> tuple[Entry, ...]:
    """The entries that answer a Judge command; texts of errors without secrets (E6)."""
    rules = policy.before if command.phase == "before" else policy.after
    entries: list[Entry] = []
    matched = False
    for index, rule in enumerate(rules):
        if index < command.start or (command.only is not None and rule.then != command.only):
            continue
        if matched:
            entries.append(Entry(index, rule.named, rule.then, "not-reached", rule.kind))
            continue
        entry = await _entry(index, rule, command.scope, evaluate, predicates)
        if entry.error is not None:
            entry = structs.replace(entry, error=clean(entry.error))
        entries.append(entry)
        matched = entry.result == "matched"
    return tuple(entries)


async def _entry(
    index: int, rule: Rule, scope: Mapping[str, Any], evaluate: Evaluator | None, predicates: Predicates
) -> Entry:
    when = rule.when
    if isinstance(when, Filter):
        return entry_of(index, rule, scope, None)
    if isinstance(when, Predicate):
        return answered(index, rule, _ask(predicates.get(f"{when.name}@{when.version}"), when, scope))
    return answered(index, rule, await _evaluated(when, scope, evaluate))


async def _evaluated(when: Expression, scope: Mapping[str, Any], evaluate: Evaluator | None) -> Answer:
    if evaluate is None:
        return Answer(error="there is nothing to evaluate texts with; give the gate an evaluator")
    try:
        answer = evaluate(when.text, scope)
        return await answer if inspect.isawaitable(answer) else answer
    except Exception as error:  # noqa: BLE001 - somebody else's code; the error is in the record (B14)
        return _broken(error)


def _ask(
    predicate: Callable[[Mapping[str, Any]], bool] | None, when: Predicate, scope: Mapping[str, Any]
) -> Answer:
    if predicate is None:
        return Answer(error=f"there is no predicate {when.name}@{when.version}")
    watched = _Watched(scope)
    try:
        value = bool(predicate(watched))
    except Exception as error:  # noqa: BLE001 - somebody else's code; the error is in the record (B14)
        return Answer(reads=watched.reads(), error=_broken(error).error)
    return Answer(value, watched.reads())


def _broken(error: Exception) -> Answer:
    return Answer(error=f"{type(error).__name__}: {error}"[:_ERROR_MAX])


class _Watched(Mapping[str, Any]):
    """A scope that remembers what was read of it (E3)."""

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self._scope = scope
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        value = self._scope[name]
        self._read[name] = value
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._scope)

    def __len__(self) -> int:
        return len(self._scope)

    def reads(self) -> tuple[Read, ...]:
        """What was read, in order, small enough for a record."""
        return tuple(Read(name, small(value)) for name, value in self._read.items())
