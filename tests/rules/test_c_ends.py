"""C.15 to C.17: waiting for a person, halting, workflows inside workflows."""

from __future__ import annotations

import pytest
from tests.whole import Ran, RunYaml

from gonogo.core import decisions as d
from gonogo.core.plan import Plan
from gonogo.journal.view import run_view

# --- C.15 (one_shot is not due)

ASK = """
steps:
  ask: {type: human-input, prompt: "go?"}
  after: {type: script, depends_on: ask, content: "return outputs.ask.text"}
  beside: {type: command, exec: echo beside >> ran}
"""


def test_C_15_R1_a_pause_lets_the_rest_end_and_holds(run_yaml: RunYaml) -> None:
    """C.15 R1, semantics 3: what doesn't wait runs; the run is HOLD and says whom it waits for."""
    ran = run_yaml(ASK)
    assert (ran.verdict, ran.view.exit_code, ran.view.parked) == ("HOLD", 3, True)
    assert [(wait.step, wait.prompt) for wait in ran.view.waiting] == [("ask", "go?")]
    assert ran.lines("ran") == ["beside"]
    assert isinstance(ran.records[-1].decisions[-1], d.Finished)


def test_C_15_R1_the_answer_goes_on_without_repeating_anything(run_yaml: RunYaml) -> None:
    """C.15 R1, H36: finished steps are not run again; the answer is the step's output."""
    ran = run_yaml(ASK).answered("ask", "yes")
    assert (ran.verdict, ran.output("after"), ran.lines("ran")) == ("GO", "yes", ["beside"])


def test_C_15_R2_a_pause_is_counted_as_no_failure(run_yaml: RunYaml) -> None:
    """C.15 R2 D: waiting, not failed: no issue, no fault, no failed run in the statistics."""
    ran = run_yaml(ASK)
    assert (ran["ask"].outcome, ran.rules("ask"), ran.view.faults) == ("waiting", [], ())
    assert ran.view.statistics["failedExecutions"] == 0


# --- C.16

HALT = """
max_parallelism: {slots}
steps:
  bad:
    type: command
    exec: "while [ ! -e on ]; do sleep 0.01; done"
    timeout: 20s
    failure_conditions: {{stop: {{condition: "true", message: enough, halt_execution: true}}}}
  long: {{type: command, exec: "touch on; sleep 20; echo slept >> ran"}}
  later: {{type: command, exec: echo later >> ran}}
  behind: {{type: noop, depends_on: long}}
"""


def test_C_16_a_halt_stops_the_run_at_once(run_yaml: RunYaml) -> None:
    """C.16 D, semantics 4: the step failed, with both issues; running steps end, the rest is skipped; exit 1."""
    ran = run_yaml(HALT.format(slots=2))
    assert ran["bad"].outcome == "failed"
    assert set(ran.rules("bad")) == {"bad_stop", "bad_halt_execution"}
    assert [ran.why(name) for name in ("later", "behind")] == [("skipped", "halted")] * 2
    assert ran["long"].outcome == "cancelled"
    assert ran.lines("ran") == []
    assert (ran.verdict, ran.view.exit_code) == ("NO-GO", 1)


def test_C_16_a_tolerated_halt_still_stops(run_yaml: RunYaml) -> None:
    """C.16: continue_on_failure doesn't turn a halted run into GO."""
    ran = run_yaml("""
max_parallelism: 1
steps:
  bad:
    type: noop
    continue_on_failure: true
    failure_conditions: {stop: {condition: "true", halt_execution: true}}
  later: {type: noop}
""")
    assert (ran.verdict, ran.why("later")) == ("NO-GO", ("skipped", "halted"))


# --- C.17

PARENT = """
imports: [child.yaml]
env: {FROM_PARENT: p}
routing: {max_loops: 1}
steps:
  nested: {type: workflow, workflow: child, args: {who: me}, MORE}
  after: {type: noop, depends_on: nested}
"""


@pytest.fixture
def run_child(run_yaml: RunYaml) -> RunYaml:
    """Run a parent whose workflow `child` has the given steps."""

    def run(child: str, parent: str = PARENT, more: str = "") -> Ran:
        head = 'version: "1.0"\nid: child\ninputs: [{name: who, required: false}]\n'
        return run_yaml(parent.replace(", MORE", more), files={"child.yaml": head + child})

    return run


