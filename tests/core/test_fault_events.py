"""What becomes of each fault: detected, isolated, attempts, and exactly one end (spec G16)."""

from __future__ import annotations

from collections import defaultdict

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Parks, Script, block, plan, step

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core.fault_events import FOLLOW
from gonogo.core.plan import Retry
from gonogo.core.state import OpenFault, State

ENDS = ("recovery.succeeded", "recovery.failed")


def told(script: Script, name: str | None = None) -> list[str]:
    """The events, in order."""
    return [one.event for one in script.decided(d.FaultEvent, name)]


def by_fault(script: Script) -> dict[int, list[str]]:
    """The events of each fault."""
    found: dict[int, list[str]] = defaultdict(list)
    for one in script.decided(d.FaultEvent):
        found[one.fault].append(one.event)
    return found


def test_G_16_a_run_without_failures_tells_of_none() -> None:
    """G16: skips are no faults."""
    assert told(Script(plan(step("a"), step("b", "a", if_="no")), answers={"no": False})) == []


def test_G_16_a_failure_nobody_handles_ends_at_once() -> None:
    """G16: detected, then failed; nothing depends on it, so there is nothing to isolate."""
    assert told(Script(plan(step("a")), calls={"a": LOGICAL})) == ["detected", "recovery.failed"]


def test_G_16_retries_are_attempts_of_one_fault() -> None:
    """G16: k and delay with each; a new failure while it is open is the same fault."""
    script = Script(
        plan(step("a", on_fail=block(retry=Retry(2, delay_s=1.0, jitter=0.0)))), calls={"a": TRANSIENT}
    )
    assert told(script) == ["detected", "recovery.attempted", "recovery.attempted", "recovery.failed"]
    attempts = [one.detail for one in script.decided(d.FaultEvent) if one.event == "recovery.attempted"]
    assert attempts[1] == {"action": "retry", "k": 2, "delay_ms": 1000}


def test_G_16_success_ends_the_fault() -> None:
    """G16: the fault's own kind and class are told with its end, too."""
    script = Script(
        plan(step("a", on_fail=block(retry=Retry(1)))),
        calls={"a": lambda command: TRANSIENT if command.attempt == 1 else "fine"},
    )
    end = script.decided(d.FaultEvent)[-1]
    assert (end.event, end.kind, end.fault_class) == ("recovery.succeeded", "test.transient", "transient")


def test_G_16_gated_and_suppressed_steps_are_named() -> None:
    """G16: isolation lists whom the failure was kept from, each once; not what is there to mend it."""
    script = Script(
        plan(
            step("a", criticality="internal", on_fail=block(["mend"], escalate="page")),
            step("mend", "a"),
            step("page", "a"),
            step("next", "a"),
            step("post", "a", effects="mutates"),
            step("report", "a?"),
            step("deploy", "report", effects="mutates"),
        ),
        calls={"a": LOGICAL},
    )
    isolated = next(one for one in script.decided(d.FaultEvent) if one.event == "isolated")
    assert isolated.detail == {"gated": ["next"], "suppressed": ["post", "deploy"]}


def test_G_16_an_item_is_isolated_from_the_others() -> None:
    """G16, law 5: the fan-out as a whole isn't another fault."""
    script = Script(
        plan(step("list", for_each=True), step("each", "list", fanout="map")),
        calls={"list": [1, 2], "each": lambda command: LOGICAL if command.scope.endswith("[1]") else "fine"},
    )
    assert {(one.step, one.scope) for one in script.decided(d.FaultEvent)} == {("each", "list#1[1]")}
    assert told(script) == ["detected", "isolated", "recovery.failed"]


def test_G_16_a_remedy_is_an_attempt_and_the_later_pass_the_end() -> None:
    """G16: what on_fail runs sends the run back, and the step passes."""
    script = Script(
        plan(step("a", on_fail=block(run=["mend"])), step("mend", on_success=block(goto="a"))),
        calls={"a": lambda command: LOGICAL if command.execution == 1 else "fine"},
    )
    assert by_fault(script) == {1: ["detected", "recovery.attempted", "recovery.succeeded"]}


