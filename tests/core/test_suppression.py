"""Suppression: what changes the world waits for critical steps to have passed (spec C.8, semantics.md 19)."""

from __future__ import annotations

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Script, block, plan, step

from gonogo.core import decisions as d
from gonogo.core.changes import reopen
from gonogo.core.plan import Plan, Retry
from gonogo.core.suppression import kept_back_by, suppressor


def check(name: str, *depends_on: str, criticality: str = "internal", **keys: object):
    """A critical step."""
    return step(name, *depends_on, criticality=criticality, **keys)


def act(name: str, *depends_on: str, **keys: object):
    """A step that changes the world."""
    return step(name, *depends_on, effects="mutates", **keys)


def reason(script: Script, name: str, scope: str = "") -> tuple[str | None, str | None]:
    """Why a step didn't run, and because of which."""
    node = script.node(name, scope)
    return node.reason, node.because


@pytest.mark.parametrize("criticality", ["external", "internal"])
@pytest.mark.parametrize("edge", ["check?", "check|other"])
def test_G_7_a_mutating_step_behind_a_failed_critical_one_is_suppressed(criticality: str, edge: str) -> None:
    """G7, C.8, I.2: also through an edge that lets failures pass and through an OR group; nothing is called."""
    script = Script(
        plan(check("check", criticality=criticality), step("other"), act("deploy", edge)),
        calls={"check": LOGICAL},
    )
    assert reason(script, "deploy") == ("suppressed", "check")
    assert script.started == ["check", "other"]
    assert script.verdict == "NO-GO"


def test_C_8_suppression_reaches_through_steps_between() -> None:
    """C.8: downstream is transitive."""
    script = Script(
        plan(check("check"), step("report", "check?"), act("deploy", "report")), calls={"check": LOGICAL}
    )
    assert script.outcome("report") == "passed"
    assert reason(script, "deploy") == ("suppressed", "check")


def test_C_8_a_tolerated_failure_of_a_critical_step_suppresses_too() -> None:
    """C.8: continue_on_failure opens edges for reports, not for what acts."""
    script = Script(
        plan(check("check", continue_on_failure=True), step("report", "check"), act("deploy", "check")),
        calls={"check": LOGICAL},
    )
    assert script.outcome("report") == "passed"
    assert reason(script, "deploy") == ("suppressed", "check")


def test_C_8_steps_that_change_nothing_go_on() -> None:
    """C.8: reading and idempotent steps aren't suppressed."""
    script = Script(
        plan(check("check"), step("read", "check?"), step("put", "check?", effects="idempotent")),
        calls={"check": LOGICAL},
    )
    assert (script.outcome("read"), script.outcome("put")) == ("passed", "passed")


@pytest.mark.parametrize("safety", ["standard", "strict"])
def test_C_8_failures_of_steps_that_are_not_critical_suppress_nothing(safety: str) -> None:
    """C.8: criticality info only gates."""
    script = Script(plan(step("lint"), act("deploy", "lint?"), safety=safety), calls={"lint": LOGICAL})
    assert script.outcome("deploy") == "passed"


def test_C_8_a_policy_failure_keeps_back_external_steps_only() -> None:
    """C.8: what mutates but isn't external goes on behind a failed policy step."""
    script = Script(
        plan(
            check("allowed", criticality="policy"),
            act("label", "allowed?"),
            act("publish", "allowed?", criticality="external"),
        ),
        calls={"allowed": LOGICAL},
    )
    assert script.outcome("label") == "passed"
    assert reason(script, "publish") == ("suppressed", "allowed")


def test_C_8_the_failed_steps_own_remediation_may_act() -> None:
    """C.8: what on_fail runs was written for the failure."""
    script = Script(
        plan(check("check", on_fail=block(run=["undo"])), act("undo", "check?")), calls={"check": LOGICAL}
    )
    assert script.outcome("undo") == "passed"


def test_C_8_a_step_that_waits_for_the_failure_may_act() -> None:
    """C.8: `if: failure()` and `if: always()` are the author's own word."""
    script = Script(plan(check("check"), act("alarm", "check", always=True)), calls={"check": LOGICAL})
    assert script.outcome("alarm") == "passed"


def test_G_4_safety_off_suppresses_nothing() -> None:
    """G4: `safety: off` takes the plain dependency gate."""
    script = Script(plan(check("check"), act("deploy", "check?"), safety="off"), calls={"check": LOGICAL})
    assert script.outcome("deploy") == "passed"


