"""What a step says to the workflow it runs: its inputs, the names of its outputs, and what it overrides (spec E.10).

The workflow's own file is compiled by itself; values that are computed at run time are checked then, by the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gonogo.config.collect import Collector, nearest, shown
from gonogo.config.drafts import Draft
from gonogo.config.json_schemas import misfit
from gonogo.config.templates import is_template
from gonogo.core.plan import Plan

Path = tuple[str | int, ...]


def check_child(draft: Draft, workflows: Mapping[str, Plan], notes: Collector) -> None:
    """Report what a step of type workflow says that the workflow doesn't take or give."""
    named = draft.config.get("workflow") or draft.config.get("config")
    plan = workflows.get(named) if isinstance(named, str) else None
    if plan is None:
        return
    key = "workflow_inputs" if draft.written("workflow_inputs") else "args"
    given = draft.config.get(key)
    check_inputs(plan, given if isinstance(given, Mapping) else {}, (*draft.path, key), notes)
    overrides = draft.config.get("overrides") or draft.config.get("workflow_overrides")
    check_names(plan, overrides, draft.config.get("output_mapping"), draft.path, notes)


def check_inputs(plan: Plan, given: Mapping[str, Any], path: Path, notes: Collector) -> None:
    """Report inputs that aren't there, are missing, or don't fit. A plan that declares none takes any."""
    if not plan.inputs:
        return
    for name in given:
        if name not in plan.inputs:
            message = f"workflow {shown(plan.name)} has no input {shown(name)}"
            notes.add_key("error", "workflow.input", message, (*path, name), _advice(name, plan.inputs))
    for name, declared in plan.inputs.items():
        if name in given:
            _check_value(name, declared.get("schema"), given[name], (*path, name), notes)
        elif declared.get("required", True) and "default" not in declared:
            message = f"workflow {shown(plan.name)} needs the input {shown(name)}"
            notes.error("workflow.input", message, path, f"add {name}: under {path[-1]}")


def check_names(plan: Plan, overrides: Any, output_mapping: Any, path: Path, notes: Collector) -> None:
    """Report steps and outputs that the workflow doesn't have; a path with dots reaches inside an output."""
    for name in overrides if isinstance(overrides, Mapping) else ():
        if name not in plan.steps:
            message = f"the workflow has no step {shown(name)}"
            notes.error("workflow.step", message, (*path, "overrides", name), _advice(name, plan.steps))
    known = _outputs(plan)
    for own, said in output_mapping.items() if isinstance(output_mapping, Mapping) else ():
        name = said.split(".")[0] if isinstance(said, str) else None
        if name is not None and said not in known and name not in known:
            message = f"the workflow has no output {shown(name)}"
            notes.error("workflow.output", message, (*path, "output_mapping", own), _advice(name, known))


def _check_value(name: str, schema: Any, value: Any, path: Path, notes: Collector) -> None:
    """A value that is known now: no template, nothing that is computed."""
    computed = is_template(value) or (isinstance(value, Mapping) and value.keys() == {"expression"})
    if not schema or computed or notes.only_counted():
        return
    wrong = misfit(schema, value)
    if wrong is not None:
        notes.error("workflow.input", f"the input {shown(name)} doesn't fit its schema: {wrong}", path)


def _outputs(plan: Plan) -> list[str]:
    """The names of what a workflow gives: its declared outputs, else its steps."""
    return [output["name"] for output in plan.outputs] or list(plan.steps)


def _advice(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = nearest(name, names)
    return f"did you mean {near}?" if near else f"it has {', '.join(names[:10])}"
