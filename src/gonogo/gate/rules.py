"""Which rule speaks, and the evidence: every rule looked at, its operands and the values they had. Pure.

Filters are judged here. Texts and predicates are judged by whoever may run code; the answers come in as `Verdicts`.
Rules are looked at in order, each once, up to the first that matches (B13, E1).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from gonogo.gate.policy import Filter, Rule, When

Result = Literal["matched", "no", "error", "not-reached", "skipped"]
TEXT_MAX = 80


class Compared(Struct, frozen=True, omit_defaults=True):
    """One condition as it was met: field, operator, threshold, the value it had, and what wrote that value."""

    path: str
    op: str
    threshold: Any
    actual: Any
    result: bool


class Read(Struct, frozen=True, omit_defaults=True):
    """A value that a text or a predicate read, and what wrote it."""

    path: str
    value: Any
    producer: str = ""


class Entry(Struct, frozen=True, omit_defaults=True):
    """One rule in a decision: what came of it and why."""

    index: int
    label: str
    then: str
    result: Result
    kind: str = ""
    conditions: tuple[Compared, ...] = ()
    reads: tuple[Read, ...] = ()
    error: str | None = None


class Answer(Struct, frozen=True, omit_defaults=True):
    """What an evaluator says of one `when`: the truth, the values read, or the error."""

    value: bool = False
    reads: tuple[Read, ...] = ()
    error: str | None = None


Evaluate = Callable[[When, Mapping[str, Any]], Answer]
"""Judges a text or a predicate over a scope. Raises nothing: an error is an answer."""

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "in": lambda actual, threshold: actual in threshold,
    "not_in": lambda actual, threshold: actual not in threshold,
}
_ORDERED = frozenset({"gt", "gte", "lt", "lte"})


class Found(Struct, frozen=True):
    """The first rule that matches, or None, with all that was looked at."""

    chosen: int | None
    entries: tuple[Entry, ...]
    error: str | None = None


class Choice(Struct, frozen=True):
    """What `decide` came to: the branch, whether it is the default, and the evidence."""

    branch: str
    entries: tuple[Entry, ...]
    chosen: int | None
    default: bool


def decide(
    scope: Mapping[str, Any], rules: Sequence[Rule], default: str, evaluate: Evaluate | None = None
) -> Choice:
    """The branch of the first rule that matches, else the default, with evidence (E1 to E8).

    Usable for any decision, not only a gate's: `decide({"age": 7}, [rule("child", {"age": {"lt": 12}})], "adult")`.
    """
    found = look(rules, scope, evaluate)
    if found.chosen is None:
        return Choice(default, found.entries, None, True)
    return Choice(rules[found.chosen].then, found.entries, found.chosen, False)


def look(
    rules: Sequence[Rule],
    scope: Mapping[str, Any],
    evaluate: Evaluate | None = None,
    *,
    start: int = 0,
    only: str | None = None,
) -> Found:
    """Look at rules from `start` on, at those with the verb `only` if given; the rest is not reached."""
    entries: list[Entry] = []
    chosen, error = None, None
    for index, rule in enumerate(rules):
        if index < start or (only is not None and rule.then != only):
            continue
        if chosen is not None:
            entries.append(_entry(index, rule, "not-reached"))
            continue
        entry = entry_of(index, rule, scope, evaluate)
        entries.append(entry)
        if entry.result == "matched":
            chosen = index
        error = error or entry.error
    return Found(chosen, tuple(entries), error)


def entry_of(index: int, rule: Rule, scope: Mapping[str, Any], evaluate: Evaluate | None) -> Entry:
    """One rule looked at."""
    if isinstance(rule.when, Filter):
        compared = tuple(
            _compare(condition.path, condition.op, condition.threshold, scope)
            for condition in rule.when.conditions
        )
        matched = bool(compared) and all(each.result for each in compared)
        return Entry(index, rule.named, rule.then, "matched" if matched else "no", rule.kind, compared)
    if evaluate is None:
        return Entry(
            index, rule.named, rule.then, "error", rule.kind, error="there is nothing to evaluate it with"
        )
    return answered(index, rule, evaluate(rule.when, scope))


def answered(index: int, rule: Rule, answer: Answer) -> Entry:
    """One rule as its evaluator judged it."""
    result: Result = "error" if answer.error is not None else "matched" if answer.value else "no"
    return Entry(index, rule.named, rule.then, result, rule.kind, (), answer.reads, answer.error)


def is_data(rules: Sequence[Rule]) -> bool:
    """Whether all of the rules are filters, so that nobody outside need be asked."""
    return all(isinstance(rule.when, Filter) for rule in rules)


def value_at(scope: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path; None where there is none."""
    value: Any = scope
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, Sequence) and not isinstance(value, str) and part.lstrip("-").isdigit():
            number = int(part)
            value = value[number] if -len(value) <= number < len(value) else None
        else:
            return None
    return value


def small(value: Any) -> Any:
    """A value for a record: texts cut, collections as a size (E3)."""
    if isinstance(value, str):
        return value if len(value) <= TEXT_MAX else f"{value[:TEXT_MAX]}…"
    if isinstance(value, Mapping):
        return f"{{{len(value)} keys}}"
    if isinstance(value, list | tuple | set | frozenset):
        return f"[{len(value)} items]"
    return value if value is None or isinstance(value, bool | int | float) else str(value)[:TEXT_MAX]


def _entry(index: int, rule: Rule, result: Result) -> Entry:
    return Entry(index, rule.named, rule.then, result, rule.kind)


def _compare(path: str, op: str, threshold: Any, scope: Mapping[str, Any]) -> Compared:
    """False, never an error, where the two can't be compared."""
    actual = value_at(scope, path)
    return Compared(path, op, _shown(threshold), small(actual), holds(op, actual, threshold))


def _shown(threshold: Any) -> Any:
    return list(threshold) if isinstance(threshold, tuple) else threshold


def holds(op: str, actual: Any, threshold: Any) -> bool:
    """Whether a value passes a condition's test."""
    if op in _ORDERED and (actual is None or isinstance(actual, str) != isinstance(threshold, str)):
        return False
    try:
        return bool(OPERATORS[op](actual, threshold))
    except TypeError:
        return False
