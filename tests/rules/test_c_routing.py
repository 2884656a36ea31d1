"""C.9 to C.12: retries, what a block does and in which order, forward runs, and what bounds them."""

from __future__ import annotations

import pytest
from tests.whole import RunYaml

from gonogo.core import decisions as d
from gonogo.errors import ConfigError

# --- C.9 (caps and finer budgets are not due)

FLAKY = """
steps:
  flaky:
    type: command
    exec: "echo x >> tries; [ $(wc -l < tries) -gt {fails} ]"
    on_fail: {{retry: {{{retry}}}}}
  after: {{type: command, depends_on: flaky, exec: echo after >> after}}
"""


def test_C_9_R1_max_is_the_count_of_further_attempts(run_yaml: RunYaml) -> None:
    """C.9 R1, R2: max re-runs, on a failure only; each attempt is recorded with its number."""
    ran = run_yaml(FLAKY.format(fails=9, retry="max: 2"))
    assert len(ran.lines("tries")) == 3
    assert [one.attempt for one in ran.decisions(d.Started, "flaky")] == [1, 2, 3]
    assert (ran["flaky"].outcome, ran["flaky"].attempts, ran["flaky"].runs) == ("failed", 3, 1)


def test_C_9_R3_R5_only_classes_that_retry_names_are_retried(run_yaml: RunYaml) -> None:
    """C.9 R3, R5 D, G3: typed classes; transient by default, logical only when written."""
    ran = run_yaml("""
steps:
  broken: {type: script, content: "return 1", guarantee: "false", on_fail: {retry: {max: 2}}}
  written: {type: script, content: "return 1", guarantee: "false", on_fail: {retry: {max: 2, retry_on: [logical]}}}
  not_now: {type: command, exec: exit 1, on_fail: {retry: {max: 2, retry_on: [logical]}}}
""")
    assert [ran.calls[name] for name in ("broken", "written", "not_now")] == [1, 3, 1]


def test_C_9_R5_an_unknown_class_is_refused(run_yaml: RunYaml) -> None:
    """C.9 R5, G2: an unknown word in retry_on is a validation error."""
    with pytest.raises(ConfigError):
        run_yaml(FLAKY.format(fails=1, retry="max: 2, retry_on: [sometimes]"))


def test_C_9_R4_waits_follow_the_formula_and_the_seed(run_yaml: RunYaml) -> None:
    """C.9 R4 D, I.1 row 3, G9: delay x 2^(k-1), +-10 % from the seed, capped; the wait is awaited by the run's
    clock.
    """
    retry = "max: 3, backoff: {mode: exponential, delay_ms: 10, max_delay_ms: 15}"
    ran = run_yaml(FLAKY.format(fails=3, retry=retry), seed="s")
    delays = [one.delay_s for one in ran.decisions(d.Retrying)]
    assert 0.009 <= delays[0] <= 0.011
    assert all(0.0135 <= delay <= 0.0165 for delay in delays[1:])
    starts = [
        record.event.at for record in ran.records if any(isinstance(x, d.Started) for x in record.decisions)
    ]
    assert all(
        later - before >= delay for before, later, delay in zip(starts, starts[1:], delays, strict=False)
    )
    again = run_yaml(FLAKY.format(fails=9, retry=retry), seed="s")
    assert [one.delay_s for one in again.decisions(d.Retrying)] == delays


def test_C_9_R4_a_wait_holds_no_slot(run_yaml: RunYaml) -> None:
    """C.9 R4 D: with one slot the other step runs during the wait."""
    ran = run_yaml("""
max_parallelism: 1
steps:
  flaky: {type: command, exec: test -e go, on_fail: {retry: {max: 1, backoff: {delay_ms: 50}}}}
  other: {type: command, exec: touch go}
""")
    assert ran.started == ["flaky", "other", "flaky"]
    assert ran.verdict == "GO"


