"""What a run gives to whoever started it: its declared outputs, else what its steps gave (spec E.10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gonogo.core.faults import Fault
from gonogo.core.state import State
from gonogo.core.values import names_for, output_of
from gonogo.expressions.results import Failure, Result, Value
from gonogo.hosts.evaluation import Evaluations
from gonogo.hosts.templates import Templates, has_tags


async def declared(
    state: State, evaluations: Evaluations, templates: Templates
) -> tuple[dict[str, Any], Fault | None]:
    """The declared outputs. One that can't be computed is null, and a fault: it isn't passed over in silence."""
    names = _names(state)
    given: dict[str, Any] = {}
    fault: Fault | None = None
    for output in state.graph.plan.outputs:
        result = await _one(output, names, evaluations, templates)
        if isinstance(result, Failure):
            message = f"output {output['name']} can't be computed: {result.message}"
            fault = fault or Fault("workflow.output", "logical", "workflow/output_error", message)
        given[output["name"]] = None if isinstance(result, Failure) else result.value
    return given, fault


async def _one(
    output: Mapping[str, Any], names: Mapping[str, Any], evaluations: Evaluations, templates: Templates
) -> Result:
    if output.get("value_js") is not None:
        return await evaluations.evaluate(output["value_js"], "value", names, None)
    value = output.get("value")
    if isinstance(value, str) and has_tags(value):
        return evaluations.masked(templates.result(value, names))
    return Value(value)


def _names(state: State) -> Mapping[str, Any]:
    """A run's own names: those that belong to no single step. `steps` is another word for `outputs`."""
    first = names_for(state, next(iter(state.graph.steps)), "")
    shared = ("outputs", "outputs_raw", "outputs_meta", "outputs_history", "event", "env", "memory", "inputs", "args",
              "pr", "files", "branch", "baseBranch", "now")  # fmt: skip
    return {**{name: first[name] for name in shared}, "steps": first["outputs"]}


def of_steps(state: State) -> Any:
    """Each step's output by name; the output itself when there is one step only."""
    found = {name: output_of(scopes.get(""), state) for name, scopes in state.nodes.items() if "" in scopes}
    return next(iter(found.values())) if len(state.graph.steps) == 1 and found else found


def worst_fault(state: State) -> Fault | None:
    """The first failure that counts, in configuration order."""
    for node in state.all_nodes():
        if node.outcome in ("failed", "cancelled") and node.fault is not None:
            return node.fault
    return None
