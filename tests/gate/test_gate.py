"""The gate as people use it: faces, targets, breakers by hand, cancellation, and what its record answers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
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

from gonogo.errors import UsageError
from gonogo.gate import (
    Backoff,
    Bounds,
    BreakerPolicy,
    BudgetExceeded,
    CircuitOpen,
    Exhausted,
    FileStore,
    Gate,
    GateError,
    Misconfigured,
    Policy,
    Purse,
    Step,
    Target,
    Timers,
    rule,
)
from gonogo.gate import breaker as b
from gonogo.gate import decisions as d
from gonogo.gate.replaying import replay
from gonogo.gate.voices import Writer


def test_three_lines_wrap_any_async_function() -> None:
    """The library's first use."""

    async def fetch(city: str, *, unit: str) -> str:
        return f"{city} {unit}"

    async def story() -> Any:
        return await Gate("weather").call(fetch, "Oslo", unit="C")

    assert asyncio.run(story()) == "Oslo C"


def test_plain_code_calls_without_an_event_loop() -> None:
    """The synchronous face: plain and async functions, in real time."""
    tries: list[int] = []

    def fetch(city: str) -> str:
        tries.append(threading.get_ident())
        if len(tries) == 1:
            raise ConnectionResetError
        return city

    async def later(city: str) -> str:
        return city

    one = Gate(Policy(targets=(Target("a"),), backoff=NO_WAIT))
    assert one.call_sync(fetch, "Oslo") == "Oslo"
    assert len(tries) == 2
    assert one.call_sync(later, "Rome") == "Rome"


def test_a_plain_function_that_hangs_is_left_behind() -> None:
    """Its time is up all the same."""
    done = threading.Event()
    one = Gate(Policy(targets=(Target("a"),), timers=Timers(attempt_s=0.05), bounds=Bounds(attempts_max=1)))
    began = time.monotonic()
    with pytest.raises(GateError):
        one.call_sync(done.wait, 30)
    done.set()
    assert time.monotonic() - began < 20


def test_the_synchronous_face_refuses_to_block_a_loop() -> None:
    """It says what to do."""

    async def story() -> None:
        with pytest.raises(UsageError, match="would block"):
            Gate("a").call_sync(lambda: 1)

    asyncio.run(story())


def test_it_runs_on_real_time_as_well() -> None:
    """The system's clock; a cut attempt is a failure, an answer an answer."""

    async def slow() -> str:
        await asyncio.sleep(30)
        return "late"

    async def story() -> Any:
        one = Gate(Policy(targets=(Target("a"),), timers=Timers(attempt_s=0.02), backoff=NO_WAIT))
        with pytest.raises(Exhausted) as raised:
            await one.call(slow)
        return raised.value

    assert asyncio.run(story()).kind == "timeout-total"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit])
def test_CAN_1_what_ends_a_program_is_never_retried(error: type[BaseException]) -> None:
    """CAN-1: raised on, unchanged; recorded as cancelled; the breaker counts nothing."""
    calls: list[int] = []
    one = Gate(Policy(targets=(Target("a"),), breaker=BreakerPolicy(failures=1)))

    async def invoke(attempt: Any) -> Any:
        calls.append(1)
        raise error

    async def story() -> None:
        with pytest.raises(error):
            await one.call(Step("x", invoke))

    asyncio.run(story())
    assert one.breakers is not None
    assert (calls, [each.failures for each in one.breakers.listed()]) in (([1], []), ([1], [0]))


@pytest.mark.parametrize("at_s", [0.0, 0.5, 1.0, 1.2, 2.0, 5.0])
def test_CAN_1_a_cancel_at_any_moment_ends_it_at_once(at_s: float) -> None:
    """CAN-1, B21: during an attempt and during a wait."""
    there = world(a=[Slow(1, Http(500))])

    async def story() -> Any:
        one = gate(
            policy("a", backoff=Backoff(base_s=10), bounds=Bounds(attempts_max=9, attempts_per_target=9))
        )
        task = asyncio.create_task(one.call(there.step()))
        await asyncio.sleep(at_s)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        calls, now = len(there.calls), one.clock.now()
        await asyncio.sleep(1000)
        return calls, now, len(there.calls)

    calls, now, later = play(story)
    assert (now, later) == (at_s, calls)


