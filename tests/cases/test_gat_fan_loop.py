"""Cases about gating, fan-outs and loops: GAT, FAN, LOOP, RET."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cases.conftest import Ended
from tests.whole import RunYaml

from gonogo.core import decisions as d
from gonogo.errors import ConfigError

DOCS = Path(__file__).parents[2] / "docs"

# --- GAT


@pytest.mark.parametrize("broken", ["exit 3", "true"])
@pytest.mark.parametrize("optional", ["false", "true"])
def test_GAT_1_a_step_that_must_always_run_does(run_yaml: RunYaml, optional: str, broken: str) -> None:
    """GAT-1: in all four runs; it can tell skipped, failed and succeeded apart; the run is still failed."""
    ran = run_yaml(f"""
checks:
  optional: {{ type: command, if: "{optional}", exec: "echo never" }}
  broken:   {{ type: command, exec: "{broken}" }}
  report:
    type: command
    depends_on: [optional, broken]
    if: "always()"
    env: {{ A: "{{{{ outputs_meta.optional.outcome }}}}", B: "{{{{ outputs_meta.broken.outcome }}}}" }}
    exec: "echo $A $B > report.txt"
""")
    first = "passed" if optional == "true" else "skipped"
    second = "passed" if broken == "true" else "failed"
    assert ran.lines("report.txt") == [f"{first} {second}"]
    assert ran.verdict == ("GO" if broken == "true" else "NO-GO")


def test_GAT_2_a_skip_does_not_leak_through(run_yaml: RunYaml) -> None:
    """GAT-2: only the direct dependency's own final state counts."""
    ran = run_yaml("""
checks:
  a:    { type: command, if: "false", exec: "true" }
  seed: { type: command, exec: "true" }
  b:    { type: command, depends_on: ["a|seed"], exec: "echo b >> ran.txt" }
  c:    { type: command, depends_on: [b], exec: "echo c >> ran.txt" }
""")
    assert ran.lines("ran.txt") == ["b", "c"]
    assert ran.why("a") == ("skipped", "if_condition")
    assert ran.verdict == "GO"


TOLERATED = """
checks:
  lint:
    type: command
    exec: "echo style >&2; exit 1"
    continue_on_failure: true
    on_fail: { run: [collect] }
  collect: { type: command, exec: "echo logs >> collect.txt" }
  build:   { type: command, depends_on: [lint], exec: "echo build >> build.txt" }
  tells:   { type: script, depends_on: [lint], content: "return [outputs_meta.lint.failed, outputs_meta.lint.outcome]" }
"""


def test_GAT_3_a_tolerated_failure_is_still_seen(run_yaml: RunYaml, gonogo: Callable[..., Ended]) -> None:
    """GAT-3: one acts on it, one goes on; raw and effective outcome can be read; one documented rule."""
    ran = run_yaml(TOLERATED)
    assert (ran.lines("build.txt"), ran.lines("collect.txt")) == (["build"], ["logs"])
    assert ran.output("tells") == [True, "tolerated"]
    assert (ran["lint"].outcome, ran.verdict) == ("tolerated", "GO")
    assert ran["lint"].fault is not None
    ended = gonogo('version: "1.0"\n' + TOLERATED, "run", "--no-color")
    assert ended.code == 0
    assert b"tolerated" in ended.out
    assert (
        "tolerated"
        in (DOCS / "concepts" / "criticality.md").read_text() + (DOCS / "concepts" / "run.md").read_text()
    )


def test_GAT_4_a_detector_acts_on_every_path(run_yaml: RunYaml) -> None:
    """GAT-4: once per producer, before any follower; one issue each; the followers are skipped."""
    ran = run_yaml("""
checks:
  scan:
    type: command
    exec: "echo '{\\"error\\": true}'"
    fail_if: "output.error"
  list:
    type: command
    forEach: true
    exec: "echo '[{\\"bad\\": true}, {\\"bad\\": false}]'"
    fail_if: "output.some(x => x.bad)"
  after_scan: { type: command, depends_on: [scan], exec: "echo s >> ran.txt" }
  after_list: { type: command, depends_on: [list], exec: "echo l >> ran.txt" }
""")
    assert ran.lines("ran.txt") == []
    assert (ran.rules("scan"), ran.rules("list")) == (["scan_fail_if"], ["list_fail_if"])
    assert ran.why("after_scan") == ran.why("after_list") == ("skipped", "dependency_failed")
    assert sorted(judged.step for judged in ran.judged("fail_if")) == ["list", "scan"]


# --- FAN


