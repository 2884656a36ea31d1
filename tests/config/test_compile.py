"""Documents to plans: what every key becomes, and the rules that need more than one step."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from gonogo.config.compile import digest_of
from gonogo.core.plan import (
    Budget,
    Edge,
    FailureCondition,
    Limits,
    Need,
    Plan,
    Retry,
    Step,
    Target,
    Transition,
)
from gonogo.errors import Problem


def codes(problems: tuple[Problem, ...]) -> list[str]:
    """The codes, in order."""
    return [problem.code for problem in problems]


def source(plan: Plan, position: int | None) -> str:
    """The text of an expression."""
    assert position is not None
    return plan.expressions[position].source


FULL = """
steps:
  list: {type: command, exec: "echo '[]'", forEach: true, forEach_concurrency: 4}
  work:
    type: command
    exec: make
    cwd: sub
    on: [manual, pr_opened]
    tags: [slow]
    group: builds
    if: filesCount > 0
    assume: [env.OK === 'true', true]
    guarantee: output.ok
    fail_if: output.bad
    failure_conditions:
      short: output.n < 1
      long: {condition: output.n > 9, message: too long, severity: warning, halt_execution: true}
    depends_on: [list, a | b, {step: a, on_failure: continue}]
    continue_on_failure: true
    criticality: policy
    schema: {type: object}
    fanout: map
    timeout: 5s
    max_runs: 3
    assume_mode: fail
    guarantee_mode: issue
    schema_mode: issue
    secret_outputs: [token]
    env: {N: 5, B: true}
    on_success:
      run: [a, {step: b, with: {n: 1, t: "{{ output.x }}"}}]
      run_js: "['a']"
      transitions: [{when: output.again, to: a, goto_event: manual}, {when: 'true', to: null}]
      goto_js: "null"
      goto: b
      goto_event: pr_updated
    on_fail:
      retry: {max: 2, backoff: {mode: exponential, delay_ms: 100, max_delay_ms: 5000, jitter: 0.5}}
  a: {type: noop, start: routed}
  b: {type: noop, schema: plain}