def test_a_target_that_lacks_what_is_needed_is_not_called() -> None:
    """F7: skipped with a reason; none left is a mistake of the policy."""
    given = Policy(targets=(Target("a"), Target("b", capabilities=frozenset({"tools"}))), breaker=None)
    there = world(a="a", b="b")
    answer = answered(given, there, needs=frozenset({"tools"}))
    assert (answer.target, answer.record.why_not("a")) == ("b", ["lacks tools"])
    with pytest.raises(Misconfigured):
        answered(given, there, needs=frozenset({"vision"}))
    answer = answered(given, there, unfit=lambda target: "too small" if target.name == "b" else None)
    assert answer.target == "a"


def test_tiers_come_before_the_lists_order() -> None:
    """F8."""
    targets = (Target("cloud", tier=1), Target("local", tier=0), Target("backup", tier=2))
    there = world(cloud="c", local=StepFailed("auth"), backup="b")
    answered(Policy(targets=targets, breaker=None), there)
    assert there.called == ["local", "cloud"]


def test_a_sticky_gate_begins_with_the_last_good_target_and_returns() -> None:
    """F8: by option, with a return after a while."""
    there = world(a=[StepFailed("auth"), "a"], b="b")

    async def story() -> list[str]:
        one = gate(policy("a", "b", sticky_s=10.0))
        for _ in range(2):
            await one.call(there.step())
        await asyncio.sleep(11)
        await one.call(there.step())
        return there.called

    assert play(story) == ["a", "b", "b", "a"]


def test_S15_an_outage_of_a_minute_costs_few_probes_and_ends_soon_after() -> None:
    """S15: all are served; back on the first within 30 s of its recovery."""
    state = {"down": True}
    calls: list[str] = []

    async def invoke(attempt: Any) -> str:
        calls.append(attempt.target.name)
        if attempt.target.name == "a" and state["down"]:
            raise Http(503)
        return str(attempt.target.name)

    async def story() -> tuple[list[str], float]:
        one = gate(policy("a", "b", breaker=BreakerPolicy(failures=3, cooldown_s=10, cooldown_s_max=20)))
        served = []
        for _ in range(20):
            served.append(await one.call(Step("x", invoke)))
            await asyncio.sleep(3)
        state["down"] = False
        recovered_at = one.clock.now()
        for _ in range(60):
            if await one.call(Step("x", invoke)) == "a":
                break
            await asyncio.sleep(1)
        return served, one.clock.now() - recovered_at

    served, after_s = play(story)
    assert set(served) == {"b"}
    assert after_s <= 30
    assert calls[: 20 * 2].count("a") <= 8


def test_LLM_3_fifty_calls_at_half_open_are_one_probe() -> None:
    """LLM-3 e, F.8.3: through the whole gate; the others fail fast and know when to come back."""
    there = world(a=[Http(500), Slow(5, "fine")])

    async def story() -> Any:
        one = gate(
            policy(
                "a",
                breaker=BreakerPolicy(failures=1, jitter=0),
                when_all_open="fail",
                bounds=Bounds(attempts_max=1),
            )
        )
        with pytest.raises(GateError):
            await one.call(there.step())
        await asyncio.sleep(31)
        return await asyncio.gather(*(one.call(there.step()) for _ in range(50)), return_exceptions=True)

    found = play(story)
    assert len(there.calls) == 2
    assert [each for each in found if each == "fine"] == ["fine"]
    refused = [each for each in found if isinstance(each, CircuitOpen)]
    assert len(refused) == 49
    assert {error.retry_after_s for error in refused} == {35.0}


@pytest.mark.parametrize("probe", ["logical", "cancelled", "hangs"])
def test_LLM_3_whatever_the_probe_does_the_next_may_try(probe: str) -> None:
    """LLM-3 a to c: an error that doesn't count, a cancel, a hang."""
    script: dict[str, Any] = {"logical": Http(422), "cancelled": Slow(1000), "hangs": Slow(1000)}
    there = world(a=[Http(500), script[probe], "fine"])

    async def story() -> Any:
        one = gate(
            policy(
                "a",
                breaker=BreakerPolicy(failures=1, jitter=0),
                when_all_open="fail",
                bounds=Bounds(attempts_max=1),
            )
        )
        with pytest.raises(GateError):
            await one.call(there.step())
        await asyncio.sleep(30)
        task = asyncio.create_task(one.call(there.step()))
        await asyncio.sleep(1)
        if probe == "cancelled":
            task.cancel()
        with pytest.raises((GateError, asyncio.CancelledError)):
            await task
        if probe == "hangs":
            with pytest.raises(CircuitOpen):
                await one.call(there.step())
            await asyncio.sleep(60)
        return await one.call(there.step())

    assert play(story) == "fine"


