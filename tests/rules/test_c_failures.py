"""C.6 and C.7: what is a failure, of which class, and what contracts and detectors say."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from pytest_httpserver import HTTPServer
from tests.whole import Ran, RunYaml
from werkzeug import Response

from gonogo.core import decisions as d
from gonogo.errors import ConfigError

# --- C.6: one case per row. Each: the step, its fault's class, a rule among its issues.

AFTER = """
steps:
  a: {{{step}, on_fail: {{run: [told]}}}}
  after: {{type: noop, depends_on: a}}
  told: {{type: noop, start: routed}}
"""


def failed(ran: Ran, step: str = "a") -> tuple[str, str]:
    """Class and rule of a failed step, after making sure that everything a failure means has happened."""
    assert ran[step].outcome == "failed"
    assert ran.why("after") == ("skipped", "dependency_failed")
    assert ran["told"].outcome == "passed"
    assert (ran.verdict, ran.view.exit_code, ran.view.because) == ("NO-GO", 1, (step,))
    fault = ran[step].fault
    assert fault is not None
    assert fault.rule_id in ran.rules(step)
    return fault.fault_class, fault.rule_id.removeprefix(f"{step}/")


ROWS = {
    "command exit": ("type: command, exec: exit 3", "transient", "command/execution_error"),
    "command that can't start": (
        "type: command, exec: no-such-program-here",
        "transient",
        "command/execution_error",
    ),
    "command timeout": ("type: command, exec: sleep 20, timeout: 100ms", "transient", "command/timeout"),
    "command transform": (
        'type: command, exec: echo 1, transform: "{{ output | divided_by: 0 }}"',
        "logical",
        "command/transform_error",
    ),
    "command transform_js": (
        'type: command, exec: echo 1, transform_js: "null.x"',
        "logical",
        "command/transform_js_error",
    ),
    "script throw": ("type: script, content: \"throw new Error('x')\"", None, "script/execution_error"),
    "memory operation": (
        "type: memory, operation: increment, key: k, value: text",
        "logical",
        "memory/operation_error",
    ),
    "guarantee": ('type: noop, guarantee: "false"', "logical", "contract/guarantee_failed"),
    "schema": (
        "type: script, content: 'return 1', schema: {type: string}",
        "logical",
        "contract/schema_validation_failed",
    ),
    "fail_if": ('type: noop, fail_if: "true"', "logical", "a_fail_if"),
    "failure_conditions": ('type: noop, failure_conditions: {bad: "true"}', "logical", "a_bad"),
    "forEach undefined": (
        "type: script, content: 'return undefined', forEach: true",
        "transient",
        "forEach/execution_error",
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_C_6_table_every_failure_is_fatal_and_routed(run_yaml: RunYaml, row: str) -> None:
    """C.6, one case per row (I.1 rows 2, 9), G28: failed, on_fail acted, dependents blocked, NO-GO; typed class and
    rule.
    """
    step, fault_class, rule = ROWS[row]
    found = failed(run_yaml(AFTER.format(step=step)))
    assert found[1] == rule
    assert fault_class is None or found[0] == fault_class


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """A server on a free port of this machine."""
    with HTTPServer(host="127.0.0.1") as running:
        yield running


STATUSES = {
    408: "transient",
    425: "transient",
    429: "transient",
    500: "transient",
    503: "transient",
    404: "logical",
}


@pytest.mark.parametrize("status", STATUSES)
def test_C_6_table_http_statuses(run_yaml: RunYaml, server: HTTPServer, status: int) -> None:
    """C.6, row http_client: 408, 425, 429 and 5xx are transient, any other 4xx is logical; all are failures."""
    server.expect_request("/x").respond_with_response(Response("no", status=status))
    url = json.dumps(server.url_for("/x"))
    found = failed(run_yaml(AFTER.format(step=f"type: http_client, url: {url}")))
    assert found == (STATUSES[status], "http_client/fetch_error")


def test_C_6_table_http_network_error(run_yaml: RunYaml, server: HTTPServer) -> None:
    """C.6, row http_client: a refused connection is transient."""
    url = json.dumps(server.url_for("/x"))
    server.stop()
    assert failed(run_yaml(AFTER.format(step=f"type: http_client, url: {url}")))[0] == "transient"


def test_C_6_table_http_transform(run_yaml: RunYaml, server: HTTPServer) -> None:
    """C.6 and D.1: a transform that throws is a logical failure of the call."""
    server.expect_request("/x").respond_with_json({"a": 1})
    url = json.dumps(server.url_for("/x"))
    found = failed(run_yaml(AFTER.format(step=f'type: http_client, url: {url}, transform_js: "null.x"')))
    assert found == ("logical", "http_client/transform_js_error")


def test_C_6_table_webhook(run_yaml: RunYaml, server: HTTPServer) -> None:
    """C.6, row http: a webhook that answers 400 fails with webhook/error."""
    server.expect_request("/hook", method="POST").respond_with_response(Response("no", status=400))
    url = json.dumps(server.url_for("/hook"))
    found = failed(run_yaml(AFTER.format(step=f"type: http, url: {url}, body: hello")))
    assert found == ("logical", "webhook/error")


def test_C_6_table_a_provider_that_throws(run_yaml: RunYaml) -> None:
    """C.6, row thrown, I.1 row 10: in the journal, on_fail ran, dependents blocked, with the step's own rule."""
    from gonogo.providers.table import built_in

    async def throws(call: object, context: object) -> object:
        raise RuntimeError("thrown")

    table = built_in()
    table._loaded["noop"] = replace(table.get("noop"), run=throws)
    text = AFTER.format(step="type: noop").replace("told: {type: noop", "told: {type: script, content: '1'")
    ran = run_yaml(text, table=table)
    assert failed(ran) == ("bug", "execution_error")


