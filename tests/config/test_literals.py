"""Secrets that stand in a file are pointed out, and never repeated."""

from __future__ import annotations

import pytest

from gonogo import app
from gonogo.errors import ConfigError

HEAD = 'version: "1.0"\n'
STEP = 'steps: {{a: {{type: command, exec: "{}"}}}}\n'
GITHUB = "ghp_" + "a" * 36


def found(text: str) -> list[tuple[str, str, str]]:
    """Severity, message and advice of what looks like a secret."""
    problems = app.loads(HEAD + text).problems
    assert GITHUB not in str(problems)
    return [
        (each.severity, each.message, each.suggestion or "")
        for each in problems
        if each.code == "secret.literal"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "env: {API_TOKEN: swordfish}\n" + STEP.format("true"),
        "steps: {a: {type: command, exec: 'true', env: {DB_PASSWORD: swordfish}}}",
        "steps: {a: {type: http_client, url: 'https://x.example', headers: {Authorization: Bearer swordfish}}}",
        STEP.format(f"curl -H 'X: {GITHUB}' https://x.example"),
        STEP.format("psql postgres://ann:swordfish@db.example/x"),
    ],
)
def test_a_secret_in_a_file_is_pointed_out(text: str) -> None:
    """By the name it stands under, or by its form; the advice is a reference, and the secret isn't shown."""
    ((severity, message, advice),) = found(text)
    assert severity == "warning"
    assert "${{ env." in advice
    assert "swordfish" not in message + advice


def test_the_advice_names_the_variable_where_there_is_one() -> None:
    """It can be copied."""
    ((_, _, advice),) = found("env: {API_TOKEN: swordfish}\n" + STEP.format("true"))
    assert "${{ env.API_TOKEN }}" in advice


@pytest.mark.parametrize(
    "text",
    [
        "env: {API_TOKEN: '${{ env.OTHER }}', KEYBOARD: qwertz, X_KEY: '', Y_KEY: $Y}\n"
        + STEP.format("true"),
        "steps: {a: {type: http_client, url: 'https://x.example', headers: {Authorization: 'Bearer $T', A: text}}}",
        STEP.format("psql postgres://ann:$PASSWORD@db.example/x"),
        STEP.format("git clone https://x.example/you@there"),
    ],
)
def test_references_and_plain_texts_are_none(text: str) -> None:
    """A warning that is wrong is soon overlooked."""
    assert found(text) == []


def test_no_problem_shows_the_line_of_a_secret() -> None:
    """Whatever else is wrong on it: whoever reads a log of `validate` may not be meant to know the secret."""
    with pytest.raises(ConfigError) as refused:
        app.loads(HEAD + f"steps: {{a: {{type: command, exec: 'echo {GITHUB}', wrong: 1}}}}")
    assert len(refused.value.problems) == 2
    assert GITHUB not in str(refused.value.problems)
