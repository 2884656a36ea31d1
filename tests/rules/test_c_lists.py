"""C.13 and C.14: forEach, fan-outs, on_finish, looking again, fail_fast."""

from __future__ import annotations

import json

import pytest
from tests.whole import RunYaml

from gonogo.core import decisions as d

LIST = """
{top}
steps:
  list: {{type: script, forEach: true, content: {content}}}
  each: {{type: script, fanout: map, depends_on: list, content: "return outputs.list"}}
  total: {{type: script, fanout: reduce, depends_on: list, content: "return outputs.list"}}
"""


# --- C.13


@pytest.mark.parametrize(
    ("value", "items"),
    [
        ("[1, 2]", [1, 2]),
        ("{a: 1}", [{"a": 1}]),
        ("7", [7]),
        ("'text'", ["text"]),
        ("'[1, 2]'", [1, 2]),
        ("[[1], [2]]", [[1], [2]]),
        ("[null]", [None]),
    ],
)
def test_C_13_table_what_gives_items(run_yaml: RunYaml, value: str, items: list[object]) -> None:
    """C.13, table, H28: a list is its items, JSON text with a list too, anything else is one item."""
    ran = run_yaml(LIST.format(top="", content=json.dumps(f"return {value}")))
    assert ran.output("each") == items


@pytest.mark.parametrize("value", ["[]", "null"])
def test_C_13_table_nothing_is_no_items(run_yaml: RunYaml, value: str) -> None:
    """C.13, table: [] and null are zero items: maps are skipped as forEach_empty, a reduce runs once."""
    ran = run_yaml(LIST.format(top="", content=json.dumps(f"return {value}")))
    assert ran.why("each") == ("skipped", "forEach_empty")
    assert (ran["total"].outcome, ran.calls["total"]) == ("passed", 1)
    assert ran.verdict == "GO"


def test_C_13_table_undefined_fails_and_is_routed(run_yaml: RunYaml) -> None:
    """C.13, table, and C.6: undefined fails with forEach/execution_error and on_fail acts."""
    ran = run_yaml("""
steps:
  list: {type: script, forEach: true, content: "return undefined", on_fail: {run: [told]}}
  told: {type: noop}
  each: {type: noop, fanout: map, depends_on: list}
""")
    assert ran.rules("list") == ["forEach/execution_error"]
    assert (ran["list"].outcome, ran["told"].outcome) == ("failed", "passed")
    assert ran.why("each") == ("skipped", "dependency_failed")


def test_C_13_R1_fanout_by_type_unless_written(run_yaml: RunYaml) -> None:
    """C.13 R1, I.1 row 13: log, memory, script, workflow and noop reduce, others map; `fanout` and `reduce: true` win
    (H32).
    """
    ran = run_yaml("""
steps:
  list: {type: script, forEach: true, content: "return [1, 2]"}
  script: {type: script, depends_on: list, content: "return 1"}
  noop: {type: noop, depends_on: list}
  log: {type: log, depends_on: list, message: x}
  command: {type: command, depends_on: list, exec: "true"}
  command_once: {type: command, depends_on: list, exec: "true", reduce: true}
  noop_each: {type: noop, depends_on: list, fanout: map}
""")
    once, twice = ("script", "noop", "log", "command_once"), ("command", "noop_each")
    assert {name: ran.calls[name] for name in (*once, *twice)} == dict.fromkeys(once, 1) | dict.fromkeys(
        twice, 2
    )


def test_C_13_R1_the_first_dependency_with_items_counts(run_yaml: RunYaml) -> None:
    """C.13 R1: only the first dependency that carries items is fanned out over."""
    ran = run_yaml("""
steps:
  plain: {type: noop}
  one: {type: script, forEach: true, content: "return [1, 2]"}
  two: {type: script, forEach: true, content: "return [5, 6, 7]"}
  each: {type: script, fanout: map, depends_on: [plain, one, two], content: "return [outputs.one, outputs.two]"}
""")
    assert ran.output("each") == [[1, [5, 6, 7]], [2, [5, 6, 7]]]


