"""Sixteen faults of model servers and what a clean pass needs (reliability-gate, G.3), over real connections.

Two servers on the loopback, a primary that breaks down and a second one, and one gate before them, in mode restart with
ten seconds for the first token. Streams are read by the product's own reader. `--scale` makes all of it faster: waits
and limits alike.

    python -m tests.servers.failover                 in real time, side by side: a minute and a half
    python -m tests.servers.failover --scale 0.1     in ten seconds; limits that count seconds aren't judged
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

import httpx2
from msgspec.structs import replace
from tests.servers import faulty
from tests.servers.faulty import Connection, FaultyServer, Script
from tests.servers.model import Break, Said, cut, refuses, says

from gonogo.gate import (
    Answer,
    Attempt,
    Backoff,
    Bounds,
    BreakerPolicy,
    CallRecord,
    Chunk,
    Gate,
    GateError,
    Policy,
    RetryShare,
    Step,
    StepFailed,
    StreamReset,
    Target,
    Timers,
    Usage,
)
from gonogo.gate.decisions import AttemptStarted
from gonogo.models.conversation import Ask, Message
from gonogo.models.events import Broken, Delta, Done, Noted, StreamEvent
from gonogo.models.formats import format_named
from gonogo.models.reply import NoAnswer
from gonogo.models.reply import Usage as Counted

PRIMARY = Target("primary", model="p-1", window_tokens=8_000)
SECOND = Target("second", model="s-1", window_tokens=100_000)
SAID = Said(tuple(f"t{number} " for number in range(60)))
TEXT = "".join(SAID.pieces)
GOOD = says(SAID)
POLICY = Policy(
    targets=(PRIMARY, SECOND),
    mode="restart",
    timers=Timers(first_token_s=10.0),
    breaker=BreakerPolicy(cooldown_s=10.0, cooldown_s_max=20.0),
)
"""Restart and ten seconds are the benchmark's profile. The breaker's times are for S15, which wants the primary back
within 30 s: the default's cooldown grows to minutes, so that a long outage is asked about less often.
"""


def scaled(policy: Policy, scale: float) -> Policy:
    """The same policy with every duration so many times as long."""
    timers, bounds, backoff, breaker = policy.timers, policy.bounds, policy.backoff, policy.breaker
    assert breaker is not None
    return replace(
        policy,
        timers=Timers(*(getattr(timers, name) * scale for name in Timers.__struct_fields__)),
        bounds=Bounds(deadline_s=bounds.deadline_s * scale, wait_s_max=bounds.wait_s_max * scale),
        backoff=Backoff(*(getattr(backoff, name) * scale for name in Backoff.__struct_fields__)),
        breaker=replace(
            breaker,
            cooldown_s=breaker.cooldown_s * scale,
            cooldown_s_max=breaker.cooldown_s_max * scale,
            window_s=breaker.window_s * scale,
            lease_margin_s=breaker.lease_margin_s * scale,
        ),
    )


# --- the client


def model_step(urls: Mapping[str, str]) -> Step:
    """Asks a model server and gives its stream piece by piece."""
    # A context that nothing uses: reading the system's certificates for each attempt would take its time.
    unused = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    async def stream(attempt: Attempt) -> AsyncIterator[Chunk]:
        wire = format_named("openai")
        messages: tuple[Message, ...] = (Message("user", "count"),)
        if attempt.partial is not None:
            messages = (*messages, Message("assistant", attempt.partial))
        call = wire.request(
            f"{urls[attempt.target.name]}/v1", Ask(attempt.target.model, messages, stream=True)
        )
        async with (
            httpx2.AsyncClient(timeout=None, trust_env=False, verify=unused) as client,
            client.stream("POST", call.url, headers=dict(call.headers), content=call.body) as answer,
        ):
            headers = {name.lower(): value for name, value in answer.headers.items()}
            if answer.status_code != 200:
                raise _failed(wire.read(answer.status_code, headers, await answer.aread(), time.time()))
            reader = wire.reader(headers, time.time())
            async for data in answer.aiter_raw():
                for event in reader.feed(data):
                    yield _chunk(event)
                if reader.state == "ending":
                    partial = reader.partial()
                    yield Chunk(finish=partial.finish_raw, usage=_usage(partial.usage))
            for event in reader.end():
                yield _chunk(event)

    return Step("ask", stream=stream, effects="reads")


def _chunk(event: StreamEvent) -> Chunk:
    if isinstance(event, Delta):
        return Chunk(event.text, tokens=1)
    if isinstance(event, Done):
        return Chunk(finish=event.reply.finish_raw or None, usage=_usage(event.reply.usage), end=True)
    if isinstance(event, Broken):
        raise _failed(event.no_answer)
    return Chunk(bad=isinstance(event, Noted))


def _failed(found: object) -> StepFailed:
    assert isinstance(found, NoAnswer)
    return StepFailed(
        found.kind,
        found.message,
        status=found.status,
        code=found.vendor_code or None,
        retry_after_s=found.retry_after_s,
    )


def _usage(counted: Counted) -> Usage:
    return Usage(counted.input_tokens or 0, counted.output_tokens or 0)


# --- what was seen


@dataclass
class Seen:
    """What came of one call, seconds as the scenario counts them, and what the servers saw of it."""

    shown: str
    answer: Answer | None
    error: GateError | None
    record: CallRecord
    took_s: float
    primary: FaultyServer
    second: FaultyServer
    scale: float
    wrong: list[str] = field(default_factory=list)

    def expect(self, holds: bool, told: str) -> None:
        """Note what isn't as it should be."""
        if not holds:
            self.wrong.append(told)

    def within(self, limit_s: float) -> None:
        """A limit in seconds; judged in real time alone, since a machine under load has its own."""
        if self.scale == 1:
            self.expect(self.took_s <= limit_s, f"took {self.took_s:.1f} s, at most {limit_s:g}")

    def whole(self, served: str, primary_max: int = 6) -> None:
        """The whole answer by this target, with its model and usage, after so many calls of the primary."""
        self.expect(self.error is None, f"failed: {self.error}")
        self.expect(self.shown == TEXT, f"showed {len(self.shown)} of {len(TEXT)} characters")
        calls = len(self.primary.requests)
        self.expect(calls <= primary_max, f"{calls} calls of the primary, at most {primary_max}")
        if self.answer is None:
            return
        model = {"primary": "p-1", "second": "s-1"}[served]
        self.expect(
            (self.answer.target, self.answer.model) == (served, model),
            f"{self.answer.target} served as {self.answer.model}",
        )
        tokens = self.answer.usage.output_tokens
        self.expect(tokens >= SAID.output_tokens, f"{tokens} tokens are told, {SAID.output_tokens} were sent")

    def starts_s(self) -> list[float]:
        """When each attempt began."""
        found = [each.offset_ms for each in self.record.decisions if isinstance(each, AttemptStarted)]
        return [offset_ms / 1000 / self.scale for offset_ms in found]