def test_C_9_R6_a_retry_is_alone_and_dependents_follow_once(run_yaml: RunYaml) -> None:
    """C.9 R6 D: the step first, alone; dependents once, after it; retries use up no loop budget."""
    ran = run_yaml("routing: {max_loops: 0}\n" + FLAKY.format(fails=2, retry="max: 3"))
    assert (ran.calls["flaky"], ran.lines("after")) == (3, ["after"])
    assert (ran.verdict, ran.own_rules) == ("GO", [])


def test_C_9_R7_remediation_then_retry_then_dependents(run_yaml: RunYaml) -> None:
    """C.9 R7 D: in this order, always."""
    ran = run_yaml("""
steps:
  a: {type: command, exec: "echo a >> order; test -e fixed", on_fail: {run: [fix], retry: {max: 1}}}
  fix: {type: command, exec: echo fix >> order; touch fixed}
  after: {type: command, depends_on: a, exec: echo after >> order}
""")
    assert ran.lines("order") == ["a", "fix", "a", "after"]


def test_C_9_R8_remediation_alone_does_not_run_the_step_again(run_yaml: RunYaml) -> None:
    """C.9 R8 (H21): on_fail.run alone never re-runs the failed step."""
    ran = run_yaml("""
steps:
  a: {type: command, exec: "test -e fixed", on_fail: {run: [fix]}}
  fix: {type: command, exec: touch fixed}
""")
    assert (ran.calls["a"], ran.calls["fix"], ran["a"].outcome) == (1, 1, "failed")


def test_C_9_R9_only_the_failed_item_again(run_yaml: RunYaml) -> None:
    """C.9 R9 D, I.1 row 4, G23: the provider is called once more, for that item only."""
    ran = run_yaml("""
steps:
  list: {type: script, forEach: true, content: "return ['a', 'b', 'c']"}
  each:
    type: command
    fanout: map
    depends_on: list
    env: {N: "{{ item }}"}
    exec: "echo $N >> tries; [ $N != b ] || [ $(grep -c b tries) -gt 1 ]"
    on_fail: {retry: {max: 2}}
""")
    assert sorted(ran.lines("tries")) == ["a", "b", "b", "c"]
    assert ran["each"].outcome == "passed"


def test_C_9_R10_a_list_that_fails_early_is_retried(run_yaml: RunYaml) -> None:
    """C.9 R10 D: a forEach producer is retried like any other."""
    ran = run_yaml("""
steps:
  list:
    type: command
    forEach: true
    exec: "echo x >> tries; [ $(wc -l < tries) -gt 1 ] && echo '[1, 2]'"
    on_fail: {retry: {max: 1}}
  each: {type: noop, fanout: map, depends_on: list}
""")
    assert (ran.calls["list"], ran.calls["each"]) == (2, 2)


def test_C_9_R11_the_last_attempts_issues_stand(run_yaml: RunYaml) -> None:
    """C.9 R11: the issues of the last run are kept; every attempt's failure is in the journal, with its number."""
    ran = run_yaml("""
steps:
  a:
    type: command
    exec: "echo x >> tries; echo try$(wc -l < tries) >&2; exit 1"
    on_fail: {retry: {max: 1}}
  after: {type: noop, depends_on: a}
""")
    assert [(issue.message.strip(), issue.attempt) for issue in ran["a"].issues] == [("try2", 2)]
    assert [(fault["attempt"], fault["message"].strip()) for fault in ran.view.faults] == [
        (1, "try1"),
        (2, "try2"),
    ]
    assert ran.why("after") == ("skipped", "dependency_failed")


# --- C.10


