"""I.1: defects that are not to come back, where no test of a rule tells them by their number already."""

from __future__ import annotations

import pytest
from tests.guide.conftest import Play, play
from tests.guide.stage import Fails, Turns
from tests.whole import RunYaml

from gonogo.core import decisions as d

__all__ = ["play"]

# What each key does, seen from the calls that were made: steps, event, calls by step.
EFFECTS: dict[str, tuple[str, dict[str, int]]] = {
    "max_runs": ("steps: {a: {type: noop, max_runs: 2, on_success: {goto: a}}}", {"a": 2}),
    "max_runs_per_check": (
        "limits: {max_runs_per_check: 3}\nsteps: {a: {type: noop, on_success: {goto: a}}}",
        {"a": 3},
    ),
    "fail_fast": (
        "fail_fast: true\nmax_parallelism: 1\nsteps: {bad: {type: noop}, later: {type: noop}}",
        {"bad": 1},
    ),
    "reduce": (
        "steps: {list: {type: noop, forEach: true}, a: {type: command, exec: x, depends_on: list, reduce: true}}",
        {"list": 1, "a": 1},
    ),
    "goto_event": (
        (
            "max_parallelism: 1\nsteps: {a: {type: noop}, here: {type: noop, on: [manual], depends_on: a}, "
            "go: {type: noop, on_success: {goto: a, goto_event: pr_closed}}}"
        ),
        {"a": 2, "here": 1, "go": 1},
    ),
}


@pytest.mark.parametrize("key", EFFECTS)
def test_I_1_13_keys_have_their_effect(play: Play, key: str) -> None:
    """I.1 13, G38: max_runs, max_runs_per_check, fail_fast, reduce and goto_event each change which calls are made."""
    text, calls = EFFECTS[key]
    ran = play(text, {"bad": Fails(), "list": [1, 2], "a": {}}, event="manual")
    assert ran.calls == calls


def test_I_1_13_a_scripts_timeout_ends_it(run_yaml: RunYaml) -> None:
    """I.1 13: timeout of a script: a loop without end is cut, and that is a failure of the step."""
    ran = run_yaml('steps: {a: {type: script, content: "while (true) {}", timeout: 50ms}}')
    assert (ran["a"].outcome, ran.verdict) == ("failed", "NO-GO")


def test_I_1_13_max_parallelism_is_the_files(play: Play) -> None:
    """I.1 13, H48: max_parallelism of the file; with one slot no call starts before the one before has ended."""
    ran = play("max_parallelism: 1\nsteps: {a: {type: noop}, b: {type: noop}, c: {type: noop}}")
    kinds = [type(one).__name__ for one in ran.decisions(d.Started | d.Ended)]  # type: ignore[arg-type]
    assert kinds == ["Started", "Ended"] * 3


def test_I_1_2_a_broken_contract_is_counted_as_a_failure(play: Play) -> None:
    """I.1 2: failedRuns is 1, on_fail ran, the dependent was skipped; so for guarantee and for schema."""
    for contract in ("guarantee: 'false'", "schema: {type: string}"):
        ran = play(
            f"steps: {{a: {{type: noop, {contract}, on_fail: {{run: [told]}}}}, told: {{type: noop}}, "
            "after: {type: noop, depends_on: a}}",
            {"a": 1},
        )
        row = next(row for row in ran.view.statistics["checks"] if row["checkName"] == "a")
        assert (row["failedRuns"], ran["told"].outcome, ran["after"].outcome) == (1, "passed", "skipped")


def test_I_1_18_names_decide_nothing(play: Play) -> None:
    """I.1 18: a step called timeout-error that passes has passed, whatever its rules look like."""
    ran = play("steps: {timeout-error: {type: noop}, after: {type: noop, depends_on: timeout-error}}", {})
    assert set(ran.outcomes.values()) == {"passed"}


def test_I_1_22_a_skip_after_a_run_keeps_its_counts(run_yaml: RunYaml) -> None:
    """I.1 22: a step that ran and is then skipped by its `if` still counts one run."""
    ran = run_yaml("""
steps:
  a: {type: noop, if: outputs_history.a.length === 0, on_success: {goto: a}}
""")
    assert (ran.why("a"), ran["a"].runs) == (("skipped", "if_condition"), 1)
    row = next(row for row in ran.view.statistics["checks"] if row["checkName"] == "a")
    assert row["totalRuns"] == 1


def test_I_1_23_a_pass_after_a_failure_unblocks(play: Play) -> None:
    """I.1 23: a goto back to a failed step, which then passes, lets its dependents run."""
    text = """
steps:
  a: {type: noop, on_fail: {goto: a}}
  after: {type: noop, depends_on: a}
"""
    ran = play(text, {"a": Turns(Fails("logical"), {})})
    assert (ran["after"].outcome, ran.verdict, ran.calls) == ("passed", "GO", {"a": 2, "after": 1})
