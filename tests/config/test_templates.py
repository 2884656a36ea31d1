"""Templates in a file: syntax, filters, and text from outside that would reach a shell (SEC-1)."""

from __future__ import annotations

from typing import Any

import pytest

DATA = """
pr.title branch item outputs.a outputs.a.text event.action files[0].name inputs.x args.y env.Z
""".split()


def command(exec_text: str) -> str:
    """A file with one command behind another step."""
    step = f"  b:\n    type: command\n    depends_on: a\n    exec: |\n      {exec_text}\n"
    return f"steps:\n  a: {{type: noop}}\n{step}"


def of_templates(loaded: Any) -> list[str]:
    """What was said about templates in a file that can be used."""
    return [problem.code for problem in loaded.problems if problem.code.startswith("template.")]


@pytest.mark.parametrize("quote", ["", "'", '"'])
@pytest.mark.parametrize("data", DATA)
def test_SEC_1_data_in_a_shells_text_is_refused_with_advice(refuse: Any, data: str, quote: str) -> None:
    """SEC-1: loading is refused with advice to pass it by `env`, whatever quotes are around it."""
    (problem,) = refuse(command(f"echo {quote}{{{{ {data} }}}}{quote}"))
    assert problem.code == "template.unescaped"
    assert "shell_escape" in problem.suggestion
    assert "env" in problem.suggestion


@pytest.mark.parametrize(
    "exec_text",
    [
        "echo {{ pr.title | shell_escape }}",
        "echo {{ outputs.a | to_json | shell_escape }}",
        "echo plain",
        "echo {{ 'text' | upcase }}",
        'echo "$TITLE"',
    ],
)
def test_SEC_1_escaped_data_and_plain_text_are_fine(load_text: Any, exec_text: str) -> None:
    """SEC-1: not even a warning."""
    assert of_templates(load_text(command(exec_text))) == []


@pytest.mark.parametrize(
    "exec_text",
    [
        "echo {{ pr.title | shell_escape | upcase }}",
        "{% assign t = pr.title %}echo {{ t }}",
        "{% for f in files %}cat {{ f.name }};{% endfor %}",
        "{% if pr.draft %}echo {{ pr.title }}{% endif %}",
        "{% capture c %}{{ pr.title }}{% endcapture %}echo {{ c | shell_escape }}; echo {{ c }}",
    ],
)
def test_SEC_1_detours_are_seen(refuse: Any, exec_text: str) -> None:
    """The escape must come last, and names made in the template hold data too."""
    problems = refuse(command(exec_text))
    assert {problem.code for problem in problems} == {"template.unescaped"}


def test_SEC_1_an_explicit_opt_in_is_respected(load_text: Any) -> None:
    """architecture.md, law 6."""
    text = "steps:\n  b:\n    type: command\n    exec: '{{ inputs.script }}'\n    allow_unescaped: true\n"
    assert "template.unescaped" not in of_templates(load_text(text))


def test_data_elsewhere_needs_no_escape(load_text: Any) -> None:
    """A log, an argument and stdin are no shell."""
    loaded = load_text(
        "steps: {a: {type: log, message: '{{ pr.title }}'}, b: {type: command, exec: cat, stdin: '{{ pr.title }}'}}"
    )
    assert of_templates(loaded) == []


@pytest.mark.parametrize(
    ("message", "line", "column"),
    [
        ("'{{ pr.title | nonsense }}'", 4, 28),
        ("|\n      one\n      {{ pr.title", 6, 7),
        ("|\n      {% if x %}", 5, 7),
        ("'{% include \"x\" %}'", 4, 15),
        ("'{% readfile \"x\" %}'", 4, 15),
    ],
)
def test_a_broken_template_is_refused_with_its_place(
    refuse: Any, message: str, line: int, column: int
) -> None:
    """Syntax, unknown filters, tags that read files."""
    problems = refuse(f"steps:\n  a:\n    type: log\n    message: {message}\n")
    assert [problem.code for problem in problems] == ["template.syntax"]
    assert problems[0].place.line == line
    assert abs(problems[0].place.column - column) <= 3


def test_templates_in_arguments_are_checked(refuse: Any) -> None:
    """`with` texts that hold a tag are templates."""
    text = "steps: {a: {type: noop, on_success: {run: [{step: a, with: {x: '{{ a | nonsense }}'}}]}}}"
    assert refuse(text)[0].path == "steps.a.on_success.run[0].with.x"


