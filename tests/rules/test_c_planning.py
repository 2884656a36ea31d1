"""C.1 to C.3: states and waves, what is planned, and in which order it runs."""

from __future__ import annotations

import pytest
from tests.whole import Ran, RunYaml

from gonogo.core import decisions as d
from gonogo.core.events import RunStarted
from gonogo.errors import ConfigError, UsageError


def ran_steps(ran: Ran) -> list[str]:
    """Steps that were called, in order."""
    return list(dict.fromkeys(ran.started))


# --- C.1


def test_C_1_a_run_is_planned_works_in_waves_and_ends(run_yaml: RunYaml) -> None:
    """C.1: planned first, wave 0 next, a later wave for what is routed to, the verdict last; all of it recorded."""
    ran = run_yaml("""
steps:
  a: {type: noop, on_success: {goto: b}}
  b: {type: noop, start: routed}
""")
    assert isinstance(ran.records[0].event, RunStarted)
    assert isinstance(ran.records[0].decisions[0], d.Planned)
    assert [(one.step, one.wave) for one in ran.decisions(d.Started)] == [("a", 0), ("b", 1)]
    assert isinstance(ran.records[-1].decisions[-1], d.Finished)


def test_C_1_a_plan_that_cant_run_ends_at_once(run_yaml: RunYaml) -> None:
    """C.1: from planning straight to the end when there is nothing to run."""
    ran = run_yaml("steps:\n  a: {type: noop, on: [pr_opened]}\n", event="manual")
    assert (ran.verdict, ran.started) == ("GO", [])
    assert ran.view.excluded == {"a": "event_filter"}


# --- C.2

REQUESTED = """
steps:
  a: {type: noop}
  b: {type: noop, depends_on: a}
  c: {type: noop, depends_on: "b|x"}
  x: {type: noop, on: [pr_closed]}
  other: {type: noop}
"""


def test_C_2_R1_a_request_brings_its_dependencies(run_yaml: RunYaml) -> None:
    """C.2 R1: a requested step with all it depends on, through OR groups; nothing else."""
    ran = run_yaml(REQUESTED, requested=("c",), event="manual")
    assert ran_steps(ran) == ["a", "b", "c"]
    assert "other" in ran.view.excluded


def test_C_2_R1_a_wrong_request_is_refused(run_yaml: RunYaml) -> None:
    """C.2 R1: asking for a step that isn't there is an error, not an empty run."""
    with pytest.raises(UsageError):
        run_yaml(REQUESTED, requested=("nope",))


def test_C_2_R2_events_filter_steps_that_name_some(run_yaml: RunYaml) -> None:
    """C.2 R2: the filter acts only when the run has an event and the step has `on`."""
    text = """
steps:
  opened: {type: noop, on: [pr_opened]}
  closed: {type: noop, on: [pr_closed]}
  any: {type: noop}
"""
    assert ran_steps(run_yaml(text, event="pr_opened")) == ["opened", "any"]
    assert ran_steps(run_yaml(text)) == ["opened", "closed", "any"]


TAGGED = """
{top}
steps:
  plain: {{type: noop}}
  fast: {{type: noop, tags: [fast]}}
  slow: {{type: noop, tags: [slow, fast]}}
  reserved: {{type: noop, tags: [critical], depends_on: plain}}
"""


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        ("", ["plain", "reserved"]),
        ("tag_filter: {include: [fast]}", ["plain", "fast", "slow", "reserved"]),
        ("tag_filter: {include: [fast], exclude: [slow]}", ["plain", "fast", "reserved"]),
        ("tag_filter: {exclude: [slow]}", ["plain", "fast", "reserved"]),
    ],
)
def test_C_2_R3_tags(run_yaml: RunYaml, top: str, expected: list[str]) -> None:
    """C.2 R3: no filter drops tagged steps; a filter keeps untagged ones; reserved tags never exclude (G34)."""
    assert ran_steps(run_yaml(TAGGED.format(top=top))) == expected


def test_C_2_R3_an_untagged_dependency_is_kept_under_include(run_yaml: RunYaml) -> None:
    """C.2 R3 D: the same test holds for what a requested step brings along."""
    text = """
tag_filter: {include: [x]}
steps:
  base: {type: noop}
  top: {type: noop, tags: [x], depends_on: base}
"""
    assert ran_steps(run_yaml(text, requested=("top",))) == ["base", "top"]