# --- the scenarios


@dataclass(frozen=True)
class Scenario:
    """One fault: what the primary does (and the second one, if it isn't well), and what is expected."""

    fault: str
    needs: str
    primary: Callable[[float], tuple[Script, ...]]
    judge: Callable[[Seen], None]
    second: tuple[Script, ...] = (GOOD,)


def _S01(seen: Seen) -> None:
    seen.whole("primary", primary_max=2)
    starts = seen.starts_s()
    seen.expect(len(starts) == 2 and starts[1] >= 1.8, f"attempts at {starts}, the second not before 1.8 s")


def _S02(seen: Seen) -> None:
    seen.whole("second")
    early = [at for at in seen.starts_s() if at <= 3]
    seen.expect(len(early) <= 4, f"{len(early)} attempts within 3 s, at most 4")


def _S06(seen: Seen) -> None:
    seen.whole("second", primary_max=1)
    seen.within(100)
    seen.expect(seen.primary.until_hung_up(), "the silent connection is still open")


def _S07(seen: Seen) -> None:
    seen.whole("second", primary_max=1)
    seen.within(15)


def _S08(seen: Seen) -> None:
    seen.whole("primary", primary_max=2)
    resets = [each for each in seen.record.decisions if type(each).__name__ == "StreamReset"]
    seen.expect(len(resets) == 1, "what was shown wasn't withdrawn")


def _S09(seen: Seen) -> None:
    seen.whole("primary", primary_max=2)
    seen.within(30)
    seen.expect(seen.primary.until_hung_up(), "the stalled connection is still open")


def _S10(seen: Seen) -> None:
    seen.whole("primary", primary_max=1)
    seen.expect(
        seen.record.attempts[0].integrity == "ok", "the damage isn't made good by the count of tokens"
    )