def test_G_16_a_remedy_that_brings_nothing_back_fails_with_the_run() -> None:
    """G16: until then something may still send the run to the step."""
    script = Script(plan(step("a", on_fail=block(run=["mend"])), step("mend")), calls={"a": LOGICAL})
    assert told(script) == ["detected", "recovery.attempted", "recovery.failed"]


def test_G_16_failing_again_after_the_end_is_another_fault() -> None:
    """G16: exactly one end a fault."""
    again = iter([True, False])
    script = Script(
        plan(step("a", on_fail=block(retry=Retry(1)), on_success=block(when=[("again", "a")]))),
        calls={"a": lambda command: TRANSIENT if command.attempt == 1 else "fine"},
        answers={"again": lambda _: next(again)},
    )
    assert list(by_fault(script).values()) == [["detected", "recovery.attempted", "recovery.succeeded"]] * 2


def test_G_16_a_cancel_ends_what_was_being_tried() -> None:
    """G16: a run that stops tries nothing more."""
    script = Script(
        plan(step("a", on_fail=block(run=["ask"], retry=Retry(1))), step("ask")),
        calls={"a": TRANSIENT, "ask": Parks()},
    )
    assert told(script) == ["detected", "recovery.attempted"]
    script.tell(e.CancelAsked(by="me"))
    assert told(script)[-1] == "recovery.failed"


def test_the_state_folds_back_to_the_open_faults() -> None:
    """Law 1, and what a parked run goes on with."""
    script = Script(
        plan(step("a", on_fail=block(run=["ask"], retry=Retry(1))), step("ask")),
        calls={"a": TRANSIENT, "ask": Parks()},
    )
    assert script.verdict == "HOLD"
    assert script.folded().open_faults == script.state.open_faults != {}


# --- each event, exactly


def details(script: Script, event: str) -> list[dict]:
    """What is told with the events of a kind."""
    return [one.detail for one in script.decided(d.FaultEvent) if one.event == event]


LEFT = {"reason": "nothing was left to be tried"}


def test_G_16_every_event_carries_the_fault() -> None:
    """G16: step, scope, number, attempt, kind, class and rule, from detection to the end."""
    script = Script(plan(step("a")), calls={"a": LOGICAL})
    detected, failed = script.decided(d.FaultEvent)
    same = {
        "step": "a",
        "scope": "",
        "fault": 1,
        "attempt": 1,
        "kind": LOGICAL.kind,
        "rule_id": LOGICAL.rule_id,
    }
    assert detected == d.FaultEvent(event="detected", fault_class="logical", detail={}, **same)
    assert failed == d.FaultEvent(event="recovery.failed", fault_class="logical", detail=LEFT, **same)


def test_G_16_the_attempt_is_the_one_that_failed_first() -> None:
    """G16: the fault is that of its detection, also when the third attempt fails with another."""
    script = Script(
        plan(step("a", on_fail=block(retry=Retry(2)))),
        calls={"a": lambda command: TRANSIENT if command.attempt < 3 else LOGICAL},
    )
    assert {(one.attempt, one.kind) for one in script.decided(d.FaultEvent)} == {(1, TRANSIENT.kind)}
    assert details(script, "recovery.failed") == [LEFT]


def test_G_16_a_route_is_an_attempt_that_says_where_to() -> None:
    """G16: what on_fail runs, and where its goto goes."""
    script = Script(
        plan(
            step("a", on_fail=block(run=["mend"], goto="b")),
            step("mend"),
            step("b", start="routed"),
            max_loops=1,
        ),
        calls={"a": LOGICAL},
    )
    assert details(script, "recovery.attempted") == [
        {"action": "run", "step": "mend"},
        {"action": "goto", "step": "b"},
    ]
    assert details(script, "recovery.failed") == [{"reason": "the run ended"}]


def test_G_16_routes_of_a_success_are_no_attempts() -> None:
    """G16: another step's fault is open; what passes elsewhere doesn't mend it."""
    script = Script(
        plan(
            step("a", on_fail=block(run=["mend"])),
            step("mend"),
            step("b", on_success=block(run=["c"])),
            step("c"),
        ),
        calls={"a": LOGICAL},
    )
    assert details(script, "recovery.attempted") == [{"action": "run", "step": "mend"}]
    assert {one.step for one in script.decided(d.FaultEvent)} == {"a"}