@pytest.mark.parametrize(("choice", "calls"), [("wait", 2), ("probe", 2), ("fail", 1)])
def test_all_open_waits_probes_or_fails_by_policy(choice: Any, calls: int) -> None:
    """B39: never loops idle."""
    there = world(a=[Http(500), "fine"])

    async def story() -> Any:
        one = gate(
            policy(
                "a",
                breaker=BreakerPolicy(failures=1, jitter=0),
                when_all_open=choice,
                bounds=Bounds(attempts_per_target=1),
            )
        )
        with pytest.raises(GateError):
            await one.call(there.step())
        try:
            return await one.call(there.step()), one.clock.now()
        except CircuitOpen as error:
            return error.retry_after_s, one.clock.now()

    expected = {"wait": ("fine", 30.0), "probe": ("fine", 0.0), "fail": (30.0, 0.0)}
    assert play(story) == expected[choice]
    assert len(there.calls) == calls


@pytest.mark.parametrize(
    ("failure", "target"), [(Http(404), Target("a")), (Http(401), Target("a", model="m"))]
)
def test_one_address_that_is_missing_or_refused_keeps_nobody_else_out(
    failure: Exception, target: Target
) -> None:
    """D.2, isolate: only of a model or credential that the target names, so that its key changes with it."""
    there = world(a=[failure, "fine"])

    async def story() -> Any:
        one = gate(Policy(targets=(target,)))
        with pytest.raises(GateError):
            await one.call(there.step())
        return await one.call(there.step()), one.clock.now()

    assert play(story) == ("fine", 0.0)


def test_a_target_can_be_taken_out_and_put_back_by_hand() -> None:
    """B38."""
    there = world(a="a", b="b")

    async def story() -> list[Any]:
        one = gate(policy("a", "b", breaker=BreakerPolicy()))
        one.isolate("a", "maintenance", by="maria")
        served = [(await one.answer(there.step())).target]
        one.reset("a")
        served.append((await one.answer(there.step())).target)
        with pytest.raises(UsageError, match="there are: a, b"):
            one.reset("c")
        return served

    assert play(story) == ["b", "a"]


def test_processes_share_a_breaker_through_files(tmp_path: Path) -> None:
    """Decision 10: a second gate over the same folder finds it open, before its first call."""
    there = world(a=Http(500), b="b")

    def one() -> Gate:
        given = policy("a", "b", breaker=BreakerPolicy(failures=1), backoff=NO_WAIT)
        return Gate(given, store=FileStore(tmp_path))

    async def story() -> Any:
        await one().call(there.step())
        there.calls.clear()
        return await one().answer(there.step())

    assert asyncio.run(story()).record.why_not("a") == ["open: this process saw it fail"]
    assert there.called == ["b"]


def test_a_gate_beside_another_has_a_policy_of_its_own_and_shares_the_rest() -> None:
    """What one call of a step asks of others than its targets: other targets, the same budget, ids apart."""
    there = world(a="a", b="b")
    gate = Gate(policy("a"), purse=Purse(attempts_max=2), seed="s")

    async def story() -> list[Any]:
        first = await gate.answer(there.step())
        second = await gate.beside(policy("b")).answer(there.step())
        with pytest.raises(BudgetExceeded):
            await gate.answer(there.step())
        return [first, second]

    first, second = asyncio.run(story())
    assert (first.target, second.target) == ("a", "b")
    assert (first.record.call_id, second.record.call_id) == ("s-1", "s-2")


def test_the_error_carries_everything() -> None:
    """F18, B3: kind, decision, attempts, the original exception, a resume handle."""
    original = Http(500)
    with pytest.raises(Exhausted) as raised:
        answered(policy("a", backoff=NO_WAIT), world(a=original))
    error = raised.value
    assert error.__cause__ is original
    assert [each.attempt for each in error.attempts] == [1, 2, 3]
    assert error.decision is not None
    assert error.resume is not None
    assert error.resume.attempts == 3
    assert error.fault("http/gate").kind == "gate.server-5xx"
    assert "server-5xx after 3 attempts" in str(error)


def test_a_resume_goes_on_with_its_counters() -> None:
    """F21, E43: pausing resets no bound."""
    with pytest.raises(Exhausted) as raised:
        answered(policy("a", backoff=NO_WAIT), world(a=Http(500)))
    there = world(a="fine")
    with pytest.raises(Exhausted):
        answered(policy("a"), there, carried=raised.value.resume)
    assert there.calls == []
    more = policy("a", bounds=Bounds(attempts_per_target=4))
    assert answered(more, there, carried=raised.value.resume).value == "fine"


