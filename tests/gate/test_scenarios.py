"""Sixteen faults of model servers and what a clean pass needs (G.3), in virtual time and restart mode."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gate.world import Chunk, Http, Slow, StepFailed, collected, gate, play, shown, streams

from gonogo.gate import BreakerPolicy, GateError, Policy, Target, Timers, Usage

PRIMARY = Target("primary", model="p-1", window_tokens=8_000)
SECOND = Target("second", model="s-1", window_tokens=100_000)
WHOLE = [*(Chunk(f"t{n} ") for n in range(60)), Chunk(finish="stop", usage=Usage(10, 60), end=True)]
TEXT = "".join(piece.text for piece in WHOLE)
BENCH = Policy(
    targets=(PRIMARY, SECOND), mode="restart", timers=Timers(first_token_s=10.0), breaker=BreakerPolicy()
)

SCRIPTS: dict[str, tuple[list[Any], str, int, float]] = {
    # primary's streams, who must answer, most calls of the primary, most seconds
    "S01": ([[Http(429, retry_after="2")], WHOLE], "primary", 2, 5),
    "S02": ([[Http(429)]], "second", 6, 10),
    "S03": ([[Http(500)], WHOLE], "primary", 2, 5),
    "S04": ([[Http(503)]], "second", 6, 10),
    "S05": ([[ConnectionResetError()], WHOLE], "primary", 2, 5),
    "S06": ([[Slow(10_000)]], "second", 1, 100),
    "S07": ([[Slow(20), *WHOLE]], "second", 1, 15),
    "S08": ([[*WHOLE[:40], ConnectionResetError()], WHOLE], "primary", 2, 5),
    "S09": ([[*WHOLE[:40], Slow(30), *WHOLE[40:]], WHOLE], "primary", 2, 60),
    "S10": ([[*WHOLE[:20], Chunk(bad=True), *WHOLE[20:]]], "primary", 1, 1),
    "S11": ([[*WHOLE[:60], Chunk(finish="stop", usage=Usage(10, 60))]], "primary", 1, 8),
    "S12": ([[StepFailed("context-too-long", status=400)]], "second", 1, 1),
    "S14": ([[*WHOLE[:40]]], "second", 6, 10),
    "S16": ([[Http(503)]], "second", 6, 10),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scenario(name: str) -> None:
    """The whole answer, from the right target, in time, with its model and usage."""
    script, served, calls_max, seconds = SCRIPTS[name]
    there = streams(primary=[list(each) for each in script], second=[list(WHOLE)])

    async def story() -> Any:
        one = gate(BENCH)
        stream = one.stream(there.step())
        return shown(await collected(stream)), stream.answer, one.clock.now()

    text, answer, at = play(story)
    assert (text, answer.target) == (TEXT, served)
    assert answer.model == {"primary": "p-1", "second": "s-1"}[served]
    assert answer.usage.output_tokens >= 60
    assert there.called.count("primary") <= calls_max
    assert at <= seconds
    if name == "S01":
        assert there.at[1] >= 1.8


def test_scenario_S13() -> None:
    """One attempt, a clean error with the vendor's reason, no failover."""
    there = streams(
        primary=[[StepFailed("content-filter", "blocked: violence", status=400)]], second=[list(WHOLE)]
    )

    async def story() -> Any:
        with pytest.raises(GateError, match="blocked: violence") as raised:
            await collected(gate(BENCH).stream(there.step()))
        return raised.value

    assert play(story).kind == "content-filter"
    assert there.called == ["primary"]