"""


@pytest.fixture
def plan(load_text: Any) -> Plan:
    """The plan of FULL."""
    found: Plan = load_text(FULL).plan
    return found


def test_a_steps_plain_keys_arrive(plan: Plan) -> None:
    """A.4."""
    step = plan.steps["work"]
    assert (step.type, step.config) == ("command", {"exec": "make", "cwd": "sub"})
    assert (step.on, step.tags, step.group) == (("manual", "pr_opened"), ("slow",), "builds")
    assert (step.timeout_s, step.max_runs, step.line) == (5.0, 3, 3)
    assert (step.assume_mode, step.guarantee_mode, step.schema_mode) == ("fail", "issue", "issue")
    assert (step.schema, step.secret_outputs, step.env) == (
        {"type": "object"},
        ("token",),
        {"N": 5, "B": True},
    )
    assert (step.criticality, step.criticality_source, step.continue_on_failure) == (
        "policy",
        "explicit",
        True,
    )


def test_a_steps_conditions_are_positions_in_the_table(plan: Plan) -> None:
    """Sources are stored once; a boolean is its text."""
    step = plan.steps["work"]
    assert source(plan, step.if_condition) == "filesCount > 0"
    assert [source(plan, at) for at in step.assume] == ["env.OK === 'true'", "true"]
    assert [source(plan, at) for at in step.guarantee] == ["output.ok"]
    assert source(plan, step.fail_if) == "output.bad"
    short, long = step.failure_conditions
    assert short == FailureCondition("short", short.expression)
    assert long == FailureCondition("long", long.expression, "too long", "warning", True)


def test_an_expression_carries_its_kind_and_what_it_reads(plan: Plan) -> None:
    """What the core keeps as evidence."""
    made = plan.expressions[plan.steps["work"].guarantee[0]]
    assert made.kind == "condition"
    assert made.reading is not None
    assert made.reading.paths == (("output", "ok"),)


def test_the_same_source_is_kept_once(load_text: Any) -> None:
    """One entry for a source and kind."""
    plan = load_text("steps: {a: {type: noop, if: 'true', assume: ['true', true]}}").plan
    assert len(plan.expressions) == 1


def test_dependencies_are_groups_of_edges(plan: Plan) -> None:
    """A.4: `a|b` is an OR group; C.5 R1: on_failure."""
    assert plan.steps["work"].depends_on == (
        Need((Edge("list"),)),
        Need((Edge("a"), Edge("b"))),
        Need((Edge("a", "continue"),)),
    )


def test_a_block_arrives_in_the_order_it_acts(plan: Plan) -> None:
    """C.10 R1, R3."""
    block = plan.steps["work"].on_success
    assert block is not None
    first, second = block.run
    assert first == Target("a")
    assert (second.step, second.arguments, list(second.templates)) == ("b", {"n": 1}, ["t"])
    rendered = plan.expressions[second.templates["t"]]
    assert (rendered.source, rendered.kind) == ("{{ output.x }}", "template")
    assert source(plan, block.run_js) == "['a']"
    again, stop = block.transitions
    assert again == Transition(again.when, "a", "manual")
    assert stop == Transition(stop.when, None, None)
    assert (source(plan, block.goto_js), block.goto, block.goto_event) == ("null", "b", "pr_updated")


def test_a_retry_arrives_in_seconds(plan: Plan) -> None:
    """C.9 R4."""
    block = plan.steps["work"].on_fail
    assert block is not None
    assert block.retry == Retry(2, ("transient",), "exponential", 0.1, 5.0, 0.5)


@pytest.mark.parametrize(
    ("backoff", "delay_s"), [("", 0.0), (", backoff: {mode: fixed}", 1.0), (", backoff: {delay: 2s}", 2.0)]
)
def test_the_default_delay_is_a_second_when_there_is_a_backoff(
    load_text: Any, backoff: str, delay_s: float
) -> None:
    """C.9 R4: 1000 ms when backoff is given without a delay, else 0."""
    block = (
        load_text(f"steps: {{a: {{type: noop, on_fail: {{retry: {{max: 1{backoff}}}}}}}}}")
        .plan.steps["a"]
        .on_fail
    )
    assert block.retry.delay_s == delay_s


def test_a_text_schema_names_a_renderer(plan: Plan) -> None:
    """H5: no validation."""
    assert (plan.steps["b"].schema, plan.steps["b"].renderer) == (None, "plain")


def test_forEach_and_start_arrive(plan: Plan) -> None:
    """C.13, H41."""
    assert (plan.steps["list"].for_each, plan.steps["list"].concurrency) == (True, 4)
    assert plan.steps["a"].start == "routed"


def test_the_top_level_arrives(load_text: Any) -> None:
    """A.3."""
    plan = load_text(
        """
        name: nightly
        routing: {max_loops: 4}
        limits: {max_runs_per_check: 7, max_workflow_depth: 2}
        max_parallelism: 9
        fail_fast: true
        fail_if: output.x
        failure_conditions: {f: output.y}
        tag_filter: {include: [a], exclude: [b]}
        safety: off
        env: {A: 1}
        memory: {namespace: n}
        inputs: [{name: i, type: string}, {name: j, default: 5}]
        outputs: [{name: o, value_js: outputs.s.x}, {name: p, value: 'text'}]
        steps: {s: {type: noop}}
        """
    ).plan
    assert plan.name == "nightly"
    assert plan.limits == Limits(max_parallelism=9, max_loops=4, max_runs=7, max_workflow_depth=2)
    assert (plan.fail_fast, source(plan, plan.fail_if)) == (True, "output.x")
    assert [source(plan, one.expression) for one in plan.failure_conditions] == ["output.y"]
    assert (plan.include_tags, plan.exclude_tags, plan.safety, plan.env) == (("a",), ("b",), "off", {"A": 1})
    assert plan.memory["namespace"] == "n"
    assert plan.inputs == {
        "i": {"schema": {"type": "string"}, "required": True},
        "j": {"schema": {}, "required": False, "default": 5},
    }
    assert plan.outputs == ({"name": "o", "value_js": "outputs.s.x"}, {"name": "p", "value": "text"})


def test_defaults_are_filled_in(load_text: Any) -> None:
    """A.1 rule 8 and law 2: finite."""
    plan = load_text("steps: {s: {type: command, exec: ls}}").plan
    assert plan.limits == Limits()
    assert plan.steps["s"].timeout_s == 60.0


def test_steps_keep_the_files_order(load_text: Any) -> None:
    """It decides the order among ready steps."""
    assert list(load_text("steps: {z: {type: noop}, a: {type: noop}, m: {type: noop}}").plan.steps) == [
        "z",
        "a",
        "m",
    ]


def test_an_empty_if_is_absent_with_a_warning(load_text: Any) -> None:
    """A.4: `if: ""` is absent."""
    loaded = load_text("steps: {a: {type: noop, if: ''}}")
    assert loaded.plan.steps["a"].if_condition is None
    assert codes(loaded.problems) == ["expression.empty"]


@pytest.mark.parametrize("word", ["always()", "failure()", "success() && filesCount > 0"])
def test_an_if_about_the_run_replaces_the_gate(load_text: Any, word: str) -> None:
    """semantics.md 5."""
    assert load_text(f"steps: {{a: {{type: noop, if: '{word}'}}}}").plan.steps["a"].always is True


@pytest.mark.parametrize(
    ("keys", "fanout"),
    [
        ("type: noop", "reduce"),
        ("type: command, exec: x", "map"),
        ("type: command, exec: x, reduce: true", "reduce"),
        ("type: noop, reduce: false", "map"),
        ("type: noop, fanout: map", "map"),
        ("type: command, exec: x, fanout: reduce, reduce: true", "reduce"),
    ],
)
def test_the_fan_out_is_said_or_by_type(load_text: Any, keys: str, fanout: str) -> None:
    """C.13 R1, H32."""
    assert load_text(f"steps: {{a: {{{keys}}}}}").plan.steps["a"].fanout == fanout


def test_fan_out_and_reduce_must_agree(refuse: Any) -> None:
    """A.4 D."""
    assert codes(refuse("steps: {a: {type: noop, fanout: map, reduce: true}}")) == ["key.clash"]


def test_on_finish_needs_forEach(refuse: Any) -> None:
    """A.6."""
    assert codes(refuse("steps: {a: {type: noop, on_finish: {run: [a]}}}")) == ["key.needs"]


def test_routing_defaults_are_the_base_of_blocks_that_steps_have(load_text: Any) -> None:
    """C.10 R2, A.3: shallow; a step without the block gets nothing, and a note says so."""
    loaded = load_text(
        """
        routing: {defaults: {on_fail: {goto: c, retry: {max: 1}}}, max_loops: 3}
        steps:
          a: {type: noop, on_fail: {retry: {max: 2}}}
          b: {type: command, exec: x}
          c: {type: noop}
        """
    )
    block = loaded.plan.steps["a"].on_fail
    assert (block.goto, block.retry.max) == ("c", 2)
    assert loaded.plan.steps["b"].on_fail is None
    assert codes(loaded.problems) == ["routing.defaults"]


def test_an_unknown_workflow_is_refused(refuse: Any) -> None:
    """A run item and a step of type workflow name an imported one."""
    text = "steps: {a: {type: workflow, workflow: w, on_success: {run: [{workflow: v}]}}}"
    assert codes(refuse(text)) == ["reference.unknown_workflow"] * 2


@pytest.mark.parametrize(
    ("a", "b", "c", "ring"),
    [("a", "a", "a", "a -> a"), ("b", "x|c", "a", "a -> b -> c -> a")],
)
def test_a_dependency_cycle_names_its_path(refuse: Any, a: str, b: str, c: str, ring: str) -> None:
    """A.6, C.2 R8: also through an OR group."""
    steps = {"a": a, "b": b, "c": c}
    lines = "".join(f"  {name}: {{type: noop, depends_on: '{on}'}}\n" for name, on in steps.items())
    (problem,) = refuse(f"steps:\n{lines}  x: {{type: noop}}\n")
    assert problem.code == "depends_on.cycle"
    assert problem.message.endswith(ring)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", ["routing.loop"]),
        ("routing: {max_loops: 5}", []),
        ("x-y: 1", ["routing.loop"]),
    ],
)
def test_a_loop_needs_a_budget_below_the_default(
    warn: Any, refuse: Any, more: str, expected: list[str]
) -> None:
    """A.6: warning; error under strict."""
    text = f"{more}\nsteps: {{a: {{type: noop}}, b: {{type: noop, depends_on: a, on_fail: {{goto: a}}}}}}"
    assert codes(warn(text)) == expected
    if expected:
        assert codes(refuse(text, strict=True)) == expected
        assert codes(refuse(f"safety: strict\n{text}")) == expected


def test_a_loop_with_max_runs_is_bounded(warn: Any) -> None:
    """max_runs is a budget."""
    assert (
        warn("steps: {a: {type: noop, max_runs: 3}, b: {type: noop, depends_on: a, on_fail: {goto: a}}}")
        == ()
    )


def test_a_remediation_that_leads_nowhere_is_no_loop(warn: Any) -> None:
    """on_fail.run alone re-runs nothing."""
    assert warn("steps: {a: {type: noop, on_fail: {run: [fix], retry: {max: 1}}}, fix: {type: noop}}") == ()


def test_a_retry_above_the_cap_is_cut_with_a_warning(load_text: Any) -> None:
    """C.8: 2 for critical steps, 3 for info, kept when safety is off."""
    text = "steps: {a: {type: noop, criticality: %s, on_fail: {retry: {max: 9}}, if: 'true'}}"
    for word, most in (("info", 3), ("policy", 2), ("internal", 2)):
        loaded = load_text(text % word)
        assert loaded.plan.steps["a"].on_fail.retry.max == most
        assert codes(loaded.problems) == ["retry.capped"]
    assert load_text("safety: off\n" + text % "info").plan.steps["a"].on_fail.retry.max == 9


def test_logical_faults_of_critical_steps_are_never_retried(load_text: Any) -> None:
    """G32: C.8, H3."""
    text = "steps: {a: {type: noop, criticality: %s, on_fail: {retry: {max: 1, retry_on: [transient, logical]}}}}"
    loaded = load_text(text % "policy")
    assert loaded.plan.steps["a"].on_fail.retry.on == ("transient",)
    assert codes(loaded.problems) == ["retry.logical"]
    assert load_text(text % "info").plan.steps["a"].on_fail.retry.on == ("transient", "logical")


def test_a_schema_that_cannot_be_compiled_is_refused(refuse: Any) -> None:
    """C.7 R2 D."""
    assert codes(refuse("steps: {a: {type: noop, schema: {type: nonsense}}}")) == ["schema.invalid"]


def test_a_schema_never_fetches(refuse: Any) -> None:
    """A remote reference is refused at load."""
    (problem,) = refuse("steps: {a: {type: noop, schema: {$ref: 'http://127.0.0.1:9/x'}}}")
    assert problem.code == "schema.invalid"


def test_a_default_map_behind_a_map_is_noted(warn: Any) -> None:
    """C.13 R11, H44."""
    text = """
    steps:
      list: {type: command, exec: x, forEach: true}
      each: {type: command, exec: x, depends_on: list}
      sum: {type: command, exec: x, depends_on: each%s}
    """
    assert codes(warn(text % "")) == ["fanout.implicit"]
    assert warn(text % ", fanout: reduce") == ()


@pytest.mark.parametrize("size", [0, 1])
def test_the_plan_is_the_same_in_another_process(load_text: Any, size: int) -> None:
    """Law 1: digests don't depend on hash seeds."""
    program = (
        "import sys; from gonogo.config import loads; from gonogo.providers.table import built_in;"
        "print(loads(sys.stdin.read(), providers=built_in(), compile_expressions=lambda s: [None]*len(s)).plan.digest)"
    )
    text = f"version: '1'\n{FULL}"
    env = {**os.environ, "PYTHONHASHSEED": str(size), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], input=text, capture_output=True, text=True, env=env, check=True
    )
    assert done.stdout.strip() == load_text(text).plan.digest


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("", ("fail", None)),
        (", exhausted: fail", ("fail", None)),
        (", exhausted: continue", ("continue", None)),
        (", exhausted: hold", ("hold", None)),
        (", exhausted: {goto: b}", ("route", "b")),
    ],
)
def test_what_comes_after_the_last_retry(load_text: Any, said: str, found: tuple[str, str | None]) -> None:
    """C.9 R11: `retry.exhausted`."""
    text = f"steps: {{a: {{type: noop, on_fail: {{retry: {{max: 1{said}}}}}}}, b: {{type: noop}}}}"
    retry = load_text(text).plan.steps["a"].on_fail.retry
    assert (retry.exhausted, retry.exhausted_goto) == found


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ("on_fail: {escalate: nobody}", "reference.unknown"),
        ("on_fail: {escalate: a}", "escalate.own"),
        ("on_fail: {retry: {max: 1, exhausted: {goto: nobody}}}", "reference.unknown"),
        ("on_fail: {retry: {max: 1, exhausted: giveup}}", "value.invalid"),
        ("on_fail: {retry: {max: 1, exhausted: {}}}", "key.missing"),
        ("on_fail: {retry: {max: 1, exhausted: 3}}", "value.type"),
        ("compensate: nobody", "reference.unknown"),
        ("loop_budget: -1", "value.invalid"),
    ],
)
def test_G_27_targets_and_words_of_recovery_are_checked(refuse: Any, keys: str, code: str) -> None:
    """G12, G27, I.1 8: a wrong one is an error at load."""
    assert codes(refuse(f"steps: {{a: {{type: noop, {keys}}}, b: {{type: noop}}}}")) == [code]