def test_C_10_R1_a_block_speaks_in_order(run_yaml: RunYaml) -> None:
    """C.10 R1: run, run_js, retry, transitions, goto_js, goto; what was run is over before the block goes on."""
    ran = run_yaml("""
max_parallelism: 1
steps:
  a:
    type: command
    exec: echo a >> order; exit 1
    on_fail:
      run: [one]
      run_js: "return ['two']"
      retry: {max: 1}
      transitions: [{when: "false", to: wrong}]
      goto_js: "return null"
      goto: wrong
  one: {type: command, exec: echo one >> order}
  two: {type: command, start: routed, exec: echo two >> order}
  wrong: {type: command, start: routed, exec: echo wrong >> order}
""")
    assert ran.lines("order") == ["a", "one", "two", "a", "one", "two"]
    routes = [(one.action, one.target) for one in ran.decisions(d.Routed)]
    assert routes == [("run", "one"), ("run", "two"), ("run", "one"), ("run", "two")]


def test_C_10_R1_a_refused_run_stops_the_rest_of_its_block(run_yaml: RunYaml) -> None:
    """C.10 R1: a loop-budget breach in `run` leaves the goto undone."""
    ran = run_yaml("""
routing: {max_loops: 0}
steps:
  first: {type: noop}
  a: {type: noop, depends_on: first, on_success: {run_js: "return ['first']", goto: b}}
  b: {type: noop, start: routed}
""")
    assert ran["b"].outcome == "skipped"
    assert ran.own_rules == ["a/routing/loop_budget_exceeded"]


def test_C_10_R2_defaults_lie_under_the_blocks_that_steps_have(run_yaml: RunYaml) -> None:
    """C.10 R2: a shallow base of on_fail blocks; a step without one gets nothing."""
    ran = run_yaml("""
routing: {defaults: {on_fail: {run: [told], retry: {max: 2}}}}
steps:
  has: {type: command, exec: exit 1, on_fail: {retry: {max: 1}}}
  has_not: {type: command, exec: exit 1}
  told: {type: noop}
""")
    assert (ran.calls["has"], ran.calls["has_not"]) == (2, 1)
    assert {one.step for one in ran.decisions(d.Routed)} == {"has"}


def test_C_10_R3_arguments_keep_their_type(run_yaml: RunYaml) -> None:
    """C.10 R3 D: text is rendered to text, one output tag alone keeps its type, other values pass as they are."""
    ran = run_yaml("""
steps:
  a:
    type: script
    content: "return {n: 5, l: [1]}"
    on_success:
      run:
        - step: b
          with: {text: "n={{ output.n }}", n: "{{ output.n }}", l: "{{ outputs.a.l }}", plain: {x: 1}, flag: true}
  b: {type: script, content: "return args"}
""")
    assert ran.output("b") == {"text": "n=5", "n": 5, "l": [1], "plain": {"x": 1}, "flag": True}


def test_C_10_R4_a_run_target_is_protected_from_repeats_only_by_the_budget(run_yaml: RunYaml) -> None:
    """C.10 R4: two steps that run the same target run it twice, one after the other."""
    ran = run_yaml("""
steps:
  a: {type: noop, on_success: {run: [t]}}
  b: {type: noop, depends_on: [a, t], on_success: {run: [t]}}
  t: {type: noop}
""")
    assert ran.started == ["a", "t", "b", "t"]
    assert len(ran.decisions(d.Routed)) == 2


def test_C_10_R5_run_fans_out_to_a_target_that_maps(run_yaml: RunYaml) -> None:
    """C.10 R5: one forward run per item when the target says `fanout: map`, else one."""
    ran = run_yaml("""
steps:
  list: {type: script, forEach: true, content: "return ['a', 'b']", on_success: {run: [each, once]}}
  each: {type: script, fanout: map, content: "return args.item"}
  once: {type: script, content: "return 1"}
""")
    assert (ran.calls["each"], ran.calls["once"]) == (2, 1)
    assert [(item.output, item.scope) for item in ran["each"].items or ()] == [
        ("a", "list#1[0]"),
        ("b", "list#1[1]"),
    ]