def test_C_13_R2_inside_an_item_the_parent_is_the_item(run_yaml: RunYaml) -> None:
    """C.13 R2, H37: outputs[parent] is the item, outputs_raw the list, `item` and `index` name it, the scope is its
    own.
    """
    ran = run_yaml("""
steps:
  list: {type: script, forEach: true, content: "return ['a', 'b']"}
  each:
    type: script
    fanout: map
    depends_on: list
    content: "return [outputs.list, outputs_raw.list, item, index]"
""")
    assert ran.output("each") == [["a", ["a", "b"], "a", 0], ["b", ["a", "b"], "b", 1]]
    assert [item.scope for item in ran["each"].items or ()] == ["list#1[0]", "list#1[1]"]


def test_C_13_R3_if_once_the_rest_per_item(run_yaml: RunYaml) -> None:
    """C.13 R3: `if` once, seeing the whole list; assume, guarantee and fail_if per item."""
    ran = run_yaml("""
steps:
  list: {type: script, forEach: true, content: "return [1, 2, 3]"}
  each:
    type: script
    fanout: map
    depends_on: list
    content: "return outputs.list"
    if: outputs.list.length === 3
    assume: outputs.list !== 1
    fail_if: output === 3
""")
    assert len(ran.judged("if")) == 1
    assert [item.outcome for item in ran["each"].items or ()] == ["skipped", "passed", "failed"]


def test_C_13_R4_status_is_beside_the_output_and_tolerance_reaches_items(run_yaml: RunYaml) -> None:
    """C.13 R4 D: item_status[] tells outcomes; outputs have no markers; a tolerated item lets the next level run."""
    ran = run_yaml("""
steps:
  list: {type: script, forEach: true, content: "return [1, 2]"}
  strict: {type: script, fanout: map, depends_on: list, content: "return {n: item}", fail_if: item === 2}
  lax:
    type: script
    fanout: map
    depends_on: list
    content: "return item"
    fail_if: item === 2
    continue_on_failure: true
  after_strict: {type: script, fanout: map, depends_on: strict, content: "return item"}
  after_lax: {type: script, fanout: map, depends_on: lax, content: "return item"}
  sum:
    type: script
    depends_on: [strict, lax]
    content: "return [outputs_meta.strict.item_status, outputs_meta.lax.item_status, outputs.strict]"
""")
    assert ran.output("sum") == [["passed", "failed"], ["passed", "tolerated"], [{"n": 1}, {"n": 2}]]
    assert [item.outcome for item in ran["after_strict"].items or ()] == ["passed", "skipped"]
    assert [item.outcome for item in ran["after_lax"].items or ()] == ["passed", "passed"]


@pytest.mark.parametrize(("condition", "after"), [("item > 0", "skipped"), ("item > 1", "passed")])
def test_C_13_R5_all_failed_blocks_some_failed_does_not(
    run_yaml: RunYaml, condition: str, after: str
) -> None:
    """C.13 R5: all items failed marks the step failed; partial success lets dependents run. Either way NO-GO."""
    ran = run_yaml(f"""
steps:
  list: {{type: script, forEach: true, content: "return [1, 2]"}}
  each: {{type: script, fanout: map, depends_on: list, content: "return 1", fail_if: {condition}}}
  after: {{type: noop, depends_on: each}}
""")
    assert ran["after"].outcome == after
    assert (ran["each"].outcome, ran.verdict) == ("failed", "NO-GO")


def test_C_13_R6_the_aggregate_comes_after_its_items(run_yaml: RunYaml) -> None:
    """C.13 R6: one entry per item, then the aggregate at the root; items are counted, the parent counts one."""
    ran = run_yaml(LIST.format(top="", content='"return [1, 2, 3]"'))
    assert [one.scope for one in ran.decisions(d.Ended, "each")] == [
        "list#1[0]",
        "list#1[1]",
        "list#1[2]",
        "",
    ]
    assert ran.calls["list"] == 1
    by_step = {row["checkName"]: row["totalRuns"] for row in ran.view.statistics["checks"]}
    assert (by_step["list"], by_step["each"]) == (1, 3)