@pytest.mark.parametrize(
    "block",
    [
        "on_success: {run: [later]}",
        "on_success: {run: [{step: later}]}",
        "on_fail: {run: [later]}",
        "on_fail: {run: {step: later, with: {x: 1}}}",
    ],
)
def test_C_2_R4_run_targets_wait_in_every_form(run_yaml: RunYaml, block: str) -> None:
    """C.2 R4 D: every run target is left out of wave 0, written as a name or as an object."""
    outcome = "skipped" if "on_fail" in block else "passed"
    ran = run_yaml(f"steps:\n  later: {{type: noop}}\n  a: {{type: noop, {block}}}\n")
    assert ran.started[0] == "a"
    assert ran["later"].outcome == outcome
    assert ran.decisions(d.Planned)[0].held_back == ("later",)


def test_C_2_R4_targets_of_defaults_wait_too(run_yaml: RunYaml) -> None:
    """C.2 R4 D: targets that come from routing.defaults are run targets like any other."""
    ran = run_yaml("""
routing: {defaults: {on_fail: {run: [clean]}}}
steps:
  clean: {type: noop}
  a: {type: noop, on_fail: {goto: clean}}
""")
    assert ran.why("clean") == ("skipped", "not_routed")


def test_C_2_R4_goto_targets_stay(run_yaml: RunYaml) -> None:
    """C.2 R4: a goto target runs in wave 0 like anything else."""
    ran = run_yaml("steps:\n  target: {type: noop}\n  a: {type: noop, on_fail: {goto: target}}\n")
    assert ran_steps(ran) == ["target", "a"]


def test_C_2_R5_dependents_are_planned_with_the_rest(run_yaml: RunYaml) -> None:
    """C.2 R5: without a request the closure of dependents that pass event and tags is in the plan."""
    ran = run_yaml(
        """
steps:
  a: {type: noop}
  b: {type: noop, depends_on: a}
  c: {type: noop, depends_on: b}
  not_now: {type: noop, depends_on: b, on: [pr_closed]}
""",
        event="pr_opened",
    )
    assert ran_steps(ran) == ["a", "b", "c"]


@pytest.mark.parametrize("needs", ["nope", '"a|nope"'])
def test_C_2_R6_an_unknown_dependency_is_refused(run_yaml: RunYaml, needs: str) -> None:
    """C.2 R6 with A.6: also inside an OR group; nothing runs."""
    with pytest.raises(ConfigError) as refused:
        run_yaml(
            f"steps:\n  a: {{type: command, exec: echo x > ran}}\n  b: {{type: noop, depends_on: {needs}}}\n"
        )
    assert "nope" in refused.value.problems[0].message


def test_C_2_R7_a_filtered_dependency_drops_the_step_with_a_reason(run_yaml: RunYaml) -> None:
    """C.2 R7 D: dropped, said so in the plan; an OR group needs one survivor."""
    ran = run_yaml("""
steps:
  gone: {type: noop, tags: [x]}
  here: {type: noop}
  needs: {type: noop, depends_on: gone}
  either: {type: noop, depends_on: "gone|here"}
""")
    assert ran_steps(ran) == ["here", "either"]
    assert set(ran.view.excluded) == {"gone", "needs"}
    assert ran.view.excluded["needs"]


def test_C_2_R7_under_a_filter_missing_dependencies_are_soft(run_yaml: RunYaml) -> None:
    """C.2 R7: with a tag filter a dependency that was filtered out is ignored."""
    ran = run_yaml("""
tag_filter: {exclude: [x]}
steps:
  gone: {type: noop, tags: [x]}
  needs: {type: noop, depends_on: gone}
""")
    assert ran_steps(ran) == ["needs"]


def test_C_2_R8_a_cycle_is_refused_by_its_names(run_yaml: RunYaml) -> None:
    """C.2 R8 with A.6: a cycle names its steps, and nothing runs."""
    with pytest.raises(ConfigError) as refused:
        run_yaml(
            "steps:\n  a: {type: noop, depends_on: b}\n  b: {type: noop, depends_on: 'c|a'}\n  c: {type: noop}\n"
        )
    assert all(name in refused.value.problems[0].message for name in "ab")