@pytest.mark.parametrize("fanout", ["", ", fanout: map"])
def test_C_10_R5_remediation_is_for_failed_items_only(run_yaml: RunYaml, fanout: str) -> None:
    """C.10 R5 D, G23: on_fail.run acts for the failed items, whatever they are and whether the target maps or not."""
    ran = run_yaml(f"""
steps:
  list: {{type: script, forEach: true, content: "return ['a', 7, null]"}}
  each: {{type: script, fanout: map, depends_on: list, content: "1", fail_if: item === 7, on_fail: {{run: [fix]}}}}
  fix: {{type: script, content: "return 1"{fanout}}}
""")
    assert [(one.step, one.scope) for one in ran.decisions(d.Started, "fix")] == [("fix", "list#1[1]")]


def test_C_10_R6_a_remediation_sees_its_item(run_yaml: RunYaml) -> None:
    """C.10 R6 D: outputs[parent] is the item, args.item and args.index are set, with no dependency on the list."""
    ran = run_yaml("""
steps:
  list: {type: script, forEach: true, content: "return ['a', 'b']"}
  each: {type: noop, fanout: map, depends_on: list, fail_if: item === 'b', on_fail: {run: [fix]}}
  fix: {type: script, content: "return [outputs.list, args.item, args.index]"}
""")
    assert [item.output for item in ran["fix"].items or ()] == [["b", "b", 1]]


@pytest.mark.parametrize("block", ["run: [nope]", "goto: nope", 'transitions: [{when: "true", to: nope}]'])
def test_C_10_R7_an_unknown_target_is_refused_at_load(run_yaml: RunYaml, block: str) -> None:
    """C.10 R7 D, I.1 row 8: with the path of the key."""
    with pytest.raises(ConfigError) as refused:
        run_yaml(f"steps:\n  a: {{type: noop, on_success: {{{block}}}}}\n")
    assert "nope" in refused.value.problems[0].message
    assert refused.value.problems[0].path.startswith("steps.a.on_success")


@pytest.mark.parametrize("block", ["run_js: \"return ['nope']\"", "goto_js: \"return 'nope'\""])
def test_C_10_R7_a_made_up_target_is_an_issue(run_yaml: RunYaml, block: str) -> None:
    """C.10 R7 D: at run time `<check>/routing/unknown_target`, never a silence; NO-GO."""
    ran = run_yaml(f"steps:\n  a: {{type: noop, on_success: {{{block}}}}}\n")
    assert ran.own_rules == ["a/routing/unknown_target"]
    assert ran.verdict == "NO-GO"


# --- C.11


def test_C_11_R1_a_goto_leaves_unrelated_steps_alone(run_yaml: RunYaml) -> None:
    """C.11 R1 D, I.1 row 5: pending steps that don't depend on the target run, exactly once."""
    ran = run_yaml("""
max_parallelism: 1
steps:
  a: {type: noop}
  b: {type: noop, depends_on: a, on_success: {goto_js: "return outputs_history.b.length < 2 ? 'a' : null"}}
  c: {type: noop, depends_on: b}
  unrelated: {type: noop, depends_on: other}
  other: {type: noop}
""")
    assert (ran.calls["unrelated"], ran.calls["other"]) == (1, 1)
    assert (ran.calls["a"], ran.calls["b"], ran.calls["c"]) == (2, 2, 1)


def test_C_11_R2_a_run_disturbs_nothing_that_is_queued(run_yaml: RunYaml) -> None:
    """C.11 R2, semantics 7: run targets come beside what is under way; nothing outside the set runs again."""
    ran = run_yaml("""
max_parallelism: 1
steps:
  a: {type: noop, on_success: {run: [t]}}
  b: {type: noop}
  c: {type: noop, depends_on: a}
  t: {type: noop}
""")
    assert dict(ran.calls) == {"a": 1, "b": 1, "c": 1, "t": 1}


