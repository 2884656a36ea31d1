"""The scripted context."""

from __future__ import annotations

import anyio
import pytest
from msgspec import ValidationError

from gonogo.provider import ChildResult, Value
from gonogo.providers.log import PROVIDER
from gonogo.testing import ScriptedContext, call_for


def test_answers_come_in_order_and_run_out() -> None:
    """After the last, nobody is there."""
    context = ScriptedContext(answers=["one", None, "two"])

    async def ask() -> list[str | None]:
        return [await context.answer(f"q{n}", multiline=False, secret=False) for n in range(4)]

    assert anyio.run(ask) == ["one", None, "two", None]
    assert context.prompts == ["q0", "q1", "q2", "q3"]


def test_children_come_in_order() -> None:
    """And what was started is noted."""
    child = ChildResult("c", "GO", {})
    context = ScriptedContext(children=[child])

    async def start() -> ChildResult:
        return await context.run_child("w", inputs={"a": 1}, overrides={})

    assert anyio.run(start) is child
    assert context.child_calls == [("w", {"a": 1}, {})]
    with pytest.raises(AssertionError, match="gives no child result"):
        anyio.run(start)


def test_what_is_not_scripted_is_refused() -> None:
    """A provider can't use something unseen."""
    context = ScriptedContext()
    with pytest.raises(AssertionError, match="no `evaluate_with`"):
        anyio.run(context.evaluate, "1", "value", {})
    with pytest.raises(AssertionError, match="no `render_with`"):
        context.render("{{ x }}", {})
    assert context.render("plain", {}) == "plain"


def test_what_is_scripted_is_used() -> None:
    """Evaluation and rendering by functions of the test."""
    context = ScriptedContext(
        evaluate_with=lambda source, kind, names: Value((source, kind, names["a"])),
        render_with=lambda text, names: text + names["a"],
    )
    assert anyio.run(context.evaluate, "s", "value", {"a": "1"}) == Value(("s", "value", "1"))
    assert context.render("{{", {"a": "1"}) == "{{1"


def test_a_call_is_a_first_attempt_and_can_be_changed() -> None:
    """With a checked config."""
    call = call_for(PROVIDER, {"message": "hi"}, names={"a": 1}, attempt=3)
    assert (call.config.message, call.names, call.attempt, call.step) == ("hi", {"a": 1}, 3, "step")
    assert not call.from_data("message")
    assert call_for(PROVIDER, {"message": "hi"}, templated=None).from_data("message")
    assert call_for(PROVIDER, {"message": "hi"}, templated=frozenset({"message"})).from_data("message")
    with pytest.raises(ValidationError):
        call_for(PROVIDER, {"mesage": "hi"})