def test_a_watcher_hears_everything_and_disturbs_nothing() -> None:
    """B5, B50, E27: in order, live; one that breaks is noted."""
    heard: list[str] = []

    def watch(call: str, decision: Any) -> None:
        heard.append(decision.__struct_config__.tag)
        raise RuntimeError("oh")

    async def canned(error: BaseException | None) -> str:
        return "canned"

    there = world(a=[Http(429, retry_after="1"), Http(500), Http(401)], b=Http(422))
    given = policy(
        "a", "b", after=(rule("fallback", {"error_kind": "bad-request"}),), breaker=BreakerPolicy(failures=1)
    )
    answer = answered(given, there, {"watch": watch}, fallback=canned)
    assert answer.value == "canned"
    assert heard == [each.__struct_config__.tag for each in answer.record.decisions]
    assert {
        "attempt_started", "attempt_ended", "rule_decided", "wait_started", "wait_ended", "breaker_changed",
        "target_switched", "target_skipped", "fallback_started", "fallback_ended", "gate_ended",
    } <= set(heard)  # fmt: skip
    assert answer.record.notes == ["a watcher failed: RuntimeError: oh"]


def test_B50_every_declared_decision_is_heard_by_who_listens(tmp_path: Path) -> None:
    """B50: not only declared; each is made by some call and comes out through `watch`."""
    heard: set[type] = set()

    def listening(given: Policy, **more: Any) -> Gate:
        return gate(given, watch=lambda call, decision: heard.add(type(decision)), **more)

    async def story() -> None:
        down = world(a=[Http(503)], b=[Http(401)])
        given = policy(
            "a", "b", after=(rule("retry", {"error_kind": "overloaded", "target_attempt": {"lt": 2}}),)
        )
        await listening(given).answer(down.step(fallback=Late()))
        with pytest.raises(GateError):
            await listening(policy("a")).answer(world(a=[Http(429, retry_after="300")]).step())
        opening = policy("a", "b", breaker=BreakerPolicy(failures=1), backoff=NO_WAIT)
        await listening(opening).answer(world(a=[Http(500)], b="b").step())
        await listening(policy("a", "b", order="weighted")).answer(world(a="a", b="b").step())
        part = [Chunk("x"), ConnectionResetError()]
        whole = [Chunk("y"), Chunk(finish="stop", end=True)]
        await collected(
            listening(policy("a", mode="restart", backoff=NO_WAIT)).stream(streams(a=[part, whole]).step())
        )

    async def beside_another_process() -> None:
        store, other = FileStore(tmp_path), Writer("elsewhere:1")
        broken = b.failed(BreakerPolicy(failures=1), b.CLOSED, time.monotonic(), "x", "network", me=other)
        store.compare_and_set("name=a/model=a-model", 0, broken)
        watch = lambda call, decision: heard.add(type(decision))  # noqa: E731
        await Gate(policy("a", breaker=BreakerPolicy()), store=store, watch=watch).answer(world(a="a").step())

    play(story)
    asyncio.run(beside_another_process())
    declared = {
        thing for thing in vars(d).values() if isinstance(thing, type) and issubclass(thing, d.Decision)
    } - {d.Decision}
    assert {kind.__name__ for kind in declared - heard} == set()


class Late:
    """A fallback."""

    async def __call__(self, error: BaseException | None) -> str:
        return "late"


def test_a_plain_function_is_called_once_and_told_apart() -> None:
    """It has done its work by the time anybody notices, so it isn't called again."""
    done: list[int] = []

    def post() -> int:
        done.append(1)
        return 1

    with pytest.raises(GateError, match="no async function: call_sync takes plain ones") as raised:
        play(lambda: gate(policy("a", "b")).call(post))
    assert done == [1]
    assert raised.value.effect == "done"


def test_a_record_decides_the_same_again_and_tells_what_another_policy_would_do() -> None:
    """F.8.7, E.10: replay without a network."""
    there = world(a=[Http(503), Http(503), Http(503)], b="b")
    record = answered(golden(), there).record
    assert replay(golden(), record.events) == record.decisions
    assert record.under(golden()) == []
    was, would = record.under(golden(bounds=Bounds(attempts_per_target=1)))[0]
    assert isinstance(was, d.RuleDecided)
    assert isinstance(would, d.RuleDecided)
    assert (was.did, would.did, would.to_target) == ("retry", "retry-other", "b")


