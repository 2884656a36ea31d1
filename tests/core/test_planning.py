"""Which steps a run is about (spec C.2)."""

from __future__ import annotations

from tests.core.script import Script, block, plan, step

from gonogo.core import decisions as d


def excluded(script: Script) -> dict[str, str]:
    """Which steps were left out, and why."""
    planned: d.Planned = script.decided(d.Planned)[0]
    return planned.excluded


def test_C_2_R1_a_requested_step_brings_all_it_depends_on() -> None:
    """Only the request and its transitive dependencies run."""
    script = Script(plan(step("a"), step("b", "a"), step("c", "b"), step("other")), requested=("c",))
    assert script.started == ["a", "b", "c"]
    assert excluded(script) == {"other": "not_requested"}


def test_C_2_R2_a_step_reacts_to_its_events_only() -> None:
    """`on` acts when the run has an event."""
    script = Script(
        plan(step("a", on=("pr_opened",)), step("b", on=("issue_opened",))), trigger={"name": "pr_opened"}
    )
    assert script.started == ["a"]
    assert excluded(script) == {"b": "event_filter"}


def test_C_2_R2_without_an_event_every_step_is_planned() -> None:
    """`on` is not asked when there is no event."""
    assert Script(plan(step("a", on=("pr_opened",)), step("b", on=()))).started == ["a", "b"]


def test_C_2_R3_tagged_steps_are_out_without_a_filter() -> None:
    """A tag makes a step optional."""
    assert Script(plan(step("a", tags=("slow",)), step("b"))).started == ["b"]


def test_C_2_R3_an_include_filter_keeps_its_tags_and_untagged_steps() -> None:
    """Any excluded tag drops a step, an included one keeps it."""
    tagged = [
        step("a", tags=("slow",)),
        step("b"),
        step("c", tags=("fast",)),
        step("e", tags=("slow", "flaky")),
    ]
    script = Script(plan(*tagged, include_tags=("slow",), exclude_tags=("flaky",)))
    assert script.started == ["a", "b"]


def test_C_2_R3_an_untagged_dependency_is_pulled_in_under_an_include_filter() -> None:
    """The same test decides in a request and in a whole run."""
    script = Script(plan(step("a"), step("b", "a", tags=("slow",)), include_tags=("slow",)), requested=("b",))
    assert script.started == ["a", "b"]


def test_the_reserved_tags_never_leave_a_step_out() -> None:
    """G34: critical, external, internal, policy and info say how critical a step is, not whether it runs."""
    assert Script(plan(step("a", tags=("critical",)), step("b", tags=("info",)))).started == ["a", "b"]


def test_C_2_R4_run_targets_wait_for_a_route_in_every_form() -> None:
    """A target of on_fail.run doesn't start by itself; nothing routed to it, so it is skipped."""
    script = Script(plan(step("a", on_fail=block(run=["fix"])), step("fix")))
    assert script.started == ["a"]
    assert script.node("fix").reason == "not_routed"


def test_C_2_R4_goto_targets_are_not_held_back() -> None:
    """A goto target belongs to the first wave."""
    assert Script(plan(step("a", on_fail=block(goto="b")), step("b"))).started == ["a", "b"]


def test_start_routed_holds_a_step_back() -> None:
    """H41: `start: routed` runs only when something routes to it or it is requested."""
    steps = [step("a"), step("b", start="routed")]
    assert Script(plan(*steps)).started == ["a"]
    assert Script(plan(*steps), requested=("b",)).started == ["b"]


def test_C_2_R6_an_unknown_dependency_stops_the_plan() -> None:
    """Nothing runs, and the issue names both steps."""
    script = Script(plan(step("a", "ghost"), step("b")))
    assert script.started == []
    assert script.verdict == "NO-GO"
    assert "ghost" in script.state.run_issues[0].message


def test_C_2_R7_a_step_whose_dependency_was_filtered_out_is_dropped_with_a_reason() -> None:
    """No step vanishes silently."""
    steps = [step("a", on=("pr_opened",)), step("b", "a"), step("c", "a|free"), step("free")]
    script = Script(plan(*steps), trigger={"name": "manual"})
    assert excluded(script) == {"a": "event_filter", "b": "dependency_excluded"}
    assert script.started == ["free", "c"]


def test_C_2_R7_under_a_tag_filter_dependencies_are_soft() -> None:
    """A filtered dependency doesn't drop the step that names it."""
    script = Script(plan(step("a", tags=("slow",)), step("b", "a"), exclude_tags=("slow",)))
    assert script.started == ["b"]


def test_C_2_R8_a_cycle_is_named_and_nothing_runs() -> None:
    """The issue gives the path of the cycle."""
    script = Script(plan(step("a", "c"), step("b", "a"), step("c", "b")))
    assert script.started == []
    assert "a → c → b → a" in script.state.run_issues[0].message


def test_two_lists_whose_inner_steps_wait_for_each_others_list_are_refused() -> None:
    """Outside its fan-out a list with an on_finish is settled only when all inside is, so neither ever would be."""
    finish = block(run=["tidy"])
    steps = [
        step("one", for_each=True, on_finish=finish),
        step("two", for_each=True, on_finish=finish),
        step("over_one", "one", "two", fanout="map"),
        step("over_two", "two", "one", fanout="map"),
        step("tidy"),
    ]
    script = Script(plan(*steps), calls={"one": [1], "two": [2]})
    assert (script.started, script.verdict) == ([], "NO-GO")
    assert "on_finish of" in script.state.run_issues[0].message


def test_a_step_that_waits_for_a_list_and_its_items_is_no_ring() -> None:
    """Nor is one step over one list behind another."""
    finish = block(run=["tidy"])
    steps = [
        step("one", for_each=True, on_finish=finish),
        step("two", "one", for_each=True, fanout="reduce", on_finish=finish),
        step("each", "two", "one", fanout="map"),
        step("sum", "each", "one", "two"),
        step("tidy"),
    ]
    assert Script(plan(*steps), calls={"one": [1], "two": [2]}).verdict == "GO"


def test_C_2_R4_a_ring_through_a_step_that_waits_for_its_route_begins_somewhere() -> None:
    """A step whose remedy runs it again isn't held back by that, or the run would be over with nothing done."""
    main = step("main", on_fail=block(run=["fixer"]))
    script = Script(plan(main, step("fixer", start="routed", on_success=block(run=["main"]))))
    assert script.started == ["main"]


def test_C_2_R4_a_target_of_a_step_that_nothing_routes_to_stays_held_back() -> None:
    """What only a step that never runs would run doesn't start by itself."""
    script = Script(
        plan(step("a"), step("off", start="routed", on_success=block(run=["notify"])), step("notify"))
    )
    assert script.started == ["a"]


def test_C_2_R7_steps_behind_a_filtered_one_are_dropped_in_whatever_order_they_stand() -> None:
    """Each is looked at once, after all that it depends on."""
    chain = [step(f"s{number}", f"s{number + 1}") for number in range(50)]
    script = Script(plan(*chain, step("s50", on=("push",)), step("other")), trigger={"name": "pr"})
    assert (script.started, script.verdict) == (["other"], "GO")
    assert set(script.state.excluded.values()) == {"event_filter", "dependency_excluded"}
    assert len(script.state.excluded) == 51
