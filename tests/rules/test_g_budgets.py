"""G11 (C.12 R3 to R5, semantics 21) and what a run may spend: loops per scope and criticality, time, calls, money."""

from __future__ import annotations

import pytest
from tests.guide.conftest import Play, play
from tests.guide.stage import Fails, Stage
from tests.whole import RunYaml

from gonogo.core import decisions as d
from gonogo.provider import Done

__all__ = ["play"]

LOOP = """
{top}
steps:
  a: {{type: noop, {keys}on_success: {{goto: a}}}}
"""


@pytest.mark.parametrize(
    ("top", "keys", "rounds"),
    [
        ("", "criticality: internal, ", 8),
        ("", "criticality: external, mutates: false, ", 8),
        ("", "criticality: policy, ", 8),
        ("", "criticality: info, ", 10),
        ("routing: {max_loops: 3}", "criticality: internal, ", 3),
        ("routing: {max_loops: 20}", "criticality: internal, ", 8),
        ("routing: {max_loops: 20}", "criticality: info, ", 20),
        ("routing: {max_loops: 20}", "criticality: internal, loop_budget: 12, ", 12),
        ("", "criticality: info, loop_budget: 2, ", 2),
    ],
)
def test_C_12_R5_the_limit_is_the_requesting_steps(
    run_yaml: RunYaml, top: str, keys: str, rounds: int
) -> None:
    """C.12 R5, G11, H18: 8 if critical, else 10; less where the file says less, more where the step does."""
    ran = run_yaml(LOOP.format(top=top, keys=keys))
    assert ran.calls["a"] == 1 + rounds
    assert ran.own_rules == ["a/routing/loop_budget_exceeded"]
    assert ran.decisions(d.Refused)[0].allowed == rounds


def test_C_12_R5_safety_off_lifts_it(run_yaml: RunYaml) -> None:
    """G4: `safety: off` keeps what was written for critical steps as well."""
    ran = run_yaml(LOOP.format(top="safety: off\nrouting: {max_loops: 11}", keys="criticality: internal, "))
    assert ran.calls["a"] == 12


def test_C_12_R4_scopes_are_counted_apart(run_yaml: RunYaml) -> None:
    """C.12 R4, H18: a refusal halts routing in that scope only; each item has its own rounds."""
    ran = run_yaml("""
routing: {max_loops: 2}
steps:
  list: {type: script, forEach: true, content: "return [1, 2, 3]"}
  each: {type: noop, criticality: info, fanout: map, depends_on: list, fail_if: item > 1, on_fail: {goto: each}}
""")
    scopes = [one.scope for one in ran.decisions(d.Started, "each")]
    assert [scopes.count(f"list#1[{n}]") for n in range(3)] == [1, 3, 3]
    assert [one.scope for one in ran.decisions(d.Refused)] == ["list#1[1]", "list#1[2]"]


def test_C_12_R4_a_backstop_bounds_the_whole_run(run_yaml: RunYaml) -> None:
    """C.12 R4: re-entries of all scopes together: max_loops x number of routing steps, but at least 50."""
    ran = run_yaml("""
routing: {max_loops: 6}
steps:
  list: {type: script, forEach: true, content: "return Array.from({length: 20}, (_, n) => n)"}
  each:
    type: noop
    criticality: info
    continue_on_failure: false
    fanout: map
    depends_on: list
    on_fail: {goto: each}
    fail_if: "true"
""")
    assert ran.calls["each"] == 20 + 50
    assert ran.verdict == "NO-GO"


def test_C_12_R3_a_refusal_at_the_end_of_a_list_is_the_lists(run_yaml: RunYaml) -> None:
    """C.12 R3: the issue of an on_finish refusal is on the forEach parent."""
    ran = run_yaml("""
routing: {max_loops: 0}
steps:
  list: {type: script, forEach: true, content: "return [1]", on_finish: {goto: list}}
  each: {type: noop, fanout: map, depends_on: list}
""")
    assert [(issue.rule_id, issue.check_name) for issue in ran.view.issues] == [
        ("list/routing/loop_budget_exceeded", "list")
    ]