def test_G_16_a_later_route_of_the_step_itself_is_no_attempt() -> None:
    """G16: a fan-out item whose block failed; on_finish of its list is nobody's remedy."""
    script = Script(
        plan(
            step("list", for_each=True, on_finish=block(run=["sum"])),
            step("each", "list", fanout="map"),
            step("sum", start="routed"),
        ),
        calls={"list": [1], "each": LOGICAL},
    )
    assert told(script) == ["detected", "isolated", "recovery.failed"]


def test_G_16_who_is_told_is_said_after_the_end() -> None:
    """G16, G27: the end's reason is that somebody is told."""
    script = Script(plan(step("a", on_fail=block(escalate="page")), step("page")), calls={"a": LOGICAL})
    assert details(script, "recovery.failed") == [{"reason": "escalated"}]
    assert details(script, "escalated") == [{"step": "page"}]
    assert script.decided(d.FaultEvent)[-1].fault == 1


def test_G_16_a_failed_item_names_itself() -> None:
    """G16, law 5: the other items go on."""
    script = Script(
        plan(step("list", for_each=True), step("each", "list", fanout="map")),
        calls={"list": [1], "each": LOGICAL},
    )
    assert details(script, "isolated") == [{"item": "list#1[0]"}]


def test_G_16_only_what_needs_the_step_alone_is_gated() -> None:
    """G16: an OR group, a soft edge and a step for every case aren't; one entry of several is enough."""
    script = Script(
        plan(
            step("a"),
            step("z"),
            step("both", "z", "a"),
            step("either", "a|z"),
            step("soft", "a?"),
            step("mixed", "z", "a?"),
            step("tidy", "a", always=True),
            step("other", "z"),
        ),
        calls={"a": LOGICAL},
    )
    assert details(script, "isolated") == [{"gated": ["both"]}]


def test_G_16_a_tolerated_failure_gates_nobody() -> None:
    """G16: its dependents go on; what acts behind it doesn't."""
    script = Script(
        plan(
            step("a", criticality="internal", continue_on_failure=True),
            step("next", "a"),
            step("deploy", "next", effects="mutates"),
        ),
        calls={"a": LOGICAL},
    )
    assert details(script, "isolated") == [{"suppressed": ["deploy"]}]


@pytest.mark.parametrize(("count", "total"), [(50, None), (51, 51)])
def test_G_16_long_lists_are_cut_and_counted(count: int, total: int | None) -> None:
    """G16: fifty names at most in one event."""
    script = Script(plan(step("a"), *(step(f"s{n}", "a") for n in range(count))), calls={"a": LOGICAL})
    (detail,) = details(script, "isolated")
    assert (len(detail["gated"]), detail.get("gated_total")) == (50, total)


def test_G_16_a_cancel_is_the_reason_of_the_end() -> None:
    """G16: the step itself is cancelled while a person's choice is waited for."""
    one = plan(step("a", on_fail=block(retry=Retry(1, exhausted="hold"))))
    script = Script(one, calls={"a": TRANSIENT}).tell(e.CancelAsked(by="me"))
    assert details(script, "recovery.failed") == [{"reason": "cancelled"}]


def test_G_16_a_cancelled_step_that_never_failed_is_no_fault() -> None:
    """G16: nothing is told of it."""
    script = Script(plan(step("a")), calls={"a": Parks()}).tell(e.CancelAsked(by="me"))
    assert (script.outcome("a"), told(script)) == ("cancelled", [])


def test_G_16_a_skip_ends_what_was_open() -> None:
    """G16: sent round again, the step is skipped; nothing more is tried for it."""
    once = iter([True, False])
    script = Script(
        plan(
            step("a", if_="wanted", on_fail=block(run=["mend"])),
            step("mend", on_success=block(run=["a"])),
        ),
        calls={"a": LOGICAL},
        answers={"wanted": lambda _: next(once)},
    )
    assert told(script) == ["detected", "recovery.attempted", "recovery.failed"]
    assert details(script, "recovery.failed") == [{"reason": "skipped: if_condition"}]


