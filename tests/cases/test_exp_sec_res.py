"""Cases about expressions, security and resuming: EXP, SEC, RES."""

from __future__ import annotations

import json

import pytest
from tests.whole import Ran, RunYaml

from gonogo import app
from gonogo.core.events import CallDone, RunStarted
from gonogo.errors import ConfigError

# --- EXP


@pytest.mark.parametrize(
    "text",
    [
        "${{ outputs.a.ok }} == false",
        "{{ outputs.a.ok }} == 'x'",
        "{{ 'false' }}",
        "outputs.a.ok == false '",
        "ok ok",
        "   ",
    ],
)
@pytest.mark.parametrize("key", ["if", "assume", "guarantee", "fail_if"])
def test_EXP_1_a_template_is_no_condition(run_yaml: RunYaml, text: str, key: str) -> None:
    """EXP-1: refused at load with its place; braces with the words that help. (An empty `if` is absent, spec A.4.)"""
    with pytest.raises(ConfigError) as refused:
        run_yaml(f"checks:\n  a: {{ type: noop }}\n  b: {{ type: noop, {key}: {json.dumps(text)} }}\n")
    problem = refused.value.problems[0]
    assert problem.place is not None
    if "{{" in text:
        assert "expression, not template" in f"{problem.message} {problem.suggestion}"


TRUTH = {
    "''": False, "'0'": True, "'false'": True, "' '": True, "0": False, "-0": False, "NaN": False, "1": True,
    "null": False, "undefined": False, "[]": True, "({})": True, "[0]": True, "true": True, "false": False,
    "'1' == 1": True, "null == {}.missing": True, "(0 || 'x') === 'x'": True, "(1 && 'y') === 'y'": True,
}  # fmt: skip
KEYS = {
    "if": ("if: {}", "passed", "skipped"),
    "assume": ("assume: {}", "passed", "skipped"),
    "guarantee": ("guarantee: {}", "passed", "failed"),
    "fail_if": ("fail_if: {}", "failed", "passed"),
}


@pytest.mark.parametrize("key", KEYS)
def test_EXP_2_one_table_of_truth(run_yaml: RunYaml, key: str) -> None:
    """EXP-2: JavaScript's truth in every construct alike (`when` in B.1's tests); texts of env are texts."""
    written, true, false = KEYS[key]
    lines = [*TRUTH.items(), ("env.F", True), ("env.Z", True), ("env.E", False), ("env.NOT_THERE", False)]
    steps = "".join(
        f"  s{number}: {{ type: noop, {written.format(json.dumps(text))} }}\n"
        for number, (text, _) in enumerate(lines)
    )
    ran = run_yaml(f"max_parallelism: 30\nchecks:\n{steps}", env={"F": "false", "Z": "0", "E": ""})
    found = {text: ran[f"s{number}"].outcome for number, (text, _) in enumerate(lines)}
    assert found == {text: true if truth else false for text, truth in lines}


def test_EXP_2_a_text_that_looks_false_is_warned_about() -> None:
    """EXP-2: `if: env.X` says to compare explicitly."""
    problems = app.loads('version: "1.0"\nchecks:\n  a: { type: noop, if: env.X }\n').problems
    assert any("compare" in f"{problem.message} {problem.suggestion}" for problem in problems)


WAYS_OUT = [
    "output.constructor.constructor('return 1')() === 1",
    "[].map.constructor('return 1')() === 1",
    "outputs.__proto__.x === 1",
    "any.__self__ === 1 || log.__globals__ === 1",
    "output['__cl' + 'ass__'] === 1",
    "globalThis.process === 1 || this.constructor.constructor('return 1')() === 1",
    "(outputs.a = 1, outputs.a === 1)",
    "(output.x = 2, output.x === 2)",
    "eval('1') === 1",
]


ONE = "x-one: &one { type: script, content: 'return {a: 0}', depends_on: first }\n"


