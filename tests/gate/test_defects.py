"""Defects that gates before this one had (the X rows), where no other file holds the opposite.

Each test fails on what its row describes. `test_coverage.py` says which file holds which row.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.gate.world import (
    NO_WAIT,
    Chunk,
    Http,
    Slow,
    StepFailed,
    answered,
    collected,
    gate,
    golden,
    play,
    policy,
    streams,
    world,
)

from gonogo.gate import (
    Bounds,
    BreakerPolicy,
    CircuitOpen,
    Exhausted,
    Gate,
    GateError,
    MemoryStore,
    Misconfigured,
    Policy,
    Predicate,
    Step,
    Target,
    Usage,
    rule,
)
from gonogo.gate import decisions as d


def heard(given: Policy, there: Any, **more: Any) -> list[Any]:
    """What a watcher hears of a call, however it ends."""
    told: list[Any] = []
    try:
        answered(given, there, {"watch": lambda call, decision: told.append(decision)}, **more)
    except GateError:
        pass
    return told


def test_X2_rules_see_an_errors_message_and_the_fallback_gets_the_error_itself() -> None:
    """X2, B1: its text, type and status are there for rules; the fallback isn't handed a bare dictionary."""
    original = Http(503, x_request_id="r-1")
    asked: list[BaseException | None] = []

    async def canned(error: BaseException | None) -> str:
        asked.append(error)
        return "canned"

    see = rule(
        "fallback",
        {
            "error.message": "Http: status 503",
            "error.type": "Http",
            "error.status": 503,
            "error.request_id": "r-1",
        },
    )
    answer = answered(policy("a", after=(see,)), world(a=original), fallback=canned)
    assert answer.value == "canned"
    assert asked == [original]
    assert asked[0] is original


def test_X3_the_cause_is_the_exception_that_was_raised_with_its_stack() -> None:
    """X3, B3: no rebuilt one without status and code; one class of CircuitOpen, which carries every attempt."""
    original = Http(500)
    given = policy("a", backoff=NO_WAIT, breaker=BreakerPolicy(failures=3), when_all_open="fail")

    async def story() -> tuple[GateError, GateError]:
        one, there = gate(given), world(a=original)
        with pytest.raises(Exhausted) as first:
            await one.call(there.step())
        with pytest.raises(CircuitOpen) as second:
            await one.call(there.step())
        return first.value, second.value

    failed, refused = play(story)
    assert failed.__cause__ is original
    assert original.__traceback__ is not None
    assert len(failed.attempts) == 3
    assert type(refused) is CircuitOpen
    assert refused.record is not None
    assert refused.resume is not None


def test_X4_the_reason_is_part_of_the_record() -> None:
    """X4, B4: the rule's words are in the decision, in the error and in the story."""
    stop = rule("fail-fast", {"error_kind": "server-5xx"}, kind="down", label="the far side is down")
    with pytest.raises(GateError) as raised:
        answered(policy("a", after=(stop,)), world(a=Http(500)))
    record = raised.value.record
    assert record is not None
    assert record.decided()[-1].label == raised.value.label == "the far side is down"
    assert record.outcome is not None
    assert record.outcome.kind == "down"
    assert any("the far side is down" in sentence for sentence in record.story())


def test_X5_every_move_is_heard_with_the_rule_that_wanted_it() -> None:
    """X5, B5: each attempt's start and end, the rule of a retry, a change of target, of a breaker, a lost fallback."""

    async def broken(error: BaseException | None) -> str:
        raise RuntimeError("no luck")

    rules = (
        rule(
            "retry",
            {"error_kind": "server-5xx", "target_attempt": {"lt": 2}},
            kind="again",
            label="once more",
        ),
        rule("retry-other", {"error_kind": "server-5xx", "can_switch": True}, kind="elsewhere"),
        rule("fallback", {"error_kind": {"ne": "ok"}}, kind="give up"),
    )
    given = policy("a", "b", after=rules, breaker=BreakerPolicy(failures=2), backoff=NO_WAIT)
    told = heard(given, world(a=Http(500), b=Http(422)), fallback=broken)
    kinds = [type(each).__name__ for each in told]
    assert kinds.count("AttemptStarted") == 3
    assert kinds.count("AttemptEnded") == 3
    retried = next(each for each in told if isinstance(each, d.RuleDecided))
    assert (retried.did, retried.kind, retried.label, retried.rule) == ("retry", "again", "once more", 0)
    switched = next(each for each in told if isinstance(each, d.TargetSwitched))
    assert (switched.source, switched.target) == ("a", "b")
    changed = next(each for each in told if isinstance(each, d.BreakerChanged))
    assert (changed.change.before, changed.change.after) == ("closed", "open")
    lost = next(each for each in told if isinstance(each, d.FallbackEnded))
    assert lost.failure is not None
    assert "no luck" in lost.failure.message