def test_G_16_a_list_that_runs_again_ends_the_faults_of_its_items() -> None:
    """G16: with the run, since the items are gone."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("each", "list", fanout="map", on_fail=block(goto="list")),
            max_loops=1,
        ),
        calls={"list": [1], "each": lambda command: LOGICAL if "list#1" in command.scope else "fine"},
    )
    assert told(script)[:3] == ["detected", "isolated", "recovery.attempted"]
    assert details(script, "recovery.failed") == [{"reason": "its list ran again"}]


def test_G_16_nothing_left_after_a_refused_route_ends_the_fault_at_once() -> None:
    """G16: not with the run, which goes on."""
    script = Script(
        plan(step("a", on_fail=block(goto="a")), step("ask"), max_loops=0),
        calls={"a": LOGICAL, "ask": Parks()},
    )
    assert script.verdict == "HOLD"
    assert details(script, "recovery.failed") == [LEFT]


def test_G_16_on_finish_of_a_failed_list_is_no_attempt() -> None:
    """G16: it speaks whatever happened; on_fail alone tries to mend."""
    script = Script(
        plan(
            step("list", for_each=True, on_fail=block(run=["mend"]), on_finish=block(run=["sum"])),
            step("each", "list", fanout="map"),
            step("mend", start="routed"),
            step("sum", start="routed"),
        ),
        calls={"list": LOGICAL},
    )
    assert script.started == ["list", "mend", "sum"]
    assert details(script, "recovery.attempted") == [{"action": "run", "step": "mend"}]


# --- what one decision means


def with_a_fault(*place: str) -> State:
    """A run in which a fault is open in one place."""
    state = Script(plan(step("a"), step("b"))).state
    state.open_faults[place[0], place[1]] = OpenFault(1, LOGICAL, 1)
    return state


@pytest.mark.parametrize(
    "decision",
    [
        d.Ended("a", "", "passed", rest="settled"),
        d.Settled("a", ""),
        d.Skipped("a", "", "if_condition", rest="settled"),
        d.Retrying("a", "", 1, 0.0, 1, 0.0),
        d.Routed("a", "", "on_fail", "run", "b", "", 1, ()),
        d.Routed("a", "", "on_fail", "goto", "b", "", 1, ()),
        d.Routed("a", "", "on_fail", "escalate", "b", "", 1, ()),
    ],
    ids=lambda decision: f"{type(decision).__name__}-{getattr(decision, 'action', '')}",
)
def test_G_16_nothing_is_told_of_a_place_whose_fault_is_not_open(decision: d.AnyDecision) -> None:
    """G16: though one is open elsewhere, and this decision would be about it if it were here."""
    state = with_a_fault("b", "")
    assert FOLLOW[type(decision)](state, decision) == ()


@pytest.mark.parametrize(
    ("rest", "events"), [("settled", ["recovery.failed"]), ("complete", []), ("open", [])]
)
def test_G_16_a_skip_that_may_change_ends_no_fault(rest: str, events: list[str]) -> None:
    """G16: a list around the item may yet have it run."""
    state = with_a_fault("a", "")
    told = FOLLOW[d.Skipped](state, d.Skipped("a", "", "if_condition", rest=rest))
    assert [one.event for one in told] == events


@pytest.mark.parametrize(
    ("trigger", "action", "events"),
    [("on_fail", "run", ["recovery.attempted"]), ("on_fail", "goto", ["recovery.attempted"]),
     ("on_fail", "escalate", ["recovery.failed", "escalated"]), ("on_finish", "run", []), ("on_success", "goto", []),
     ("on_init", "init", []), ("compensate", "compensate", []), ("passed", "lift", []), ("remind", "remind", [])],
)  # fmt: skip
def test_G_16_only_what_a_failure_makes_run_is_an_attempt_to_recover(
    trigger: str, action: str, events: list[str]
) -> None:
    """G16: other blocks speak of other things."""
    state = with_a_fault("a", "")
    told = FOLLOW[d.Routed](state, d.Routed("a", "", trigger, action, "b", "", 1, ()))
    assert [one.event for one in told] == events
