"""B.7 to B.11: what may be written: bodies, dialect, what may be changed, and templates."""

from __future__ import annotations

import json

import pytest
from tests.whole import RunYaml

from gonogo.errors import ConfigError

# --- B.7

BODIES = {
    "a return on one line": ("return true", True),
    "lines, then an expression": ("log('x')\nlog('y')\n1 < 2", True),
    "const and let": ("const a = 1;\nlet b = 2;\na + b === 3", True),
    "a semicolon in a text": ("'a;b' === 'a;b'", True),
    "a line end in a text": ("const t = `a\nb`;\nt.length === 3", True),
    "a comment first": ("// why\n2 > 1", True),
    "an early return": ("if (1 > 2) { return true }\nreturn false", False),
    "the last value counts": ("true;\nfalse", False),
}


@pytest.mark.parametrize("name", BODIES)
def test_B_7_statements_are_read_by_a_real_parser(run_yaml: RunYaml, name: str) -> None:
    """B.7 D: the value is the last expression or the returned value; const and let are allowed."""
    text, truth = BODIES[name]
    ran = run_yaml(f"steps:\n  a: {{type: noop, if: {json.dumps(text)}}}\n")
    assert not [judged.error for judged in ran.judged("if") if judged.error]
    assert (ran["a"].outcome == "passed") is truth


@pytest.mark.parametrize("text", ["// only a comment", "", "   "])
def test_B_7_a_text_without_a_value_is_never_true(run_yaml: RunYaml, text: str) -> None:
    """B.7 (the peer took a comment for true): nothing to evaluate is refused, or no condition at all."""
    if text == "":
        assert run_yaml('steps:\n  a: {type: noop, if: ""}\n')["a"].outcome == "passed"
        return
    try:
        ran = run_yaml(f"steps:\n  a: {{type: noop, if: {json.dumps(text)}}}\n")
    except ConfigError:
        return
    assert ran["a"].outcome == "skipped"


# --- B.8


@pytest.mark.parametrize(
    "text", ["return 'there'", "'there'", "const x = 'th';\nx + 'ere'", "(() => 'there')()"]
)
def test_B_8_R1_a_bare_expression_is_a_body_too(run_yaml: RunYaml, text: str) -> None:
    """B.8 R1 D: goto_js takes a body or a bare expression, also one that ends with a call."""
    ran = run_yaml(f"""
steps:
  a: {{type: noop, on_success: {{goto_js: {json.dumps(text)}, goto: static}}}}
  there: {{type: noop, start: routed}}
  static: {{type: noop, start: routed}}
""")
    assert (ran["there"].outcome, ran["static"].outcome) == ("passed", "skipped")


@pytest.mark.parametrize("text", ["return null", "null"])
def test_B_8_R1_null_means_no_goto(run_yaml: RunYaml, text: str) -> None:
    """B.8 R1 D: an explicit null suppresses the static target."""
    ran = run_yaml(f"""
steps:
  a: {{type: noop, on_success: {{goto_js: "{text}", goto: static}}}}
  static: {{type: noop, start: routed}}
""")
    assert ran.why("static") == ("skipped", "not_routed")


def test_B_8_R2_run_js_items_are_names_or_objects(run_yaml: RunYaml) -> None:
    """B.8 R2: names and {step, with} run, other items are dropped; a bare list is a body too."""
    ran = run_yaml("""
steps:
  a: {type: noop, on_success: {run_js: "['b', {step: 'c', with: {x: 5}}, 7, null, {with: {}}]"}}
  b: {type: noop, start: routed}
  c: {type: script, start: routed, content: "return args.x"}
""")
    assert ran["b"].outcome == "passed"
    assert ran.output("c") == 5
    assert ran.verdict == "GO"


def test_B_8_R3_the_first_true_rule_wins_and_null_stops(run_yaml: RunYaml) -> None:
    """B.8 R3: first true rule; `to: null` stops the block; no match falls through to goto_js, then goto."""
    ran = run_yaml("""
steps:
  first:
    type: noop
    on_success: {transitions: [{when: "false", to: x}, {when: "true", to: y}, {when: "true", to: x}], goto: x}
  stops: {type: noop, on_success: {transitions: [{when: "true", to: null}], goto_js: "return 'x'", goto: x}}
  falls: {type: noop, on_success: {transitions: [{when: "false", to: x}], goto_js: "return 'z'", goto: x}}
  x: {type: noop, start: routed}
  y: {type: noop, start: routed}
  z: {type: noop, start: routed}
""")
    assert [ran[name].outcome for name in "xyz"] == ["skipped", "passed", "passed"]