def test_X7_the_record_keeps_the_rule_and_its_operands() -> None:
    """X7, B13, E2: not the branch alone."""
    told = heard(golden(), world(a=[Http(503), "fine"], b="b"))
    decision = next(each for each in told if isinstance(each, d.RuleDecided))
    compared = decision.entries[2].conditions
    assert decision.rule == 2
    assert [entry.result for entry in decision.entries[:3]] == ["no", "no", "matched"]
    assert [(each.path, each.op, each.threshold, each.actual, each.result) for each in compared][1] == (
        "attempt", "lt", 3, 1, True,
    )  # fmt: skip
    assert {read.path: read.producer for read in decision.reads}["error_kind"] == "attempt 1"


def test_X8_a_rule_that_answers_otherwise_the_second_time_isnt_asked_twice() -> None:
    """X8, B13: the decision that is taken is the one that is recorded."""
    answers = iter([True, False, False])
    given = policy("a", after=(rule("fail-fast", Predicate("fickle"), kind="fickle"),))
    with pytest.raises(GateError) as raised:
        answered(given, world(a=Http(500)), {"predicates": {"fickle@1": lambda scope: next(answers)}})
    assert raised.value.kind == "fickle"
    assert next(answers) is False
    assert next(answers, "asked once") is False


def test_X10_what_was_decided_about_a_failure_says_its_message() -> None:
    """X10: in the decision, in the error's text, and in each attempt."""
    with pytest.raises(GateError) as raised:
        answered(policy("a"), world(a=StepFailed("bad-request", "no such city: Osloo")))
    decision = raised.value.decision
    assert decision is not None
    assert decision.failure is not None
    assert decision.failure.message == "no such city: Osloo"
    assert "no such city: Osloo" in str(raised.value)


def test_X11_what_is_over_is_gone_from_what_rules_see() -> None:
    """X11: a later attempt's scope holds nothing of an earlier failure, and a good answer no error."""
    seen: list[tuple[Any, ...]] = []

    def look(scope: Any) -> bool:
        error = scope["error"]
        seen.append((scope["error_kind"], error and error["status"], scope["validation_error"]))
        return False

    there = world(a=["bad", Http(503, retry_after="1"), "fine"])
    given = policy("a", after=(rule("ok", Predicate("look")),))
    answered(
        given,
        there,
        {"predicates": {"look@1": look}},
        validate=lambda value: "bad!" if value == "bad" else None,
    )
    assert seen == [("schema-fail", None, "bad!"), ("overloaded", 503, None), ("ok", None, None)]


def test_X14_a_refusal_isnt_for_ever_and_holds_for_its_target_alone() -> None:
    """X14: the other target is called at once; without one the cooldown is waited for, and the call goes on."""

    async def story(*names: str) -> tuple[list[str], float]:
        one = gate(
            policy(*names, breaker=BreakerPolicy(failures=1, jitter=0), bounds=Bounds(attempts_per_target=2))
        )
        there = world(a=[Http(500), "fine"], b="b")
        one.isolate("a", "to be refused", by="a test", for_s=10.0)
        await one.call(there.step())
        return there.called, one.clock.now()

    assert play(lambda: story("a", "b")) == (["b"], 0.0)
    called, at = play(lambda: story("a"))
    assert called == ["a", "a"]
    assert at == pytest.approx(40.0)  # 10 s of isolation, a failure, 30 s of cooldown