def test_G_27_a_step_that_is_told_of_a_failure_is_no_loop(load_text: Any) -> None:
    """G27: once per step, scope and run, even where it leads back."""
    text = """
    steps:
      a: {type: noop, on_fail: {escalate: b}}
      b: {type: noop, on_fail: {escalate: a}}
    """
    loaded = load_text(text)
    assert (loaded.problems, loaded.plan.steps["a"].on_fail.escalate) == ((), "b")


def test_G_20_a_loop_budget_bounds_the_loops_of_its_step(load_text: Any) -> None:
    """G20, C.12 R5: below the default, no warning; it is the step's own, so another's doesn't help."""
    text = """
    steps:
      a: {type: noop, %s}
      b: {type: noop, depends_on: a, on_fail: {goto: a}, %s}
    """
    loaded = load_text(text % ("group: g", "loop_budget: 3"))
    assert (loaded.problems, loaded.plan.steps["b"].loop_budget) == ((), 3)
    assert codes(load_text(text % ("group: g", "loop_budget: 10")).problems) == ["routing.loop"]
    assert "routing.loop" in codes(load_text(text % ("loop_budget: 3", "group: g")).problems)


INIT = """
imports: []
steps:
  a: {type: noop, on_init: {run: [%s]}, guarantee: outputs.ready.ok}
  b: {type: noop}
  ready: {type: noop, depends_on: %s}
"""