def test_C_13_R7_an_items_issues_are_kept_with_their_scope(run_yaml: RunYaml) -> None:
    """C.13 R7 D: per-item guarantee issues are in the aggregate, with `scope`."""
    ran = run_yaml("""
steps:
  list: {type: script, forEach: true, content: "return [1, 2]"}
  each: {type: script, fanout: map, depends_on: list, content: "return item", guarantee: output < 2}
""")
    assert [(issue.rule_id, issue.scope) for issue in ran["each"].issues] == [
        ("contract/guarantee_failed", "list#1[1]")
    ]


def test_C_13_R8_concurrency_is_chosen_and_order_kept(run_yaml: RunYaml) -> None:
    """C.13 R8 D, G22: default 1; forEach_concurrency opens more, within N; outputs in item order; no cancel."""
    text = """
max_parallelism: 2
steps:
  list: {type: script, forEach: true, content: "return [0, 1, 2, 3]"}
  each:
    type: command
    fanout: map
    depends_on: list
    forEach_concurrency: 4
    env: {N: "{{ item }}"}
    exec: "touch on.$N; ls | grep -c '^on' >> seen; sleep 0.03; rm on.$N; echo $N; [ $N -ne 1 ]"
"""
    ran = run_yaml(text)
    assert max(int(line) for line in ran.lines("seen")) == 2
    assert [item.outcome for item in ran["each"].items or ()] == ["passed", "failed", "passed", "passed"]
    assert [ran.output("each")[n] for n in (0, 2, 3)] == [0, 2, 3]
    one = run_yaml(text.replace("forEach_concurrency: 4", "forEach_concurrency: 1").replace("seen", "alone"))
    assert max(int(line) for line in one.lines("alone")) == 1


def test_C_13_R9_a_list_in_a_list_has_scopes_of_its_own(run_yaml: RunYaml) -> None:
    """C.13 R9 D, I.1 row 20: any depth; outputs[x] by exact scope, then the nearest around it, then the root."""
    ran = run_yaml("""
steps:
  root: {type: script, content: "return 'r'"}
  outer: {type: script, forEach: true, content: "return [1, 2]"}
  inner: {type: script, forEach: true, fanout: map, depends_on: outer, content: "return [item * 10, item * 10 + 1]"}
  beside: {type: script, fanout: map, depends_on: outer, content: "return 'b' + item"}
  leaf:
    type: script
    fanout: map
    depends_on: [inner, beside, root]
    content: "return [outputs.outer, outputs.inner, outputs.beside, outputs.root].join()"
""")
    assert ran.output("leaf") == [["1,10,b1,r", "1,11,b1,r"], ["2,20,b2,r", "2,21,b2,r"]]


def test_C_13_R10_history_of_a_list_is_the_list_only(run_yaml: RunYaml) -> None:
    """C.13 R10 D: the producer adds its list; a map child one entry an item and none for its aggregate."""
    ran = run_yaml("""
steps:
  list: {type: script, forEach: true, content: "return [1, 2]"}
  each: {type: script, fanout: map, depends_on: list, content: "return item + 10"}
  sum: {type: script, depends_on: each, content: "return [outputs_history.list, outputs_history.each]"}
""")
    assert ran.output("sum") == [[[1, 2]], [11, 12]]


def test_C_13_R11_a_reduce_runs_once_a_default_map_maps_on(run_yaml: RunYaml) -> None:
    """C.13 R11 (H44), G30: a reduce sees the whole list, once; a command behind a map runs per item, and a note says
    so.
    """
    from gonogo import app

    text = """
steps:
  list: {type: script, forEach: true, content: "return [1, 2]"}
  each: {type: script, fanout: map, depends_on: list, content: "return item"}
  sum: {type: script, depends_on: each, content: "return outputs.each"}
  again: {type: command, depends_on: each, exec: "true"}
"""
    ran = run_yaml(text)
    assert (ran.output("sum"), ran.calls["sum"], ran.calls["again"]) == ([1, 2], 1, 2)
    notes = app.loads('version: "1.0"\n' + text).problems
    assert any("again" in note.path and "fanout" in note.message + (note.suggestion or "") for note in notes)