def test_C_11_R3_the_set_is_target_never_run_ancestors_and_dependents(run_yaml: RunYaml) -> None:
    """C.11 R3 D: dependencies that never ran come along, dependents follow a goto if they pass event and tags."""
    ran = run_yaml(
        """
steps:
  base: {type: noop, start: routed}
  target: {type: noop, start: routed, depends_on: base}
  dependent: {type: noop, depends_on: target}
  not_now: {type: noop, depends_on: target, on: [pr_closed]}
  tagged: {type: noop, depends_on: target, tags: [x]}
  go: {type: noop, on_success: {goto: target}}
""",
        event="pr_opened",
    )
    assert ran.started == ["go", "base", "target", "dependent"]
    assert set(ran.view.excluded) == {"not_now", "tagged"}


def test_C_11_R4_is_about_chat_webhooks(run_yaml: RunYaml) -> None:
    """C.11 R4 is the peer's exception for webhooks; here a goto to a human-input step is like any other."""
    ran = run_yaml("""
steps:
  a: {type: noop, on_success: {goto: ask}}
  ask: {type: human-input, prompt: "go?", start: routed}
  after: {type: noop, depends_on: ask}
""")
    assert (ran.verdict, ran["ask"].outcome) == ("HOLD", "waiting")
    done = ran.answered("ask", "yes")
    assert (done.verdict, done["after"].outcome) == ("GO", "passed")


def test_C_11_R5_R6_requests_of_one_pass_make_one_run(run_yaml: RunYaml) -> None:
    """C.11 R5, R6: the same target asked for twice before it starts runs once; arguments merge, the later wins."""
    ran = run_yaml("""
max_parallelism: 1
steps:
  a:
    type: noop
    on_success: {run: [{step: t, with: {x: 1, y: 1}}, {step: t, with: {y: 2}}]}
  t: {type: script, content: "return args"}
""")
    assert ran.calls["t"] == 1
    assert ran.output("t") == {"x": 1, "y": 2}


def test_C_11_R7_the_order_of_a_set_is_that_of_its_dependencies(run_yaml: RunYaml) -> None:
    """C.11 R7: the subset keeps the order its dependencies give, whatever the order in the file."""
    ran = run_yaml("""
max_parallelism: 1
steps:
  last: {type: noop, depends_on: middle}
  middle: {type: noop, depends_on: target}
  target: {type: noop}
  a: {type: noop, depends_on: last, on_success: {goto_js: "return outputs_history.a.length < 2 ? 'target' : null"}}
""")
    assert ran.started == ["target", "middle", "last", "a"] * 2


def test_C_11_R8_a_new_wave_forgets_old_failures(run_yaml: RunYaml) -> None:
    """C.11 R8: what failed in the earlier wave and passes in the new one no longer blocks or counts."""
    ran = run_yaml("""
steps:
  write: {type: command, exec: echo x >> rounds}
  check: {type: command, depends_on: write, exec: "[ $(wc -l < rounds) -ge 2 ]", on_fail: {goto: write}}
  after: {type: noop, depends_on: check}
""")
    assert (ran.verdict, ran.calls["check"], ran.calls["after"]) == ("GO", 2, 1)


def test_C_11_R9_any_step_may_be_the_target(run_yaml: RunYaml) -> None:
    """C.11 R9 (H22): also one that is no ancestor; a forward goto to a step not yet run runs it once."""
    ran = run_yaml("""
max_parallelism: 1
steps:
  a: {type: noop, on_success: {goto: later}}
  between: {type: noop}
  later: {type: noop, depends_on: between}
""")
    assert dict(ran.calls) == {"a": 1, "between": 1, "later": 1}


def test_C_11_R10_goto_event_is_the_event_of_the_wave(run_yaml: RunYaml) -> None:
    """C.11 R10 D (G29), I.1 row 13: event.name = goto_event, the original beside it; dependents are filtered by it."""
    ran = run_yaml(
        """
steps:
  a: {type: noop, on_success: {goto: t, goto_event: pr_updated}}
  t: {type: script, start: routed, content: "return [event.name, event.original.name]"}
  reacts: {type: script, on: [pr_updated, pr_opened], depends_on: t, content: "return event.name"}
""",
        event="pr_opened",
    )
    assert ran.output("t") == ["pr_updated", "pr_opened"]
    assert ran.output("reacts") == "pr_updated"


