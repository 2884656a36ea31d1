"""Spec E.11 in whole runs: what a model says is data, what it cost counts, and what it may run is held to the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.servers.faulty import FaultyServer
from tests.servers.model import calls, refuses, says
from tests.whole import Ran, RunYaml

from gonogo.core.decisions import Started
from gonogo.core.events import CallDone, CallFailed
from gonogo.journal.story import story
from gonogo.report.calls import call_lines


def meta(ran: Ran, step: str) -> dict[str, Any]:
    """What the last call of a step told about itself."""
    calls = {one.call for one in ran.decisions(Started, step)}
    ends = (CallDone, CallFailed)
    found = [
        each.event.meta for each in ran.records if isinstance(each.event, ends) and each.event.call in calls
    ]
    return dict(found[-1] or {})


ASK = "provider: mock, prompt: hi"


def test_E11_a_step_without_a_type_asks_a_model(run_yaml: RunYaml) -> None:
    """Its text is its output, for expressions and templates alike."""
    ran = run_yaml(f"""
steps:
  ask: {{{ASK}, mock: {{answers: [forty-two]}}}}
  say: {{type: log, depends_on: ask, message: "it is {{{{ outputs.ask }}}}", assume: "outputs.ask === 'forty-two'"}}
""")
    assert ran.verdict == "GO"
    assert ran["say"].content.startswith("it is forty-two")


def test_E11_a_schema_of_the_step_is_the_models_too(run_yaml: RunYaml) -> None:
    """Told to it and held by the gate; the engine's own look finds nothing more."""
    ran = run_yaml(f"""
steps:
  ask:
    {{{ASK}, schema: {{type: object, required: [n], properties: {{n: {{type: integer}}}}}},
      mock: {{answers: [none, {{json: {{n: 7}}}}]}}}}
""")
    assert ran.output("ask") == {"n": 7}
    kinds = [each["kind"] for each in meta(ran, "ask")["gate"]["attempts"]]
    assert kinds == ["schema-fail", "ok"]


def test_E11_what_it_cost_counts_against_the_budget(run_yaml: RunYaml) -> None:
    """A second question that might pass it isn't asked."""
    ran = run_yaml(f"""
budget: {{tokens: 1500}}
steps:
  one: {{{ASK}, max_tokens: 100, mock: {{answers: [{{text: a, tokens: {{input: 900, output: 100}}}}]}}}}
  two: {{{ASK}, max_tokens: 600, depends_on: one, mock: {{answers: [b]}}}}
""")
    assert ran["one"].outcome == "passed"
    assert ran["two"].outcome == "failed"
    assert ran["two"].fault is not None
    assert ran["two"].fault.kind == "ai.budget_exceeded"


HOSTILE = "x'; touch pwned; $(touch pwned) `touch pwned` | ../../etc {{ 1 | plus: 1 }} ${{ env.KEY }} $KEY"


def test_SEC_1_what_a_model_writes_reaches_no_shell(run_yaml: RunYaml) -> None:
    """Law 6: as an output and as an argument of a tool, it is text and stays the same text."""
    with FaultyServer(says(calls("echo", {"text": HOSTILE})), says(HOSTILE)) as server:
        ran = run_yaml(f"""
steps:
  echo:
    {{type: command, start: routed, mutates: false, parse: text, exec: "printf %s {{{{ args.text | shell_escape }}}}"}}
  ask:
    {{provider: openai, model: m, url: "http://127.0.0.1:{server.port}/v1", prompt: hi,
      tools: {{echo: {{description: d, step: echo, parameters: {{properties: {{text: {{type: string}}}}}}}}}}}}
  use: {{type: command, depends_on: ask, parse: text, exec: "printf %s {{{{ outputs.ask | shell_escape }}}}"}}
""")
    assert ran.verdict == "GO"
    assert ran.output("use") == ran.output("ask") == HOSTILE
    assert meta(ran, "ask")["tool_calls"][0]["answer"] == HOSTILE
    assert not (ran.folder / "pwned").exists()