# --- C.14

FINISH = """
steps:
  list: {{type: script, forEach: true, content: "return {items}", on_finish: {block}{more}}}
  each: {{type: command, fanout: map, depends_on: list, exec: echo each >> order}}
  deep: {{type: command, fanout: map, depends_on: each, exec: echo deep >> order}}
  done: {{type: command, start: routed, exec: echo done >> order}}
"""


def test_C_14_R1_on_finish_comes_once_after_all(run_yaml: RunYaml) -> None:
    """C.14 R1 D, I.1 row 14, H24: once, after every map dependent of the list, at any depth."""
    ran = run_yaml(FINISH.format(items="[1, 2]", block="{run: [done]}", more=""))
    assert sorted(ran.lines("order")[:4]) == ["deep", "deep", "each", "each"]
    assert ran.lines("order")[4:] == ["done"]


@pytest.mark.parametrize(("items", "more"), [("[]", ""), ("[1]", ', fail_if: "true"')])
def test_C_14_R1_on_finish_comes_for_empty_and_failed_lists(run_yaml: RunYaml, items: str, more: str) -> None:
    """C.14 R1 D, H25: also over nothing and after a failure of the list, with forEach.last_wave_size."""
    block = "{run_js: \"memory.set('size', forEach.last_wave_size); return ['done']\"}"
    ran = run_yaml(FINISH.format(items=items, block=block, more=more))
    assert ran.lines("order") == ["done"]
    assert ran.result.state.memory["default"]["size"] == (0 if items == "[]" else 1)


def test_C_14_R1_on_finish_comes_once_per_execution(run_yaml: RunYaml) -> None:
    """C.14 R1 D: a list that runs again finishes again; the first goto kills nothing."""
    ran = run_yaml("""
steps:
  list:
    type: script
    forEach: true
    content: "return [1, 2]"
    on_finish: {goto_js: "return outputs_history.list.length < 3 ? 'list' : null"}
  each: {type: noop, fanout: map, depends_on: list}
""")
    assert (ran.calls["list"], ran.calls["each"]) == (3, 6)
    assert [one.trigger for one in ran.decisions(d.Routing)] == ["on_finish"] * 3
    assert ran.verdict == "GO"


def test_C_14_R2_on_finish_has_the_order_of_every_block(run_yaml: RunYaml) -> None:
    """C.14 R2 D: run, run_js, transitions, goto_js, goto, also with map dependents; goto_event is honoured."""
    ran = run_yaml(
        """
steps:
  list:
    type: script
    forEach: true
    content: "return [1]"
    on_finish:
      run: [one]
      run_js: "return ['two']"
      transitions: [{when: "false", to: wrong}]
      goto_js: "return undefined"
      goto: three
      goto_event: pr_updated
  each: {type: noop, fanout: map, depends_on: list}
  one: {type: noop}
  two: {type: noop, start: routed}
  three: {type: script, start: routed, content: "return event.name"}
  wrong: {type: noop, start: routed}
""",
        event="pr_opened",
    )
    assert ran.started == ["list", "each", "one", "two", "three"]
    assert ran.output("three") == "pr_updated"


LOOK_AGAIN = """
steps:
  list: {type: script, forEach: true, content: "return [1]", depends_on: behind, on_finish: {BLOCK}}
  each: {type: noop, fanout: map, depends_on: list}
  early: {type: noop, if: memory.get('ready') === true}
  behind: {type: noop, if: memory.get('ready') === true, depends_on: early, continue_on_failure: true}
  never: {type: noop, if: "false"}
  assumed: {type: noop, assume: memory.get('ready') === true}
  a_list: {type: script, forEach: true, content: "return []", if: memory.get('ready') === true}
  fix: {type: memory, operation: set, key: ready, value: true}
  nothing: {type: noop, start: routed}
"""