def test_C_8_a_skipped_critical_step_leaves_it_to_the_gate() -> None:
    """C.8: suppression follows failures; a skip blocks by the dependency gate alone."""
    script = Script(
        plan(check("check", if_="no"), step("other"), act("deploy", "check|other")), answers={"no": False}
    )
    assert script.outcome("deploy") == "passed"


# --- lifted


def fails_once(command: object) -> object:
    """A call that fails at its first execution."""
    return LOGICAL if command.execution == 1 else "fine"  # type: ignore[attr-defined]


def test_C_8_a_retry_that_passes_comes_before_anything_is_suppressed() -> None:
    """C.8, semantics 6: dependents look at settled steps only."""
    script = Script(
        plan(check("check", on_fail=block(retry=Retry(1))), act("deploy", "check?")),
        calls={"check": lambda command: TRANSIENT if command.attempt == 1 else "fine"},
    )
    assert script.outcome("deploy") == "passed"


def test_C_8_a_later_success_lifts_the_suppression() -> None:
    """C.8: another run of the critical step passes, so what it kept back runs after all."""
    script = Script(
        plan(
            check("check"),
            act("deploy", "check?"),
            step("report", "check?"),
            step("mend", "report", on_success=block(run=["check"])),
        ),
        calls={"check": fails_once},
    )
    assert script.started == ["check", "report", "mend", "check", "deploy"]
    assert script.verdict == "GO"


def test_I_1_23_a_step_blocked_by_a_failure_runs_after_a_later_success() -> None:
    """I.1 23, semantics 7: what a run target's failure blocked has not run, so it follows by the normal gate."""
    script = Script(
        plan(
            check("check", on_fail=block(run=["mend"])),
            step("next", "check"),
            step("mend", on_success=block(run=["check"])),
        ),
        calls={"check": fails_once},
    )
    assert script.outcome("next") == "passed"
    assert script.verdict == "GO"


def test_C_8_a_later_failure_keeps_the_suppression() -> None:
    """C.8: only success lifts it."""
    script = Script(
        plan(
            check("check"), act("deploy", "check?"), step("again", "check?", on_success=block(run=["check"]))
        ),
        calls={"check": LOGICAL},
    )
    assert reason(script, "deploy") == ("suppressed", "check")


# --- items


def listed(*steps: object, **keys: object) -> Plan:
    """A list of two items, and steps behind it."""
    return plan(step("list", for_each=True), *steps, **keys)  # type: ignore[arg-type]


def second_fails(command: object) -> object:
    """A call that fails in the second item."""
    return LOGICAL if command.scope.endswith("[1]") else "fine"  # type: ignore[attr-defined]


def test_semantics_19_a_failed_item_suppresses_what_acts_in_that_item() -> None:
    """Semantics 19, law 5: the neighbour's actions go on."""
    script = Script(
        listed(check("check", "list", fanout="map"), act("deploy", "check?", fanout="map")),
        calls={"list": [1, 2], "check": second_fails},
    )
    assert script.outcome("deploy", "list#1[0]") == "passed"
    assert reason(script, "deploy", "list#1[1]") == ("suppressed", "check")


def test_semantics_19_a_failed_item_suppresses_what_acts_behind_a_reduce() -> None:
    """Semantics 19: a partly failed fan-out lets reports pass, not actions."""
    script = Script(
        listed(check("check", "list", fanout="map"), step("report", "check"), act("deploy", "report")),
        calls={"list": [1, 2], "check": second_fails},
    )
    assert script.outcome("report") == "passed"
    assert reason(script, "deploy") == ("suppressed", "check")


def test_semantics_19_a_failed_step_outside_suppresses_every_item() -> None:
    """Semantics 19: a fan-out behind it isn't even opened."""
    script = Script(
        listed(check("check"), act("deploy", "list", "check?", fanout="map")),
        calls={"list": [1, 2], "check": LOGICAL},
    )
    assert reason(script, "deploy") == ("suppressed", "check")


def test_semantics_19_items_of_another_list_are_behind_a_reduce() -> None:
    """Semantics 19: on the way from one list to the other all items come together."""
    script = Script(
        listed(
            check("check", "list", fanout="map"),
            step("more", "check", for_each=True),
            act("deploy", "more", fanout="map"),
        ),
        calls={"list": [1, 2], "more": ["a"], "check": second_fails},
    )
    assert reason(script, "deploy") == ("suppressed", "check")


# --- the record