def test_C_10_R8_what_runs_before_a_step_arrives(load_text: Any) -> None:
    """C.10 R8: names, arguments and the name under which the step sees the output, in order."""
    text = """
    steps:
      a:
        type: noop
        on_init: {run: [b, {step: c, with: {n: 1, t: "{{ event.name }}"}, as: setup}], run_js: "['b']"}
        guarantee: outputs.setup.ok
      b: {type: noop}
      c: {type: noop}
    """
    loaded = load_text(text)
    step = loaded.plan.steps["a"]
    first, second = step.on_init
    assert (first.step, first.alias, second.step, second.alias) == ("b", None, "c", "setup")
    assert (second.arguments, list(second.templates)) == ({"n": 1}, ["t"])
    assert source(loaded.plan, step.on_init_js) == "['b']"
    assert "reference.unknown_output" not in codes(loaded.problems)


@pytest.mark.parametrize(
    ("item", "behind", "code"),
    [
        ("nobody", "b", "reference.unknown"),
        ("a", "b", "depends_on.cycle"),
        ("ready", "a", "depends_on.cycle"),
        ("{step: b, as: ready}", "b", "on_init.alias"),
        ("{workflow: nobody}", "b", "reference.unknown_workflow"),
        ("{step: b, workflow: c}", "b", "value.invalid"),
        (", ".join(["b"] * 51), "b", "value.invalid"),
    ],
)
def test_C_10_R8_what_cannot_run_before_a_step_is_refused(
    refuse: Any, item: str, behind: str, code: str
) -> None:
    """C.10 R8: unknown ones, those that wait for the step itself, names that hide others, more than 50."""
    assert codes(refuse(INIT % (item, behind))) == [code]