def test_G_4_a_breach_fails_the_step_under_strict(run_yaml: RunYaml) -> None:
    """G4, C.6: under `safety: strict` the step whose loop was refused has failed; otherwise it keeps its outcome."""
    loop = LOOP.format(top="routing: {max_loops: 1}\nsafety: {safety}", keys="loop_budget: 1, ")
    assert run_yaml(loop.replace("{safety}", "standard"))["a"].outcome == "passed"
    assert run_yaml(loop.replace("{safety}", "strict"))["a"].outcome == "failed"


@pytest.mark.parametrize(
    ("criticality", "rounds"), [("external", 8), ("internal", 8), ("policy", 8), ("info", 10)]
)
def test_loops_have_a_budget_by_criticality(play: Play, criticality: str, rounds: int) -> None:
    """Matrix, row transitions, G11: 10, and 8 for critical steps; the breach is one issue and halts that routing."""
    text = f"""
steps:
  it:
    type: noop
    criticality: {criticality}
    mutates: false
    on_success: {{transitions: [{{when: "true", to: it}}]}}
  next: {{type: noop, depends_on: it}}
"""
    ran = play(text)
    assert len(ran.stage.called("it")) == 1 + rounds
    assert ran.own_rules == ["it/routing/loop_budget_exceeded"]
    assert ran["next"].outcome == "passed"


# --- What a run may spend

SPENDING = """
budget: {{{budget}}}
max_parallelism: 1
steps:
  a: {{type: noop}}
  b: {{type: noop, depends_on: a}}
  c: {{type: noop, depends_on: b, on_fail: {{retry: {{max: 2}}}}}}
  tidy: {{type: noop, if: always(), depends_on: c}}
"""


@pytest.mark.parametrize(
    ("budget", "what"),
    [("calls: 2", "calls"), ("tokens: 150", "tokens"), ("money: 0.3", "money"), ("retries: 0", "retries")],
)
def test_a_run_that_has_spent_its_budget_stops(play: Play, budget: str, what: str) -> None:
    """Nothing new starts, an issue names what was spent, the rest is skipped (`budget`), always() runs; NO-GO."""
    used = {"tokens": 100, "cost": 0.2}
    answers = {name: Done({}, meta={"usage": used}) for name in "ab"}
    ran = play(SPENDING.format(budget=budget), {**answers, "c": Fails() if what == "retries" else {}})
    assert f"budget/{what}_exceeded" in ran.own_rules
    assert (ran.verdict, ran["tidy"].outcome) == ("NO-GO", "passed")
    assert ran.why("c") == ("skipped", "budget") or what == "retries"
    assert len(ran.stage.called("c")) == (1 if what == "retries" else 0)


def test_a_budget_of_time_stops_what_is_in_flight(run_yaml: RunYaml) -> None:
    """Running calls are told to stop; they are cancelled, not failed."""
    ran = run_yaml("""
budget: {time: 200ms}
steps:
  slow: {type: command, exec: "sleep 20; echo slept >> ran", timeout: 30s}
  after: {type: noop, depends_on: slow}
""")
    assert "budget/time_exceeded" in ran.own_rules
    assert (ran["slow"].outcome, ran.why("after"), ran.lines("ran")) == (
        "cancelled",
        ("skipped", "budget"),
        [],
    )
    assert ran.verdict == "NO-GO"


def test_enough_is_enough(play: Play) -> None:
    """A budget that is used to its end and not passed stops nothing."""
    ran = play(SPENDING.format(budget="calls: 4, retries: 0, tokens: 10, money: 1, time: 1h"))
    assert (ran.verdict, len(ran.stage.calls), ran.own_rules) == ("GO", 4, [])


def test_no_budget_is_no_limit() -> None:
    """Law 2's other limits hold all the same."""
    from gonogo import app

    plan = app.loads('version: "1.0"\nsteps: {a: {type: noop}}', table=Stage({}).table()).plan
    budget = plan.budget
    assert (budget.time_s, budget.calls, budget.retries, budget.tokens, budget.money) == (None,) * 5