async def nested(fail: Any) -> Any:
    """A gate's step that calls through a gate of its own."""
    inner = gate(policy("a", backoff=NO_WAIT))

    async def outer(attempt: Any) -> Any:
        return await inner.call(world(a=fail).step())

    return await gate(policy("b")).call(Step("outer", outer))


async def streamed(fail: Any) -> Any:
    """All pieces of a stream."""
    return await collected(gate(policy("a", backoff=NO_WAIT)).stream(streams(a=[[fail]]).step()))


async def streamed_within(fail: Any) -> Any:
    """A call whose step reads a stream of another gate."""

    async def outer(attempt: Any) -> Any:
        return await streamed(fail)

    return await gate(policy("b")).call(Step("outer", outer))


async def side_by_side(fail: Any) -> Any:
    """Calls in a task group; the first failure is what is looked at."""
    one = gate(policy("a", backoff=NO_WAIT))
    found = await asyncio.gather(*(one.call(world(a=fail).step()) for _ in range(3)), return_exceptions=True)
    raise found[-1] if isinstance(found[-1], BaseException) else AssertionError(found)


async def carried(fail: Any) -> Any:
    """A call that is taken up again after its end."""
    with pytest.raises(GateError) as raised:
        await gate(policy("a", backoff=NO_WAIT, bounds=Bounds(attempts_max=1))).call(world(a=fail).step())
    step = world(a=fail).step(carried=raised.value.resume)
    return await gate(policy("a", backoff=NO_WAIT)).call(step)


@pytest.mark.parametrize("shape", [nested, streamed, streamed_within, side_by_side, carried])
@pytest.mark.parametrize(
    "fail", [Http(500), Http(422), StepFailed("empty-response"), StepFailed("content-filter")]
)
def test_X22_in_no_shape_does_a_failure_come_out_as_an_empty_value(shape: Any, fail: Any) -> None:
    """X22, F17: calls in calls, streams in calls, side by side, resumed: a typed error, and never nothing."""
    with pytest.raises(GateError) as raised:
        play(lambda: shape(fail))
    assert raised.value.record is not None
    assert raised.value.record.outcome is not None


def test_X23_only_targets_that_were_called_are_named() -> None:
    """X23: walking off the list names nobody; each attempt names its own."""
    with pytest.raises(GateError) as raised:
        answered(golden(backoff=NO_WAIT), world(a=Http(500), b=Http(500)))
    record = raised.value.record
    assert record is not None
    assert [each.target for each in record.attempts] == ["a", "a", "a", "b"]
    assert record.outcome is not None
    assert record.outcome.target is None


def test_X31_a_breakers_state_can_be_handed_in_from_outside() -> None:
    """X31, B36: a store that was filled elsewhere is what the first call goes by."""
    store = MemoryStore()
    given = policy("a", "b", breaker=BreakerPolicy(failures=1), backoff=NO_WAIT)

    async def story() -> list[str]:
        await gate(given, store=store).call(world(a=Http(500), b="b").step())
        there = world(a="a", b="b")
        await gate(given, store=store).call(there.step())
        return there.called

    assert play(story) == ["b"]
    key = next(iter(store.keys()))
    assert store.load(key).record.state == "open"


def test_X34_a_cooldown_varies_and_grows_and_people_can_look_and_act() -> None:
    """X34, B34, B38: jitter each time, longer at each reopening, by hand in and out, and a list."""

    async def story() -> Any:
        one = gate(policy("a", "b", breaker=BreakerPolicy(failures=1), backoff=NO_WAIT, when_all_open="fail"))
        assert one.breakers is not None
        there = world(a=Http(500), b=Http(500))
        lengths: list[dict[str, float]] = []
        for _ in range(2):
            with pytest.raises(GateError):
                await one.call(there.step())
            listed = {each.key: each for each in one.breakers.listed()}
            lengths.append({key: each.until_s or 0.0 for key, each in listed.items()})
            await asyncio.sleep(max(lengths[-1].values()) + 0.001)
        one.isolate("a", "maintenance", by="maria")
        states = [each.state for each in one.breakers.listed()]
        one.reset("a")
        return lengths, states, [each.state for each in one.breakers.listed()]

    (first, second), out, back = play(story)
    key = next(iter(first))
    assert second[key] / 60 != pytest.approx(first[key] / 30)
    assert all(24 <= length <= 36 for length in first.values())
    assert all(48 <= second[key] <= 72 for key in second)
    assert out[0] == "isolated"
    assert back[0] == "closed"


