"""B.1 to B.3: which names each construct sees. One superset scope; what can't have a value is null."""

from __future__ import annotations

import json

import pytest
from tests.whole import Ran, RunYaml, runner

from gonogo.errors import ConfigError

# What each construct of contexts E1 (judged), E2 (when) and E3 (bodies) is written as; X is the expression.
CONSTRUCTS = {
    "if": "if: X",
    "assume": "assume: X",
    "guarantee": "guarantee: X",
    "fail_if": "fail_if: X",
    "failure_conditions": "failure_conditions: {found: X}",
    "when": "on_success: {transitions: [{when: X, to: reached}]}",
    "goto_js": "on_success: {goto_js: X}",
    "run_js": "on_success: {run_js: X}",
}
BODIES = {"goto_js": "return (X) ? 'reached' : null", "run_js": "return (X) ? ['reached'] : []"}
BEFORE_THE_CALL = ("if", "assume")

RUN = {
    "trigger": {
        "name": "pr_opened",
        "event_name": "pr_opened",
        "action": "opened",
        "repository": {"full_name": "o/r"},
    },
    "inputs": {"who": "me"},
    "env": {"ALLOW": "true"},
    "context": {
        "files": [{"filename": "a.py"}, {"filename": "b.py"}],
        "filesChanged": ["a.py", "b.py"],
        "filesCount": 2,
        "branch": "topic",
        "baseBranch": "main",
        "conversation": {"transport": "chat"},
        "pr": {"number": 7, "title": "t", "authorAssociation": "MEMBER"},
    },
}


Truths = dict[str, bool]


def truths(run_yaml: RunYaml, construct: str, expressions: dict[str, str], **given: object) -> Truths:
    """Which expressions are true in a construct, seen from what the construct then does, one step each."""
    probes = "".join(_probe(construct, name, expression) for name, expression in expressions.items())
    ran = run_yaml(
        f"""
max_parallelism: 20
env: {{OF_FILE: x}}
inputs: [{{name: who, required: false}}]
steps:
  before: {{type: script, content: "return {{n: 1}}"}}
{probes}""",
        **{**RUN, **given},
    )
    assert not [judged for judged in ran.judged(construct) if judged.error], ran.judged(construct)
    return {name: _held(ran, construct, name) for name in expressions}


def _probe(construct: str, name: str, expression: str) -> str:
    text = json.dumps(BODIES.get(construct, "X").replace("X", expression))
    written = CONSTRUCTS[construct].replace("X", text).replace("reached", f"{name}_reached")
    return f"""
  {name}_reached: {{type: noop, start: routed}}
  {name}:
    type: script
    content: "return {{own: 5}}"
    group: g
    depends_on: before
    {written.replace("'reached'", f"'{name}_reached'")}
"""


def _held(ran: Ran, construct: str, name: str) -> bool:
    if construct in (*BEFORE_THE_CALL, "guarantee"):
        return ran[name].outcome == "passed"
    if construct in ("fail_if", "failure_conditions"):
        return ran[name].outcome == "failed"
    return ran[f"{name}_reached"].outcome == "passed"


CELLS = {
    "outputs": "outputs.before.n === 1 && outputs.history.before.length === 1",
    "event": "event.name === 'pr_opened' && event.event_name === 'pr_opened' && event == 'pr_opened' "
    "&& event.action === 'opened' && event.repository.full_name === 'o/r'",
    "env": "env.ALLOW === 'true' && env.OF_FILE === 'x'",
    "files": "filesCount === 2 && fileCount === 2 && filesChanged[1] === 'b.py' && files[0].filename === 'a.py'",
    "conversation": "conversation.transport === 'chat'",
    "association": "isMember() && !isOwner() && hasMinPermission('CONTRIBUTOR')",
    "inputs": "inputs.who === 'me'",
    "branches": "branch === 'topic' && baseBranch === 'main' && pr.number === 7",
    "step": "step.id === 'step' && step.group === 'g' && checkName === 'step' && attempt === 1 && loop === 0",
}