# --- B.9

DIALECT = (
    "(0 && 1 ? 2 : 3) === 3",
    "(false && false || true) === true",
    "(({a, ...rest}) => rest.b)({a: 1, b: 2}) === 2",
    "2 ** 3 === 8 && [...[1], 2].length === 2",
    "((x = 4) => x)() === 4",
    "(null ?? 'd') === 'd' && (undefined?.x) === undefined",
    "`${1 + 1}` === '2'",
    "Object.entries({a: 1})[0][0] === 'a'",
    "JSON.parse('[1]')[0] === 1 && /^a+$/.test('aa')",
    "now === now && typeof now === 'number'",
)


def test_B_9_standard_javascript_with_its_precedence(run_yaml: RunYaml) -> None:
    """B.9 D (I.1 row 19; semantics 26: full JavaScript): grouping and syntax are the language's own."""
    ran = run_yaml(f"steps:\n  a: {{type: noop, guarantee: {json.dumps(list(DIALECT))}}}\n")
    assert [issue.message for issue in ran["a"].issues] == []
    assert len(ran.judged("guarantee")) == len(DIALECT)


def test_B_9_no_clock_and_no_chance(run_yaml: RunYaml) -> None:
    """B.9 D (and law 1): no randomness, and every clock stands still at the frozen `now`."""
    ran = run_yaml("""
steps:
  clock: {type: noop, guarantee: ["Date.now() === now", "new Date().getTime() === now", "new Date(0).getTime() === 0"]}
  chance: {type: noop, if: Math.random() >= 0}
""")
    assert ran["clock"].outcome == "passed"
    assert ran.why("chance") == ("skipped", "if_condition")
    assert ran.rules("chance") == ["expression/error"]


@pytest.mark.slow
def test_B_9_an_endless_evaluation_is_cut(run_yaml: RunYaml) -> None:
    """B.9 D, G13: a limit of time, as an evaluation error; what follows is evaluated as if nothing had been."""
    ran = run_yaml("""
steps:
  hangs: {type: noop, guarantee: "(() => { while (true) {} })()"}
  fine: {type: noop, guarantee: 1 + 1 === 2}
""")
    assert (ran["hangs"].outcome, ran["fine"].outcome) == ("failed", "passed")
    assert ran.judged("guarantee", "hangs")[0].error


# --- B.10


@pytest.mark.parametrize(
    "place", ["if: X", "guarantee: X", "on_success: {transitions: [{when: X, to: null}]}"]
)
def test_B_10_conditions_write_nothing(run_yaml: RunYaml, place: str) -> None:
    """B.10 D: E1 and E2 are read-only: a write is an error and leaves no trace in memory."""
    condition = "\"memory.set('k', 1) === 1\""
    ran = run_yaml(f"steps:\n  a: {{type: noop, {place.replace('X', condition)}}}\n")
    construct = place.split(":", maxsplit=1)[0] if "when" not in place else "when"
    assert ran.judged(construct)[0].error
    assert ran.result.state.memory.get("default", {}) == {}


@pytest.mark.parametrize("place", ["goto_js", "run_js"])
def test_B_10_bodies_may_write_and_it_is_recorded(run_yaml: RunYaml, place: str) -> None:
    """B.10 D: E3 may write; the write is in the journal with its step, and later steps read it."""
    text = "\"memory.set('k', 5); return null\""
    ran = run_yaml(f"""
steps:
  a: {{type: noop, on_success: {{{place}: {text}}}}}
  b: {{type: memory, operation: get, key: k, depends_on: a}}
""")
    assert ran.output("b") == 5
    assert any("MemoryOp(" in str(record.event) for record in ran.records)


def test_B_10_outputs_cant_be_changed(run_yaml: RunYaml) -> None:
    """B.10, EXP-3: a body that changes an output changes nothing outside."""
    ran = run_yaml("""
steps:
  a: {type: script, content: "return {n: 1}"}
  b: {type: noop, depends_on: a, on_success: {run_js: "outputs.a.n = 99; return []"}}
  c: {type: script, depends_on: b, content: "return outputs.a.n"}
""")
    assert ran.output("c") == 1


# --- B.11

