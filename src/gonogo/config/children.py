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
    _check_names(draft, "output_mapping", _first_names(draft, plan), set(_outputs(plan)), "output", notes)
    for key in ("overrides", "workflow_overrides"):
        said = draft.config.get(key)
        names = {name: name for name in said} if isinstance(said, Mapping) else {}
        _check_names(draft, key, names, set(plan.steps), "step", notes)


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


def _first_names(draft: Draft, plan: Plan) -> dict[str, str]:
    """The outputs that a mapping reads, by its own names; a path with dots reaches inside one."""
    said = draft.config.get("output_mapping")
    known = set(_outputs(plan))
    texts = (
        {name: text for name, text in said.items() if isinstance(text, str)} if isinstance(said, dict) else {}
    )
    return {name: text if text in known else text.split(".")[0] for name, text in texts.items()}


def _check_names(
    draft: Draft, key: str, names: Mapping[str, str], known: set[str], kind: str, notes: Collector
) -> None:
    for own, name in names.items():
        if name not in known:
            message = f"the workflow has no {kind} {shown(name)}"
            notes.error(f"workflow.{kind}", message, (*draft.path, key, own), _advice(name, known))


def _advice(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = nearest(name, names)
    return f"did you mean {near}?" if near else f"it has {', '.join(names[:10])}"
