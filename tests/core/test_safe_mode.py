"""Safe mode: mutating calls are withheld, and nothing is judged of what they would have given (spec G21)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.core.script import LOGICAL, Draft, Parks, Returns, Script, block, error, plan, step

from gonogo.core import decisions as d
from gonogo.core.contracts import NOT_APPLICABLE
from gonogo.core.events import AnswerGiven
from gonogo.core.plan import Plan

WITHHELD = Returns({"safe_mode": True}, effect="none")


def careful(more: Sequence[Draft] = (), **keys: object) -> Plan:
    """A step that changes the world, checked in every way, and one behind it that reads."""
    checks = {
        "guarantee": ["holds"],
        "fail_if": "bad",
        "conditions": [{"name": "worse", "when": "worse", "severity": "error"}],
    }
    return plan(step("act", effects="mutates", **checks, **keys), step("read", "act"), *more)


def test_G_21_what_was_withheld_passes_and_no_check_of_it_applies() -> None:
    """G21: each contract is recorded as not applicable, in the order of the plan; nobody is asked."""
    script = Script(careful(), calls={"act": WITHHELD}, answers={"holds": False, "bad": True}, safe_mode=True)
    judged = [
        (one.construct, one.expression, one.result, one.error) for one in script.decided(d.Judged, "act")
    ]
    assert judged == [
        ("guarantee", 0, "not_applicable", None),
        ("fail_if", 1, "not_applicable", None),
        ("condition", 2, "not_applicable", None),
    ]
    assert NOT_APPLICABLE == "not_applicable"
    assert (script.outcome("act"), script.outcome("read"), script.verdict) == ("passed", "passed", "GO")


def test_G_21_outside_of_safe_mode_mutating_steps_are_judged() -> None:
    """G21: the same step, the same answers."""
    script = Script(careful(), answers={"holds": False})
    assert script.rules("act")[0] == "contract/guarantee_failed"


def test_G_21_steps_that_change_nothing_are_judged_in_safe_mode() -> None:
    """G21: their calls are made."""
    script = Script(plan(step("read", guarantee=["holds"])), answers={"holds": False}, safe_mode=True)
    assert script.rules("read") == ["contract/guarantee_failed"]


def test_G_21_a_call_that_cannot_even_be_rendered_fails() -> None:
    """G21: safe mode shows what would be done; when that can't be said, it is a failure."""
    script = Script(careful(), calls={"act": LOGICAL}, safe_mode=True)
    assert (script.outcome("act"), script.rules("act")) == ("failed", ["test/logical"])
    assert script.node("act").fault == LOGICAL


@pytest.mark.parametrize("answers", [{}, {"holds": error()}])
def test_G_21_safe_mode_folds_back(answers: dict) -> None:
    """Law 1: a resumed run is still in safe mode."""
    script = Script(careful(), calls={"act": WITHHELD}, answers=answers, safe_mode=True)
    assert script.folded().safe_mode


def test_G_21_a_step_that_asks_a_person_is_judged_by_its_effects() -> None:
    """G21: an answer is no call of ours."""
    script = Script(
        plan(step("ask", guarantee=["holds"])),
        calls={"ask": Parks()},
        answers={"holds": False},
        safe_mode=True,
    )
    script.tell(AnswerGiven(step="ask", text="yes", by="me"))
    assert script.outcome("ask") == "failed"


def test_G_21_what_was_withheld_goes_on_as_what_has_passed() -> None:
    """G21: its block shows where the run would go."""
    script = Script(
        careful(on_success=block(run=["tell"]), more=[step("tell", start="routed")]),
        calls={"act": WITHHELD},
        safe_mode=True,
    )
    assert script.started == ["act", "read", "tell"]