def test_an_idempotency_key_is_a_template(load_text: Any) -> None:
    """G12."""
    plan = load_text("steps: {a: {type: noop, idempotency_key: 'k-{{ pr.number }}'}}").plan
    made = plan.expressions[plan.steps["a"].idempotency_key]
    assert (made.kind, made.source) == ("template", "k-{{ pr.number }}")
    assert made.reading.paths == (("pr", "number"),)


def test_templates_at_any_depth_of_a_field_are_checked(refuse: Any) -> None:
    """Headers are a map of templates."""
    text = "steps: {a: {type: http_client, url: 'http://localhost', headers: {A: '{{ x | nonsense }}'}}}"
    assert refuse(text)[0].path == "steps.a.headers.A"


def test_a_template_deep_in_arguments_is_refused(refuse: Any) -> None:
    """C.10 R3: only the arguments themselves are rendered; a template that stays text is never silent."""
    text = "steps: {a: {type: noop, on_success: {run: [{step: a, with: {x: ['{{ output }}']}}]}}}"
    assert [problem.code for problem in refuse(text)] == ["template.nested"]


def test_what_templates_read_must_be_ordered_too(warn: Any) -> None:
    """semantics.md 10."""
    text = "steps: {a: {type: log, message: '{{ outputs.b.x }} {{ outputs.zz }}'}, b: {type: noop}}"
    found = [problem.code for problem in warn(text)]
    assert found == ["reference.unordered", "reference.unknown_output"]


@pytest.mark.parametrize(
    ("tag", "name", "advice"),
    [
        ("github.sha", "github", "event"),
        ("secrets.TOKEN", "secrets", "${{ env.NAME }}"),
        ("steps.a.outputs.x", "steps", "outputs.NAME"),
        ("outptus.a", "outptus", "did you mean outputs?"),
        ("zebra", "zebra", "outputs.NAME"),
    ],
)
@pytest.mark.parametrize("key", ["message: '{}'", "message: x, env: {{A: '{}'}}"])
def test_a_name_that_nothing_has_is_warned_of(
    load_text: Any, key: str, tag: str, name: str, advice: str
) -> None:
    """It renders as nothing (B.3), which would be seen only in what comes of it; also in variables."""
    written = key.format("x{{ " + tag + " }}")
    [problem] = load_text(f"steps: {{a: {{type: log, {written}}}}}").problems
    assert (problem.severity, problem.code) == ("warning", "template.name")
    assert repr(name) in problem.message
    assert advice in problem.suggestion
    assert problem.source[problem.place.column - 1 :].startswith(name)


@pytest.mark.parametrize(
    "text",
    [
        "{% for f in files %}{{ f.name }} {{ forloop.index }}{% endfor %}",
        "{% assign t = pr.title %}{{ t }}{% capture c %}x{% endcapture %}{{ c }}",
        "${{ env.TOKEN }} {{ env.A }} {{ now }} {{ args.x }} {{ nil }} {{ 'x' }} {{ item }}",
    ],
)
def test_names_that_are_there_are_not_warned_of(load_text: Any, text: str) -> None:
    """Those of the template itself, and those of every scope."""
    assert load_text(f"steps:\n  a:\n    type: log\n    message: |\n      {text}\n").problems == ()


def test_a_name_that_nothing_has_is_refused_under_strict(refuse: Any) -> None:
    """`safety: strict` turns warnings into errors."""
    found = refuse('safety: strict\nsteps: {a: {type: log, message: "{{ github.sha }}"}}')
    assert "template.name" in {problem.code for problem in found}


@pytest.mark.parametrize(
    "text",
    [
        "steps: {a: {type: command, exec: x, env: {A: '{{ pr.title | nofilter }}'}}}",
        "steps: {a: {type: command, exec: x, env: {A: '{{ pr.title'}}}",
        "env: {A: '{{ pr.title | nofilter }}'}\nsteps: {a: {type: noop}}",
    ],
)
def test_templates_in_variables_are_checked_too(refuse: Any, text: str) -> None:
    """An unknown filter or a syntax error is found before anything runs, in a step's `env` and in the file's."""
    (problem,) = refuse(text)
    assert problem.code == "template.syntax"
    assert problem.path.endswith("env.A")


def test_a_step_that_a_variable_reads_must_be_there(load_text: Any) -> None:
    """As in any other template."""
    [problem] = load_text("steps: {a: {type: noop, env: {A: '{{ outputs.b }}'}}}").problems
    assert problem.code == "reference.unknown_output"
