"""Transforms: Liquid, then JavaScript."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from gonogo.expressions.request import Request
from gonogo.expressions.sandbox import Sandbox
from gonogo.expressions.template import Renderer
from gonogo.provider import (
    UNSET,
    Done,
    Failed,
    Failure,
    MemoryOp,
    Outcome,
    Result,
    TemplateProblem,
    Value,
)
from gonogo.testing import ScriptedContext

Do = Callable[..., Outcome]


def shout(text: str, names: Mapping[str, Any]) -> str:
    """A renderer that understands one thing."""
    return text.replace("{{ output.a }}", str(names["output"]["a"]))


def test_E2_R6_a_template_gives_json_or_text(do: Do, context: ScriptedContext) -> None:
    """The template sees `output`; what it gives is parsed when it's JSON."""
    context.render_with = shout
    outcome = do("command", {"exec": "echo '{\"a\": 7}'", "transform": '{"b": {{ output.a }}}'})
    assert outcome.output == {"b": 7}  # type: ignore[union-attr]


def test_E2_R7_javascript_sees_what_the_template_made(do: Do, context: ScriptedContext) -> None:
    """E.2 R7 (X): the Liquid result was not visible."""
    context.render_with = shout
    seen: list[Any] = []

    def evaluate(source: str, kind: str, names: Mapping[str, Any]) -> Value:
        seen.append((source, kind, names["output"], names["other"]))
        return Value("made")

    context.evaluate_with = evaluate
    config = {"exec": "echo '{\"a\": 7}'", "transform": "<{{ output.a }}>", "transform_js": "output + 1"}
    outcome = do("command", config, names={"other": 1, "output": "old"})
    assert seen == [("output + 1", "value", "<7>", 1)]
    assert outcome.output == "made"  # type: ignore[union-attr]


def test_undefined_is_no_output(do: Do, context: ScriptedContext) -> None:
    """JavaScript's undefined isn't null."""
    context.evaluate_with = lambda source, kind, names: Value(undefined=True)
    outcome = do("command", {"exec": "true", "transform_js": "undefined"})
    assert outcome.output is UNSET  # type: ignore[union-attr]


def test_changes_to_memory_and_log_lines_are_kept(do: Do, context: ScriptedContext) -> None:
    """A transform may write memory; what it logs is shown."""
    operation = MemoryOp("set", "k", 1)
    context.evaluate_with = lambda source, kind, names: Value(1, memory=(operation,), logs=("seen",))
    outcome = do("command", {"exec": "true", "transform_js": "1"})
    assert isinstance(outcome, Done)
    assert outcome.memory == (operation,)
    assert context.logged == [("info", "seen")]


def test_C6_a_failing_script_is_a_logical_failure(do: Do, context: ScriptedContext) -> None:
    """C.6: fatal, logical, typed; the command itself was done."""
    context.evaluate_with = lambda source, kind, names: Failure("error", "x is not defined", 2, 5)
    outcome = do("command", {"exec": "echo hi", "transform_js": "x"})
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "command.transform"
    assert outcome.fault.fault_class == "logical"
    assert outcome.fault.rule_id == "step/command/transform_js_error"
    assert outcome.fault.message == "transform_js: x is not defined (line 2, column 5)"
    assert (outcome.output, outcome.effect) == (UNSET, "done")


def test_C6_a_failing_template_is_a_logical_failure(do: Do, context: ScriptedContext) -> None:
    """C.6, E.2 R6."""

    def fail(text: str, names: Mapping[str, Any]) -> str:
        raise TemplateProblem("too many loops", 1, 1)

    context.render_with = fail
    outcome = do("command", {"exec": "echo hi", "transform": "{% for x in y %}"})
    assert isinstance(outcome, Failed)
    assert outcome.fault.rule_id == "step/command/transform_error"


def test_I1_1_a_transform_leaks_nothing_into_the_next_call(do: Do, context: ScriptedContext) -> None:
    """I.1 row 1: two independent commands, the second's output equals its own stdout."""
    context.evaluate_with = lambda source, kind, names: Value({"leak": True})
    do("command", {"exec": "echo '{\"a\": 1}'", "transform_js": "({leak: true})"})
    assert do("command", {"exec": "echo '{\"b\": 2}'"}).output == {"b": 2}  # type: ignore[union-attr]


@pytest.mark.parametrize("key", ["output", "value"])
def test_a_transform_of_memory_sees_value(do: Do, context: ScriptedContext, key: str) -> None:
    """E.4: transform_js sees `value`."""
    context.evaluate_with = lambda source, kind, names: Value(names[key] * 2)
    outcome = do("memory", {"operation": "set", "key": "k", "value": 4, "transform_js": f"{key} * 2"})
    assert isinstance(outcome, Done)
    assert outcome.memory == (MemoryOp("set", "k", 8),)


@pytest.fixture
def real(context: ScriptedContext) -> Iterator[ScriptedContext]:
    """A context with the sandbox and the renderer that hosts use."""
    sandbox, renderer = Sandbox(0.0), Renderer()

    def evaluate(source: str, kind: Any, names: Mapping[str, Any]) -> Result:
        return sandbox.evaluate([Request(source, kind, names, 5.0, None)])[0]

    context.evaluate_with = evaluate
    context.render_with = renderer.render
    yield context
    sandbox.close()


def test_both_stages_work_with_the_real_engines(do: Do, real: ScriptedContext) -> None:
    """Liquid gives JSON, JavaScript reads it, and the names of the call are there besides."""
    config = {
        "exec": 'echo \'{"n": 3, "list": [1, 2]}\'',
        "transform": '{"doubled": {{ output.n | times: 2 }}, "list": {{ output.list | json }}}',
        "transform_js": "({...output, total: output.list.reduce((x, y) => x + y, inputs.base)})",
    }
    outcome = do("command", config, names={"inputs": {"base": 10}})
    assert outcome.output == {"doubled": 6, "list": [1, 2], "total": 13}  # type: ignore[union-attr]


def test_a_script_and_memory_work_with_the_real_engines(do: Do, real: ScriptedContext) -> None:
    """Operations come back in order; `value` is what a transform of memory sees."""
    names = {"memory": {"$namespace": "default", "default": {"k": 1}}, "outputs": {"a": 5}}
    outcome = do(
        "script",
        {"content": "memory.set('k', outputs.a); memory.increment('k'); return memory.get('k')"},
        names=names,
    )
    assert isinstance(outcome, Done)
    assert outcome.output == 6
    assert [operation.op for operation in outcome.memory] == ["set", "increment"]
    outcome = do("memory", {"operation": "get", "key": "k", "transform_js": "value + 1"}, names=names)
    assert outcome.output == 2  # type: ignore[union-attr]


def test_a_broken_template_of_the_real_engine_is_a_failure(do: Do, real: ScriptedContext) -> None:
    """Whatever class of problem the renderer raises, the step fails by a typed fault."""
    outcome = do("command", {"exec": "echo hi", "transform": "{{ output | no_such_filter }}{% bogus %}"})
    assert isinstance(outcome, Failed)
    assert outcome.fault.rule_id == "step/command/transform_error"