def test_a_redacted_secret_is_nowhere() -> None:
    """F.8.8: record, events, error text, notes."""
    secret = "sk-very-secret"

    async def invoke(attempt: Any) -> Any:
        raise StepFailed("server-5xx", f"key {secret} refused")

    heard: list[str] = []
    step = Step("x", invoke, validate=lambda value: f"{secret} wrong", view=lambda value: {"k": secret})

    async def story() -> Any:
        one = gate(
            policy(
                "a",
                backoff=NO_WAIT,
                after=(rule("retry", {"response.k": {"ne": None}, "attempt": {"lt": 2}}),),
            ),
            redact=lambda text: text.replace(secret, "***"),
            watch=lambda call, decision: heard.append(repr(decision)),
        )
        with pytest.raises(GateError) as raised:
            await one.call(step)
        return raised.value

    error = play(story)
    everything = "".join(
        [str(error), *heard, repr(error.record.events), *error.record.story(), repr(error.resume)]
    )
    assert secret not in everything
    assert "***" in everything


def test_the_story_reads_like_one() -> None:
    """E.10's narrative."""
    there = world(a=Http(429, retry_after="40"), b="from b")
    answer = answered(policy("a", "b"), there)
    assert answer.record.story() == [
        "0.000 s: attempt 1 on a",
        "0.000 s: attempt 1 on a failed after 0 s: rate-limit (429), asks 40 s",
        answer.record.story()[2],
        "0.000 s: on to b: rate-limit",
        "0.000 s: attempt 2 on b",
        "0.000 s: attempt 2 on b answered after 0 s",
        "0.000 s: ended ok on b after 2 attempts",
    ]
    assert answer.record.story()[2].startswith("0.000 s: the taxonomy wanted retry; patience: wait 4")


def test_gates_side_by_side_keep_their_calls_apart() -> None:
    """Counters belong to a call."""
    there = world(a=Slow(1, "fine"))

    async def story() -> Any:
        one = gate(policy("a"))
        return await asyncio.gather(*(one.answer(there.step()) for _ in range(20)))

    answers = play(story)
    assert {len(answer.record.attempts) for answer in answers} == {1}
    assert len({answer.record.call_id for answer in answers}) == 20


def test_a_step_without_a_face_says_so() -> None:
    """A step without a stream can't be streamed, one without invoke can't be called."""

    async def story() -> None:
        with pytest.raises(UsageError, match="no stream"):
            gate(policy("a")).stream(Step("x"))
        with pytest.raises(UsageError, match="no invoke"):
            await gate(policy("a")).call(Step("x"))

    play(story)


PROBER = """
import anyio, sys
from gonogo.gate import FileStore, Gate
sys.path.insert(0, {root!r})
from tests.gate.test_gate import SHARED

async def hang():
    print("probing", flush=True)
    await anyio.sleep(600)

anyio.run(Gate(SHARED, store=FileStore({folder!r})).call, hang)
"""
SHARED = Policy(
    targets=(Target("a"),),
    breaker=BreakerPolicy(failures=1, cooldown_s=0.01, jitter=0, lease_margin_s=1.0),
    timers=Timers(attempt_s=1.0),
    bounds=Bounds(attempts_max=1),
)
"""A cooldown that is over at once, and a lease that lasts two seconds."""


def test_F_8_4_a_prober_that_is_killed_wedges_nobody(tmp_path: Path) -> None:
    """F.8.4, B33: what one process opens the next sees; its lease ends although nobody gives it back."""

    async def fails() -> None:
        raise Http(500)

    async def fine() -> str:
        return "fine"

    folder, root = str(tmp_path / "breakers"), str(Path(__file__).parents[2])
    with pytest.raises(GateError):
        asyncio.run(Gate(SHARED, store=FileStore(folder)).call(fails))
    program = PROBER.format(root=root, folder=folder)
    prober = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=root)
    try:
        assert prober.stdout is not None
        assert prober.stdout.readline() == b"probing\n"
    finally:
        prober.kill()
        prober.communicate()
    fast = Gate(structs.replace(SHARED, when_all_open="fail"), store=FileStore(folder))
    with pytest.raises(CircuitOpen) as refused:
        asyncio.run(fast.call(fine))
    assert refused.value.record is not None
    assert refused.value.record.why_not("a") == ["another call is probing"]
    assert asyncio.run(Gate(SHARED, store=FileStore(folder)).call(fine)) == "fine"