def test_the_state_folds_back_to_what_was_suppressed() -> None:
    """Law 1: decisions are complete."""
    script = Script(plan(check("check"), act("deploy", "check?")), calls={"check": LOGICAL})
    folded = script.folded()
    assert folded.critical_failures == script.state.critical_failures == {("check", ""): None}
    assert folded.kept_back == script.state.kept_back == {"check": {("deploy", ""): None}}


def test_steps_that_cannot_matter_are_never_looked_at() -> None:
    """Nothing is paid for steps that don't act, nor for failures of steps that nothing depends on."""
    one = plan(check("alone"), check("check"), step("read", "check"), act("deploy", "check"))
    graph = Script(one).state.graph
    assert [name for name, part in graph.parts.items() if part.guards] == ["check"]
    assert [name for name, part in graph.parts.items() if part.acts] == ["deploy"]


# --- one_shot


def test_C_15_R3_a_one_shot_step_is_not_run_again() -> None:
    """C.15 R3, G38: a later request is recorded and leaves the step as it is."""
    script = Script(
        plan(
            step("tell", tags=("one_shot",)),
            step("work", "tell", on_success=block(run=["tell"])),
        )
    )
    assert script.started == ["tell", "work"]
    assert [skip.asked_by for skip in script.decided(d.OneShotSkip, "tell")] == ["work"]
    assert script.verdict == "GO"


def test_C_15_R3_a_goto_runs_what_depends_on_it_but_not_the_one_shot_step() -> None:
    """C.15 R3: in a re-run set the one_shot step alone is left out."""
    again = iter([True, False])
    script = Script(
        plan(
            step("work"),
            step("tell", "work", tags=("one_shot",)),
            step("check", "tell", on_success=block(when=[("first", "work")])),
        ),
        answers={"first": lambda _: next(again)},
    )
    assert script.started == ["work", "tell", "check", "work", "check"]


def test_C_15_R3_a_retry_is_part_of_the_one_run() -> None:
    """C.15 R3: attempts belong to the run they repeat."""
    script = Script(
        plan(step("tell", tags=("one_shot",), on_fail=block(retry=Retry(1)))),
        calls={"tell": lambda command: TRANSIENT if command.attempt == 1 else "fine"},
    )
    assert script.outcome("tell") == "passed"


# --- what suppresses, and what is lifted, exactly


def first_fails(command: object) -> object:
    """A call that fails in the first item, the first time."""
    scope, execution = command.scope, command.execution  # type: ignore[attr-defined]
    return LOGICAL if scope.endswith("[0]") and execution == 1 else "fine"


def test_semantics_19_an_item_acts_though_an_earlier_one_has_failed() -> None:
    """Semantics 19, law 5: which item failed counts, whatever the order."""
    script = Script(
        listed(check("check", "list", fanout="map"), act("deploy", "check?", fanout="map")),
        calls={"list": [1, 2], "check": first_fails},
    )
    assert reason(script, "deploy", "list#1[0]") == ("suppressed", "check")
    assert script.outcome("deploy", "list#1[1]") == "passed"


def test_C_8_what_is_not_behind_the_failed_step_acts() -> None:
    """C.8: downstream only."""
    script = Script(
        plan(check("check"), step("read"), act("deploy", "check?"), act("elsewhere", "read")),
        calls={"check": LOGICAL},
    )
    assert script.outcome("elsewhere") == "passed"


def test_C_8_a_remediation_is_kept_back_by_another_failure() -> None:
    """C.8: only the failure it was written for lets it act."""
    script = Script(
        plan(check("check", on_fail=block(run=["mend"])), check("other"), act("mend", "check?", "other?")),
        calls={"check": LOGICAL, "other": LOGICAL},
    )
    assert reason(script, "mend") == ("suppressed", "other")


def test_semantics_20_what_undoes_acts_behind_a_failed_critical_step() -> None:
    """Semantics 20: compensation is never suppressed."""
    script = Script(
        plan(
            act("book", compensate="unbook"),
            check("check", "book"),
            act("deploy", "check?"),
            act("unbook", "check?"),
        ),
        calls={"check": LOGICAL},
    )
    assert script.started == ["book", "check", "unbook"]


def test_C_8_what_was_lifted_runs_once() -> None:
    """C.8: another success of the critical step lifts nothing that has run since."""
    script = Script(
        plan(
            check("check"),
            act("deploy", "check?"),
            step("mend", "check?", on_success=block(run=["check"])),
            step("late", "deploy", on_success=block(run=["check"])),
        ),
        calls={"check": fails_once},
    )
    assert script.started == ["check", "mend", "check", "deploy", "late", "check"]