def _S11(seen: Seen) -> None:
    seen.whole("primary", primary_max=1)
    seen.within(8)


def _S13(seen: Seen) -> None:
    error = seen.error
    seen.expect(error is not None and error.kind == "content-filter", f"ended with {error!r}")
    seen.expect("blocked: violence" in str(error), "the vendor's reason is lost")
    calls = len(seen.primary.requests), len(seen.second.requests)
    seen.expect(calls == (1, 0), f"{calls} calls, not one of the primary alone")


def _S14(seen: Seen) -> None:
    seen.whole("second")
    asked = [json.loads(each.body)["messages"][-1]["role"] for each in seen.second.requests]
    seen.expect(asked == ["user"], f"the second was asked {asked}")


def _limited(scale: float) -> tuple[Script, ...]:
    wish = {"retry-after": "2"} if scale == 1 else {"retry-after-ms": str(round(2000 * scale))}
    return refuses(429, "rate_limit_exceeded", headers=wish), GOOD


def _late(scale: float) -> tuple[Script, ...]:
    take, answer = GOOD
    return ((take, lambda connection: connection.server.pause(20 * scale), answer),)


def _without_end(scale: float) -> tuple[Script, ...]:
    """All events but the last, and then nothing more on an open connection."""
    return (says(SAID, Break(len(SAID.pieces) + 3, faulty.stall)),)


def _no_prefill(connection: Connection) -> None:
    """Answer, unless the model is to go on from words put into its mouth."""
    asked = json.loads(connection.server.requests[-1].body)["messages"][-1]["role"]
    script = GOOD if asked == "user" else refuses(400, "invalid_request_error", "prefill isn't supported")
    script[1](connection)


def _always(*scripts: Script) -> Callable[[float], tuple[Script, ...]]:
    return lambda scale: scripts


SCENARIOS: dict[str, Scenario] = {
    "S01": Scenario("429, Retry-After 2", "a wait of 1.8 s, the same target", _limited, _S01),
    "S02": Scenario("429 for ever", "4 attempts in 3 s, then the other", _always(refuses(429, "too_many")), _S02),
    "S03": Scenario("one 500", "one retry", _always(refuses(500, "x"), GOOD), lambda seen: seen.whole("primary", 2)),
    "S04": Scenario("503 for ever", "the other", _always(refuses(503, "x")), lambda seen: seen.whole("second")),
    "S05": Scenario(
        "reset before headers", "one retry", _always(faulty.RESET_BEFORE_HEADERS, GOOD),
        lambda seen: seen.whole("primary", 2),
    ),
    "S06": Scenario("accepted, never answers", "one attempt, the other", _always(faulty.STALL_BEFORE_HEADERS), _S06),
    "S07": Scenario("first token after 20 s", "the other within 15 s", _late, _S07),
    "S08": Scenario("dies at 40 of 60 tokens", "withdrawn, whole", _always(says(SAID, Break(41, faulty.reset)), GOOD),
                    _S08),
    "S09": Scenario("stalls in the stream", "noticed, whole", _always(says(SAID, Break(41, faulty.stall)), GOOD), _S09),
    "S10": Scenario("one event is no JSON", "skipped, whole",
                    _always(says(SAID, Break(20, bytes=b"data: {broken\n\n"))), _S10),
    "S11": Scenario("no [DONE], connection stays", "an end within 8 s, with usage", _without_end, _S11),
    "S12": Scenario("context too long", "one attempt, the larger model",
                    _always(refuses(400, "context_length_exceeded")), lambda seen: seen.whole("second", 1)),
    "S13": Scenario("content filter", "one attempt, the vendor's reason",
                    _always(refuses(400, "content_filter", "blocked: violence")), _S13),
    "S14": Scenario("cut streams, no prefill", "a clean restart", _always(says(SAID, Break(41, cut))), _S14,
                    ((faulty.take_request, _no_prefill),)),
    "S16": Scenario("503, the other answers", "its model, its usage", _always(refuses(503, "overloaded")),
                    lambda seen: seen.whole("second")),
}  # fmt: skip
"""All but S15, which is twenty calls."""


def gate_for(scale: float) -> Gate:
    """The benchmark's profile. Scenarios run side by side, so the share of retries is each one's own."""
    return Gate(scaled(POLICY, scale), retries=RetryShare())


