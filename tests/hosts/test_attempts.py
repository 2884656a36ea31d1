"""Attempts of gated calls in the journals of whole runs: written before they go out, gone on with after a kill."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.servers import faulty
from tests.servers.faulty import Connection, FaultyServer, Script, Step

from gonogo import app
from gonogo.app import wiring
from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.gate import Amounts, Attempt, GateError, Usage
from gonogo.gate import Step as GateStep
from gonogo.hosts.base import RunResult
from gonogo.hosts.outbound import Outbound
from gonogo.journal.jsonl import JsonlJournal
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.records import Record
from gonogo.journal.replay import replay
from gonogo.journal.store import Runs
from gonogo.journal.story import story
from gonogo.provider import Call, Context, Done, Outcome, Provider
from gonogo.providers import _gated
from gonogo.providers.table import built_in
from gonogo.testing.waits import SkippingClock

Go = Callable[..., RunResult]
QUICK = "backoff: {base_s: 0.001}"
CALM = "backoff: {base_s: 0.3}"
"""Long enough that what ends an attempt is in the journal before the next one is asked for, on a busy machine, too: a
crash then falls between the two.
"""
BUSY = faulty.answer(503, b"busy")
LIMITED = faulty.answer(429, b"slow down")

# Starts or resumes the run `r`; with an event's name and a number it dies, without any cleaning up, when the record of
# that event is in the journal and nothing has been done about it.
RUN = """
import os, sys
from gonogo import app
verb, event, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
def crash(record):
    global left
    if type(record.event).__name__ == event:
        left -= 1
        if left == 0:
            os._exit(9)
options = app.Options(runs="runs", sinks=(crash,))
if verb == "start":
    app.start_run(app.load("gonogo.yaml"), app.Start(run_id="r"), options)
else:
    app.resume_run("r", options)
"""


def fetch(url: str, policy: str = "", **more: str) -> str:
    """A workflow that fetches, with a policy of its own."""
    keys = "".join(f", {key}: {text}" for key, text in more.items())
    return f"version: '1.0'\nsteps: {{a: {{type: http_client, url: '{url}', reliability: {{{policy}}}{keys}}}}}\n"


def start(folder: Path, verb: str = "start", event: str = "", number: int = 0) -> subprocess.Popen[bytes]:
    """The run in a process of its own."""
    return subprocess.Popen([sys.executable, "-c", RUN, verb, event, str(number)], cwd=folder)


def crash_at(folder: Path, event: str, number: int = 1, verb: str = "start") -> None:
    """The run up to a record, in a process that dies there."""
    assert start(folder, verb, event, number).wait(60) == 9


class Killer:
    """A step of a server: kills the process that asked, while it waits for the answer."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(self, connection: Connection) -> None:
        """SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(60)


def killed_at(
    folder: Path, text: Callable[[str], str], before: tuple[Script, ...], after: Script
) -> FaultyServer:
    """A server that a run was killed at, with the request under way that follows those before."""
    kill = Killer()
    script: tuple[Step, ...] = (faulty.take_request, kill)
    server = FaultyServer(*before, script, after)
    (folder / "gonogo.yaml").write_text(text(server.url))
    kill.process = start(folder)
    assert kill.process.wait(60) == -9
    return server


def resumed(folder: Path) -> RunResult:
    """The run goes on in this process."""
    return app.resume_run("r", app.Options(runs=folder / "runs"))


def records_of(folder: Path) -> list[Record]:
    """The run's journal."""
    return list(app.open_run("r", app.Options(runs=folder / "runs")))


def attempts_in(records: list[Record]) -> list[int]:
    """The numbers of the attempts that had leave."""
    return [
        each.number for record in records for each in record.decisions if isinstance(each, d.AttemptStarted)
    ]


# --- the record


