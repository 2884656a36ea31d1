"""Steps whose calls go through a gate, in whole runs against a server that misbehaves as told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.servers import faulty
from tests.servers.faulty import FaultyServer, Script

from gonogo import app
from gonogo.core.events import CallDone, CallFailed
from gonogo.errors import ConfigError
from gonogo.gate import Amounts, Attempt, GateError, Step, Usage
from gonogo.hosts.base import LogLine, RunResult
from gonogo.journal.store import Runs
from gonogo.provider import Call, Context, Done, Outcome, Provider
from gonogo.providers import _gated
from gonogo.providers.table import built_in

Go = Callable[..., RunResult]
QUICK = "backoff: {base_s: 0.001}"
BUSY = faulty.answer(503, b"busy")


@contextmanager
def server(*scripts: Script) -> Iterator[FaultyServer]:
    """A server that misbehaves."""
    with FaultyServer(*scripts) as made:
        yield made


def fetch(url: str, policy: str = "", **more: str) -> str:
    """A workflow that fetches, with a policy of its own."""
    keys = "".join(f", {key}: {text}" for key, text in more.items())
    said = f", reliability: {policy}" if policy else ""
    return f"steps: {{a: {{type: http_client, url: '{url}'{said}{keys}}}}}\n"


def called(runs: Runs, result: RunResult) -> list[CallDone | CallFailed]:
    """What came of the calls."""
    events = [record.event for record in runs.read(result.run_id).records]
    return [event for event in events if isinstance(event, CallDone | CallFailed)]


def test_a_step_that_says_nothing_calls_once(go: Go, runs: Runs) -> None:
    """As without a gate: no wait, no breaker, nothing in the record."""
    with server(BUSY) as far:
        result = go(fetch(far.url))
        assert far.connections == 1
    assert result.verdict == "NO-GO"
    [event] = called(runs, result)
    assert isinstance(event, CallFailed)
    assert (event.fault.kind, event.fault.message) == ("http.status", "the answer has status 503")


@pytest.mark.parametrize("place", ["step", "named", "default"])
def test_a_policy_tries_again_and_the_record_says_so(go: Go, runs: Runs, place: str) -> None:
    """Inline, by name, or the file's default; RET-2: the count of requests is that of attempts in the journal."""
    with server(*faulty.storm(2)) as far:
        inline = fetch(far.url, f"{{{QUICK}}}")
        named = f"reliability: {{p: {{{QUICK}}}}}\n" + fetch(far.url, "p")
        default = f"reliability: {{default: {{{QUICK}}}}}\n" + fetch(far.url)
        result = go({"step": inline, "named": named, "default": default}[place])
        assert far.connections == 3
    assert result.verdict == "GO"
    [event] = called(runs, result)
    gate = event.meta["gate"]
    assert [(each["n"], each["kind"]) for each in gate["attempts"]] == [
        (1, "overloaded"),
        (2, "overloaded"),
        (3, "ok"),
    ]
    assert gate["served"] == far.url
    assert gate["attempts"][0]["status"] == 503


def test_RET_2_the_steps_retries_and_its_gates_do_not_multiply(go: Go, runs: Runs) -> None:
    """RET-2: a step with two retries and a gate of three attempts makes three requests, all in the journal."""
    with server(BUSY) as far:
        result = go(fetch(far.url, f"{{{QUICK}}}", on_fail="{retry: {max: 2}}"))
        attempts = sum(len(event.meta["gate"]["attempts"]) for event in called(runs, result))
        assert far.connections == attempts == 3
    assert result.verdict == "NO-GO"


def test_RET_2_counted_separately_it_is_the_product_and_no_more(go: Go, runs: Runs) -> None:
    """RET-2: (1+2) × (1+2), because the author says so; the client adds none."""
    with server(BUSY) as far:
        result = go(
            fetch(far.url, f"{{{QUICK}, breaker: false}}", on_fail="{retry: {max: 2, count: separately}}")
        )
        attempts = sum(len(event.meta["gate"]["attempts"]) for event in called(runs, result))
        assert far.connections == attempts
        assert far.connections <= 9
    assert result.verdict == "NO-GO"