def test_FAN_1_an_empty_list_is_a_final_state(run_yaml: RunYaml) -> None:
    """FAN-1: ends, passes; each and deep are skipped for a reason of its own; total runs once over []."""
    ran = run_yaml("""
checks:
  list:  { type: command, forEach: true, exec: "echo '[]'" }
  each:  { type: command, depends_on: [list], fanout: map, exec: "echo one >> each.txt" }
  deep:  { type: command, depends_on: [each], fanout: map, exec: "echo two >> each.txt" }
  total: { type: command, depends_on: [deep], fanout: reduce, exec: "echo total >> total.txt" }
""")
    assert (ran.verdict, ran.lines("each.txt"), ran.lines("total.txt")) == ("GO", [], ["total"])
    assert ran.why("each") == ran.why("deep") == ("skipped", "forEach_empty")
    assert "forEach_empty" in "".join(path.read_text() for path in DOCS.rglob("*.md"))


def test_FAN_2_one_bad_item_stops_no_other(run_yaml: RunYaml) -> None:
    """FAN-2: all run; what maps on runs for the good ones; counts, order and marks are right; the run is failed."""
    ran = run_yaml("""
checks:
  list: { type: command, forEach: true, exec: "echo '[\\"a\\",\\"boom\\",\\"c\\"]'" }
  each:
    type: command
    fanout: map
    depends_on: [list]
    env: { ITEM: "{{ outputs.list }}" }
    exec: "echo $ITEM >> each.txt; [ $ITEM != boom ] && echo $ITEM"
  after: { type: script, fanout: map, depends_on: [each], content: "return outputs.each" }
  sum: { type: script, depends_on: [each], content: "return [outputs.each, outputs_meta.each.item_status]" }
""")
    assert ran.lines("each.txt") == ["a", "boom", "c"]
    assert [item.outcome for item in ran["after"].items or ()] == ["passed", "skipped", "passed"]
    row = next(row for row in ran.view.statistics["checks"] if row["checkName"] == "each")
    assert (row["totalRuns"], row["successfulRuns"], row["failedRuns"]) == (3, 2, 1)
    outputs, marks = ran.output("sum")
    assert (outputs[0], len(outputs), outputs[2]) == ("a", 3, "c")
    assert marks == ["passed", "failed", "passed"]
    assert ran.verdict == "NO-GO"


def test_FAN_3_every_items_output_survives(run_yaml: RunYaml) -> None:
    """FAN-3: twenty rounds of three items that end in another order; sum sees them in item order, history all."""
    ran = run_yaml("""
max_parallelism: 3
checks:
  list: { type: command, forEach: true, exec: "echo '[3,1,2]'" }
  each:
    type: command
    fanout: map
    forEach_concurrency: 3
    depends_on: [list]
    timeout: 20s
    env: { N: "{{ outputs.list }}", R: "{{ outputs_history.sum.size }}" }
    exec: |
      while [ $N != 1 ] && [ ! -e $R.$((N-1)) ]; do sleep 0.01; done
      touch $R.$N; printf '{"n": %s}' $N
    guarantee: "output.n === outputs.list"
  own: { type: noop, fanout: map, depends_on: [each], guarantee: "outputs.each.n === outputs.list" }
  sum:
    type: script
    depends_on: [each, own]
    content: "return [outputs.each.map(x => x.n), outputs_wave.each.map(x => x.n).sort()]"
    guarantee: "output[0].join() === '3,1,2' && output[1].join() === '1,2,3'"
    loop_budget: 20
    on_success: { goto_js: "return outputs_history.sum.length < 20 ? 'list' : null" }
""")
    assert ran.calls["sum"] == 20
    assert (ran.verdict, ran.output("sum")) == ("GO", [[3, 1, 2], [1, 2, 3]])
    ends = [one.scope[-2] for one in ran.decisions(d.Ended, "each") if one.scope]
    assert any(ends[start : start + 3] != ["0", "1", "2"] for start in range(0, len(ends), 3))


# --- LOOP

ROUNDS = """
routing: {{ max_loops: {loops} }}
checks:
  write:  {{ type: command, exec: "echo w >> w.txt; wc -l < w.txt" }}
  verify:
    type: command
    depends_on: [write]
    exec: "echo v >> v.txt; exit 1"
    on_fail: {{ goto: write }}
  reads: {{ type: script, if: "always()", depends_on: [verify], content: "return outputs_history.write" }}
"""


@pytest.mark.parametrize("loops", [3, 0])
def test_LOOP_1_a_limit_of_n_allows_n_rounds_more(run_yaml: RunYaml, loops: int) -> None:
    """LOOP-1: one plus N rounds; exactly one issue naming step and scope; failed; every round's output readable."""
    ran = run_yaml(ROUNDS.format(loops=loops))
    assert (len(ran.lines("w.txt")), len(ran.lines("v.txt"))) == (loops + 1, loops + 1)
    assert ran.own_rules == ["verify/routing/loop_budget_exceeded"]
    assert "verify" in ran.view.issues[0].message
    assert ran.verdict == "NO-GO"
    assert ran.output("reads") == list(range(1, loops + 2))


def test_LOOP_1_a_negative_limit_is_refused(run_yaml: RunYaml) -> None:
    """LOOP-1: `max_loops: -1` is refused when loading."""
    with pytest.raises(ConfigError):
        run_yaml(ROUNDS.format(loops=-1))