@pytest.mark.parametrize("severity", ["warning", "info"])
def test_C_6_table_a_condition_of_less_than_error_is_an_issue(run_yaml: RunYaml, severity: str) -> None:
    """C.6, row failure_conditions: warning and info are issues only."""
    ran = run_yaml(f"""
steps:
  a: {{type: noop, failure_conditions: {{odd: {{condition: "true", message: hm, severity: {severity}}}}}}}
""")
    assert (ran.verdict, ran.rules("a")) == ("GO", ["a_odd"])
    assert ran["a"].issues[0].severity == severity


def test_C_6_table_ordinary_issues_are_never_fatal(run_yaml: RunYaml) -> None:
    """C.6, I.1 row 18: whatever a finding or a step is called, text decides nothing."""
    ran = run_yaml("""
steps:
  timeout-test:
    type: command
    exec: |
      printf '{"issues": [{"message": "m", "ruleId": "error", "severity": "critical"},
        {"message": "n", "ruleId": "x/execution_error"}, {"message": "o", "ruleId": "y_fail_if"}]}'
  after: {type: noop, depends_on: timeout-test}
""")
    assert len(ran["timeout-test"].issues) == 3
    assert (ran["timeout-test"].outcome, ran["after"].outcome) == ("passed", "passed")


def test_C_6_table_a_loop_budget_refusal_fails_no_step(run_yaml: RunYaml) -> None:
    """C.6, row loop budget, with semantics 21: the step keeps its outcome; the refusal is an issue and NO-GO."""
    ran = run_yaml("""
routing: {max_loops: 1}
steps:
  a: {type: noop, on_success: {goto: a}}
""")
    assert ran["a"].outcome == "passed"
    assert ran.own_rules == ["a/routing/loop_budget_exceeded"]
    assert ran.verdict == "NO-GO"


def test_C_6_table_a_pause_is_no_failure(run_yaml: RunYaml) -> None:
    """C.6, row human input: never a failure, never on_fail."""
    ran = run_yaml("""
steps:
  ask: {type: human-input, prompt: "go?", on_fail: {run: [told]}}
  told: {type: noop}
""")
    assert (ran.verdict, ran["ask"].outcome, ran["ask"].fault) == ("HOLD", "waiting", None)
    assert ran.calls["told"] == 0