def test_rules_in_javascript_see_the_call_and_the_workflow(go: Go, runs: Runs) -> None:
    """`error_kind` is the call's, `inputs` the workflow's; the sandbox is the run's."""
    rule = "{when: \"error_kind == 'server-5xx' && inputs.patient\", then: retry, wait_s: 0.001}"
    also = '{when: "error", then: fail-fast, kind: enough}'
    inputs = "inputs: {patient: {schema: {type: boolean}, default: true}}\n"
    with server(faulty.answer(500), BUSY, faulty.answer()) as far:
        result = go(inputs + fetch(far.url, f"{{after: [{rule}, {also}]}}"))
        assert far.connections == 2
    [event] = called(runs, result)
    assert isinstance(event, CallFailed)
    assert event.fault.message == "the answer has status 503 after 2 attempts; given up: enough"


def test_RET_4_a_wish_beyond_the_deadline_is_not_waited_for(go: Go, runs: Runs) -> None:
    """RET-4, TIM-1: no wait begins that would end too late; the fault keeps the wish, and says what ended it."""
    with server(faulty.throttled("a day")) as far:
        result = go(fetch(far.url, "{}", timeout="5s"))
        assert far.connections == 1
    [event] = called(runs, result)
    assert isinstance(event, CallFailed)
    assert event.fault.retry_after_s == 86400
    assert event.fault.message == "the answer has status 429; given up: deadline"


def test_a_mutating_call_that_may_have_been_done_is_not_sent_again(go: Go, runs: Runs) -> None:
    """Semantics 16: HOLD, with what was sent; the policy's further attempts don't matter."""
    with server(faulty.RESET_BEFORE_HEADERS) as far:
        result = go(fetch(far.url, f"{{{QUICK}}}", method="POST"))
        assert far.connections == 1
    assert result.verdict == "HOLD"
    assert called(runs, result)[0].meta["gate"]["blocked_by"] == "side effect"


def test_a_key_of_the_authors_own_lets_a_mutating_call_be_sent_again(go: Go) -> None:
    """Semantics 16: under a key that the far side honours; every attempt sends the same one."""
    with server(faulty.RESET_BEFORE_HEADERS, faulty.answer()) as far:
        result = go(fetch(far.url, f"{{{QUICK}}}", method="POST", idempotency_key="order-7"))
        assert [each.headers["idempotency-key"] for each in far.requests] == ["order-7", "order-7"]
    assert result.verdict == "GO"


@pytest.mark.parametrize("status", [401, 404])
def test_a_page_that_is_not_there_takes_no_server_out(go: Go, status: int) -> None:
    """An answer about a request says nothing about the server; the breaker stays closed."""
    with server(faulty.answer(status), faulty.answer()) as far:
        first = fetch(far.url, "{}")
        both = first.replace("}}\n", "}, ") + fetch(
            far.url, "{}", depends_on="[{step: a, on_failure: continue}]"
        )[8:].replace("a: {", "b: {", 1)
        result = go(both)
        assert far.connections == 2
    assert result.output("b") == {}


def test_a_breaker_outlives_the_run(tmp_path: Path) -> None:
    """LLM-3: kept beside the runs, heeded by the next one, listed, and reset by a person."""
    policy = "{bounds: {attempts_per_target: 1, deadline_s: 5}, breaker: {failures: 1}}"
    place = app.Options(runs=tmp_path / "runs")
    with server(BUSY) as far:
        plan = app.loads('version: "1.0"\n' + fetch(far.url, policy))
        app.start_run(plan, app.Start(), place)
        again = app.start_run(plan, app.Start(), place)
        assert far.connections == 1
        assert again.fault is not None
        assert (again.fault.kind, again.fault.fault_class) == ("gate.circuit-open", "transient")
        assert again.fault.message.startswith(
            f"nothing was called: {far.url} is left alone, its breaker is open: this process saw it fail; it may be "
        )
        [listed] = app.list_breakers(place)
        assert (listed.state, listed.key) == ("open", f"name={far.url}/endpoint={far.url}")
        app.reset_breaker(far.url, place)
        app.start_run(plan, app.Start(), place)
        assert far.connections == 2


