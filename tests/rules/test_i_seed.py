"""I.2: what the guide wants verified beside what its examples show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.guide.conftest import Play, on_stage, play
from tests.guide.stage import Fails, Stage
from tests.guide.twins import TWINS
from tests.whole import Ran, RunYaml

from gonogo.core import decisions as d
from gonogo.core.events import CallDone

__all__ = ["play"]

# --- Transitions and budgets

ROUTING = """
steps:
  a:
    type: noop
    on_success:
      transitions: [{{when: "{first}", to: {to}}}]
      goto_js: "return 'by_js'"
      goto: by_goto
  by_rule: {{type: noop, start: routed}}
  by_js: {{type: noop, start: routed}}
  by_goto: {{type: noop, start: routed}}
"""


@pytest.mark.parametrize(
    ("first", "to", "reached"),
    [("true", "by_rule", ["by_rule"]), ("true", "null", []), ("false", "by_rule", ["by_js"])],
)
def test_I_2_transitions_come_before_goto_js(
    run_yaml: RunYaml, first: str, to: str, reached: list[str]
) -> None:
    """I.2 transitions, G31: the first true rule decides, also one that leads nowhere; else goto_js, else goto."""
    assert run_yaml(ROUTING.format(first=first, to=to)).started == ["a", *reached]


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_I_2_transitions_are_bounded(run_yaml: RunYaml, limit: int) -> None:
    """I.2 transitions: N rounds more are allowed, N + 1 refused, with one issue."""
    ran = run_yaml(f"""
routing: {{max_loops: {limit}}}
steps:
  a: {{type: noop, on_success: {{transitions: [{{when: "true", to: a}}]}}}}
""")
    assert (ran.calls["a"], ran.own_rules) == (1 + limit, ["a/routing/loop_budget_exceeded"])


def test_I_2_transitions_are_bounded_per_scope(run_yaml: RunYaml) -> None:
    """I.2 transitions, H18: each item has rounds of its own; what one uses up the others keep."""
    ran = run_yaml("""
routing: {max_loops: 2}
steps:
  list: {type: script, forEach: true, content: "return ['greedy', 'modest']"}
  each:
    type: noop
    fanout: map
    depends_on: list
    on_fail: {goto: each}
    fail_if: item === 'greedy' || outputs_history.each.length < 2
  """)
    scopes = [one.scope for one in ran.decisions(d.Started, "each")]
    assert scopes.count("list#1[0]") == 3
    assert [one.scope for one in ran.decisions(d.Refused)] == ["list#1[0]"]


# --- A strict profile, end to end

STRICT = (2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 15, 16, 17, 18)
GOOD = {
    "exam": {"marks": {"wrong": 0}},
    "announce": {"number": 1},
    "mark": {"now": ["seen"]},
    "thank": {"number": 1},
    "weigh": {"lost": False},
    "digest": {"troubles": []},
}


@pytest.mark.parametrize("number", STRICT)
def test_I_2_e2e_the_examples_are_green_under_the_strict_profile(play: Play, number: int) -> None:
    """I.2 e2e: examples that say their contracts run under `safety: strict` and come out GO, whole."""
    ran = play(
        "safety: strict\n" + TWINS[number],
        GOOD,
        event="pr_opened",
        env={"ON_SERVER": "yes", "SCANNER": "ready", "MAY_ANNOUNCE": "true"},
        context={"files": [{"filename": "a"}], "pr": {"number": 1, "authorAssociation": "OWNER"}},
    )
    assert ran.verdict == "GO"
    assert {outcome for step, outcome in ran.outcomes.items() if ran.why(step)[1] != "not_routed"} == {
        "passed"
    }


# --- Properties

ITEMS = """
max_parallelism: {slots}
steps:
  list: {{type: noop, forEach: true}}
  each:
    type: noop
    fanout: map
    depends_on: list
    forEach_concurrency: {slots}
    assume: item.gate !== false
    guarantee: output.fine !== false
    fail_if: output.bad === true
    on_fail: {{retry: {{max: 1}}, run: [mend]}}
  mend: {{type: noop}}
  then: {{type: noop, fanout: map, depends_on: each}}
"""
KINDS = {
    "good": ({}, {}),
    "skipped": ({"gate": False}, {}),
    "broken": ({}, {"fine": False}),
    "wrong": ({}, {"bad": True}),
    "crashed": ({}, Fails()),
    "logical": ({}, Fails("logical")),
    "bug": ({}, Fails("bug")),
}
kinds = st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=5)


def life(play: Play, items: list[str], slots: int) -> list[tuple[object, ...]]:
    """What became of each item, here and behind: outcomes, calls, outputs, faults."""
    answers = {
        "list": [{"no": n, **KINDS[kind][0]} for n, kind in enumerate(items)],
        "each": lambda call: KINDS[items[call.names["item"]["no"]]][1],
        "mend": lambda call: {"mended": call.names["item"]["no"]},
        "then": lambda call: call.names["outputs"]["each"],
    }
    ran = play(ITEMS.format(slots=slots), answers)
    told: list[tuple[object, ...]] = []
    for index in range(len(items)):
        scope = f"list#1[{index}]"
        views = [
            next((i for i in ran[step].items or () if i.scope == scope), None)
            for step in ("each", "mend", "then")
        ]
        told.append(
            tuple(
                view and (view.outcome, view.reason, view.attempts, view.output, view.fault) for view in views
            )
        )
    return told


@pytest.mark.slow
@given(items=kinds, other=st.sampled_from(sorted(KINDS)), data=st.data(), slots=st.sampled_from([1, 3]))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_I_2_property_isolation_of_items(
    play: Play, items: list[str], other: str, data: st.DataObject, slots: int
) -> None:
    """I.2 property isolation, law 5: changing what one item comes to changes nothing about the others."""
    changed = data.draw(st.integers(0, len(items) - 1))
    one, two = life(play, items, slots), life(play, [*items[:changed], other, *items[changed + 1 :]], slots)
    del one[changed], two[changed]
    assert all(views[0] is not None for views in one)
    assert one == two


FAILING = {"verify": lambda call: Fails() if call.names["item"]["no"] == 2 else {"holds": True}}


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, FAILING])
def test_I_2_property_crash_resume_of_the_whole_flow(
    play: Play, tmp_path: Path, more: dict[str, Any]
) -> None:
    """I.2 property crash-resume, I.1 17: example 20, cut at every record, ends alike; one post, or a hold."""
    answers = {"publish": {"number": 12}, "digest": {}, **more}
    whole = play(TWINS[20], answers, event="issue_opened", run_id="whole")
    journal = next((tmp_path / "runs").rglob("*.jsonl"))
    lines = journal.read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines)):
        journal.write_bytes(b"".join(lines[:cut]))
        stage = Stage(answers)
        kept = on_stage(Ran(whole.result, whole.runs, whole.folder, []), stage)
        posting = {one.call for one in kept.decisions(d.Started, "publish")}
        lost = posting - {record.event.call for record in kept.records if isinstance(record.event, CallDone)}
        again = kept.resumed()
        assert len(stage.called("publish")) == (0 if posting else whole.calls["publish"])
        if lost:
            assert (again.verdict, again["publish"].outcome) == ("HOLD", "in_doubt")
        else:
            assert (again.verdict, again.outcomes) == (whole.verdict, whole.outcomes)
