"""Which steps start, and in which order (spec C.3, C.4, semantics 5 and 9)."""

from __future__ import annotations

from tests.core.script import LOGICAL, Never, Script, block, error, plan, step

from gonogo.core import decisions as d


def test_a_step_starts_as_soon_as_its_own_dependencies_are_settled() -> None:
    """architecture.md 2.2: no level barrier: d doesn't wait for the slow c beside its dependency."""
    script = Script(plan(step("a"), step("slow"), step("b", "a"), max_parallelism=4), calls={"slow": Never()})
    assert script.started == ["a", "slow", "b"]


def test_C_3_R1_no_more_steps_run_at_once_than_there_are_slots() -> None:
    """The plan's max_parallelism is the number of slots."""
    script = Script(
        plan(*[step(name) for name in "abcd"], max_parallelism=2), calls=dict.fromkeys("abcd", Never())
    )
    assert script.started == ["a", "b"]
    assert script.state.slots == 2


def test_C_3_R2_a_step_runs_once_per_wave() -> None:
    """Two dependencies that end one after the other start it once."""
    assert Script(plan(step("a"), step("b"), step("c", "a", "b"))).started.count("c") == 1


def test_C_3_R5_with_one_slot_the_order_is_configuration_order() -> None:
    """Among ready steps the first in the file starts first."""
    script = Script(plan(step("z"), step("m", "z"), step("b"), step("a"), max_parallelism=1))
    assert script.started == ["z", "m", "b", "a"]


def test_C_4_R1_if_comes_before_the_dependency_gate() -> None:
    """A false `if` behind a failed dependency is a skip for `if_condition`."""
    script = Script(plan(step("a"), step("b", "a", if_="no")), calls={"a": LOGICAL}, answers={"no": False})
    assert script.node("b").reason == "if_condition"


def test_C_4_R1_a_true_if_still_needs_the_gate() -> None:
    """`if` doesn't lift dependencies unless it calls always(), failure() or success()."""
    script = Script(plan(step("a"), step("b", "a", if_="yes")), calls={"a": LOGICAL})
    assert script.node("b").reason == "dependency_failed"


def test_C_4_R2_the_stages_come_in_order() -> None:
    """if, then assume, then the call, then guarantee and fail_if, then routing."""
    keys = {
        "if_": "i",
        "assume": ["p"],
        "guarantee": ["g"],
        "fail_if": "f",
        "on_success": block(run=["next"]),
    }
    script = Script(plan(step("a", **keys), step("next")), answers={"f": False})
    about = [type(decision).__name__ for decision in script.decided(d.About, "a")]
    assert about == [
        "Judged",
        "Cleared",
        "Judged",
        "Started",
        "Judged",
        "Judged",
        "Ended",
        "Routing",
        "Routed",
        "Settled",
    ]


def test_C_4_R3_a_false_assume_calls_nothing_and_routes_nowhere() -> None:
    """No call, no issue, no on_fail."""
    script = Script(
        plan(step("a", assume=["no"], on_fail=block(run=["fix"])), step("fix")), answers={"no": False}
    )
    assert script.started == []
    assert (script.node("a").reason, script.rules("a"), script.verdict) == ("assume", [], "GO")


def test_B_6_an_error_in_if_skips_and_is_no_go() -> None:
    """semantics 2: nothing is called, the error is recorded, and the run is NO-GO."""
    script = Script(plan(step("a", if_="bad")), answers={"bad": error()})
    assert (script.node("a").reason, script.rules("a"), script.verdict) == (
        "if_condition",
        ["expression/error"],
        "NO-GO",
    )


def test_B_6_an_error_in_if_of_a_tolerant_step_is_only_a_skip() -> None:
    """semantics 2: continue_on_failure tolerates the error too."""
    assert (
        Script(plan(step("a", if_="bad", continue_on_failure=True)), answers={"bad": error()}).verdict == "GO"
    )


def test_B_6_an_error_in_assume_skips_and_is_no_go() -> None:
    """The safe side: the step isn't called."""
    script = Script(plan(step("a", assume=["bad"])), answers={"bad": error()})
    assert (script.started, script.node("a").reason, script.verdict) == ([], "assume", "NO-GO")


def test_semantics_9_conditions_due_at_the_same_moment_are_one_batch() -> None:
    """All `if`s of the first steps are asked together."""
    script = Script(plan(step("a", if_="x"), step("b", if_="y"), step("c", if_="z")))
    assert [len(asked.asks) for asked in script.decided(d.Asked)] == [3]


def test_GAT_1_always_replaces_the_dependency_gate() -> None:
    """semantics 5: the report runs whatever became of what it waits for, and the run still fails."""
    steps = [
        step("off", if_="no"),
        step("broken"),
        step("report", "off", "broken", if_="always()", always=True),
    ]
    script = Script(plan(*steps), calls={"broken": LOGICAL}, answers={"no": False})
    assert script.started == ["broken", "report"]
    assert script.verdict == "NO-GO"


def test_a_deep_chain_needs_no_deep_stack() -> None:
    """Settling is a work list: five thousand skips in a row are one turn."""
    chain = [step("s0", if_="no")] + [step(f"s{n}", f"s{n - 1}") for n in range(1, 5_000)]
    script = Script(plan(*chain), answers={"no": False})
    assert script.node("s4999").because == "s0"