@pytest.mark.parametrize("key", KEYS)
def test_EXP_3_nothing_gets_out(run_yaml: RunYaml, key: str) -> None:
    """EXP-3: each is refused at load, or an error, or just false: the field's safe default applies; outputs stay."""
    written, _, false = KEYS[key]
    first = "  first: { type: script, content: 'return {a: 0}' }\n"
    steps = {}
    for number, text in enumerate(WAYS_OUT):
        before = key in ("if", "assume")
        seen = (
            text.replace("output.", "outputs.first.").replace("output[", "outputs.first[") if before else text
        )
        step = f"  s{number}: {{ <<: *one, {written.format(json.dumps(seen))} }}\n"
        try:
            app.loads(f'version: "1.0"\n{ONE}checks:\n{first}{step}')
        except ConfigError:
            continue
        steps[f"s{number}"] = step
    ran = run_yaml(f"max_parallelism: 9\n{ONE}checks:\n{first}{''.join(steps.values())}")
    assert {name: ran[name].outcome for name in steps} == dict.fromkeys(steps, false)
    assert ran.output("first") == {"a": 0}


@pytest.mark.slow
def test_EXP_4_a_pattern_that_never_ends_costs_itself_only(run_yaml: RunYaml) -> None:
    """EXP-4: an evaluation error with its issue, in fail_if and in when; another step isn't held up for long."""
    ran = run_yaml("""
checks:
  evil:
    type: script
    content: "return 'a'.repeat(40) + '!'"
    fail_if: "/^(a+)+$/.test(output)"
  evil_rule:
    type: script
    content: "return 'a'.repeat(40) + '!'"
    on_success: { transitions: [{ when: "/^(a+)+$/.test(output)", to: never }] }
  never: { type: noop, start: routed }
  other: { type: noop, depends_on: started, if: "1 < 2" }
  started: { type: noop }
""")
    assert ran.rules("evil") == ["expression/error"]
    assert ran.judged("fail_if", "evil")[0].error
    assert ran.judged("when", "evil_rule")[0].error
    assert (ran["evil"].outcome, ran["other"].outcome, ran["never"].outcome) == (
        "passed",
        "passed",
        "skipped",
    )


# --- SEC

ATTACKS = [
    'x"; touch pwned; echo "',
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    "a\nb; touch pwned",
    "-rf",
    "{{ 7*7 }}",
]


@pytest.mark.parametrize("quote", ["", '\\"', "'"])
def test_SEC_1_unescaped_data_in_a_command_is_refused(run_yaml: RunYaml, quote: str) -> None:
    """SEC-1: `echo {{ pr.title }}` in any quotes is refused at load, with advice to pass it by env."""
    with pytest.raises(ConfigError) as refused:
        run_yaml(f'checks:\n  a: {{ type: command, exec: "echo {quote}{{{{ pr.title }}}}{quote}" }}\n')
    problem = refused.value.problems[0]
    assert "env" in f"{problem.message} {problem.suggestion}"


def test_SEC_1_what_is_accepted_is_the_value_itself(run_yaml: RunYaml) -> None:
    """SEC-1: by env and by shell_escape, from a title and from items: never run, never rendered twice."""
    ran = run_yaml(
        """
checks:
  list: { type: script, forEach: true, content: "return inputs.attacks" }
  by_env: { type: command, fanout: map, depends_on: [list], env: { V: "{{ item }}" }, exec: 'printf "%s." "$V"' }
  by_filter: { type: command, fanout: map, depends_on: [list], exec: "printf '%s.' {{ outputs.list | shell_escape }}" }
  title: { type: command, env: { V: "{{ pr.title }}" }, exec: 'printf "%s." "$V"' }
inputs: [{ name: attacks }]
""",
        inputs={"attacks": ATTACKS},
        context={"pr": {"title": ATTACKS[1]}},
    )
    expected = [attack + "." for attack in ATTACKS]
    assert ran.output("by_env") == expected
    assert ran.output("by_filter") == expected
    assert ran.output("title") == ATTACKS[1] + "."
    assert not (ran.folder / "pwned").exists()


