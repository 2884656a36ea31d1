"""Cases CAN, CON, TIM and RES of the public reports that whole runs must hold, beside those in the rooms' own tests."""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from tests.servers import faulty
from tests.whole import RunYaml

from gonogo import app
from gonogo.app.parts import built_in_table
from gonogo.core.events import CallFailed
from gonogo.core.plan import Plan
from gonogo.hosts.base import RunResult
from gonogo.journal.records import Record
from gonogo.provider import Call, Context, Done, Outcome, Provider

HEAD = 'version: "1.0"\n'


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No keys."""


def step_type(name: str, run: Callable[[Call, Context], object]) -> Provider:
    """A step type of this test."""
    return Provider(name=name, config=Keys, run=run)  # type: ignore[arg-type]


# --- CAN


def test_CAN_1_a_cancelled_call_counts_in_no_breaker(tmp_path: Path) -> None:
    """CAN-1: the far side hasn't failed; the step is cancelled, and nothing of its block is done."""
    policy = "{bounds: {attempts_per_target: 3, deadline_s: 60}, breaker: {failures: 1}}"
    with faulty.FaultyServer((faulty.take_request, faulty.hold)) as far:
        text = f"""{HEAD}steps:
  a: {{type: http_client, url: '{far.url}', allow_private: true, reliability: {policy}, on_fail: {{run: [b]}}}}
  b: {{type: noop}}
"""
        plan = app.loads(text).plan
        options = app.Options(runs=tmp_path / "runs")
        asyncio.run(_cancelled_when(lambda: far.connections == 1, plan, options))
        assert far.connections == 1
    assert [breaker for breaker in app.list_breakers(options) if breaker.state != "closed"] == []
    view, _ = app.view_run(app.find_run("last", options), options)
    assert {name: step.outcome for name, step in view.steps.items()} == {"a": "cancelled", "b": "skipped"}


async def _cancelled_when(
    due: Callable[[], bool], plan: Plan, options: app.Options, count: Callable[[], int] = lambda: 0
) -> int:
    """Cancel the run as soon as it is `due`; what `count` said at that moment."""
    task = asyncio.create_task(app.start_run_async(plan, app.Start(), options))
    while not due():  # noqa: ASYNC110 - a server in a thread has no event of this loop
        await asyncio.sleep(0)
    at = count()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return at


@pytest.mark.parametrize("moment", range(100))
def test_CAN_3_a_chain_cancelled_at_any_moment_goes_one_step_further_at_most(
    tmp_path: Path, moment: int
) -> None:
    """CAN-3: fifty steps, cancelled in the moment in which one of them ends or some turns of the loop later; what was
    done is what the journal says.
    """
    chance = random.Random(moment)
    last, turns = chance.randrange(46), iter(range(chance.choice((0, 0, 1, 2, 3, 4, 6, 8, 12, 16))))
    done: list[str] = []

    async def run(call: Call, context: Context) -> Outcome:
        await asyncio.sleep(0)
        done.append(call.step)
        return Done(call.step)

    table = built_in_table((step_type("short", run),))
    steps = "".join(f"  s{n}: {{type: short{f', depends_on: s{n - 1}' if n else ''}}}\n" for n in range(50))
    plan = app.loads(f"{HEAD}steps:\n{steps}", table=table).plan
    options = app.Options(runs=tmp_path, table=table)

    def is_due() -> bool:
        return len(done) > last and next(turns, None) is None

    at = asyncio.run(_cancelled_when(is_due, plan, options, lambda: len(done)))
    view, _ = app.view_run(app.find_run("last", options), options)
    passed = [name for name, step in view.steps.items() if step.outcome == "passed"]
    assert view.cancelled
    assert passed == done[: len(passed)]
    assert len(done) - len(passed) in (0, 1)
    assert len(done) - at <= 1


# --- CON


def test_CON_1_a_step_type_that_breaks_gives_its_slot_back(tmp_path: Path) -> None:
    """CON-1: what nobody expected in a step type, and what ends programs; the next steps run, one at a time."""
    most = [0, 0]

    async def run(call: Call, context: Context) -> Outcome:
        most[0] += 1
        most[1] = max(most)
        try:
            await asyncio.sleep(0)
            if call.step in ("b", "d"):
                raise RuntimeError("broken") if call.step == "b" else MemoryError
            return Done(1)
        finally:
            most[0] -= 1

    table = built_in_table((step_type("odd", run),))
    steps = "".join(f"  {name}: {{type: odd, continue_on_failure: true}}\n" for name in "abcde")
    plan = app.loads(f"{HEAD}max_parallelism: 1\nsteps:\n{steps}", table=table).plan
    result = app.start_run(plan, app.Start(), app.Options(runs=tmp_path, table=table))
    outcomes = {name: nodes[""].outcome for name, nodes in result.state.nodes.items()}
    assert outcomes == {"a": "passed", "b": "tolerated", "c": "passed", "d": "tolerated", "e": "passed"}
    assert (most[1], result.state.slots, result.state.calls) == (1, 0, {})