def test_C_14_R3_what_if_skipped_is_looked_at_again(run_yaml: RunYaml) -> None:
    """C.14 R3: after on_finish ran something, steps skipped by `if` are judged once more, in dependency order."""
    ran = run_yaml(LOOK_AGAIN.replace("BLOCK", "run: [fix]"))
    assert ran.why("early") == ran.why("behind") == ("passed", None)
    assert ran.started.index("fix") < ran.started.index("early") < ran.started.index("behind")
    assert (ran.why("never"), len(ran.judged("if", "never"))) == (("skipped", "if_condition"), 2)


def test_C_14_R3_nothing_else_is_looked_at_again(run_yaml: RunYaml) -> None:
    """C.14 R3: not steps skipped for other reasons, and no forEach steps."""
    ran = run_yaml(LOOK_AGAIN.replace("BLOCK", "run: [fix]"))
    assert ran.why("assumed") == ("skipped", "assume")
    assert ran.why("a_list") == ("skipped", "if_condition")
    assert len(ran.judged("if", "a_list")) == 1


@pytest.mark.parametrize("block", ['run_js: "return []"', "goto: nothing", "run: [fix], goto: nothing"])
def test_C_14_R3_only_after_a_run_that_goes_nowhere(run_yaml: RunYaml, block: str) -> None:
    """C.14 R3 with R2: nothing run, or a goto that ends the block: nobody is looked at again."""
    ran = run_yaml(LOOK_AGAIN.replace("BLOCK", block))
    assert len(ran.judged("if", "never")) == 1


def test_C_14_R4_the_latest_wave_has_its_own_name(run_yaml: RunYaml) -> None:
    """C.14 R4 D (H42): outputs_wave[x] is what the latest wave gave; history has all waves."""
    ran = run_yaml("""
steps:
  list:
    type: script
    forEach: true
    content: "return outputs_history.list.length === 0 ? [1, 2] : [3]"
    on_finish:
      transitions: [{when: "any(outputs_wave.each, x => x < 3)", to: list}]
  each: {type: script, fanout: map, depends_on: list, content: "return item"}
  sum: {type: script, depends_on: each, content: "return [outputs_wave.each, outputs_history.each]"}
""")
    assert ran.calls["list"] == 2
    assert ran.output("sum") == [[3], [1, 2, 3]]


def test_C_14_R5_fail_fast_ends_what_runs_and_skips_the_rest(run_yaml: RunYaml) -> None:
    """C.14 R5 D, semantics 4, I.1 row 13: running steps end, each dropped step has the reason fail_fast; retries come
    first.
    """
    ran = run_yaml("""
fail_fast: true
max_parallelism: 2
steps:
  bad:
    type: command
    exec: "echo x >> tries; exit 1"
    on_fail: {retry: {max: 2}}
  slow: {type: command, exec: "while [ ! -e go ]; do sleep 0.01; done; echo slow >> ended", timeout: 20s}
  next: {type: noop, depends_on: slow}
  go: {type: command, exec: touch go, depends_on: bad, if: always()}
""")
    assert (len(ran.lines("tries")), ran.lines("ended")) == (3, ["slow"])
    assert ran["slow"].outcome == "passed"
    assert ran.why("next") == ("skipped", "fail_fast")
    assert ran.verdict == "NO-GO"


def test_C_14_R5_a_tolerated_failure_is_no_reason_to_stop(run_yaml: RunYaml) -> None:
    """C.14 R5: only a failure that counts stops the run."""
    ran = run_yaml("""
fail_fast: true
max_parallelism: 1
steps:
  lax: {type: command, exec: exit 1, continue_on_failure: true}
  next: {type: noop}
""")
    assert (ran.verdict, ran["next"].outcome) == ("GO", "passed")
