"""What a policy allows but can't mean: rules that are never reached, verbs without a place to go, retries that nothing
but a far bound ends (reliability-gate, F.8.9). Warnings, for `gonogo validate` and for people. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from gonogo.errors import Problem
from gonogo.gate.policy import Condition, Expression, Filter, Policy, Rule, When
from gonogo.gate.rules import holds

RETRIES_DOUBTED = 10
"""So many attempts on one target are too many for a rule that doesn't count them itself."""
_COUNTS = frozenset(
    """
    attempt target_attempt attempts_per_target elapsed_s left_s cost_usd tokens input_tokens output_tokens waits
    validation_errors
    """.split()
)
"""Names that grow or shrink while a call goes on: a rule that reads one may stop matching by itself."""


def doubts(policy: Policy, unsaid: Container[str] = ()) -> tuple[Problem, ...]:
    """What is allowed but can't be meant: rules that are never reached, verbs without a place to go (F.8.9).

    `unsaid` names parts that the policy leaves to whoever calls (targets, mode): nothing is doubted about them.
    """
    return tuple(_doubts(policy, unsaid))


def _doubts(policy: Policy, unsaid: Container[str]) -> Iterator[Problem]:
    alone = len(policy.targets) == 1 and "targets" not in unsaid
    most = min(policy.bounds.attempts_per_target, policy.bounds.attempts_max) - 1
    shown = policy.mode in ("pass-through", "hold-until-first-token") and "mode" not in unsaid
    yield from _of_order(policy, unsaid, alone=alone)
    for phase, rules in (("before", policy.before), ("after", policy.after)):
        for index, rule in enumerate(rules):
            place = f"{phase}[{index}]"
            earlier = next(
                (number for number in range(index) if _covers(rules[number].when, rule.when)), None
            )
            if earlier is not None:
                yield _doubt(f"{place}.when", f"never reached: {phase}[{earlier}] matches whenever it does")
            if rule.then in ("retry-other", "skip-target") and alone:
                yield _doubt(f"{place}.then", f"{rule.then} needs a second target")
            if rule.then == "retry" and policy.bounds.attempts_per_target == 1:
                yield _doubt(f"{place}.then", "retry, but attempts_per_target is 1")
            if rule.then == "fallback" and policy.bounds.fallbacks_max == 0:
                yield _doubt(f"{place}.then", "fallback, but fallbacks_max is 0")
            if rule.then == "retry" and _only_bounds_end(rule, policy):
                yield _doubt(f"{place}.then", f"retries {most} times, because its `when` counts nothing")
            if shown and (rule.feedback is not None or _corrects(rule)):
                where = "then" if rule.feedback is None else "feedback"
                yield _doubt(
                    f"{place}.{where}", f"in mode {policy.mode} a stream's wrong answer is out already"
                )


def _of_order(policy: Policy, unsaid: Container[str], *, alone: bool) -> Iterator[Problem]:
    """Weights and the order that reads them belong together."""
    weighs = [index for index, target in enumerate(policy.targets) if target.weight is not None]
    if policy.order != "weighted":
        for index in weighs:
            yield _doubt(f"targets[{index}].weight", "a weight counts with order: weighted alone")
    elif not weighs and "targets" not in unsaid:
        yield _doubt("order", "weighted, but no target has a weight: all come first alike")
    if policy.order != "configured" and alone:
        yield _doubt("order", f"{policy.order} needs a second target")


def _doubt(path: str, message: str) -> Problem:
    return Problem("policy.doubt", message, path, severity="warning")


def _covers(earlier: When, later: When) -> bool:
    """Whether the earlier one holds whenever the later one does, as far as data shows."""
    if isinstance(earlier, Filter) and isinstance(later, Filter):
        return bool(earlier.conditions) and all(
            any(_implies(told, asked) for told in later.conditions) for asked in earlier.conditions
        )
    return earlier == later


def _implies(told: Condition, asked: Condition) -> bool:
    """Whether a condition that holds makes another one hold: the same, or values that all pass the other's test."""
    if told.path != asked.path:
        return False
    if told == asked:
        return True
    if told.op == "eq":
        return holds(asked.op, told.threshold, asked.threshold)
    values = told.threshold if told.op == "in" and isinstance(told.threshold, tuple | list) else ()
    return bool(values) and all(holds(asked.op, value, asked.threshold) for value in values)


def _only_bounds_end(rule: Rule, policy: Policy) -> bool:
    """A retry that nothing ends but bounds, and those late."""
    bounds = policy.bounds
    return (
        min(bounds.attempts_per_target, bounds.attempts_max) > RETRIES_DOUBTED and not _names(rule) & _COUNTS
    )


def _corrects(rule: Rule) -> bool:
    """A rule that asks again because of a wrong answer."""
    return (
        rule.then in ("retry", "retry-other")
        and isinstance(rule.when, Filter)
        and Condition("error_kind", "eq", "schema-fail") in rule.when.conditions
    )


def _names(rule: Rule) -> frozenset[str]:
    """What a rule reads; of a predicate nobody knows, so that it is taken to read everything."""
    if isinstance(rule.when, Filter):
        return frozenset(condition.path.partition(".")[0] for condition in rule.when.conditions)
    return frozenset(re.findall(r"\w+", rule.when.text)) if isinstance(rule.when, Expression) else _COUNTS
