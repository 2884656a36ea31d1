"""workflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec import ValidationError

from gonogo.provider import ChildResult, Done, Failed, Failure, Fault, Outcome, Parked, TemplateProblem, Value
from gonogo.testing import ScriptedContext

Do = Callable[..., Outcome]
GO = ChildResult("child-1", "GO", {"a": {"b": 2}, "c": 3})


def give(context: ScriptedContext, child: ChildResult) -> None:
    """The next child run ends like this."""
    context.children = iter([child])


def test_GO_is_done_with_the_childs_outputs(do: Do, context: ScriptedContext) -> None:
    """E.10 R2; the child's run is linked."""
    give(context, GO)
    outcome = do("workflow", {"workflow": "w"})
    assert isinstance(outcome, Done)
    assert outcome.output == {"a": {"b": 2}, "c": 3}
    assert outcome.meta == {"child_run": "child-1", "verdict": "GO"}


def test_C17_a_failed_child_fails_the_step_with_its_class(do: Do, context: ScriptedContext) -> None:
    """C.17 D, I.1 row 11: the peer hid it."""
    fault = Fault("http.status", "transient", "inner/http_client/fetch_error", "503", retry_after_s=5)
    give(context, ChildResult("child-1", "NO-GO", {"c": 3}, fault))
    outcome = do("workflow", {"workflow": "w"})
    assert isinstance(outcome, Failed)
    assert outcome.fault == Fault(
        "workflow.failed",
        "transient",
        "step/execution_error",
        "workflow child-1 is NO-GO: 503",
        cause="http.status",
        retry_after_s=5,
    )
    assert outcome.output == {"c": 3}


def test_a_child_that_waits_parks_the_step(do: Do, context: ScriptedContext) -> None:
    """HOLD: with the child's run and the steps that wait in it."""
    give(context, ChildResult("child-1", "HOLD", {}, waiting=("approve",)))
    outcome = do("workflow", {"config": "sub.yaml"})
    assert isinstance(outcome, Parked)
    assert outcome.prompt == "workflow child-1 waits: approve"
    assert outcome.details == {"child": "child-1", "waiting": ["approve"]}


def test_E10_R1_inputs_are_rendered_computed_or_passed(do: Do, context: ScriptedContext) -> None:
    """E.10 R1: text is a template, `{expression}` is computed, the rest goes through."""
    give(context, GO)
    context.render_with = lambda text, names: text.upper()
    context.evaluate_with = lambda source, kind, names: Value([source, kind])
    args = {"t": "text", "e": {"expression": "1 + 1"}, "v": [1], "o": {"expression": "x", "more": 1}}
    do("workflow", {"workflow": "w", "args": args, "overrides": {"s": {"exec": "true"}}})
    inputs = {"t": "TEXT", "e": ["1 + 1", "value"], "v": [1], "o": {"expression": "x", "more": 1}}
    assert context.child_calls == [("w", inputs, {"s": {"exec": "true"}})]


def test_SEC_1_data_that_looks_like_an_expression_is_data(do: Do, context: ScriptedContext) -> None:
    """SEC-1: what a template gives is text and is never evaluated."""
    give(context, GO)
    context.render_with = lambda text, names: '{"expression": "evil()"}'
    do("workflow", {"workflow": "w", "workflow_inputs": {"t": "{{ outputs.x }}"}})
    assert context.child_calls[0][1] == {"t": '{"expression": "evil()"}'}


def test_a_failing_input_starts_no_child(do: Do, context: ScriptedContext) -> None:
    """Logical, and it names the input."""

    def fail(text: str, names: Mapping[str, Any]) -> str:
        raise TemplateProblem("bad filter")

    context.render_with = fail
    outcome = do("workflow", {"workflow": "w", "args": {"t": "x"}})
    assert isinstance(outcome, Failed)
    assert outcome.fault.message == "args.t: bad filter"
    context.evaluate_with = lambda *given: Failure("error", "no")
    outcome = do("workflow", {"workflow": "w", "args": {"e": {"expression": "x"}}})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.message) == ("workflow.input", "args.e: no")
    assert context.child_calls == []


def test_E10_R3_output_mapping_renames_and_filters(do: Do, context: ScriptedContext) -> None:
    """E.10 R3; a path with dots reaches inside."""
    give(context, GO)
    outcome = do("workflow", {"workflow": "w", "output_mapping": {"x": "a.b", "y": "c"}})
    assert outcome.output == {"x": 2, "y": 3}  # type: ignore[union-attr]


def test_a_mapping_of_nothing_is_a_failure(do: Do, context: ScriptedContext) -> None:
    """The peer gave null."""
    give(context, GO)
    outcome = do("workflow", {"workflow": "w", "output_mapping": {"x": "a.z"}})
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "workflow.output_mapping"
    assert outcome.effect == "done"


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"workflow": "w", "config": "c"},
        {"workflow": "w", "args": {}, "workflow_inputs": {}},
        {"workflow": "w", "overrides": {}, "workflow_overrides": {}},
    ],
)
def test_a_wrong_config_is_refused(do: Do, config: dict[str, Any]) -> None:
    """At load."""
    with pytest.raises(ValidationError):
        do("workflow", config)
