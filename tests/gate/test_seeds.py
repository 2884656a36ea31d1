"""Random policies, faults and cancels, five thousand in each test run (F.8.6). A failure names its seed."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from msgspec import structs
from tests.gate.world import Chunk, Http, Slow, StepFailed, World, gate, play

from gonogo.gate import (
    Amounts,
    Backoff,
    Bounds,
    BreakerPolicy,
    GateError,
    Policy,
    Purse,
    RetryShare,
    Rule,
    Signal,
    StreamReset,
    Target,
    Timers,
    Usage,
    rule,
)
from gonogo.gate import decisions as d
from gonogo.gate.policy import Hedge
from gonogo.gate.replaying import replay

SEEDS = 5_000
BATCHES = 25
MODES: list[Any] = (
    "pass-through restart continue hold-until-first-token hold-until-valid sentence-hold".split()
)
KINDS = "ok server-5xx rate-limit schema-fail auth network unknown timeout-total empty-response".split()


def failure(random: Random) -> Any:
    """Something that goes wrong; some of it is billed, some takes its time."""
    wish = str(random.choice([0, 1, 4, 40, 86_400, "banana"]))
    usage = Usage(random.randrange(200), random.randrange(50), random.random() / 10)
    return random.choice(
        [
            Http(random.choice([400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 529])),
            Http(random.choice([403, 429, 503]), retry_after=wish),
            random.choice([ConnectionResetError, ConnectionRefusedError, TimeoutError, RuntimeError])(),
            StepFailed(random.choice(["content-filter", "context-too-long", "made-up", "quota-exhausted"])),
            StepFailed("server-5xx", usage=usage),
            Slow(random.uniform(0, 60), Http(500)),
            Slow(1000),
        ]
    )


def outcome(random: Random) -> Any:
    """What a target does once."""
    if random.random() < 0.55:
        return failure(random)
    return random.choice(["fine", "fine", "bad", "", Slow(random.uniform(0, 40), "fine")])


def pieces(random: Random) -> list[Any]:
    """What a target streams once: often a whole answer, often not."""
    found: list[Any] = []
    for _ in range(random.randrange(6)):
        found.append(
            random.choice(
                [
                    Chunk("x", tokens=1),
                    Chunk("yy" * random.randrange(1, 200), usage=Usage(random.randrange(100), 3)),
                    Chunk(bad=True),
                    Chunk(tool=True),
                    random.uniform(0, 3),
                ]
            )
        )
    if random.random() < 0.2:
        found.append(random.choice([30.0, failure(random), Chunk(error=Signal(message="sorry", status=500))]))
    if random.random() < 0.7:
        found.append(
            Chunk(
                finish=random.choice(["stop", "stop", "length", "content_filter"]),
                usage=Usage(9, 9),
                end=True,
            )
        )
    return found


def rules(random: Random, verbs: str) -> tuple[Rule, ...]:
    """A few rules, sensible or not."""
    made = []
    for _ in range(random.choice([0, 0, 1, 2, 4])):
        verb = random.choice(verbs.split())
        when: dict[str, Any] = random.choice(
            [
                {"error_kind": random.choice(KINDS)},
                {"error_kind": {"ne": "ok"}},
                {"attempt": {"gte": random.randrange(4)}},
                {"can_switch": True},
                {"delivered": True},
                {"target": "b"},
                {"cost_usd": {"gt": 0.05}},
            ]
        )
        wait_s = (
            random.uniform(0, 20) if verb == "wait" or (verb == "retry" and random.random() < 0.3) else None
        )
        made.append(rule(verb, when, wait_s=wait_s))
    return tuple(made)


def policy(random: Random) -> Policy:
    """Any policy that a gate takes."""
    names = "abc"[: random.randrange(1, 4)]
    capable = [frozenset[str](), frozenset({"prefill"})]
    return Policy(
        targets=tuple(
            Target(name, model=name, capabilities=random.choice(capable), tier=random.randrange(2),
                   key_honoured=random.random() < 0.5, credential=random.choice(["", "k"]),
                   input_usd_per_million=random.choice([0.0, 1000.0]))
            for name in names
        ),
        before=rules(random, "continue continue skip-target wait fail-fast"),
        after=rules(random, "ok retry retry-other fallback fail-fast"),
        bounds=Bounds(
            attempts_per_target=random.randrange(1, 5),
            attempts_max=random.randrange(1, 9),
            deadline_s=random.uniform(0.5, 120),
            tokens_max=random.choice([None, None, random.randrange(1, 500)]),
            cost_usd_max=random.choice([None, None, random.random() / 5]),
            fallbacks_max=random.randrange(3),
            waits_max=random.randrange(6),
            wait_s_max=random.uniform(0, 60),
            cycles=random.randrange(1, 4),
        ),
        timers=Timers(
            first_token_s=random.uniform(0.1, 20), idle_s=random.uniform(0.1, 20), attempt_s=random.uniform(0.5, 60)
        ),
        backoff=Backoff(base_s=random.uniform(0, 5), patience_s=random.uniform(0, 10)),
        breaker=random.choice(
            [None, BreakerPolicy(failures=random.randrange(1, 4), cooldown_s=random.uniform(1, 40))]
        ),
        mode=random.choice(MODES),
        hold_characters=random.randrange(1, 300),
        when_all_open=random.choice(["wait", "probe", "fail"]),
        reroute=random.choice([frozenset[str](), frozenset({"content-filter", "length-stop"})]),
        hedge=random.choice([None, None, Hedge(random.uniform(0.1, 5))]),
        sticky_s=random.choice([None, 10.0]),
    )  # fmt: skip


def ordered(made: Policy, seed: int) -> Policy:
    """Some policies order their targets by weight or by latency; drawn apart, so that old seeds stay what they were."""
    random = Random(f"order {seed}")
    order: Any = random.choice(["configured", "weighted", "least-latency"])
    if order == "configured":
        return made
    targets = tuple(
        structs.replace(target, weight=random.choice([None, 0.0, 3.0])) for target in made.targets
    )
    return structs.replace(made, targets=targets, order=order, sticky_s=None)


class Game:
    """One seed: a policy, what its targets do, and perhaps a moment at which the caller goes away."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.seed = seed
        self.policy = ordered(policy(random), seed)
        self.streamed = random.random() < 0.5
        made = pieces if self.streamed else outcome
        self.world = World({name: [made(random) for _ in range(random.randrange(1, 5))] for name in "abc"})
        self.cancel_s = random.choice([None, random.uniform(0, 60), random.uniform(0, 2), 0.0])
        self.leave_after = random.choice([None, None, random.randrange(4)])
        self.fallback = random.choice([None, "canned", "bad", RuntimeError("no luck"), Slow(50)])
        self.effects: Any = random.choice(["reads", "idempotent", "mutates"])
        self.key = random.choice([None, "k"])
        self.pieces: list[Any] = []
        self.record: Any = None

    async def fall_back(self, error: BaseException | None) -> Any:
        """As scripted."""
        found = self.fallback
        if isinstance(found, Slow):
            await asyncio.sleep(found.after_s)
            return found.then
        elif isinstance(found, BaseException):
            raise found
        return found

    async def call(self, one: Any) -> Any:
        """The value."""
        step = self.world.step(
            fallback=None if self.fallback is None else self.fall_back,
            validate=lambda value: "bad" if value == "bad" else None,
            usage=lambda value: Usage(10, 5),
            effects=self.effects,
            key=self.key,
            continuable=lambda text: True,
        )
        if not self.streamed:
            answer = await one.answer(step)
            self.record = answer.record
            return answer.value
        async with one.stream(step) as stream:
            self.record = stream.record
            async for piece in stream:
                self.pieces.append(piece)
                if self.leave_after is not None and len(self.pieces) > self.leave_after:
                    return None
            return stream.answer.value

    async def play(self) -> None:
        """Play it and look at what came of it. Raises AssertionError."""
        self.purse = Purse(tokens_max=10**9)
        one = gate(
            self.policy, retries=RetryShare(floor=5), watch=self._hear, seed=str(self.seed), purse=self.purse
        )
        began = one.clock.now()
        self.heard: list[Any] = []
        task = asyncio.create_task(self.call(one))
        if self.cancel_s is not None:
            await asyncio.wait({task}, timeout=self.cancel_s)
            task.cancel()
        (value,) = await asyncio.gather(task, return_exceptions=True)
        took_s = one.clock.now() - began
        calls = len(self.world.calls)
        await asyncio.sleep(200)
        assert len(self.world.calls) == calls, "something was called afterwards"
        if isinstance(value, GateError):
            self.record = value.record
        self._bounds(took_s)
        self._record(value)
        self._sums()
        self._value(value)

    def _hear(self, call: str, decision: Any) -> None:
        self.heard.append(decision)

    def _bounds(self, took_s: float) -> None:
        bounds, called = self.policy.bounds, self.world.called
        assert took_s <= bounds.deadline_s + 1e-6
        assert len(called) <= bounds.attempts_max
        assert all(called.count(name) <= bounds.attempts_per_target for name in set(called))
        assert self._count(d.WaitStarted) <= bounds.waits_max
        assert self._count(d.FallbackStarted) <= bounds.fallbacks_max * (self.fallback is not None)
        waits = [each.wait_s for each in self.heard if isinstance(each, d.WaitStarted)]
        assert all(wait_s <= bounds.wait_s_max + 1e-9 for wait_s in waits)
        if self.effects == "mutates" and self.key is None:
            clean = [
                each for each in self.heard if isinstance(each, d.AttemptEnded) and each.effect != "none"
            ]
            assert len(clean) <= 1

    def _record(self, value: Any) -> None:
        """Whole: it ends once, every attempt has both ends, and it decides the same again."""
        decisions = self.heard
        if self.record is not None:
            assert decisions == self.record.decisions
            assert replay(self.policy, self.record.events) == decisions
        if not decisions:  # cancelled before its first step
            assert isinstance(value, asyncio.CancelledError)
            return
        ends = [each for each in decisions if isinstance(each, d.GateEnded)]
        assert len(ends) == 1
        assert decisions[-1] is ends[0]
        started = [each.attempt for each in decisions if isinstance(each, d.AttemptStarted)]
        ended = [each.attempt for each in decisions if isinstance(each, d.AttemptEnded)]
        assert sorted(ended) == started == list(range(1, len(started) + 1))
        assert self._count(d.FallbackStarted) == self._count(d.FallbackEnded)
        assert len(self.world.calls) <= len(started)
        offsets = [each.offset_ms for each in decisions]
        assert offsets == sorted(offsets)

    def _sums(self) -> None:
        if self.heard:
            parts = [each.usage for each in self.heard if isinstance(each, d.AttemptEnded | d.FallbackEnded)]
            total, used = sum(parts, Usage()), self.heard[-1].used
            assert (used.input_tokens, used.output_tokens) == (total.input_tokens, total.output_tokens)
            assert used.cost_usd == pytest.approx(total.cost_usd)
            spent = self.purse.spent
            assert spent.tokens == used.input_tokens + used.output_tokens
            assert spent.cost_usd == pytest.approx(used.cost_usd, abs=1e-8)
        assert self.purse.reserved == Amounts()

    def _value(self, value: Any) -> None:
        """A value, a typed error or the cancellation, and nothing else (F17)."""
        assert value is None or isinstance(value, str | GateError | asyncio.CancelledError), value
        if isinstance(value, asyncio.CancelledError):
            assert self.cancel_s is not None
        elif isinstance(value, str):
            assert value != "bad"
            assert self.heard[-1].outcome in ("ok", "partial")
            if self.streamed:
                assert _shown(self.pieces) == value
        elif value is None:
            assert self.leave_after is not None
        else:
            assert self.heard[-1].outcome == "failed"

    def _count(self, kind: type[Any]) -> int:
        return sum(isinstance(each, kind) for each in self.heard)


def _shown(given: list[Any]) -> str:
    text = ""
    for piece in given:
        if isinstance(piece, StreamReset):
            text = ""
        else:
            text += piece.text if isinstance(piece, Chunk) else piece
    return text


@pytest.mark.parametrize("batch", range(BATCHES))
def test_F_8_6_whatever_happens_a_call_ends_within_its_bounds_with_a_true_record(batch: int) -> None:
    """F.8.6, F.8.5: always ends, bounds held, the record complete, totals the sum of the attempts."""

    async def story() -> None:
        for seed in range(batch * SEEDS // BATCHES, (batch + 1) * SEEDS // BATCHES):
            try:
                await Game(seed).play()
            except Exception as error:
                raise AssertionError(f"seed {seed}") from error

    play(story)