SCOPE = {
    "{{ pr.number }} {{ pr.title }}": "7 t",
    "{{ files | size }} {{ fileCount }}": "1 1",
    "{{ event.name }}": "pr_opened",
    "{{ outputs.before.n }} {{ outputs.history.before | size }} {{ outputs_history.before | size }}": "1 1 1",
    "{{ inputs.who }} {{ args.x }} {{ env.OF_FILE }}": "me 5 here",
    "{{ conversation.transport }}": "chat",
    "[{{ unknown_name }}{{ outputs.before.nope.deeper }}]": "[]",
}
FILTERS = {
    '{{ \'{"a": 1}\' | parse_json | get: "a" }}': "1",
    "{{ outputs.before | to_json }}": '{"n":1}',
    "{{ outputs.before | json }}": '{"n":1}',
    "{{ 'hi' | base64 }} {{ 'aGk=' | base64_decode }}": "aGk= hi",
    "{{ 'a b!' | safe_label }}": "a b",
    '{{ "it\'s" | shell_escape }}': "'it'\"'\"'s'",
    "{{ '$x' | shell_escape_double }}": "\\$x",
    "{{ 'MEMBER' | is_member }} {{ 'NONE' | is_owner }}": "true false",
    "{{ 'OWNER' | has_min_permission: 'MEMBER' }}": "true",
    "{{ 'k' | memory_get }} {{ 'k' | memory_has }} {{ 'x' | memory_has }}": "v true false",
    "{{ '' | not_empty }} {{ nothing | coalesce: 'd' }}": "false d",
    "{{ 'a\\nb' | unescape_newlines | newline_to_br | size }}": None,
    "{{ 'say \"x\"' | json_escape }}": 'say \\"x\\"',
}


def rendered(run_yaml: RunYaml, templates: dict[str, str | None]) -> dict[str, str | None]:
    """What templates become as messages of log steps, in one run."""
    steps = "".join(
        f"  say{number}: {{type: log, depends_on: put, include_pr_context: false, include_dependencies: false, "
        f"include_metadata: false, message: {json.dumps(text)}}}\n"
        for number, text in enumerate(templates)
    )
    ran = run_yaml(
        f"""
env: {{OF_FILE: here}}
inputs: [{{name: who}}]
steps:
  before: {{type: script, content: "return {{n: 1}}"}}
  put: {{type: memory, operation: set, key: k, value: v, depends_on: before}}
{steps}""",
        event="pr_opened",
        inputs={"who": "me"},
        arguments={"x": 5},
        context={
            "pr": {"number": 7, "title": "t"},
            "files": [{"filename": "a"}],
            "conversation": {"transport": "chat"},
        },
    )
    return {text: ran[f"say{number}"].content for number, text in enumerate(templates)}


def test_B_11_the_scope_of_templates(run_yaml: RunYaml) -> None:
    """B.11: pr, files, event, outputs with history, inputs, args, env; unknown names are empty."""
    assert rendered(run_yaml, dict(SCOPE)) == SCOPE


def test_B_11_the_filters_of_templates(run_yaml: RunYaml) -> None:
    """B.11: the filters beyond the standard set."""
    found = rendered(run_yaml, FILTERS)
    assert {text: found[text] for text, value in FILTERS.items() if value} == {
        k: v for k, v in FILTERS.items() if v
    }


def test_B_11_an_unknown_filter_is_refused_at_load(run_yaml: RunYaml) -> None:
    """B.11 lets unknown filters pass; law 6 outranks it: a misspelt shell_escape must never let its value through."""
    with pytest.raises(ConfigError) as refused:
        run_yaml('steps:\n  a: {type: log, message: "{{ pr.title | shell_escap }}"}\n')
    assert "shell_escap" in refused.value.problems[0].message


@pytest.mark.parametrize("name", ["MY_TOKEN", "MY_SECRET", "MY_PASSWORD", "MY_PRIVATE_KEY"])
def test_B_11_secrets_are_not_in_env(run_yaml: RunYaml, name: str) -> None:
    """B.11 D: names that look secret are not visible, neither to templates nor to expressions."""
    ran = run_yaml(
        f"""
steps:
  text: {{type: log, message: "[{{{{ env.{name} }}}}]", include_dependencies: false, include_metadata: false}}
  code: {{type: script, content: "return [typeof env.{name}, env.MY_PLAIN]"}}
""",
        env={name: "hunter2hunter2", "MY_PLAIN": "seen"},
    )
    assert ran["text"].content == "[]"
    assert ran.output("code") == ["undefined", "seen"]


def test_B_11_a_template_reads_no_file(run_yaml: RunYaml) -> None:
    """B.11 names a `readfile` tag; semantics 13 outranks it: templates read no files, and the load says so."""
    with pytest.raises(ConfigError) as refused:
        run_yaml("steps:\n  a: {type: log, message: \"{% readfile '/etc/passwd' %}\"}\n")
    assert "readfile" in refused.value.problems[0].message