def test_a_person_may_take_a_target_out(tmp_path: Path) -> None:
    """By its key, even before it was ever called; every process with these runs heeds it."""
    place = app.Options(runs=tmp_path / "runs")
    with server(faulty.answer()) as far:
        app.isolate_breaker(f"name={far.url}/endpoint={far.url}", "it burns", by="ann", options=place)
        plan = app.loads('version: "1.0"\n' + fetch(far.url, "{bounds: {deadline_s: 1}}"))
        result = app.start_run(plan, app.Start(), place)
        assert far.connections == 0
    assert result.verdict == "NO-GO"
    [listed] = app.list_breakers(place)
    assert (listed.state, listed.reason) == ("isolated", "it burns, by ann")


def test_what_a_gate_waits_for_is_told_live(go: Go, logged: list[LogLine]) -> None:
    """As progress of the step."""
    with server(*faulty.storm(1)) as far:
        go(fetch(far.url, f"{{{QUICK}}}"))
    assert any(line.level == "progress" and line.text.startswith("waits ") for line in logged)


def test_secrets_reach_no_record_of_a_call(go: Go, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 8: not in a message, not in a target's name."""
    monkeypatch.setenv("SHOP_TOKEN", "a-long-secret-1234")
    body = b'{"error": "bad token a-long-secret-1234"}'
    with server(faulty.answer(401, body)) as far:
        result = go(fetch(far.url, "{}", headers="{Authorization: 'Bearer ${{ env.SHOP_TOKEN }}'}"))
    told: Any = [repr(record) for record in runs.read(result.run_id).records]
    assert "a-long-secret-1234" not in "".join(told)


def test_what_lets_a_call_in_is_masked_whatever_its_variable_is_called(
    go: Go, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 8: a server that repeats it, a record of inputs, a message: nothing holds it."""
    monkeypatch.setenv("SHOP_ENTRY", "open-sesame-1234")
    auth = "{type: bearer, token: '${{ env.SHOP_ENTRY }}'}"
    with server(faulty.answer(200, b'{"you sent": "Bearer open-sesame-1234"}')) as far:
        result = go(fetch(far.url, auth=auth))
        assert far.requests[0].headers["authorization"] == "Bearer open-sesame-1234"
    assert result.output("a") == {"you sent": "Bearer ***"}
    assert "open-sesame-1234" not in "".join(repr(record) for record in runs.read(result.run_id).records)


def test_a_secret_in_a_file_is_refused() -> None:
    """A file is no place for it."""
    with pytest.raises(ConfigError) as caught:
        app.loads('version: "1.0"\n' + fetch("http://x.example/", auth="{type: bearer, token: abc}"))
    assert [(each.code, each.path) for each in caught.value.problems] == [
        ("key.secret", "steps.a.auth.token")
    ]


def test_calls_side_by_side_wait_for_their_turn(go: Go, logged: list[LogLine]) -> None:
    """A rate limit is of the whole run."""
    limit = "{requests: 1, per: 50ms}"
    with server() as far:
        steps = [fetch(far.url, rate_limit=limit).replace("a: {", f"{name}: {{")[8:-3] for name in "abc"]
        result = go(f"steps: {{{'}, '.join(steps)}}}}}\n")
        assert far.connections == 3
    assert result.verdict == "GO"
    assert sum("waits" in line.text for line in logged) == 2


def test_steps_that_fail_together_all_get_their_retries(go: Go) -> None:
    """F22: the share of retries stops storms, not a handful of steps."""
    scripts = [BUSY] * 6 + [faulty.answer()]
    with server(*scripts) as far:
        policy = f"{{{QUICK}, breaker: false}}"
        steps = [fetch(far.url, policy).replace("a: {", f"{name}: {{")[8:-3] for name in "abcdef"]
        result = go(f"max_parallelism: 6\nsteps: {{{'}, '.join(steps)}}}}}\n")
        assert far.connections == 12
    assert result.verdict == "GO"


def test_calls_of_a_run_share_what_they_have_seen_of_targets(go: Go) -> None:
    """F8: with least-latency a target that fails is asked by the first item alone, then comes last."""
    with server(BUSY) as bad, server() as good:
        targets = f"[{{name: bad, endpoint: '{bad.url}'}}, {{name: good, endpoint: '{good.url}'}}]"
        once = f"{QUICK}, breaker: false, bounds: {{attempts_per_target: 1}}"
        steps = (
            "steps: {items: {type: script, content: 'return [1, 2, 3]', forEach: true}, "
            f"a: {{type: http_client, depends_on: items, forEach_concurrency: 1, base_url: '{good.url}', path: /x, "
            f"reliability: {{{once}, order: least-latency, targets: {targets}}}}}}}\n"
        )
        assert go(steps).verdict == "GO"
        assert (bad.connections, good.connections) == (1, 3)


class Ask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a step that spends tokens."""

    tokens: int = 40


async def spend(call: Call, context: Context) -> Outcome:
    """Spends tokens through the gate, which asks the budget before."""
    wanted = Amounts(tokens=call.config.tokens)

    async def invoke(attempt: Attempt) -> str:
        return "fine"

    step = Step(
        call.step,
        invoke,
        estimate=lambda target: wanted,
        usage=lambda answer: Usage(output_tokens=call.config.tokens, cost_usd=0.5),
    )
    try:
        answer = await context.gate().answer(step)
    except GateError as error:
        return _gated.failed(call, "asked", error)
    return Done(answer.value, meta=_gated.meta_of(answer.record))


SPEND = Provider(name="spend", config=Ask, run=spend, gated=True)


def test_a_call_that_would_pass_the_runs_budget_is_not_made(go: Go, runs: Runs) -> None:
    """Reserved before the call, so nothing is overspent; what was used is the run's."""
    steps = "{a: {type: spend}, b: {type: spend, depends_on: a}, c: {type: spend, depends_on: b}}"
    text = f"budget: {{tokens: 100}}\nsteps: {steps}\n"
    plan = app.loads('version: "1.0"\n' + text, table=built_in([SPEND]))
    result = app.start_run(plan, app.Start(), app.Options(runs=runs, table=built_in([SPEND])))
    assert result.fault is not None
    assert result.fault.kind == "gate.budget-exceeded"
    assert [type(event).__name__ for event in called(runs, result)] == ["CallDone", "CallDone", "CallFailed"]
    assert app.view_run(result.run_id, app.Options(runs=runs))[0].state.spent.tokens == 80


def test_semantics_20_what_undoes_may_call_though_the_budget_is_used_up(runs: Runs) -> None:
    """Semantics 20: it has a reserve of its own, at the gate as in the core."""
    text = """
    version: "1.0"
    budget: {tokens: 50}
    steps:
      a: {type: spend, mutates: true, compensate: undo}
      b: {type: spend, depends_on: a}
      undo: {type: spend, mutates: true}
    """
    table = built_in([SPEND])
    result = app.start_run(app.loads(text, table=table), app.Start(), app.Options(runs=runs, table=table))
    assert [type(event).__name__ for event in called(runs, result)] == ["CallDone", "CallFailed", "CallDone"]
    view = app.view_run(result.run_id, app.Options(runs=runs))[0]
    assert [(one.step, one.outcome) for one in view.undone] == [("a", "passed")]
    assert view.state.spent.tokens == 80


def test_a_child_spends_from_the_budget_of_the_run_above(runs: Runs, tmp_path: Path) -> None:
    """Side by side, too: the purse is one."""
    child = 'version: "1.0"\nid: child\nsteps: {x: {type: spend, tokens: 40}}\n'
    (tmp_path / "child.yaml").write_text(child)
    top = (
        'version: "1.0"\nimports: [child.yaml]\nbudget: {tokens: 100}\nmax_parallelism: 3\n'
        "steps: {a: {type: workflow, workflow: child}, b: {type: workflow, workflow: child},"
        " c: {type: workflow, workflow: child}}\n"
    )
    (tmp_path / "gonogo.yaml").write_text(top)
    table = built_in([SPEND])
    plan = app.load(tmp_path / "gonogo.yaml", table=table)
    result = app.start_run(plan, app.Start(), app.Options(runs=runs, table=table))
    view = app.view_run(result.run_id, app.Options(runs=runs))[0]
    assert sorted(step.outcome for step in view.steps.values()) == ["failed", "passed", "passed"]
    assert view.state.spent.tokens == 80
