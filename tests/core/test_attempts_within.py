"""Attempts made within a call, as the gate's record in its meta tells them (semantics 24)."""

from __future__ import annotations

import pytest
from tests.core.script import TRANSIENT, Script, block, plan, step

from gonogo.core import commands as c
from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core.plan import Budget, Plan, Retry


class Gated(Script):
    """Every call of a step fails after so many attempts of its gate."""

    def __init__(self, plan: Plan, attempts: object) -> None:
        self.attempts = attempts
        super().__init__(plan, calls={"a": TRANSIENT})

    def _answer_call(self, command: c.StartCall) -> None:
        meta = {"gate": {"attempts": self.attempts}}
        self._inbox.append(e.CallFailed(call=command.call, fault=TRANSIENT, effect="none", meta=meta))


def retrying(maximum: int, **keys: object) -> Plan:
    """A step with further attempts."""
    top = {key: keys.pop(key) for key in ("budget",) if key in keys}
    return plan(step("a", on_fail=block(retry=Retry(maximum, **keys))), **top)


@pytest.mark.parametrize(
    ("within", "maximum", "calls"), [(1, 2, 3), (2, 2, 2), (3, 2, 1), (3, 4, 2), (9, 4, 1)]
)
def test_RET_2_attempts_within_a_call_count_against_the_steps_retries(
    within: int, maximum: int, calls: int
) -> None:
    """RET-2, semantics 24: layers don't multiply."""
    assert len(Gated(retrying(maximum), [{}] * within).started) == calls


def test_RET_2_a_step_may_count_them_separately() -> None:
    """RET-2: then it is the product, and the author says so."""
    assert len(Gated(retrying(2, separately=True), [{}] * 3).started) == 3


def test_they_are_retries_of_the_run() -> None:
    """A run's budget of retries counts every further attempt."""
    script = Gated(retrying(9, separately=True, budget=Budget(retries=5)), [{}] * 3)
    assert len(script.started) == 2
    assert [refused.limit for refused in script.decided(d.Refused)] == ["budget.retries"]


@pytest.mark.parametrize("attempts", [None, 7, "many", {}, []])
def test_a_record_without_sense_counts_as_none(attempts: object) -> None:
    """A journal is hostile input."""
    assert len(Gated(retrying(2), attempts).started) == 3