def breaks(value: Any) -> Any:
    """A step's function that has a bug."""
    raise KeyError("sk-secret is missing")


HOOKS = ("inspect", "validate", "usage", "view", "estimate", "chunk", "unfit")


@pytest.mark.parametrize("hook", HOOKS)
def test_E19_a_function_of_the_step_that_breaks_is_an_error_that_names_it(hook: str) -> None:
    """E19, F17: nothing vanishes and nothing is made of it; what isn't valid is a failure like any other."""
    there = streams(a=[["x", "y"]]) if hook == "chunk" else world(a="fine")
    step = replace(there.step(ends="exhaustion"), **{hook: breaks})

    async def story() -> Any:
        one = gate(policy("a", backoff=NO_WAIT), redact=lambda text: text.replace("sk-secret", "***"))
        with pytest.raises(GateError) as raised:
            await (collected(one.stream(step)) if hook == "chunk" else one.call(step))
        return raised.value

    error = play(story)
    assert "sk-secret" not in str(error)
    if hook == "validate":
        assert error.kind == "schema-stuck-loop"
        return
    assert type(error) is Misconfigured
    assert error.fault("x/gate").fault_class == "bug"
    assert (error.kind, error.label) == ("step-error", hook)
    assert isinstance(error.__cause__, KeyError)
    assert len(there.calls) <= 1
    if hook != "unfit":
        assert error.record.outcome.outcome == "failed"
        assert error.resume is not None


def test_a_broken_function_leaves_a_probes_place_to_others() -> None:
    """LLM-3 a: the breaker counts nothing, and the next call may try."""

    async def story() -> Any:
        given = policy("a", breaker=BreakerPolicy(failures=1, jitter=0), bounds=Bounds(attempts_max=1))
        one = gate(given)
        there = world(a=[Http(500), "fine"])
        with pytest.raises(GateError):
            await one.call(there.step())
        await asyncio.sleep(31)
        with pytest.raises(Misconfigured):
            await one.call(there.step(usage=breaks))
        return await one.call(there.step())

    assert play(story) == "fine"


def test_what_keeps_a_call_may_stop_it_with_its_own_error() -> None:
    """A journal that can't be written is the host's trouble, not the step's."""

    def keep(*told: Any) -> None:
        raise OSError("disk full")

    async def story() -> None:
        await Gate("a", keep=keep).call(world(a="x").step())

    with pytest.raises(OSError, match="disk full"):
        play(story)


def test_X19_an_attempt_that_failed_is_billed_in_full_view() -> None:
    """X19, B23: each attempt has its own start, end and usage; the total is their sum."""
    there = world(a=[StepFailed("server-5xx", usage=Usage(100, 10)), Slow(1, "fine")])
    told = heard(policy("a", backoff=NO_WAIT), there, usage=lambda value: Usage(50, 5))
    started = [each for each in told if isinstance(each, d.AttemptStarted)]
    ended = [each for each in told if isinstance(each, d.AttemptEnded)]
    assert [each.attempt for each in started] == [each.attempt for each in ended] == [1, 2]
    assert [each.usage.input_tokens for each in ended] == [100, 50]
    assert told[-1].used == Usage(150, 15)


def test_X24_one_gate_takes_whatever_calls_out() -> None:
    """X24, F2: plain functions, steps and streams alike. That nothing goes around it: conftest.py."""

    async def fetch(city: str) -> str:
        return city

    async def story() -> list[Any]:
        one, there = Gate(Policy(targets=(Target("a"),))), streams(a=[[Chunk("x", finish="stop", end=True)]])
        pieces = await collected(one.stream(there.step()))
        return [await one.call(fetch, "Oslo"), pieces[0].text, await one.call(world(a="fine").step())]

    assert play(story) == ["Oslo", "x", "fine"]
