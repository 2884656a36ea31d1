"""Metrics of a run, folded from its records (spec G17)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gonogo.core.decisions import Refused, Skipped
from gonogo.core.events import CallDone, CallFailed, CallLost, CallParked
from gonogo.core.faults import Fault
from gonogo.core.plan import Block, Edge, Expression, Need, Plan, Retry, Step
from gonogo.expressions.results import Failure
from gonogo.journal.glimpse import Glimpse, Moment
from gonogo.journal.metrics import FAMILIES, About, Meter, Sample
from gonogo.journal.records import Record
from gonogo.journal.view import run_view

BUSY = Fault(kind="http.status", fault_class="transient", rule_id="x/busy", message="busy")
WRONG = Fault(kind="command.exit", fault_class="logical", rule_id="x/wrong", message="exit 3")


def plan_of(*steps: Step, **more: Any) -> Plan:
    """A plan of these steps."""
    return Plan("test", {step.name: step for step in steps}, **more)


def counted(records: list[Record], name: str) -> dict[tuple[str, ...], float]:
    """The samples of one family, by their labels' values."""
    [found] = [metric for metric in run_view(records).metrics if metric.family.name == name]
    return {sample.values: sample.value for sample in found.samples}


def fails(times: int, fault: Fault = BUSY):
    """The first calls fail."""
    left = [times]

    def outcome(command):
        left[0] -= 1
        return CallFailed(call=command.call, fault=fault) if left[0] >= 0 else "done"

    return outcome


TRIES = Step("get", "noop", on_fail=Block(retry=Retry(max=2, on=("transient", "logical"))))


def test_G17_retries_are_counted_by_the_class_of_the_fault_before(drive) -> None:
    """retries{step,class}: two failures, each tried again."""
    records = drive(plan_of(TRIES), outcome=fails(2))
    assert counted(records, "gonogo_retries_total") == {("get", "transient"): 2}
    assert counted(records, "gonogo_calls_total") == {("get",): 3}


def test_G17_faults_are_counted_by_kind_and_class(drive) -> None:
    """faults{step,kind,class}: every attempt that ended in one, also where a later attempt passed."""
    records = drive(plan_of(TRIES, Step("own", "noop")), outcome=fails(2, WRONG))
    assert counted(records, "gonogo_faults_total") == {
        ("get", "command.exit", "logical"): 1,
        ("own", "command.exit", "logical"): 1,
    }


def test_runs_of_steps_are_counted_by_outcome_and_timed(drive) -> None:
    """The attempts of a run are one run, as in the report; the time is from each call to its verdict."""
    records = drive(plan_of(TRIES), outcome=fails(1))
    assert counted(records, "gonogo_step_runs_total") == {("get", "passed"): 1}
    [seconds] = counted(records, "gonogo_step_duration_seconds_total").values()
    assert 0 < seconds <= records[-1].event.at


@pytest.mark.parametrize(("exhausted", "outcome"), [("fail", "failed"), ("continue", "tolerated")])
def test_what_comes_after_the_last_retry_is_neither_another_run_nor_another_fault(
    drive, exhausted: str, outcome: str
) -> None:
    """C.9 R11: one run with the outcome it came to, a fault for each attempt."""
    retry = Retry(1, exhausted=exhausted)
    records = drive(plan_of(Step("get", "noop", on_fail=Block(retry=retry))), outcome=fails(9))
    assert counted(records, "gonogo_step_runs_total") == {("get", outcome): 1}
    assert counted(records, "gonogo_faults_total") == {("get", "http.status", "transient"): 2}
    assert [fault["attempt"] for fault in run_view(records).as_json()["faults"]] == [1, 2]


def test_items_are_runs_and_a_fan_out_as_a_whole_is_none(drive) -> None:
    """Three items are three runs of their step."""
    listed = Step("list", "script", for_each=True)
    work = Step("work", "noop", depends_on=(Need((Edge("list"),)),), fanout="map")
    records = drive(plan_of(listed, work), outcome=lambda command: ["a", "b", "c"])
    assert counted(records, "gonogo_step_runs_total") == {("list", "passed"): 1, ("work", "passed"): 3}


def contract(construct: str, **more: Any) -> Plan:
    """A plan of one step with one contract."""
    return plan_of(
        Step("x", "noop", **{construct: (0,)}, **more), expressions=(Expression("e", "condition"),)
    )