@pytest.mark.parametrize(
    ("top", "step"), [("routing: { max_loops: 6 }", ""), ("env: {}", ", max_runs: 5, loop_budget: 100")]
)
def test_LOOP_2_two_that_send_each_other_round_end(run_yaml: RunYaml, top: str, step: str) -> None:
    """LOOP-2: within the tighter limit; the issue says which limit, and names the cycle when loops ended it."""
    ran = run_yaml(f"""
{top}
checks:
  research: {{ type: noop, on_success: {{ goto: search }}{step} }}
  search: {{ type: noop, on_success: {{ goto: research }}{step} }}
""")
    issues = [*ran.view.issues, *ran["research"].issues, *ran["search"].issues]
    assert ran.verdict == "NO-GO"
    assert max(ran.calls.values()) <= 8
    if step:
        assert max(ran.calls.values()) == 5
        assert [issue.rule_id.split("/", 1)[1] for issue in issues] == ["limits/max_runs_exceeded"]
    else:
        assert (
            "research → search → research" in issues[0].message
            or "search → research → search" in issues[0].message
        )


# --- RET


def test_RET_3_wrong_answers_are_not_retried_like_outages(run_yaml: RunYaml) -> None:
    """RET-3: contract and policy once, with a logical fault; flaky three times; opting in is possible."""
    ran = run_yaml("""
checks:
  contract:
    type: command
    exec: "echo x >> contract.txt; echo '{\\"n\\": 0}'"
    guarantee: ["output.n > 0"]
    on_fail: { retry: { max: 3, backoff: { mode: fixed, delay_ms: 1 } } }
  policy:
    type: command
    criticality: policy
    exec: "echo x >> policy.txt; echo '{\\"bad\\": 1}'"
    fail_if: "output.bad"
    on_fail: { retry: { max: 3, backoff: { mode: fixed, delay_ms: 1 } } }
  flaky:
    type: command
    exec: "echo x >> flaky.txt; [ $(wc -l < flaky.txt) -ge 3 ] || exit 75"
    on_fail: { retry: { max: 3, backoff: { mode: fixed, delay_ms: 1 } } }
  opted:
    type: command
    criticality: info
    exec: "echo x >> opted.txt; echo '{\\"n\\": 0}'"
    guarantee: ["output.n > 0"]
    on_fail: { retry: { max: 3, retry_on: [logical], backoff: { mode: fixed, delay_ms: 1 } } }
""")
    counts = [len(ran.lines(f"{name}.txt")) for name in ("contract", "policy", "flaky", "opted")]
    assert counts == [1, 1, 3, 4]
    assert [fault["class"] for fault in ran.view.faults if fault["step"] == "contract"] == ["logical"]
    assert ran["flaky"].outcome == "passed"
    assert "retry_on" in (DOCS / "how-to" / "retry.md").read_text()


@pytest.mark.parametrize("backoff", ["delay_ms: -1", "delay_ms: .nan", "max_delay_ms: -5", "jitter: -0.5"])
def test_RET_1_waits_that_make_no_sense_are_refused(run_yaml: RunYaml, backoff: str) -> None:
    """RET-1: a negative base, cap or jitter and NaN are refused when the file is loaded; so is a negative max."""
    for retry in (f"max: 1, backoff: {{{backoff}}}", "max: -1"):
        with pytest.raises(ConfigError):
            run_yaml(f"checks:\n  a: {{type: noop, on_fail: {{retry: {{{retry}}}}}}}\n")


def test_RET_4_a_servers_wish_is_heard(run_yaml: RunYaml, tmp_path: Path) -> None:
    """RET-4 (a): 429 with Retry-After: the wait before the next attempt is no shorter; a plain 403 isn't retried."""
    from pytest_httpserver import HTTPServer
    from werkzeug import Response

    with HTTPServer(host="127.0.0.1") as server:
        server.expect_ordered_request("/a").respond_with_response(Response("no", 429, {"Retry-After": "1"}))
        server.expect_ordered_request("/a").respond_with_json({"ok": True})
        retry: dict[str, Any] = {"max": 2, "backoff": {"delay_ms": 1}}
        ran = run_yaml(
            f"checks:\n  a: {{type: http_client, url: '{server.url_for('/a')}', on_fail: {{retry: {retry}}}}}\n"
        )
        assert (ran.verdict, ran.calls["a"]) == ("GO", 2)
        assert ran.decisions(d.Retrying)[0].delay_s >= 1
    with HTTPServer(host="127.0.0.1") as server:
        server.expect_request("/b").respond_with_response(Response("no", 403))
        ran = run_yaml(
            f"checks:\n  a: {{type: http_client, url: '{server.url_for('/b')}', on_fail: {{retry: {retry}}}}}\n"
        )
        assert (ran.verdict, ran.calls["a"]) == ("NO-GO", 1)