# --- C.7


def test_C_7_R1_one_issue_per_broken_guarantee(run_yaml: RunYaml) -> None:
    """C.7 R1: rule, file, line, severity and category as written; the message carries the expression."""
    ran = run_yaml('steps:\n  a: {type: noop, guarantee: ["1 > 2", "true", "2 > 3"]}\n')
    seen = [(i.rule_id, i.line, i.severity, i.category, i.engine) for i in ran["a"].issues]
    assert seen == [("contract/guarantee_failed", 0, "error", "logic", True)] * 2
    assert ["1 > 2" in ran["a"].issues[0].message, "2 > 3" in ran["a"].issues[1].message] == [True, True]
    assert ran.calls["a"] == 1


def test_C_7_R1_guarantee_mode_issue_records_only(run_yaml: RunYaml) -> None:
    """C.7 R1, H1: `guarantee_mode: issue` and `schema_mode: issue` are recorded, not fatal."""
    ran = run_yaml("""
steps:
  a: {type: noop, guarantee: "false", guarantee_mode: issue}
  b: {type: script, content: "return 1", schema: {type: string}, schema_mode: issue}
""")
    assert ran.verdict == "GO"
    assert ran.rules("a") == ["contract/guarantee_failed"]
    assert ran.rules("b") == ["contract/schema_validation_failed"]


def test_C_7_R2_schema_errors_are_gathered(run_yaml: RunYaml) -> None:
    """C.7 R2: all errors, the first three in the message, joined with `; `; one issue."""
    ran = run_yaml("""
steps:
  a:
    type: script
    content: "return {a: 1, b: 1, c: 1, d: 1}"
    schema: {type: object, additionalProperties: {type: string}}
""")
    assert ran.rules("a") == ["contract/schema_validation_failed"]
    assert ran["a"].issues[0].message.count(";") == 2


def test_C_7_R2_a_schema_that_is_none_is_refused(run_yaml: RunYaml) -> None:
    """C.7 R2 D: an uncompilable schema is a validation error at load; output_schema is its older name."""
    with pytest.raises(ConfigError):
        run_yaml("steps:\n  a: {type: noop, schema: {type: nonsense}}\n")
    ran = run_yaml("steps:\n  a: {type: script, content: 'return 1', output_schema: {type: string}}\n")
    assert ran.rules("a") == ["contract/schema_validation_failed"]


@pytest.mark.parametrize("name", ["code-review", "plain", "unheard-of"])
def test_C_7_R3_a_text_names_a_renderer(run_yaml: RunYaml, name: str) -> None:
    """C.7 R3 D: a schema that is a text validates nothing."""
    ran = run_yaml(f"steps:\n  a: {{type: script, content: 'return 1', schema: {name}}}\n")
    assert (ran.verdict, ran.rules("a")) == ("GO", [])


def test_C_7_R4_a_schema_is_judged_per_item(run_yaml: RunYaml) -> None:
    """C.7 R4: one issue per item that breaks it, with its scope."""
    ran = run_yaml("""
steps:
  list: {type: script, forEach: true, content: "return [1, 'x', 2]"}
  each: {type: script, fanout: map, depends_on: list, content: "return item", schema: {type: number}}
""")
    assert [(issue.rule_id, issue.scope) for issue in ran["each"].issues] == [
        ("contract/schema_validation_failed", "list#1[1]")
    ]


@pytest.mark.parametrize(
    ("schema", "outcome"), [("{type: string}", "failed"), ("{type: [string, 'null']}", "passed")]
)
def test_C_7_R4_undefined_is_judged_like_null(run_yaml: RunYaml, schema: str, outcome: str) -> None:
    """C.7 R4 D: an undefined output fails a schema that does not allow null."""
    ran = run_yaml(f"steps:\n  a: {{type: script, content: 'return undefined', schema: {schema}}}\n")
    assert ran["a"].outcome == outcome


