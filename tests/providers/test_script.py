"""script."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import ValidationError

from gonogo.provider import UNSET, Done, Failed, Failure, MemoryOp, Outcome, Value
from gonogo.testing import ScriptedContext

Do = Callable[..., Outcome]


def test_E3_the_value_is_the_output(do: Do, context: ScriptedContext) -> None:
    """E.3: the returned value, evaluated as a script under the call's names."""
    asked = []
    context.evaluate_with = lambda *given: asked.append(given) or Value([1, 2])  # type: ignore[func-returns-value]
    outcome = do("script", {"content": "return [1, 2]"}, names={"inputs": {"a": 1}})
    assert outcome.output == [1, 2]  # type: ignore[union-attr]
    assert asked == [("return [1, 2]", "script", {"inputs": {"a": 1}})]


def test_undefined_is_no_output(do: Do, context: ScriptedContext) -> None:
    """A script that returns nothing has none."""
    context.evaluate_with = lambda *given: Value(undefined=True)
    assert do("script", {"content": "1;"}).output is UNSET  # type: ignore[union-attr]


def test_changes_to_memory_go_to_the_core_in_order(do: Do, context: ScriptedContext) -> None:
    """Semantics 15."""
    operations = (MemoryOp("set", "a", 1), MemoryOp("increment", "a", 2))
    context.evaluate_with = lambda *given: Value(1, memory=operations, logs=("hi",))
    outcome = do("script", {"content": "1"})
    assert isinstance(outcome, Done)
    assert outcome.memory == operations
    assert outcome.effect == "none"
    assert context.logged == [("info", "hi")]


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        ("error", "script.error"),
        ("syntax", "script.error"),
        ("limit", "script.limit"),
        ("crash", "script.limit"),
    ],
)
def test_C6_a_throw_is_an_execution_failure(
    do: Do, context: ScriptedContext, failure: str, kind: str
) -> None:
    """C.6: script throw and limit, each with its kind; the place is in the message."""
    context.evaluate_with = lambda *given: Failure(failure, "boom", 3, 7)
    outcome = do("script", {"content": "throw 1"})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.fault_class) == (kind, "transient")
    assert outcome.fault.rule_id == "step/script/execution_error"
    assert outcome.fault.message == "boom (line 3, column 7)"
    assert outcome.output is UNSET


@pytest.mark.parametrize("key", ["enable_fetch", "enable_bash", "tools_js"])
def test_a_script_reaches_nothing_outside(do: Do, key: str) -> None:
    """Refused at load, not ignored."""
    value = "tools" if key == "tools_js" else True
    with pytest.raises(ValidationError, match="scripts reach nothing outside"):
        do("script", {"content": "1", key: value})