def test_each_attempt_is_a_pair_in_the_journal_with_what_the_gate_decided(go: Go, runs: Runs) -> None:
    """Semantics 23, E.10: asked before it goes out, ended with its kind, and why it went on between."""
    with FaultyServer(BUSY, faulty.answer()) as far:
        result = go(fetch(far.url, QUICK)[15:])
    events = [record.event for record in runs.read(result.run_id).records]
    pairs = [event for event in events if isinstance(event, e.AttemptAsked | e.AttemptEnded)]
    assert [(type(event).__name__, event.ticket) for event in pairs] == [
        ("AttemptAsked", 1),
        ("AttemptEnded", 1),
        ("AttemptAsked", 2),
        ("AttemptEnded", 2),
    ]
    first = pairs[1]
    assert isinstance(first, e.AttemptEnded)
    assert (first.kind, first.status, first.effect) == ("overloaded", 503, "unknown")
    assert [told.kind for told in first.told] == ["attempt_ended", "rule_decided", "wait_started"]
    assert first.told[1].data["failure"]["matched"].endswith("status 503")


def test_no_attempt_goes_out_before_its_record(go: Go, runs: Runs) -> None:
    """The journal has it when the far side hears of it."""
    seen: list[int] = []

    def look(connection: Connection) -> None:
        records = next(iter(kept)).records if (kept := [runs.read("r")]) else []
        seen.append(sum(isinstance(record.event, e.AttemptAsked) for record in records))

    script: tuple[Step, ...] = (faulty.take_request, look, faulty.send(faulty.head(503)))
    with FaultyServer(script) as far:
        go(fetch(far.url, QUICK)[15:], run_id="r")
    assert seen == [1, 2, 3]


def test_a_step_without_a_gate_writes_no_attempts(go: Go, runs: Runs) -> None:
    """It costs nothing."""
    result = go("steps: {a: {type: noop}, b: {type: command, exec: 'true', depends_on: a}}\n")
    kinds = {type(record.event) for record in runs.read(result.run_id).records}
    assert kinds.isdisjoint({e.AttemptAsked, e.AttemptEnded, e.GateWaits, e.GateEnded})


def test_a_call_that_is_refused_everywhere_tells_so_without_an_attempt(go: Go, runs: Runs) -> None:
    """The breaker's no is in the record, too."""
    text = fetch("http://127.0.0.1:1", "breaker: {failures: 1}, bounds: {attempts_max: 1}")[15:]
    go(text, run_id="first")
    with FaultyServer() as far:
        plan = app.loads("version: '1.0'\n" + fetch(far.url, "bounds: {deadline_s: 1}")[15:])
        app.isolate_breaker(
            f"name={far.url}/endpoint={far.url}",
            "it burns",
            by="ann",
            options=app.Options(runs=Path("x/runs")),
        )
        app.start_run(plan, app.Start(run_id="r"), app.Options(runs=Path("x/runs")))
        assert far.connections == 0
    records = app.open_run("r", app.Options(runs=Path("x/runs")))
    [ended] = [record.event for record in records if isinstance(record.event, e.GateEnded)]
    assert "target_skipped" in {told.kind for told in ended.told}