def test_semantics_19_a_success_lifts_in_its_own_item_alone() -> None:
    """Semantics 19: the neighbour, whose check still fails, isn't even looked at."""
    script = Script(
        listed(
            check("check", "list", fanout="map"),
            act("deploy", "check?", fanout="map"),
            step("mend", "check?", fanout="map", on_success=block(run=["check"])),
        ),
        calls={
            "list": [1, 2],
            "check": lambda command: LOGICAL if "[1]" in command.scope else first_fails(command),
        },
    )
    assert script.outcome("deploy", "list#1[0]") == "passed"
    assert reason(script, "deploy", "list#1[1]") == ("suppressed", "check")
    lifted = [routed.members for routed in script.decided(d.Routed) if routed.action == "lift"]
    assert lifted == [(("deploy", "list#1[0]"),)]


def test_C_8_items_that_are_history_are_not_lifted() -> None:
    """C.8: the list has run again since; its first items are gone."""
    once = iter([True, False])
    script = Script(
        listed(
            check("check", "list", fanout="map"),
            act("deploy", "check?", fanout="map"),
            step("mend", "check?", "deploy?", always=True, on_success=block(when=[("once", "list")])),
        ),
        calls={"list": [1], "check": lambda command: LOGICAL if "list#1" in command.scope else "fine"},
        answers={"once": lambda _: next(once)},
    )
    assert script.started.count("mend") == 2
    assert script.state.kept_back == {"check": {("deploy", "list#1[0]"): None}}
    assert script.outcome("deploy", "list#2[0]") == "passed"


def test_C_8_a_step_kept_back_by_another_since_is_left_alone() -> None:
    """C.8: what kept it back last must pass."""
    script = Script(
        plan(
            check("one"),
            check("two", "one?"),
            act("deploy", "one?", "two?"),
            step("mend", "deploy|one?", on_success=block(run=["one"])),
        ),
        calls={"one": fails_once, "two": LOGICAL},
    )
    assert reason(script, "deploy") == ("suppressed", "two")


def kept_back() -> Script:
    """A step that acts behind a check that has failed."""
    return Script(plan(check("check"), act("deploy", "check?")), calls={"check": LOGICAL})


def test_C_8_a_step_is_kept_back_by_the_failure_in_front_of_it() -> None:
    """C.8: that is what its skip says."""
    script = kept_back()
    assert kept_back_by(script.state, script.node("check")) == (("deploy", ""),)


def test_C_8_a_step_that_is_asked_for_again_is_kept_back_no_more() -> None:
    """C.8: whether it may act is found out anew."""
    script = kept_back()
    reopen(script.state, script.node("deploy"))
    assert kept_back_by(script.state, script.node("check")) == ()


@pytest.mark.parametrize("why", [("forEach_empty", "check"), ("suppressed", "other")])
def test_C_8_a_step_that_was_skipped_for_another_reason_since_is_left_alone(why: tuple[str, str]) -> None:
    """C.8: a later success of the check wouldn't have it run."""
    script = kept_back()
    script.node("deploy").reason, script.node("deploy").because = why
    assert kept_back_by(script.state, script.node("check")) == ()


def test_C_8_an_item_looks_at_what_its_list_waited_for() -> None:
    """C.8: the check may have failed again since; the list as a whole looks only at what comes before it."""
    script = Script(
        listed(
            check("check"),
            step("each", "list", fanout="map"),
            act("deploy", "each?", "check?", fanout="map"),
            act("after", "each?", fanout="map"),
        ),
        calls={"list": [1]},
    )
    script.state.critical_failures["check", ""] = None

    def kept_from(name: str, scope: str) -> str | None:
        return suppressor(script.state, script.node(name, scope).site, scope, None)

    assert [kept_from("deploy", scope) for scope in ("", "list#1[0]")] == ["check", "check"]
    assert [kept_from("after", scope) for scope in ("", "list#1[0]")] == [None, None]


def test_C_8_a_list_that_only_its_items_wait_for_keeps_back_each_of_them() -> None:
    """C.8: whether the list as a whole began would depend on who was first."""
    script = Script(
        listed(check("each", "list", fanout="map"), act("deploy", "each?", fanout="map")),
        calls={"list": [1, 2]},
    )
    script.state.critical_failures["each", "list#1[1]"] = None
    deploy = [script.node("deploy", scope) for scope in ("", "list#1[0]", "list#1[1]")]
    assert [suppressor(script.state, node.site, node.scope, None) for node in deploy] == [None, None, "each"]