def child_of(ran: Ran) -> Ran:
    """The run inside the step `nested`."""
    found = [run_id for run_id in ran.runs.ids() if run_id.startswith(ran.result.run_id + ".")]
    assert len(found) == 1
    inner = object.__new__(Ran)
    inner.__dict__.update(ran.__dict__)
    inner.records = ran.runs.read(found[0]).records
    inner.view = run_view(inner.records)
    return inner


def test_C_17_a_child_has_its_own_journal_and_the_parents_env_and_budgets(run_child: RunYaml) -> None:
    """C.17 D: a run of its own, linked to its parent; env and budgets are inherited."""
    ran = run_child('steps:\n  a: {type: script, content: "return [env.FROM_PARENT, inputs.who]"}\n')
    child = child_of(ran)
    plan: Plan = child.first.plan
    assert (ran.verdict, ran.output("nested")) == ("GO", ["p", "me"])
    assert child.first.parent is not None
    assert child.first.parent["run_id"] == ran.result.run_id
    assert plan.limits.max_loops == 1


def test_C_17_a_failed_child_fails_its_step(run_child: RunYaml) -> None:
    """C.17 D, I.1 row 11: `<check>/execution_error`, with the class of the child; dependents are blocked."""
    ran = run_child('steps:\n  a: {type: script, content: "return 1", guarantee: "false"}\n')
    assert ran["nested"].outcome == "failed"
    assert ran.rules("nested") == ["nested/execution_error"]
    assert ran["nested"].fault is not None
    assert ran["nested"].fault.fault_class == "logical"
    assert ran.why("after") == ("skipped", "dependency_failed")


def test_C_17_a_failure_that_is_continued_fails_nothing(run_child: RunYaml) -> None:
    """C.17 D: a failure that the child tolerates leaves the parent GO."""
    ran = run_child('steps:\n  a: {type: noop, guarantee: "false", continue_on_failure: true}\n')
    assert (ran.verdict, ran["nested"].outcome) == ("GO", "passed")


def test_C_17_memory_is_apart(run_child: RunYaml) -> None:
    """C.17 D: memory is the child's own: what it sets its parent doesn't see, nor the other way round."""
    parent = """
imports: [child.yaml]
steps:
  put: {type: memory, operation: set, key: mine, value: v}
  nested: {type: workflow, workflow: child, depends_on: put}
  read: {type: memory, operation: get, key: k, depends_on: nested}
"""
    child = """
steps:
  set: {type: memory, operation: set, key: k, value: v}
  see: {type: memory, operation: get, key: mine}
"""
    ran = run_child(child, parent)
    assert ran.verdict == "GO"
    assert ran.output("read") is None
    assert ran.output("nested")["see"] is None


def test_C_17_memory_can_be_shared(run_child: RunYaml) -> None:
    """C.17 memory: shared: the child starts with what its parent remembers, and gives back what it changed."""
    parent = """
imports: [child.yaml]
steps:
  put: {type: memory, operation: set, key: n, value: 40}
  nested: {type: workflow, workflow: child, memory: shared, depends_on: put}
  read: {type: script, content: "return [memory.get('n'), memory.get('seen')]", depends_on: nested}
"""
    child = """
steps:
  add: {type: memory, operation: increment, key: n}
  more: {type: script, content: "memory.increment('n'); memory.set('seen', inputs.who ?? 'nobody')", depends_on: add}
"""
    ran = run_child(child, parent)
    assert ran.output("nested")["add"] == 41
    assert ran.output("read") == [42, "nobody"]


def test_C_17_a_failed_child_changes_no_shared_memory(run_child: RunYaml) -> None:
    """C.17 memory: shared: only a child that is GO hands anything back."""
    parent = """
imports: [child.yaml]
steps:
  nested: {type: workflow, workflow: child, memory: shared, continue_on_failure: true}
  read: {type: memory, operation: list, depends_on: nested}
"""
    child = 'steps:\n  set: {type: memory, operation: set, key: k, value: v, guarantee: "false"}\n'
    ran = run_child(child, parent)
    assert ran["nested"].outcome == "tolerated"
    assert ran.output("read") == []