def test_secrets_reach_no_record_of_an_attempt(go: Go, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 8: not as a target's name, not in evidence."""
    monkeypatch.setenv("SHOP_TOKEN", "a-long-secret-1234")
    body = b'{"error": {"message": "bad a-long-secret-1234"}}'
    policy = 'targets: [{name: a-long-secret-1234}], after: [{when: "error", then: fail-fast}]'
    with FaultyServer(faulty.answer(401, body)) as far:
        result = go(fetch(far.url, policy, headers="{Authorization: '${{ env.SHOP_TOKEN }}'}")[15:])
    told = "".join(repr(record) for record in runs.read(result.run_id).records[1:])
    assert "attempt_ended" in told
    assert "a-long-secret-1234" not in told


def test_the_story_tells_attempts_from_their_records_once(go: Go, runs: Runs) -> None:
    """`show --records` and `explain`."""
    with FaultyServer(BUSY, faulty.answer()) as far:
        result = go(fetch(far.url, QUICK)[15:])
        told = [line.text for line in story(runs.read(result.run_id).records, "a")]
    failed = [text for text in told if "failed after" in text]
    assert len(failed) == 1
    assert failed[0].endswith("overloaded (503)")
    assert [text for text in told if text.startswith("attempt ")] == [
        f"attempt 1 on {far.url}",
        f"attempt 2 on {far.url}",
    ]


def test_metrics_count_attempts(go: Go, runs: Runs) -> None:
    """By target, and those that failed by kind."""
    with FaultyServer(BUSY, faulty.answer()) as far:
        result = go(fetch(far.url, QUICK)[15:])
    found = {m.family.name: m.samples for m in app.view_run(result.run_id, app.Options(runs=runs))[0].metrics}
    assert [(each.values, each.value) for each in found["gonogo_attempts_total"]] == [(("a", far.url), 2)]
    assert [(each.values, each.value) for each in found["gonogo_attempt_failures_total"]] == [
        (("a", far.url, "overloaded"), 1)
    ]


def test_a_run_with_attempts_replays_to_the_same_decisions(go: Go, runs: Runs) -> None:
    """Law 1."""
    with FaultyServer(BUSY, BUSY, BUSY, faulty.answer()) as far:
        policy = f"{QUICK}, breaker: {{failures: 9}}"
        result = go(fetch(far.url, policy, on_fail="{retry: {max: 3, backoff: {delay: 1ms}}}")[15:])
        assert far.connections == 4
    assert replay(runs.read(result.run_id).records) == []


# --- going on after a kill


@pytest.mark.slow
def test_the_gate_of_a_reading_call_goes_on_with_its_attempts_after_a_kill(tmp_path: Path) -> None:
    """E43: three attempts are three, one of them cut short by kill -9."""
    with killed_at(tmp_path, lambda url: fetch(url, QUICK), (BUSY,), BUSY) as far:
        result = resumed(tmp_path)
        assert far.connections == 3
    assert result.verdict == "NO-GO"
    assert attempts_in(records_of(tmp_path)) == [1, 2, 3]
    assert replay(records_of(tmp_path)) == []


@pytest.mark.slow
def test_a_crash_alone_fails_no_call(tmp_path: Path) -> None:
    """The last attempt was cut short: it is made again."""
    with killed_at(tmp_path, lambda url: fetch(url, QUICK), (BUSY, BUSY), faulty.answer()) as far:
        assert resumed(tmp_path).verdict == "GO"
        assert far.connections == 4
    assert attempts_in(records_of(tmp_path)) == [1, 2, 3, 3]


@pytest.mark.slow
def test_a_step_that_may_call_once_is_called_again_after_a_kill(tmp_path: Path) -> None:
    """As any reading step."""
    text = "version: '1.0'\nsteps: {{a: {{type: http_client, url: '{}'}}}}\n"
    with killed_at(tmp_path, text.format, (), faulty.answer()) as far:
        assert resumed(tmp_path).verdict == "GO"
        assert far.connections == 2


@pytest.mark.slow
def test_a_mutating_call_whose_last_attempt_did_nothing_goes_on_after_a_crash(tmp_path: Path) -> None:
    """Semantics 16, 23: 429, then the host died: the call isn't in doubt, and has two attempts left."""
    with FaultyServer(LIMITED, faulty.answer()) as far:
        (tmp_path / "gonogo.yaml").write_text(fetch(far.url, CALM, method="POST"))
        crash_at(tmp_path, "AttemptEnded")
        result = resumed(tmp_path)
        assert far.connections == 2
    assert result.verdict == "GO"
    assert attempts_in(records_of(tmp_path)) == [1, 2]


@pytest.mark.slow
def test_a_mutating_call_with_an_attempt_under_way_is_in_doubt_after_a_kill(tmp_path: Path) -> None:
    """Semantics 16: nobody knows what became of the second one."""
    with killed_at(
        tmp_path, lambda url: fetch(url, QUICK, method="POST"), (LIMITED,), faulty.answer()
    ) as far:
        assert resumed(tmp_path).verdict == "HOLD"
        assert far.connections == 2


@pytest.mark.slow
def test_a_keyed_call_with_an_attempt_under_way_goes_on_at_the_target_that_knows_the_key(
    tmp_path: Path,
) -> None:
    """Semantics 16, F27."""
    with killed_at(
        tmp_path, lambda url: fetch(url, QUICK, method="POST", idempotency_key="order-7"), (), faulty.answer()
    ) as far:
        assert resumed(tmp_path).verdict == "GO"
        assert [each.headers["idempotency-key"] for each in far.requests] == ["order-7", "order-7"]


@pytest.mark.slow
def test_a_target_that_is_out_stays_out_after_a_crash(tmp_path: Path) -> None:
    """Targets tried, and why one serves no more."""
    with FaultyServer(faulty.answer(401), faulty.answer(401)) as one, FaultyServer(BUSY) as two:
        targets = ", ".join(
            f"{{name: {name}, endpoint: '{far.url}'}}" for name, far in (("x", one), ("y", two))
        )
        text = fetch(one.url, f"{CALM}, breaker: false, targets: [{targets}]").replace(
            f"url: '{one.url}'", f"base_url: '{one.url}', path: /"
        )
        (tmp_path / "gonogo.yaml").write_text(text)
        crash_at(tmp_path, "AttemptEnded", 2)
        resumed(tmp_path)
        assert (one.connections, two.connections) == (1, 3)


@pytest.mark.slow
def test_semantics_24_attempts_before_and_after_a_crash_count_against_the_steps_retries(
    tmp_path: Path,
) -> None:
    """Three attempts in two lives of the host are the step's two retries."""
    with FaultyServer(BUSY) as far:
        (tmp_path / "gonogo.yaml").write_text(fetch(far.url, CALM, on_fail="{retry: {max: 2}}"))
        crash_at(tmp_path, "AttemptEnded", 2)
        resumed(tmp_path)
        assert far.connections == 3


@pytest.mark.slow
def test_a_run_that_crashes_at_every_record_of_its_attempts_makes_no_more_than_it_may(tmp_path: Path) -> None:
    """E43: a crash resets no bound."""
    with FaultyServer(BUSY) as far:
        (tmp_path / "gonogo.yaml").write_text(fetch(far.url, CALM))
        crash_at(tmp_path, "AttemptEnded")
        crash_at(tmp_path, "AttemptEnded", verb="resume")
        crash_at(tmp_path, "AttemptEnded", verb="resume")
        assert resumed(tmp_path).verdict == "NO-GO"
        assert far.connections == 3


def test_the_start_of_a_further_mutating_attempt_is_durable_before_it_goes_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Semantics 23: it is the intent. A reading one needs no sync."""
    synced: list[bool] = []
    append = JsonlJournal.append

    def noted(journal: JsonlJournal, records: Any, *, sync: bool = False) -> None:
        if any(isinstance(record.event, e.AttemptAsked) for record in records):
            synced.append(sync)
        append(journal, records, sync=sync)

    monkeypatch.setattr(JsonlJournal, "append", noted)
    for method in ("POST", "GET"):
        with FaultyServer(LIMITED, faulty.answer()) as far:
            plan = app.loads(fetch(far.url, QUICK, method=method))
            app.start_run(plan, app.Start(), app.Options(runs=tmp_path / "runs"))
    assert synced == [False, True, False, False]


# --- slots


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SkippingClock:
    """Waits of gates take no time."""
    made = SkippingClock()
    monkeypatch.setattr(wiring, "Outbound", lambda *given: Outbound(*given, clock=made))
    return made


def order_of(records: list[Record]) -> list[str]:
    """What happened to slots, in order."""
    kinds = (d.Started, d.Paused, d.AttemptStarted)
    return [
        f"{type(each).__name__} {each.step}"
        for record in records
        for each in record.decisions
        if isinstance(each, kinds)
    ]


def test_a_call_that_waits_long_in_its_gate_lets_others_run(go: Go, runs: Runs, clock: SkippingClock) -> None:
    """Semantics 23: with one slot, another step runs while the first waits as long as the far side asked."""
    with FaultyServer(faulty.throttled("seconds", 3), faulty.answer()) as far:
        text = fetch(far.url, QUICK)[15:].replace("}}\n", "}, b: {type: noop}}\n")
        result = go(f"max_parallelism: 1\n{text}")
    assert [round(each) for each in clock.waits_s] == [3]
    assert order_of(runs.read(result.run_id).records) == [
        "Started a",
        "AttemptStarted a",
        "Paused a",
        "Started b",
        "AttemptStarted a",
    ]
    assert result.verdict == "GO"


def test_a_short_wait_keeps_the_slot(go: Go, runs: Runs, clock: SkippingClock) -> None:
    """It is over before another step would have done much."""
    with FaultyServer(faulty.answer(429, b"", {"retry-after-ms": "500"}), faulty.answer()) as far:
        result = go(fetch(far.url, "backoff: {base_s: 0.001}")[15:])
    assert [
        record.event for record in runs.read(result.run_id).records if isinstance(record.event, e.GateWaits)
    ] == []


def test_a_waiting_call_of_a_child_run_lets_go_of_the_slot_of_the_whole_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: SkippingClock
) -> None:
    """CON-2: the run above and its children share them."""
    with FaultyServer(faulty.throttled("seconds", 3), faulty.answer()) as far:
        (tmp_path / "child.yaml").write_text(fetch(far.url, QUICK).replace("steps:", "id: child\nsteps:"))
        (tmp_path / "gonogo.yaml").write_text(
            "version: '1.0'\nimports: [child.yaml]\nmax_parallelism: 1\n"
            "steps: {c: {type: workflow, workflow: child}, d: {type: noop}}\n"
        )
        monkeypatch.chdir(tmp_path)
        result = app.start_run(app.load("gonogo.yaml"), app.Start(), app.Options(runs=MemoryRuns()))
    assert result.verdict == "GO"


# --- budgets of runs above


class Ask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a step that spends tokens."""

    tokens: int = 40
    fails: bool = False


async def spend(call: Call, context: Context) -> Outcome:
    """Spends tokens through its gate, which asks before."""

    async def invoke(attempt: Attempt) -> str:
        if call.config.fails:
            raise ConnectionRefusedError("nobody there")
        return "fine"

    step = GateStep(
        call.step,
        invoke,
        estimate=lambda target: Amounts(tokens=call.config.tokens),
        usage=lambda answer: Usage(output_tokens=call.config.tokens),
    )
    try:
        answer = await context.gate().answer(step)
    except GateError as error:
        return _gated.failed(call, "asked", error)
    return Done(answer.value, meta=_gated.meta_of(answer.record))


SPEND = Provider(name="spend", config=Ask, run=spend, gated=True)


def tree(folder: Path, budget: str, steps: str, runs: Runs) -> RunResult:
    """Three children side by side, beneath a run with a budget."""
    (folder / "child.yaml").write_text(f"version: '1.0'\nid: child\nsteps: {steps}\n")
    (folder / "gonogo.yaml").write_text(
        f"version: '1.0'\nimports: [child.yaml]\nbudget: {budget}\nmax_parallelism: 3\nsteps: {{"
        + ", ".join(f"{name}: {{type: workflow, workflow: child}}" for name in "abc")
        + "}\n"
    )
    table = built_in([SPEND])
    plan = app.load(folder / "gonogo.yaml", table=table)
    return app.start_run(plan, app.Start(run_id="top"), app.Options(runs=runs, table=table))


def test_children_side_by_side_reserve_tokens_in_the_journal_of_the_run_above(tmp_path: Path) -> None:
    """Semantics 23: through its core, before the attempt; the third is refused."""
    runs = MemoryRuns()
    result = tree(tmp_path, "{tokens: 100}", "{x: {type: spend}}", runs)
    records = runs.read("top").records
    assert result.verdict == "NO-GO"
    assert sum(isinstance(each, d.AttemptStarted) for r in records for each in r.decisions) == 2
    [refused] = [each for r in records for each in r.decisions if isinstance(each, d.AttemptRefused)]
    assert (refused.limit, refused.used, refused.allowed) == ("budget.tokens", 80, 100)
    assert result.state.spent.tokens == 80
    assert replay(records) == []


def test_children_side_by_side_make_no_more_calls_than_the_run_above_may(tmp_path: Path) -> None:
    """Three children of three steps each; three calls of the run's own are gone, five are left."""
    runs = MemoryRuns()
    steps = "{x: {type: noop}, y: {type: noop, depends_on: x}, z: {type: noop, depends_on: y}}"
    result = tree(tmp_path, "{calls: 8}", steps, runs)
    assert result.verdict == "NO-GO"
    assert result.state.spent.calls == 8
    faults = [
        record.event.fault.kind
        for run_id in runs.ids()
        for record in runs.read(run_id).records
        if run_id != "top" and isinstance(record.event, e.CallFailed)
    ]
    assert set(faults) == {"budget.calls"}


def test_a_run_above_without_a_budget_hears_nothing_of_its_childrens_attempts(tmp_path: Path) -> None:
    """Nobody pays for what nobody asked for."""
    runs = MemoryRuns()
    assert tree(tmp_path, "{time: 60s}", "{x: {type: spend}}", runs).verdict == "GO"
    assert not any(isinstance(record.event, e.AttemptAsked) for record in runs.read("top").records)