def test_C_11_R11_on_success_of_a_fan_out_comes_once_at_the_root(run_yaml: RunYaml) -> None:
    """C.11 R11 (semantics 8): on_success once, on the aggregate, at root scope; on_fail per item."""
    ran = run_yaml("""
steps:
  list: {type: script, forEach: true, content: "return [1, 2]"}
  good: {type: noop, fanout: map, depends_on: list, on_success: {run: [done]}}
  bad: {type: noop, fanout: map, depends_on: list, fail_if: "true", on_fail: {run: [fix]}}
  done: {type: noop}
  fix: {type: noop}
""")
    assert [one.scope for one in ran.decisions(d.Started, "done")] == [""]
    assert [one.scope for one in ran.decisions(d.Started, "fix")] == ["list#1[0]", "list#1[1]"]


# --- C.12 (what is due: the limits themselves)


def test_C_12_R2_a_refusal_is_an_issue_and_stops_the_block(run_yaml: RunYaml) -> None:
    """C.12 R2, H19: one issue with the step's prefix, severity error; semantics 21: NO-GO unless the step tolerates."""
    text = """
routing: {max_loops: 0}
steps:
  a: {type: noop}
  b: {type: noop, depends_on: a, on_success: {goto: a}LAX}
  after: {type: noop, depends_on: b}
"""
    ran = run_yaml(text.replace("LAX", ""))
    assert [(issue.rule_id, issue.severity) for issue in ran.view.issues] == [
        ("b/routing/loop_budget_exceeded", "error")
    ]
    assert (ran["after"].outcome, ran.verdict) == ("passed", "NO-GO")
    assert run_yaml(text.replace("LAX", ", continue_on_failure: true")).verdict == "GO"


@pytest.mark.parametrize(
    ("top", "step", "runs"), [("", ", max_runs: 2", 2), ("limits: {max_runs_per_check: 3}", "", 3)]
)
def test_C_12_R6_runs_of_a_step_are_limited(run_yaml: RunYaml, top: str, step: str, runs: int) -> None:
    """C.12 R6 D, I.1 row 13, G38, H34: the run that would exceed isn't started; the step fails with its own rule."""
    ran = run_yaml(f"{top}\nsteps:\n  a: {{type: noop, on_success: {{goto: a}}{step}}}\n")
    assert ran.calls["a"] == runs
    assert ran.rules("a") == ["a/limits/max_runs_exceeded"]
    assert (ran["a"].outcome, ran.verdict) == ("failed", "NO-GO")


def test_C_12_R6_items_are_counted_one_by_one(run_yaml: RunYaml) -> None:
    """C.12 R6 D: map items count per item scope, so many items are no many runs."""
    ran = run_yaml("""
steps:
  list: {type: script, forEach: true, content: "return [1, 2, 3]"}
  each: {type: noop, fanout: map, depends_on: list, max_runs: 1}
""")
    assert (ran.calls["each"], ran.verdict) == (3, "GO")


@pytest.mark.parametrize(("depth", "verdict"), [(1, "NO-GO"), (2, "GO")])
def test_C_12_R7_nesting_is_limited(run_yaml: RunYaml, depth: int, verdict: str) -> None:
    """C.12 R7, A.3: a workflow nested deeper than limits.max_workflow_depth fails its step."""
    head = 'version: "1.0"\nid: '
    ran = run_yaml(
        f"""
limits: {{max_workflow_depth: {depth}}}
imports: [one.yaml]
steps:
  a: {{type: workflow, workflow: one}}
""",
        files={
            "one.yaml": f"{head}one\nimports: [two.yaml]\nsteps:\n  b: {{type: workflow, workflow: two}}\n",
            "two.yaml": f"{head}two\nsteps:\n  c: {{type: command, exec: echo deep >> ran}}\n",
        },
    )
    assert ran.verdict == verdict
    assert ran.lines("ran") == (["deep"] if verdict == "GO" else [])
