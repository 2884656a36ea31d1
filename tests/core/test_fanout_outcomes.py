"""What a fan-out as a whole comes to, by what its items came to (spec C.13 R5); and issues as data (D.1)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Never, Returns, Script, block, plan, step

from gonogo.core import events as e
from gonogo.core.faults import Fault, Issue, as_names, issue_for
from gonogo.core.plan import Retry


def mapped(calls: Any = None, **keys: Any) -> Script:
    """A list of three, and a step over its items."""
    more = keys.pop("more", ())
    return Script(
        plan(step("list", for_each=True), step("work", "list", fanout="map", **keys), *more),
        calls={"list": [0, 1, 2], "work": calls},
        answers={"even": lambda names: names["item"] % 2 == 0, "never": False},
    )


def fails_in(*items: int) -> Any:
    """Calls that fail for these items."""
    return lambda command: LOGICAL if command.scope[-2] in map(str, items) else "fine"


@pytest.mark.parametrize(
    ("calls", "keys", "outcome", "reason"),
    [
        (None, {}, "passed", None),
        (fails_in(1), {}, "failed", "partial"),
        (fails_in(0, 1, 2), {}, "failed", "all_items"),
        (fails_in(1), {"continue_on_failure": True}, "tolerated", "items"),
        (fails_in(0, 1, 2), {"continue_on_failure": True}, "tolerated", "items"),
        (None, {"assume": ["even"]}, "passed", None),
        (None, {"assume": ["never"]}, "skipped", "all_items"),
        (fails_in(2), {"assume": ["even"]}, "failed", "partial"),
    ],
)
def test_C_13_R5_a_fan_out_comes_to_what_its_items_came_to(
    calls: Any, keys: dict[str, Any], outcome: str, reason: str | None
) -> None:
    """C.13 R5: failure before all, then tolerance; items that were skipped alone take nothing away from a pass."""
    node = mapped(calls, **keys).node("work")
    assert (node.outcome, node.reason) == (outcome, reason)


@pytest.mark.parametrize(("calls", "tells"), [(None, True), (fails_in(1), False)])
def test_semantics_8_on_success_is_for_a_fan_out_that_passed(calls: Any, tells: bool) -> None:
    """Semantics 8: once, on the whole; the step is at rest afterwards."""
    script = mapped(calls, on_success=block(run=["tell"]), more=[step("tell")])
    assert ("tell" in script.started) == tells
    assert script.node("work").settled


def test_semantics_5_a_cancel_ends_a_fan_out_and_its_items() -> None:
    """Semantics 5: what runs is cancelled, what hasn't begun is not opened, and nothing follows."""
    script = mapped(Never(), on_success=block(run=["tell"]), more=[step("tell")]).tell(e.CancelAsked(by="me"))
    node = script.node("work")
    assert (node.outcome, node.reason) == ("cancelled", "cancelled")
    assert script.started == ["list", "work@list#1[0]"]


def test_semantics_5_items_of_an_always_step_still_open_while_a_run_stops() -> None:
    """Semantics 5: cleanup over a list is done for each of its items."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("bad"),
            step("tidy", "list", "bad", fanout="map", if_="yes", always=True),
            fail_fast=True,
        ),
        calls={"list": [0, 1, 2], "bad": LOGICAL},
    )
    assert script.started[-3:] == [f"tidy@list#1[{index}]" for index in range(3)]
    assert script.outcome("tidy") == "passed"


def test_a_retried_item_finds_room_behind_those_that_came_before_it() -> None:
    """C.13 R8: its place in the window is free while it waits."""
    script = mapped(
        lambda command: TRANSIENT if command.scope.endswith("[0]") and command.attempt == 1 else "fine",
        on_fail=block(retry=Retry(1, delay_s=5.0)),
    )
    assert [name[-2] for name in script.started[1:]] == ["0", "1", "2", "0"]
    assert script.outcome("work") == "passed"


# --- issues


def test_D_1_an_issue_says_nothing_that_nobody_said() -> None:
    """D.1: about the system and its logic unless a file is named."""
    issue = Issue("x/y", "text")
    assert (issue.file, issue.line, issue.category, issue.severity) == ("system", 0, "logic", "error")


def test_D_1_an_expression_sees_an_issue_with_the_reports_names() -> None:
    """D.1, B.5: hasIssue and the like read these."""
    issue = Issue("x/y", "text", "warning", "a.py", 3, category="style")
    assert as_names(issue) == {
        "ruleId": "x/y",
        "message": "text",
        "severity": "warning",
        "file": "a.py",
        "line": 3,
        "category": "style",
    }


@pytest.mark.parametrize(("scope", "told"), [("list#1[2]", "list#1[2]"), ("", None)])
def test_D_1_the_issue_of_a_fault_names_its_item(scope: str, told: str | None) -> None:
    """D.1: step, item and attempt, as gonogo's own word."""
    issue = issue_for(Fault("k", "logical", "x/y", "text"), "work", scope, 2)
    assert (issue.check_name, issue.scope, issue.attempt, issue.engine) == ("work", told, 2, True)


def test_C_6_only_a_transient_fault_may_go_better_by_itself() -> None:
    """C.6: by its class, not by its words."""
    assert Fault("k", "transient", "x/y", "wrong for good").transient
    assert not Fault("k", "logical", "x/y", "timeout").transient


def test_C_13_a_step_that_gives_no_list_need_give_nothing() -> None:
    """C.13: only a forEach step must have an output."""
    script = Script(plan(step("a", guarantee=["fine"])), calls={"a": Returns()})
    assert script.outcome("a") == "passed"


def test_C_4_two_rules_with_the_same_words_are_two_issues() -> None:
    """C.4: an issue is known by its rule and its message."""
    told = Issue("a/other", LOGICAL.message)
    script = Script(plan(step("a")), calls={"a": Never()})
    script.tell(e.CallFailed(call=1, fault=LOGICAL, issues=(told,)))
    assert script.rules("a") == ["a/other", LOGICAL.rule_id]


def test_C_13_an_item_goes_on_while_its_neighbours_are_at_work() -> None:
    """C.13: it waits for the steps of its own item alone, also when it has waited for room in between."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("first", "list", fanout="map", concurrency=2),
            step("then", "first", fanout="map"),
            max_parallelism=2,
        ),
        calls={"list": [1, 2, 3], "first": lambda command: Never() if command.scope.endswith("[1]") else 1},
    )
    assert script.outcome("then", "list#1[0]") == script.outcome("then", "list#1[2]") == "passed"
