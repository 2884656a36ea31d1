"""Checks a policy when a gate is built: all problems at once, each with its rule's index and field (A.2). Pure."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from typing import Any

from msgspec import structs

from gonogo.errors import ConfigError, Problem
from gonogo.gate.policy import (
    AFTER_VERBS,
    BEFORE_VERBS,
    LIST_MAX,
    Expression,
    Filter,
    Policy,
    Predicate,
    Rule,
)
from gonogo.gate.rules import OPERATORS
from gonogo.gate.scopes import NAMES
from gonogo.gate.taxonomy import ROWS

_AT_LEAST_ONE = frozenset(
    {"attempts_per_target", "attempts_max", "cycles", "probes", "closes_after", "failures", "calls_min"}
)


def checked(policy: Policy, predicates: Container[str], *, evaluates: bool) -> Policy:
    """The policy itself. Raises ConfigError with every problem found."""
    found = problems(policy, predicates, evaluates=evaluates)
    if any(problem.severity == "error" for problem in found):
        raise ConfigError(found)
    return policy


def problems(
    policy: Policy, predicates: Container[str] = (), *, evaluates: bool = True
) -> tuple[Problem, ...]:
    """All that is wrong with a policy, and warnings; `evaluates`: texts of rules can be evaluated."""
    return (*_problems(policy, predicates, evaluates=evaluates),)


def _problems(policy: Policy, predicates: Container[str], *, evaluates: bool) -> Iterator[Problem]:
    names = [target.name for target in policy.targets]
    if not names:
        yield _problem("policy.targets", "targets", "a gate needs at least one target")
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield _problem("policy.targets", "targets", f"two targets are named {name!r}")
    if "fallback" in names:
        yield _problem(
            "policy.targets", "targets", "'fallback' is the fallback's name; call the target something else"
        )
    for index, target in enumerate(policy.targets):
        if target.weight is not None and not (math.isfinite(target.weight) and target.weight >= 0):
            told = f"expected a finite number from 0 on, not {target.weight}"
            yield _problem("policy.number", f"targets[{index}].weight", told)
    if policy.sticky_s is not None and policy.order != "configured":
        told = (
            f"with order: {policy.order} calls don't begin with the last good target; remove one of the two"
        )
        yield _problem("policy.order", "sticky_s", told)
    optional = {kind for kind, row in ROWS.items() if row.other == "opt-in"}
    for kind in sorted(policy.reroute - optional):
        yield _problem("policy.reroute", "reroute", f"{kind!r} is none of {', '.join(sorted(optional))}")
    for phase, rules, verbs in (
        ("before", policy.before, BEFORE_VERBS),
        ("after", policy.after, AFTER_VERBS),
    ):
        for index, rule in enumerate(rules):
            yield from _of_rule(f"{phase}[{index}]", rule, verbs, predicates, evaluates=evaluates)
    for place in ("bounds", "timers", "backoff", "breaker", "hedge"):
        yield from _numbers(place, getattr(policy, place))


def _of_rule(
    place: str, rule: Rule, verbs: frozenset[str], predicates: Container[str], *, evaluates: bool
) -> Iterator[Problem]:
    if rule.then not in verbs:
        yield _problem(
            "rule.verb",
            f"{place}.then",
            f"{rule.then!r} is no verb here; there are: {', '.join(sorted(verbs))}",
        )
    if rule.feedback is not None and rule.then not in ("retry", "retry-other"):
        yield _problem("rule.feedback", f"{place}.feedback", "feedback goes with retry and retry-other")
    if rule.wait_s is not None and rule.then not in ("wait", "retry"):
        yield _problem("rule.wait", f"{place}.wait_s", "wait_s goes with wait and retry")
    if rule.wait_s is not None and not (math.isfinite(rule.wait_s) and rule.wait_s >= 0):
        yield _problem("rule.wait", f"{place}.wait_s", "expected a number of seconds from 0 on")
    when = rule.when
    if isinstance(when, Filter):
        yield from _of_filter(place, when)
    elif isinstance(when, Predicate) and f"{when.name}@{when.version}" not in predicates:
        yield _problem(
            "rule.when", f"{place}.when", f"the gate has no predicate '{when.name}@{when.version}'"
        )
    elif isinstance(when, Expression) and not evaluates:
        yield _problem("rule.when", f"{place}.when", "the gate has no evaluator for texts")


def _of_filter(place: str, when: Filter) -> Iterator[Problem]:
    if not when.conditions:
        yield _problem("rule.when", f"{place}.when", "a filter without conditions never matches")
    for condition in when.conditions:
        here = f"{place}.when.{condition.path}"
        root = condition.path.partition(".")[0]
        if root not in NAMES:
            yield _problem("rule.when", here, f"rules see no {root!r}; they see: {', '.join(sorted(NAMES))}")
        if condition.op not in OPERATORS:
            yield _problem(
                "rule.when", here, f"there is no operator {condition.op!r}; there are: {', '.join(OPERATORS)}"
            )
        elif condition.op in ("in", "not_in") and not isinstance(condition.threshold, tuple | list):
            yield _problem("rule.when", here, f"{condition.op} needs a list")
        elif isinstance(condition.threshold, tuple | list) and len(condition.threshold) > LIST_MAX:
            yield _problem("rule.when", here, f"a list of more than {LIST_MAX} values")
        if root == "error_kind" and (unknown := _unknown_kinds(condition.threshold)):
            yield _problem("rule.when", here, f"there is no kind {unknown!r}", severity="warning")


def _unknown_kinds(threshold: Any) -> str | None:
    kinds = threshold if isinstance(threshold, tuple | list) else (threshold,)
    return next((kind for kind in kinds if isinstance(kind, str) and kind not in ROWS and kind != "ok"), None)


def _numbers(place: str, part: Any) -> Iterator[Problem]:
    """Every number is finite and not negative; what counts tries is at least one (RET-1, B19)."""
    for name, value in (structs.asdict(part) if part is not None else {}).items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        least = 1 if name in _AT_LEAST_ONE else 0
        if not math.isfinite(value) or value < least:
            yield _problem(
                "policy.number", f"{place}.{name}", f"expected a finite number from {least} on, not {value}"
            )
    if place == "breaker" and part is not None and part.quorum > 1:
        yield _problem("policy.number", "breaker.quorum", "expected a part of all processes, from 0 to 1")
    if place == "breaker" and part is not None and part.window_s == 0:
        yield _problem("policy.number", "breaker.window_s", "expected more than 0 seconds")


def _problem(code: str, path: str, message: str, severity: str = "error") -> Problem:
    return Problem(code, message, path, severity=severity)
