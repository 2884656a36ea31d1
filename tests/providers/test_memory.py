"""memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import ValidationError

from gonogo.provider import UNSET, Done, Failed, Failure, MemoryOp, Outcome, Value
from gonogo.testing import ScriptedContext

Do = Callable[..., Outcome]
NAMES = {"memory": {"$namespace": "default", "default": {"n": 4, "t": "x"}, "other": {"o": 1}}}


@pytest.mark.parametrize(
    ("config", "output"),
    [
        ({"operation": "get", "key": "n"}, 4),
        ({"operation": "get", "key": "none"}, UNSET),
        ({"operation": "get", "key": "o", "namespace": "other"}, 1),
        ({"operation": "list"}, ["n", "t"]),
        ({"operation": "list", "namespace": "empty"}, []),
    ],
)
def test_E4_reads_answer_at_once(do: Do, config: dict[str, Any], output: Any) -> None:
    """E.4: get and list."""
    outcome = do("memory", config, names=NAMES)
    assert isinstance(outcome, Done)
    assert outcome.output == output
    assert (outcome.memory, outcome.yields_memory) == ((), False)


@pytest.mark.parametrize(
    ("config", "operation"),
    [
        ({"operation": "set", "key": "k", "value": {"a": 1}}, MemoryOp("set", "k", {"a": 1})),
        ({"operation": "set", "key": "k", "value": None}, MemoryOp("set", "k", None)),
        ({"operation": "append", "key": "k", "value": 1}, MemoryOp("append", "k", 1)),
        ({"operation": "increment", "key": "n"}, MemoryOp("increment", "n", 1)),
        ({"operation": "increment", "key": "n", "value": 2.5}, MemoryOp("increment", "n", 2.5)),
        ({"operation": "delete", "key": "k", "namespace": "a"}, MemoryOp("delete", "k", None, "a")),
    ],
)
def test_E4_a_change_is_the_cores_to_make(do: Do, config: dict[str, Any], operation: MemoryOp) -> None:
    """E.4: the output is what the operation gives when it is applied."""
    outcome = do("memory", config, names=NAMES)
    assert isinstance(outcome, Done)
    assert (outcome.memory, outcome.yields_memory, outcome.output) == ((operation,), True, UNSET)


def test_E4_clear_gives_nothing(do: Do) -> None:
    """E.4: undefined."""
    outcome = do("memory", {"operation": "clear"}, names=NAMES)
    assert isinstance(outcome, Done)
    assert (outcome.memory, outcome.yields_memory) == ((MemoryOp("clear"),), False)


@pytest.mark.parametrize(
    "config",
    [
        {"operation": "increment", "key": "t"},
        {"operation": "increment", "key": "n", "value": "2"},
        {"operation": "increment", "key": "n", "value": True},
    ],
)
def test_C6_increment_of_no_number_is_a_logical_failure(do: Do, config: dict[str, Any]) -> None:
    """C.6: `memory/operation_error`; the peer hid it."""
    outcome = do("memory", config, names=NAMES)
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("memory.operation", "logical")
    assert outcome.fault.rule_id == "step/memory/operation_error"


def test_value_js_computes_the_value(do: Do, context: ScriptedContext) -> None:
    """E.4, and what it changed in memory comes first."""
    first = MemoryOp("set", "a", 1)
    context.evaluate_with = lambda *given: Value(9, memory=(first,))
    outcome = do("memory", {"operation": "set", "key": "k", "value_js": "9"}, names=NAMES)
    assert isinstance(outcome, Done)
    assert outcome.memory == (first, MemoryOp("set", "k", 9))


def test_B6_a_failing_value_js_is_a_failure(do: Do, context: ScriptedContext) -> None:
    """B.6: the peer gave null."""
    context.evaluate_with = lambda *given: Failure("error", "no")
    outcome = do("memory", {"operation": "set", "key": "k", "value_js": "x"}, names=NAMES)
    assert isinstance(outcome, Failed)
    assert outcome.fault.message == "value_js: no"


def test_value_is_not_a_template(do: Do) -> None:
    """E.4: `value` is taken as it is."""
    outcome = do("memory", {"operation": "set", "key": "k", "value": "{{ x }}"}, names=NAMES)
    assert outcome.memory == (MemoryOp("set", "k", "{{ x }}"),)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "config",
    [
        {"operation": "get"},
        {"operation": "set", "key": "k"},
        {"operation": "set", "key": "k", "value": 1, "value_js": "1"},
        {"operation": "swap", "key": "k"},
        {},
    ],
)
def test_a_wrong_config_is_refused(do: Do, config: dict[str, Any]) -> None:
    """At load."""
    with pytest.raises(ValidationError):
        do("memory", config)