def test_C_10_R8_nothing_to_run_is_refused(refuse: Any) -> None:
    """C.10 R8: a block that says nothing."""
    assert codes(refuse("steps: {a: {type: noop, on_init: {}}}")) == ["value.invalid"]


def test_what_a_run_may_spend(load_text: Any, refuse: Any) -> None:
    """`budget`: a duration, whole numbers, an amount of money; nothing is no limit."""
    text = "budget: {%s}\nsteps: {a: {type: noop}}"
    plan = load_text(text % "time: 30m, calls: 5, retries: 0, tokens: 1000, money: 2.5").plan
    assert plan.budget == Budget(1800.0, 5, 0, 1000, 2.5)
    assert load_text(text % "").plan.budget == Budget()
    for wrong in (
        "time: -1",
        "time: soon",
        "calls: -1",
        "tokens: 1.5",
        "money: -0.1",
        "money: free",
        "dollars: 1",
    ):
        assert len(refuse(text % wrong)) == 1


def test_G_12_ends_at_which_what_was_done_is_undone(load_text: Any, refuse: Any) -> None:
    """Semantics 20: NO-GO and halted, unless `compensate_on` says otherwise."""
    text = "%s\nsteps: {a: {type: noop}}"
    assert load_text(text % "").plan.compensate_on == ("no_go", "halted")
    assert load_text(text % "compensate_on: [cancelled, cancelled]").plan.compensate_on == ("cancelled",)
    assert codes(refuse(text % "compensate_on: [success]")) == ["value.invalid"]


