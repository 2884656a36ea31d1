"""What is checked of a step that asks a model while its file is read."""

from __future__ import annotations

from typing import Any

from gonogo.expressions.sandbox import Sandbox

HEAD = 'version: "1.0"\nsteps:\n  other: {type: noop}\n  a: {provider: openai, model: m, prompt: hi, depends_on: other'


def codes(problems: Any) -> list[str]:
    """Of all that was found."""
    return [problem.code for problem in problems]


def test_a_key_stands_in_the_environment(refuse: Any) -> None:
    """At any depth; what is in a file is in plans and records."""
    assert codes(refuse(f"{HEAD}, api_key: k-1}}\n")) == ["key.secret"]
    problems = refuse(f"{HEAD}, targets: [{{url: 'http://x', api_key: k-1}}]}}\n")
    assert [(problem.code, problem.path) for problem in problems] == [
        ("key.secret", "steps.a.targets[0].api_key")
    ]
    assert "${{ env.NAME }}" in problems[0].suggestion


def test_a_key_by_its_name_is_right(load_text: Any) -> None:
    """In both spellings."""
    loaded = load_text(
        f"{HEAD}, api_key: $KEY, targets: [{{url: 'http://x', api_key: '${{{{ env.OTHER }}}}'}}]}}\n"
    )
    assert "key.secret" not in {problem.code for problem in loaded.problems}


def test_tools_run_steps_that_there_are(refuse: Any) -> None:
    """And a session is another step's."""
    tools = "tools: {t: {description: d, step: othr}}, session: nope"
    assert codes(refuse(f"{HEAD}, {tools}}}\n")) == ["reference.unknown", "reference.unknown"]


def test_a_tools_script_is_read(refuse: Any, sandbox: Sandbox) -> None:
    """What can't be parsed isn't found out by the model."""
    tools = "tools: {t: {description: d, script: 'return ('}}"
    problems = refuse(f"{HEAD}, {tools}}}\n", compile_expressions=sandbox.prepare)
    assert codes(problems) == ["expression.syntax"]


def test_a_tool_that_changes_things_makes_its_step_change_things(load_text: Any) -> None:
    """The step's effects are the most that its tools may do."""
    tools = "tools: {t: {description: d, step: other, mutates: true}}"
    assert load_text(f"{HEAD}, {tools}}}\n").plan.steps["a"].effects == "mutates"
    assert load_text(f"{HEAD}}}\n").plan.steps["a"].effects == "reads"


def test_an_old_key_for_the_model_is_not_enough(refuse: Any) -> None:
    """Somebody has to be asked, and the message says which words there are."""
    (problem,) = refuse('version: "1.0"\nsteps:\n  a: {prompt: hi, ai: {provider: openai}}\n')
    assert "provider: openai, anthropic, google, mistral or mock" in problem.message


def test_a_tools_arguments_have_a_schema_that_is_one(refuse: Any) -> None:
    """Else no call of it could be judged."""
    tools = "tools: {t: {description: d, step: other, parameters: {properties: 3}}}"
    (problem,) = refuse(f"{HEAD}, {tools}}}\n")
    assert (problem.code, problem.path) == ("schema.invalid", "steps.a.tools.t.parameters")