def test_CON_1_who_holds_a_slot_and_since_when_can_be_told(tmp_path: Path) -> None:
    """CON-1: from the journal alone, at any time: what runs now, each with its beginning."""
    told: list[list[tuple[str, float | None]]] = []

    def look(record: Record) -> None:
        view, _ = app.view_run("r", app.Options(runs=tmp_path))
        told.append([(node.step, node.started_at) for node in view.state.calls.values()])

    plan = app.loads(
        f"{HEAD}steps:\n  a: {{type: command, exec: 'true'}}\n  b: {{type: noop, depends_on: a}}\n"
    ).plan
    app.start_run(plan, app.Start(run_id="r"), app.Options(runs=tmp_path, sinks=(look,)))
    assert told[0] == [("a", 0.0)]
    assert told[-1] == []


# --- TIM


@pytest.mark.parametrize("moved_s", [3600.0, -3600.0])
def test_TIM_2_a_timeout_and_a_backoff_follow_no_wall_clock(
    run_yaml: RunYaml, monkeypatch: pytest.MonkeyPatch, moved_s: float
) -> None:
    """TIM-2: the clock of the wall is moved while a step runs; its limit holds, and its retry comes."""
    real = time.time
    moved = SimpleNamespace(calls=0)

    def wall() -> float:
        moved.calls += 1
        return real() + (moved_s if moved.calls > 3 else 0.0)

    monkeypatch.setattr(time, "time", wall)
    ran = run_yaml(
        """
checks:
  slow: { type: command, timeout: 300ms, exec: "sleep 20", on_fail: { retry: { max: 1, backoff: { delay: 50ms } } } }
"""
    )
    assert moved.calls > 3
    assert ran["slow"].fault is not None
    assert (ran["slow"].fault.kind, ran.calls["slow"]) == ("command.timeout", 2)
    times = [record.event.at for record in ran.records]
    assert times == sorted(times)
    assert times[-1] < 60


# --- RES


def test_RES_2_without_the_proof_of_what_a_child_did_nothing_of_it_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RES-2: the journal of a child that waits is gone; its step is in doubt and says why; nothing is posted twice."""
    monkeypatch.chdir(tmp_path)
    Path("child.yaml").write_text(
        f"{HEAD}steps:\n"
        "  post: {type: command, criticality: external, exec: 'echo p >> posted.txt'}\n"
        "  ask: {type: human-input, prompt: 'go on?', depends_on: post}\n"
    )
    Path("gonogo.yaml").write_text(
        f"{HEAD}steps:\n  flow: {{type: workflow, config: child.yaml, criticality: external}}\n"
    )
    plan = app.load().plan
    assert app.start_run(plan, app.Start(run_id="r"), app.Options(runs="runs")).verdict == "HOLD"
    [child] = [path for path in Path("runs").iterdir() if "." in path.name]
    shutil.rmtree(child)
    result: RunResult = app.resume_run("r", app.Options(runs="runs"))
    assert (result.verdict, result.waiting) == ("HOLD", ("flow",))
    told = result.state.nodes["flow"][""].reason or ""
    assert f"the journal of {child.name}, which has waited before, is gone" in told
    assert Path("posted.txt").read_text() == "p\n"


UNSTORABLE = """
import sys
from gonogo import app
from gonogo.app.parts import built_in_table
from gonogo.provider import Done, Provider
import msgspec
class Keys(msgspec.Struct, frozen=True): ...
class Odd:
    def __repr__(self): raise RuntimeError("no name")
ring = []
ring.append(ring)
values = {"set": {1}, "bytes": b"x", "nan": float("nan"), "ring": ring, "file": sys.stdin, "odd": Odd(), "keys": {1: 2}}
async def run(call, context):
    return Done({"deep": [values[call.step]]})
table = built_in_table((Provider(name="odd", config=Keys, run=run),))
steps = "".join(f"  {name}: {{type: odd, continue_on_failure: true}}\\n" for name in values)
plan = app.loads('version: "1.0"\\nsteps:\\n' + steps, table=table).plan
result = app.start_run(plan, app.Start(run_id="r"), app.Options(runs="runs", table=table))
print(result.verdict)
"""


def test_RES_3_a_value_that_cannot_be_kept_fails_its_step_with_its_place(tmp_path: Path) -> None:
    """RES-3: the run comes to its end, and each failure names the step and the path inside the value."""
    done = subprocess.run(
        [sys.executable, "-c", UNSTORABLE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.returncode) == ("GO\n", 0), done.stderr
    failed = [
        record.event.fault.message
        for record in app.open_run("r", app.Options(runs=tmp_path / "runs"))
        if isinstance(record.event, CallFailed)
    ]
    assert len(failed) == 7
    assert all("deep[0]" in message for message in failed), failed