async def call(gate: Gate, step: Step) -> tuple[str, Answer | None, GateError | None, CallRecord]:
    """One stream to its end; what a consumer shows who obeys resets."""
    shown = ""
    async with gate.stream(step) as stream:
        try:
            async for piece in stream:
                shown = "" if isinstance(piece, StreamReset) else shown + piece.text
        except GateError as error:
            return shown, None, error, stream.record
    return shown, stream.answer, None, stream.record


async def played(name: str, scale: float) -> list[str]:
    """What is wrong about a scenario's end; nothing for a clean pass."""
    if name == "S15":
        return await outage(scale)
    scenario = SCENARIOS[name]
    with ExitStack() as servers:
        primary = servers.enter_context(FaultyServer(*scenario.primary(scale)))
        second = servers.enter_context(FaultyServer(*scenario.second))
        step = model_step({"primary": primary.url, "second": second.url})
        start = time.monotonic()
        shown, answer, error, record = await call(gate_for(scale), step)
        took_s = (time.monotonic() - start) / scale
        seen = Seen(shown, answer, error, record, took_s, primary, second, scale)
        await asyncio.to_thread(scenario.judge, seen)
        return seen.wrong


DOWN_S, CALLS, EVERY_S, BACK_S, ASKED_MAX = 60.0, 20, 4.5, 30.0, 10
"""S15: how long it is down, calls and their distance, when it must serve again, how often it is asked meanwhile."""


async def outage(scale: float) -> list[str]:
    """S15: a minute's outage, twenty calls: all served, few probes, and back soon after."""
    began = time.monotonic()

    def now_s() -> float:
        return (time.monotonic() - began) / scale

    def answer(connection: Connection) -> None:
        script = refuses(503, "overloaded") if now_s() < DOWN_S else GOOD
        script[1](connection)

    wrong: list[str] = []
    served: list[tuple[float, str]] = []
    asked_meanwhile = 0
    with FaultyServer((faulty.take_request, answer)) as primary, FaultyServer(GOOD) as second:
        gate, step = gate_for(scale), model_step({"primary": primary.url, "second": second.url})
        for number in range(CALLS):
            await asyncio.sleep(max(0.0, (number * EVERY_S - now_s()) * scale))
            shown, found, error, _ = await call(gate, step)
            if found is None or shown != TEXT:
                wrong.append(f"call {number + 1} wasn't served: {error}")
            else:
                served.append((now_s(), found.target))
            if now_s() < DOWN_S:
                asked_meanwhile = len(primary.requests)
    back = min((at for at, target in served if target == "primary"), default=float("inf"))
    if back > DOWN_S + BACK_S:
        wrong.append(f"the primary served again after {back - DOWN_S:.0f} s, at most {BACK_S:g}")
    if asked_meanwhile > ASKED_MAX:
        wrong.append(f"it was asked {asked_meanwhile} times while it was down, at most {ASKED_MAX}")
    return wrong


NAMES = tuple(f"S{number:02}" for number in range(1, 17))


async def table(scale: float) -> bool:
    """Print a line a scenario; whether all have passed."""
    found = await asyncio.gather(*(_timed(played(name, scale), scale) for name in NAMES))
    for name, (wrong, took_s) in zip(NAMES, found, strict=True):
        fault, needs = ("down for a minute, 20 calls", "all served, back in 30 s, few probes")
        if name in SCENARIOS:
            fault, needs = SCENARIOS[name].fault, SCENARIOS[name].needs
        told = [f"{name}  {fault:28} {needs:38} {'FAILED' if wrong else 'pass':6} {took_s:6.1f} s"]
        sys.stdout.write("\n     ".join([*told, *wrong]) + "\n")
    passes = sum(not wrong for wrong, _ in found)
    sys.stdout.write(f"{passes} of {len(NAMES)}\n")
    return passes == len(NAMES)


async def _timed(played: Awaitable[list[str]], scale: float) -> tuple[list[str], float]:
    start = time.monotonic()
    return await played, (time.monotonic() - start) / scale


def main() -> int:
    """0 when all sixteen pass."""
    parser = argparse.ArgumentParser(description="Play sixteen faults of model servers against the gate.")
    parser.add_argument("--scale", type=float, default=1.0, help="1 is real time, 0.1 ten times as fast")
    return 0 if asyncio.run(table(parser.parse_args().scale)) else 1


if __name__ == "__main__":
    sys.exit(main())