def test_SEC_2_the_key_is_in_no_record(
    run_yaml: RunYaml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes to the server, and nowhere else, whatever the server says of it."""
    secret = "model-key-0123456789"
    monkeypatch.setenv("MODEL_API_KEY", secret)
    with FaultyServer(refuses(401, "invalid_api_key", f"no such key {secret}")) as server:
        ran = run_yaml(
            f"""
steps:
  ask: {{provider: openai, model: m, url: "http://127.0.0.1:{server.port}/v1", prompt: hi, api_key: $MODEL_API_KEY}}
"""
        )
        assert secret in str(server.requests[0].headers)
    assert ran["ask"].outcome == "failed"
    written = b"".join(path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file())
    told = "".join(line.text for line in ran.logged)
    assert secret not in told
    assert secret.encode() not in written


REFUSED = [
    (
        "changes: {type: command, exec: ls, mutates: true, start: routed}",
        "changes",
        "it changes things outside",
    ),
    ("changes: {type: human-input, prompt: p, start: routed}", "changes", "human-input"),
    ("changes: {type: noop, start: routed, guarantee: 'true'}", "changes", "guarantee"),
]


@pytest.mark.parametrize(("step", "name", "why"), REFUSED, ids=["mutates", "waits", "conditions"])
def test_E11_a_step_that_cannot_be_a_tool_is_refused(
    step: str, name: str, why: str, run_yaml: RunYaml
) -> None:
    """The model is told, and nothing runs."""
    ran = run_yaml(f"""
steps:
  {step}
  ask:
    {{{ASK}, tools: {{t: {{description: d, step: {name}}}}}, mock: {{answers: [{{calls: [{{tool: t}}]}}, done]}}}}
""")
    (call,) = meta(ran, "ask")["tool_calls"]
    assert not call["ok"]
    assert why in call["answer"]
    assert ran.output("ask") == "done"


def test_E11_a_tool_that_may_change_things_runs(run_yaml: RunYaml) -> None:
    """Where the step says so at the tool; then the step counts as one that changes things."""
    ran = run_yaml(f"""
steps:
  write: {{type: command, exec: "echo x >> written", mutates: true, start: routed}}
  ask:
    {{{ASK}, criticality: external, assume: 'true', guarantee: 'true',
      tools: {{t: {{description: d, step: write, mutates: true}}}},
      mock: {{answers: [{{calls: [{{tool: t}}, {{tool: t}}]}}, done]}}}}
""")
    assert ran.lines("written") == ["x", "x"]
    assert ran.first.plan.steps["ask"].effects == "mutates"
    assert [call["ok"] for call in meta(ran, "ask")["tool_calls"]] == [True, True]


def test_E11_a_tool_that_breaks_off_while_it_changes_things_is_in_doubt(run_yaml: RunYaml) -> None:
    """Nobody knows what it did: a person has to look."""
    ran = run_yaml(f"""
steps:
  write: {{type: command, exec: "echo x >> written; exec sleep 20", mutates: true, start: routed, timeout: 300}}
  ask:
    {{{ASK}, criticality: external, assume: 'true', guarantee: 'true',
      tools: {{t: {{description: d, step: write, mutates: true}}}},
      mock: {{answers: [{{calls: [{{tool: t}}]}}, done]}}}}
""")
    assert ran.verdict == "HOLD"
    assert ran.lines("written") == ["x"]


def test_E11_rounds_of_tools_are_bounded(run_yaml: RunYaml) -> None:
    """A model that never answers ends as a fault of its own; each use is in the record."""
    ran = run_yaml(f"""
steps:
  ask:
    {{{ASK}, tool_rounds: 3, tools: {{t: {{description: d, script: "1"}}}},
      mock: {{answers: [{{calls: [{{tool: t}}]}}]}}}}
""")
    assert ran["ask"].fault is not None
    assert ran["ask"].fault.kind == "ai.tool_rounds"
    assert [call["round"] for call in meta(ran, "ask")["tool_calls"]] == [1, 2, 3]


def test_E11_a_script_as_a_tool_changes_memory_when_the_step_is_done(run_yaml: RunYaml) -> None:
    """It sees its arguments and the run's names."""
    ran = run_yaml(f"""
inputs: [{{name: base, default: 10}}]
steps:
  ask:
    {{{ASK}, tools: {{add: {{description: d, script: "const s = inputs.base + args.n; memory.set('sum', s)"}}}},
      mock: {{answers: [{{calls: [{{tool: add, with: {{n: 5}}}}]}}, done]}}}}
  after: {{type: script, depends_on: ask, content: "return memory.get('sum')"}}
""")
    assert ran.output("after") == 15


def test_E11_a_session_goes_on_in_another_step(run_yaml: RunYaml) -> None:
    """What was said before is told again, to whoever is asked now."""
    with FaultyServer(says("4"), says("because")) as server:
        at = f'provider: anthropic, model: m, url: "http://127.0.0.1:{server.port}"'
        ran = run_yaml(f"""
steps:
  first: {{{at}, prompt: "2+2?"}}
  second: {{{at}, prompt: "why?", session: first, depends_on: first}}
""")
        asked = server.requests[1].body.decode()
    assert ran.output("second") == "because"
    assert asked.index("2+2?") < asked.index('"4"') < asked.index("why?")


def test_E11_tools_are_no_retries(run_yaml: RunYaml) -> None:
    """A budget of retries counts what was tried again, not what was asked next."""
    ran = run_yaml(f"""
budget: {{retries: 0}}
steps:
  ask:
    {{{ASK}, tools: {{t: {{description: d, script: "1"}}}},
      mock: {{answers: [{{calls: [{{tool: t}}]}}, {{calls: [{{tool: t}}]}}, done]}}}}
  after: {{type: noop, depends_on: ask}}
""")
    assert ran.verdict == "GO"


def test_E11_on_fail_retry_asks_again(run_yaml: RunYaml) -> None:
    """After the gate has given up, if the fault is one that passes."""
    with FaultyServer(refuses(503, "overloaded"), says("fine")) as server:
        ran = run_yaml(f"""
steps:
  ask:
    {{provider: openai, model: m, url: "http://127.0.0.1:{server.port}/v1", prompt: hi,
      reliability: {{bounds: {{attempts_max: 1}}}}, on_fail: {{retry: {{max: 1, backoff: {{delay_ms: 1}}}}}}}}
""")
    assert (ran.verdict, ran["ask"].attempts) == ("GO", 2)


def test_E11_uses_of_tools_are_told(run_yaml: RunYaml) -> None:
    """Under the step, in the JSON report, and in the story of the run; hostile text stays in its line."""
    ran = run_yaml(f"""
steps:
  ask:
    {{{ASK}, tools: {{t: {{description: d, script: "args.a"}}}},
      mock: {{answers: [{{calls: [{{tool: t, with: {{a: "x\\n✓ fake"}}}}, {{tool: nope}}]}}, done]}}}}
""")
    first, second = call_lines(ran["ask"])
    assert first.startswith("tool t ")
    assert "\n" not in first
    assert second == "tool nope {}: failed: there is no such tool; there are: t"
    report = ran["ask"].told()
    assert isinstance(report, dict)
    assert [use["ok"] for use in report["tool_calls"]] == [True, False]
    told = [line.text for line in story(ran.records)]
    assert "call: round 1: the tool nope was used in vain" in told


def test_LLM_3_a_model_that_is_down_is_not_asked_by_the_next_step(run_yaml: RunYaml) -> None:
    """Its breaker opens after five failures in a row, whichever steps had them; the refusal says when to come again."""
    steps = "".join(
        f"""
  s{number}:
    {{{ASK}, model: m, mock: {{answers: [{{fail: server-5xx}}]}}, criticality: info, continue_on_failure: true,
      depends_on: [{f"s{number - 1}" if number else ""}]}}"""
        for number in range(6)
    )
    ran = run_yaml(f"""
reliability: {{default: {{when_all_open: fail, bounds: {{attempts_max: 1}}}}}}
steps:{steps}
""")
    faults = [ran[f"s{number}"].fault for number in range(6)]
    assert [fault.kind for fault in faults if fault] == ["ai.server_5xx"] * 5 + ["ai.circuit_open"]
    last = faults[-1]
    assert last is not None
    assert (last.fault_class, (last.retry_after_s or 0) > 1) == ("transient", True)
    assert meta(ran, "s5")["gate"]["attempts"] == []