def test_the_digest_covers_the_order_of_steps_but_not_of_keys(load_text: Any) -> None:
    """sha256 of canonical JSON of the plan without its digest."""
    one = load_text("steps: {a: {type: noop}}").plan
    assert one.digest == digest_of(one)
    same = load_text("steps: {a: {type: command, env: {A: 1, B: 2}, exec: x}}").plan
    other = load_text("steps: {a: {type: command, env: {B: 2, A: 1}, exec: x}}").plan
    assert same.digest == other.digest
    first = load_text("steps: {a: {type: noop}, b: {type: noop}}").plan
    second = load_text("steps: {b: {type: noop}, a: {type: noop}}").plan
    assert first.digest != second.digest


def test_a_plan_is_json_and_comes_back(plan: Plan) -> None:
    """It is written whole into the first record of a run."""
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


def test_places_do_not_change_the_meaning(plan: Plan) -> None:
    """Only `line` is kept of a place."""
    assert isinstance(plan.steps["work"], Step)
    assert plan.digest.startswith("sha256:")


def test_a_memory_that_should_outlive_the_run_is_told_of(load_text: Any, refuse: Any) -> None:
    """Nothing is kept between runs in this version: a file that asks for it hears so, and strict refuses it."""
    text = "memory: {storage: file, file: m.json}\nsteps: {a: {type: noop}}"
    assert "key.not_yet" in codes(load_text(text).problems)
    assert "key.not_yet" in codes(refuse(text, strict=True))
    assert codes(load_text("memory: {storage: memory}\nsteps: {a: {type: noop}}").problems) == []


def test_lists_that_wait_for_each_others_end_are_refused(refuse: Any) -> None:
    """The ring is named, through each on_finish."""
    problems = refuse(
        """
        version: "1.0"
        steps:
          one: {type: noop, forEach: true, on_finish: {run: [tidy]}}
          two: {type: noop, forEach: true, on_finish: {run: [tidy]}}
          a: {type: noop, depends_on: [one, two], fanout: map}
          b: {type: noop, depends_on: [two, one], fanout: map}
          tidy: {type: noop}
        """
    )
    assert [problem.code for problem in problems if problem.severity == "error"] == ["on_finish.cycle"]


def test_each_cycle_is_told(refuse: Any) -> None:
    """Every mistake at once."""
    pairs = {"a": "b", "b": "a", "c": "c", "d": "c"}
    lines = "".join(f"  {name}: {{type: noop, depends_on: {on}}}\n" for name, on in pairs.items())
    found = refuse(f"steps:\n{lines}")
    assert [problem.message.rsplit(": ")[-1] for problem in found] == ["a -> b -> a", "c -> c"]


@pytest.mark.parametrize(
    "step", ["{type: log, message: '{{ inputs.numbr }}'}", "{type: noop, if: inputs.numbr > 1}"]
)
def test_an_input_that_is_read_must_be_declared(load_text: Any, step: str) -> None:
    """Where a file declares inputs, others are refused from outside: they are never there."""
    [problem] = load_text(f"inputs: {{number: {{type: number}}}}\nsteps: {{a: {step}}}").problems
    assert (problem.code, problem.suggestion) == ("reference.unknown_input", "did you mean number?")
    assert load_text(f"steps: {{a: {step}}}").problems == ()