def test_C_2_R9_a_step_waits_for_its_own_dependencies_only(run_yaml: RunYaml) -> None:
    """C.2 R9; decision 2 outranks the level barrier: `fast2` starts although `slow`, a level before it, still runs."""
    ran = run_yaml("""
max_parallelism: 2
steps:
  slow: {type: command, timeout: 20s, exec: "while [ ! -e go ]; do sleep 0.01; done; echo slow >> order"}
  fast: {type: noop}
  fast2: {type: command, depends_on: fast, exec: echo fast2 >> order; touch go}
""")
    assert ran.lines("order") == ["fast2", "slow"]


def test_C_2_R9_members_of_an_or_group_come_first(run_yaml: RunYaml) -> None:
    """C.2 R9: OR members count as ordinary ordering edges."""
    ran = run_yaml("""
steps:
  last: {type: noop, depends_on: "a|b"}
  a: {type: noop}
  b: {type: noop}
""")
    assert ran.started == ["a", "b", "last"]


# --- C.3


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_C_3_R1_slots_are_a_limit(run_yaml: RunYaml, slots: int) -> None:
    """C.3 R1 D: never more at once than max_parallelism (I.1 row 13), measured by the commands themselves."""
    steps = "".join(
        f"  s{n}: {{type: command, exec: \"touch on.{n}; ls | grep -c '^on' >> seen; sleep 0.02; rm on.{n}\"}}\n"
        for n in range(6)
    )
    ran = run_yaml(f"max_parallelism: {slots}\nsteps:\n{steps}")
    assert max(int(line) for line in ran.lines("seen")) <= slots
    assert len(ran.lines("seen")) == 6


def test_C_3_R1_three_slots_unless_told_otherwise(run_yaml: RunYaml) -> None:
    """C.3 R1 D (H48): the default is 3."""
    ran = run_yaml("steps:\n  a: {type: noop}\n")
    assert ran.view.plan.limits.max_parallelism == 3


def test_C_3_R2_a_step_runs_once_a_wave(run_yaml: RunYaml) -> None:
    """C.3 R2: two dependencies and two steps that send to it make one run in its wave."""
    ran = run_yaml("""
steps:
  a: {type: noop}
  b: {type: noop}
  join: {type: noop, depends_on: [a, b]}
""")
    assert ran.calls["join"] == 1


def test_C_3_R3_items_run_in_order_one_by_one(run_yaml: RunYaml) -> None:
    """C.3 R3: items of a fan-out one after another, in order, unless forEach_concurrency says more."""
    ran = run_yaml("""
steps:
  list: {type: script, content: "return [3, 1, 2]", forEach: true}
  each: {type: command, fanout: map, depends_on: list, env: {N: "{{ outputs.list }}"}, exec: "echo $N >> order"}
""")
    assert ran.lines("order") == ["3", "1", "2"]


def test_C_3_R4_there_are_no_session_groups(run_yaml: RunYaml) -> None:
    """C.3 R4 is a peer's field that is never filled: a step's `group` is for reports and orders nothing."""
    ran = run_yaml("""
max_parallelism: 1
steps:
  b: {type: noop, group: g}
  other: {type: noop}
  a: {type: noop, group: g}
""")
    assert ran.started == ["b", "other", "a"]


def test_C_3_R5_one_slot_is_configuration_order_and_reproducible(run_yaml: RunYaml) -> None:
    """C.3 R5 D, semantics 11, I.2 property determinism: one slot is configuration order among what is ready, the
    records the same each time.
    """
    text = """
max_parallelism: 1
steps:
  z: {type: noop, if: 1 < 2}
  a: {type: noop, depends_on: z, guarantee: ["true", "2 > 1"]}
  m: {type: script, content: "return 5"}
  b: {type: noop, depends_on: [a, m]}
"""
    one, other = run_yaml(text, run_id="same"), run_yaml(text, run_id="again", seed="same")
    assert one.started == other.started == ["z", "a", "m", "b"]
    assert [record.decisions for record in one.records] == [record.decisions for record in other.records]