TRUTHS = {"empty_list": "[]", "empty_text": "''", "not_a_number": "NaN", "zero_text": "'0'"}
FALSE = {"other": "event.name === 'pr_closed' || env.ALLOW === 'false' || isOwner()"}
NULLS = {
    "nulls": "pr === null && conversation === null && error === null && item === null && index === null "
    "&& branch === null && response === null && webhook === null && value === null",
}
HELPERS = {
    "helpers": "[any, all, none, count, contains, startsWith, endsWith, length, always, success, failure, hasIssue, "
    "countIssues, hasFileMatching, hasMinPermission, isOwner, isFirstTimer, log, memory.get, memory.has]"
    ".every(f => typeof f === 'function')",
}


@pytest.fixture(scope="module", params=CONSTRUCTS)
def construct(request: pytest.FixtureRequest) -> str:
    """The constructs, one after the other."""
    return str(request.param)


@pytest.fixture(scope="module")
def seen(construct: str, tmp_path_factory: pytest.TempPathFactory) -> Truths:
    """What is true in the construct: one run for all of its cells."""
    output = {"output": "output === null" if construct in BEFORE_THE_CALL else "output.own === 5"}
    expressions = {**CELLS, **TRUTHS, **FALSE, **output}
    return truths(runner(tmp_path_factory.mktemp("seen")), construct, expressions)


@pytest.mark.parametrize("cell", [*CELLS, "output"])
def test_B_3_each_construct_sees_the_same(seen: Truths, cell: str) -> None:
    """B.3, one case per cell (I.1 row 6), H8, H9, H10, H30: event, env, files, association, inputs; output null until
    the call.
    """
    assert seen[cell]


def test_B_3_a_cell_that_differs_is_false(seen: Truths) -> None:
    """B.3: the cells above are told apart from ones that don't hold."""
    assert not seen["other"]


def test_B_1_conditions_become_booleans(seen: Truths, construct: str) -> None:
    """B.1, B.6: one evaluator, the result made boolean by JavaScript's truthiness (EXP-2: in all constructs alike)."""
    expected = {"empty_list": True, "empty_text": False, "not_a_number": False, "zero_text": True}
    assert {name: seen[name] for name in TRUTHS} == expected


def test_B_2_a_name_without_a_value_is_null(run_yaml: RunYaml, construct: str) -> None:
    """B.2 D, H11: absence alone never throws, and every helper is there, in E1, E2 and E3 alike."""
    found = truths(run_yaml, construct, {**NULLS, **HELPERS}, context={})
    assert found == {"nulls": True, "helpers": True}


def test_B_2_an_unknown_name_is_refused_at_load(run_yaml: RunYaml, construct: str) -> None:
    """B.2 D: a misspelt name is a validation error with its place, in every construct."""
    with pytest.raises(ConfigError) as refused:
        truths(run_yaml, construct, {"probe": "outptus.before"})
    problem = refused.value.problems[0]
    assert "outptus" in problem.message
    assert problem.place is not None


def test_B_1_values_templates_and_conditions_each_have_their_way(run_yaml: RunYaml) -> None:
    """B.1: E3 bodies give a target, E4 a script's value, E5 a transform's value, L a text."""
    ran = run_yaml("""
steps:
  four: {type: script, content: "const a = 3; return a + 1"}
  five: {type: command, exec: "echo 1", transform_js: "output + 1"}
  liquid: {type: log, message: "{{ outputs.four }}", depends_on: four}
  three: {type: noop, on_success: {goto_js: "return 'reached'"}}
  reached: {type: noop, start: routed}
""")
    assert ran.output("four") == 4
    assert str(ran.output("five")) in ("2", "11")
    assert (ran["liquid"].content or "").splitlines()[0] == "4"
    assert ran["reached"].outcome == "passed"