def test_C_7_R5_fail_if_per_item_and_not_again_on_the_whole(run_yaml: RunYaml) -> None:
    """C.7 R5 D, H29: per item only; the aggregate is not judged again."""
    ran = run_yaml("""
steps:
  list: {type: script, forEach: true, content: "return [1, 2]"}
  each: {type: script, fanout: map, depends_on: list, content: "return item", fail_if: output === 2}
""")
    assert [(i.rule_id.split("/")[-1], i.scope, i.file, i.line) for i in ran["each"].issues] == [
        ("each_fail_if", "list#1[1]", "system", 0)
    ]
    assert len(ran.judged("fail_if")) == 2


def test_C_7_R6_the_global_fail_if_never_gates(run_yaml: RunYaml) -> None:
    """C.7 R6 D: judged after every executed step; adds global_fail_if; dependents run; the run is NO-GO."""
    ran = run_yaml("""
fail_if: output === 2
steps:
  a: {type: script, content: "return 2"}
  after: {type: script, depends_on: a, content: "return 1"}
  skipped: {type: noop, if: "false"}
""")
    assert ran.own_rules == ["global_fail_if"]
    assert (ran["a"].outcome, ran["after"].outcome) == ("passed", "passed")
    assert (ran.verdict, ran.view.exit_code) == ("NO-GO", 1)
    assert [judged.step for judged in ran.judged("global_fail_if")] == ["a", "after"]


def test_C_7_R7_conditions_of_all_and_of_one(run_yaml: RunYaml) -> None:
    """C.7 R7: the global set first, then the step's; a step's entry replaces the global one of its name."""
    ran = run_yaml("""
failure_conditions:
  shared: {condition: "true", message: of all, severity: warning}
  other: {condition: "true", severity: info}
steps:
  a: {type: noop, failure_conditions: {own: {condition: "2 > 1", severity: warning}, shared: {condition: "false"}}}
  b: {type: noop}
""")
    assert ran.rules("a") == ["a_other", "a_own"]
    assert [(i.rule_id, i.message) for i in ran["b"].issues] == [("b_shared", "of all"), ("b_other", "true")]
    assert ran["a"].issues[1].message == "2 > 1"
    assert ran.verdict == "GO"


def test_C_7_R7_a_conditions_severity_is_error_unless_written(run_yaml: RunYaml) -> None:
    """C.7 R7: severity defaults to error, which fails the step."""
    ran = run_yaml('steps:\n  a: {type: noop, failure_conditions: {bad: {condition: "true", message: m}}}\n')
    assert (ran["a"].outcome, ran["a"].issues[0].severity, ran["a"].issues[0].message) == (
        "failed",
        "error",
        "m",
    )


def test_C_7_R8_every_contract_leaves_a_decision(run_yaml: RunYaml) -> None:
    """C.7 R8 D, G14: expression, the values it read, result, and the duration of its batch."""
    ran = run_yaml("""
steps:
  a: {type: script, content: "return {n: 3}", guarantee: output.n > 2, fail_if: output.n > 5}
""")
    told = {one.construct: one for one in ran.decisions(d.Judged)}
    assert (told["guarantee"].result, told["fail_if"].result) == (True, False)
    assert 3 in told["guarantee"].evidence.values()
    assert ran.view.plan.expressions[told["fail_if"].expression].source == "output.n > 5"
    assert all(
        event.duration_ms >= 0 for record in ran.records if hasattr(event := record.event, "duration_ms")
    )


def test_C_7_R8_what_a_guarantee_saw_is_in_its_message(run_yaml: RunYaml) -> None:
    """Not only in the journal."""
    ran = run_yaml("steps: {a: {type: command, exec: echo 0, guarantee: output > 0}}")
    assert ran["a"].issues[0].message == "output > 0 does not hold (output = 0)"