def test_SEC_2_a_secret_is_nowhere(run_yaml: RunYaml) -> None:
    """SEC-2: raw, one field, base64, in an error: in no record, log line or result; short parts are not masked."""
    secret = '{"user": "deploy-user", "pass": "hunter2-hunter2"}'
    ran = run_yaml(
        """
checks:
  raw: { type: command, exec: 'printf "%s" "$MY_SECRET"' }
  field: { type: command, exec: 'printf "%s" "$MY_SECRET" | cut -d: -f3 >&2; exit 1', continue_on_failure: true }
  coded: { type: command, exec: 'printf "%s" "$MY_SECRET" | base64 -w0' }
  plain: { type: command, exec: "echo '{a}'" }
""",
        env={"MY_SECRET": secret},
    )
    import base64

    everything = "".join(
        path.read_text() for path in (ran.folder.parent / "runs").rglob("*") if path.is_file()
    )
    everything += "".join(line.text for line in ran.logged) + json.dumps(ran.view.as_json())
    for part in ("hunter2-hunter2", "deploy-user", base64.b64encode(secret.encode()).decode()[:40]):
        assert part not in everything
    assert ran.output("plain") == "{a}"


# --- RES


def test_RES_1_what_was_done_is_not_done_again(run_yaml: RunYaml) -> None:
    """RES-1: a journal cut anywhere, also in the middle of a line, resumes to the same end; complete steps run once."""
    text = "checks:\n" + "".join(
        f"  s{n}: {{ type: command, {f'depends_on: [s{n - 1}], ' if n else ''}exec: 'echo s{n} >> ran' }}\n"
        for n in range(3)
    )
    whole = run_yaml(text, run_id="whole")
    journal = next((whole.folder.parent / "runs").rglob("*.jsonl"))
    lines = journal.read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines)):
        journal.write_bytes(b"".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2])
        kept = Ran(whole.result, whole.runs, whole.folder, [])
        done = {record.event.call for record in kept.records if isinstance(record.event, CallDone)}
        before = len(whole.lines("ran"))
        again = kept.resumed()
        assert (again.verdict, again.outcomes) == (whole.verdict, whole.outcomes)
        assert len(whole.lines("ran")) - before == 3 - len(done)


def test_RES_2_a_pause_repeats_nothing(run_yaml: RunYaml) -> None:
    """RES-2: an external step and a child's finished step have one line each after two pauses."""
    child = 'version: "1.0"\nid: child\nchecks:\n  work: { type: command, exec: "echo c >> child.txt" }\n'
    child += "  ask: { type: human-input, prompt: 'one?', depends_on: [work] }\n"
    child += "  again: { type: human-input, prompt: 'two?', depends_on: [ask] }\n"
    ran = run_yaml(
        """
imports: [child.yaml]
checks:
  post: { type: command, criticality: external, exec: "echo p >> posted.txt" }
  nested: { type: workflow, workflow: child, depends_on: [post] }
""",
        files={"child.yaml": child},
    )
    assert ran.verdict == "HOLD"
    ran = ran.answered("nested", "yes")
    assert ran.verdict == "HOLD"
    ran = ran.answered("nested", "yes again")
    assert ran.verdict == "GO"
    assert (ran.lines("posted.txt"), ran.lines("child.txt")) == (["p"], ["c"])


def test_RES_3_odd_values_are_stored_or_fail_their_step(run_yaml: RunYaml) -> None:
    """RES-3 (for what a script can give): every value reads back or fails that step; the run ends; strict JSON."""
    values = [
        "NaN",
        "Infinity",
        "-0",
        "10n",
        "new Map([[1, 2]])",
        "(() => { const a = []; a.push(a); return a })()",
        "() => 1",
        "'\\ud83d'",
    ]
    steps = "".join(
        f"  s{n}: {{ type: script, content: {json.dumps('return ' + value)} }}\n"
        for n, value in enumerate(values)
    )
    ran = run_yaml(f"checks:\n{steps}")
    assert set(ran.outcomes.values()) <= {"passed", "failed"}
    assert ran["s5"].outcome == ran["s6"].outcome == "failed"
    assert all(ran.rules(name) for name, outcome in ran.outcomes.items() if outcome == "failed")
    for path in (ran.folder.parent / "runs").rglob("*.jsonl"):
        for line in path.read_text("utf-8", "strict").splitlines():
            json.loads(line, parse_constant=pytest.fail)
    assert isinstance(ran.first, RunStarted)
