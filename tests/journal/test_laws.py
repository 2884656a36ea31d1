"""Laws that hold for any workflow and any luck: what is written is enough, and decides alike (laws 1 and 2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gonogo.core.events import AnswerGiven, CallFailed, CallParked, CancelAsked, Resumed
from gonogo.core.faults import Fault
from gonogo.core.plan import Block, Edge, Expression, Need, Plan, Retry, Step, Target
from gonogo.expressions.results import Failure, Value
from gonogo.journal.codec import decode_line, encode_line
from gonogo.journal.replay import replay
from gonogo.journal.story import story
from gonogo.journal.view import run_view

NAMES = ("a", "b", "c", "d")
FAULTS = (
    Fault("x", "transient", "x/busy", "busy"),
    Fault("x", "logical", "x/wrong", "wrong"),
    Fault("x", "bug", "x/bug", "bug"),
)


@st.composite
def blocks(draw) -> Block:
    """What an on_success or on_fail may say."""
    return Block(
        run=tuple(Target(name) for name in draw(st.lists(st.sampled_from(NAMES), max_size=1))),
        retry=draw(st.none() | st.builds(Retry, st.integers(1, 2), on=st.just(("transient", "logical")))),
        goto=draw(st.none() | st.sampled_from(NAMES)),
    )


@st.composite
def steps(draw, name: str, before: tuple[str, ...]) -> Step:
    """A step that depends on some of those before it."""
    needs = draw(st.lists(st.sampled_from(before), unique=True, max_size=2)) if before else []
    return Step(
        name,
        "noop",
        depends_on=tuple(
            Need((Edge(other, draw(st.sampled_from(["block", "continue"]))),)) for other in needs
        ),
        for_each=draw(st.booleans()),
        fanout=draw(st.sampled_from(["map", "reduce"])),
        concurrency=draw(st.integers(1, 3)),
        if_condition=draw(st.none() | st.just(0)),
        assume=draw(st.sampled_from([(), (0,)])),
        guarantee=draw(st.sampled_from([(), (0,), (0, 0)])),
        continue_on_failure=draw(st.booleans()),
        on_fail=draw(st.none() | blocks()),
        on_success=draw(st.none() | blocks()),
        effects=draw(st.sampled_from(["reads", "mutates"])),
    )


@st.composite
def plans(draw) -> Plan:
    """A small workflow of any shape."""
    drawn = {name: draw(steps(name, NAMES[:number])) for number, name in enumerate(NAMES)}
    expressions = (Expression("true", "condition"),)
    return Plan("any", drawn, expressions=expressions, fail_fast=draw(st.booleans()))


def luck(draw, kinds: str) -> Any:
    """Calls that work, fail, or wait for a person; lists of up to three items."""

    def outcome(command):
        kind = draw(st.sampled_from(kinds))
        if kind == "f":
            return CallFailed(call=command.call, fault=draw(st.sampled_from(FAULTS)))
        if kind == "p":
            return CallParked(call=command.call, prompt="go?")
        return [{"n": 1}, None, "x"][: draw(st.integers(0, 3))]

    return outcome


def opinion(draw) -> Any:
    """Conditions that are true, false or broken."""
    return lambda ask: draw(
        st.sampled_from([Value(True), Value(True), Value(False), Failure("error", "broken")])
    )


def people(draw) -> list[Any]:
    """Who comes by while the run waits, and after it."""
    answer = st.builds(
        AnswerGiven, step=st.sampled_from(NAMES), text=st.sampled_from(["yes", "done", "again"])
    )
    return draw(st.lists(answer | st.just(CancelAsked()) | st.just(Resumed()), max_size=4))


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans(), data=st.data())
def test_any_run_ends_replays_alike_and_is_told_alike_from_its_lines(drive, plan: Plan, data) -> None:
    """Law 1 and spec D.4: the written records alone give the same decisions, view and story."""
    outcome, value = luck(data.draw, "ooofp"), opinion(data.draw)
    records = drive(plan, outcome, value, people(data.draw))
    written = [decode_line(encode_line(one)) for one in records]
    assert replay(written) == []
    view = run_view(written)
    assert view.as_json() == run_view(records).as_json()
    assert view.verdict in ("GO", "NO-GO", "HOLD")
    assert all(step.outcome for step in view.steps.values())
    told = view.statistics
    assert told["totalExecutions"] == told["successfulExecutions"] + told["failedExecutions"]
    assert story(written) == story(records)
