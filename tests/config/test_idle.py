"""Keys that are written where they do nothing."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ("assume_mode: fail", "steps.a.assume_mode"),
        ("guarantee_mode: issue", "steps.a.guarantee_mode"),
        ("schema_mode: issue", "steps.a.schema_mode"),
        ("schema_mode: issue, schema: plain", "steps.a.schema_mode"),
        ("loop_budget: 3", "steps.a.loop_budget"),
        ("loop_budget: 3, on_fail: {retry: {max: 1}}", "steps.a.loop_budget"),
        ("on_success: {run: [b], goto_event: manual}", "steps.a.on_success.goto_event"),
        ("on_fail: {retry_on: [transient]}", "steps.a.on_fail.retry_on"),
    ],
)
def test_a_key_that_does_nothing_where_it_is_says_so(warn: Any, refuse: Any, keys: str, path: str) -> None:
    """Nothing is accepted and inert: a warning with what to do, an error under strict."""
    text = f"steps: {{a: {{type: noop, {keys}}}, b: {{type: noop}}}}"
    [problem] = warn(text)
    assert (problem.code, problem.path, problem.severity) == ("key.idle", path, "warning")
    assert problem.suggestion
    assert [each.code for each in refuse(text, strict=True)] == ["key.idle"]


@pytest.mark.parametrize(
    "keys",
    [
        "assume_mode: fail, assume: 'true'",
        "guarantee_mode: issue, guarantee: 'true'",
        "schema_mode: issue, schema: {type: object}",
        "loop_budget: 3, on_success: {goto_js: 'null'}",
        "loop_budget: 3, on_fail: {retry: {max: 1, exhausted: {goto: b}}}",
        "on_success: {goto: b, goto_event: manual}",
        "on_fail: {retry_on: [transient], retry: {max: 1}}",
    ],
)
def test_a_key_that_acts_is_not_told_of(warn: Any, keys: str) -> None:
    """The same keys, where they do something."""
    assert warn(f"steps: {{a: {{type: noop, {keys}}}, b: {{type: noop}}}}") == ()


def test_G_12_when_to_undo_needs_something_to_undo(warn: Any) -> None:
    """Semantics 20: `compensate_on` without any `compensate`; an empty one asks for nothing."""
    text = "compensate_on: [%s]\nsteps: {a: {type: noop%s}, b: {type: noop}}"
    assert [problem.code for problem in warn(text % ("halted", ""))] == ["key.idle"]
    assert warn(text % ("halted", ", compensate: b")) == ()
    assert warn(text % ("", "")) == ()


POST = "type: http_client, url: 'http://localhost/', method: POST"


@pytest.mark.parametrize(
    ("keys", "codes"),
    [
        ("type: noop, idempotency_key: k", ["idempotency_key.reads"]),
        (f"{POST}, mutates: false, idempotency_key: k", ["idempotency_key.reads"]),
        (f"{POST}, criticality: info, idempotency_key: k", []),
        ("type: command, exec: x, mutates: true, criticality: info, idempotency_key: k", []),
    ],
)
def test_G_12_a_key_is_for_steps_that_mutate(warn: Any, refuse: Any, keys: str, codes: list[str]) -> None:
    """G12, A.7: elsewhere it only keeps the step from being called again."""
    text = f"steps: {{a: {{{keys}}}}}"
    assert [problem.code for problem in warn(text)] == codes
    if codes:
        assert [problem.code for problem in refuse(text, strict=True)] == codes