@pytest.mark.parametrize("construct", ["assume", "guarantee"])
@pytest.mark.parametrize("answer", [False, Failure("error", "no")])
def test_G17_contracts_that_fail_are_counted(drive, construct: str, answer: Any) -> None:
    """contract_violations{step,kind}: one that can't be evaluated is broken, too."""
    records = drive(contract(construct), value=lambda ask: answer)
    assert counted(records, "gonogo_contract_violations_total") == {("x", construct): 1}


@pytest.mark.parametrize("construct", ["assume", "guarantee"])
def test_contracts_that_hold_are_not_counted(drive, construct: str) -> None:
    """Nothing to count in a run that goes well."""
    assert counted(drive(contract(construct)), "gonogo_contract_violations_total") == {}


@pytest.mark.parametrize("mode", ["fail", "issue"])
def test_G17_schema_violations_are_counted_whatever_they_lead_to(drive, mode: str) -> None:
    """Once for a result that doesn't fit, also where the step only says so."""
    plan = plan_of(Step("x", "noop", schema={"type": "object"}, schema_mode=mode))
    wrong = ("a is wrong", "b is wrong")
    records = drive(plan, outcome=lambda command: CallDone(call=command.call, output=1, schema_errors=wrong))
    assert counted(records, "gonogo_contract_violations_total") == {("x", "schema"): 1}


def test_skips_are_counted_by_reason(drive) -> None:
    """The reasons are those of the report."""
    plan = plan_of(
        Step("a", "noop", if_condition=0),
        Step("b", "noop", depends_on=(Need((Edge("a"),)),)),
        expressions=(Expression("false", "condition"),),
    )
    records = drive(plan, value=lambda ask: False)
    assert counted(records, "gonogo_skips_total") == {("a", "if_condition"): 1, ("b", "dependency_failed"): 1}


def test_holds_are_counted_by_what_is_waited_for(drive) -> None:
    """A question, and a call that nobody knows the end of."""
    asks = drive(
        plan_of(Step("ask", "noop")), outcome=lambda command: CallParked(call=command.call, prompt="?")
    )
    lost = drive(
        plan_of(Step("pay", "noop", effects="mutates")), outcome=lambda command: CallLost(call=command.call)
    )
    assert counted(asks, "gonogo_holds_total") == {("ask", "person"): 1}
    assert counted(lost, "gonogo_holds_total") == {("pay", "in_doubt"): 1}


def test_G17_refused_loops_and_suppressed_steps_are_counted() -> None:
    """loop_budget_hits{step,scope} and suppressed{step}; another budget's refusal is no loop."""
    decisions = (
        Refused("again", "list#1[2]", "work", "max_loops", 10, 10),
        Refused("again", "", "work", "run_loops", 50, 50),
        Refused("again", "", "work", "max_runs", 50, 50),
        Refused("", "", "", "budget.tokens", 101, 100),
        Skipped("pay", "", "suppressed", "check"),
    )
    meter = Meter()
    meter.see(Glimpse(1, Moment(), decisions))
    found = {metric.family.name: metric.samples for metric in meter.metrics(About("r", "w", "", "GO", 1.0))}
    assert found["gonogo_loop_budget_hits_total"] == (
        Sample(("again", "list#1[2]"), 1),
        Sample(("again", ""), 1),
    )
    assert found["gonogo_run_budget_breaches_total"] == (Sample(("tokens",), 1),)
    assert found["gonogo_suppressed_total"] == (Sample(("pay",), 1),)


def test_the_run_says_which_it_is_and_what_it_came_to(drive) -> None:
    """An info metric, as exporters have it: 1, with the facts as labels."""
    records = drive(plan_of(Step("a", "noop")), trigger={"name": "manual"})
    assert counted(records, "gonogo_run_info") == {("r", "test", "manual", "GO"): 1}
    assert counted(records[:1], "gonogo_run_info") == {("r", "test", "manual", "none"): 1}
    assert counted(records, "gonogo_run_duration_seconds") == {(): records[-1].event.at}


def test_every_family_is_told_in_its_order_whatever_happened(drive) -> None:
    """A dashboard finds each name in the first run already."""
    found = run_view(drive(plan_of(Step("a", "noop")))).metrics
    assert [metric.family for metric in found] == list(FAMILIES)


def test_a_report_has_the_same_figures_as_plain_data(drive) -> None:
    """Name, then labels and value of each sample, as strict JSON."""
    plain = run_view(drive(plan_of(TRIES), outcome=fails(1))).as_json()["metrics"]
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["gonogo_retries_total"] == [{"labels": {"step": "get", "class": "transient"}, "value": 1}]
    assert plain["gonogo_loop_budget_hits_total"] == []
