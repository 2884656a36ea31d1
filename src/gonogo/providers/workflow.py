"""workflow: a run of its own beneath this one (spec E.10, C.17). The host starts it and finds it again;
what its end means for the step is said here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gonogo.provider import (
    Call,
    ChildResult,
    Context,
    Done,
    Failed,
    Outcome,
    Parked,
    Provider,
    TemplateProblem,
)
from gonogo.providers._faults import fault
from gonogo.providers._transform import TransformProblem, compute


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a workflow step: a registered `workflow` or the path of a `config`, and what it gets."""

    workflow: Annotated[str | None, Meta(description="Id of an imported workflow; or config.")] = None
    config: Annotated[str | None, Meta(description="Path of a workflow file.")] = None
    args: Annotated[
        Mapping[str, Any] | None,
        Meta(
            description="Inputs of the workflow; texts are templates and give text, {expression: …} gives any value."
        ),
    ] = None
    workflow_inputs: Annotated[Mapping[str, Any] | None, Meta(description="Same as args.")] = None
    overrides: Annotated[
        Mapping[str, Any] | None, Meta(description="Keys to replace in its steps, by step.")
    ] = None
    workflow_overrides: Annotated[Mapping[str, Any] | None, Meta(description="Same as overrides.")] = None
    output_mapping: Annotated[
        Mapping[str, str] | None, Meta(description="New names of its outputs: {name: output}.")
    ] = None
    memory: Annotated[
        Literal["isolated", "shared"],
        Meta(
            description="shared: it starts with this run's memory, and what it changed there comes back when it is GO."
        ),
    ] = "isolated"

    def __post_init__(self) -> None:
        """Exactly one thing to run, and one spelling of what it gets."""
        if (self.workflow is None) == (self.config is None):
            raise ValueError("give `workflow` (a registered one) or `config` (a path), one of them")
        if self.args is not None and self.workflow_inputs is not None:
            raise ValueError("`workflow_inputs` is another name of `args`; give one of them")
        if self.overrides is not None and self.workflow_overrides is not None:
            raise ValueError("`workflow_overrides` is another name of `overrides`; give one of them")


class _Unmapped(Exception):  # noqa: N818 - the name says what happened
    """`output_mapping` names an output that the child doesn't have."""


async def run(call: Call, context: Context) -> Outcome:
    """GO is done, NO-GO fails with the child's class, HOLD parks this step too."""
    config: Config = call.config
    given = config.args or config.workflow_inputs or {}
    overrides = config.overrides or config.workflow_overrides or {}
    try:
        inputs = {name: await _input(name, value, call, context) for name, value in given.items()}
    except TransformProblem as problem:
        return _failed(call, "workflow.input", str(problem))
    child = await context.run_child(
        config.workflow or str(config.config),
        inputs=inputs,
        overrides=overrides,
        shares_memory=config.memory == "shared",
    )
    return _outcome(call, child)


async def _input(name: str, value: Any, call: Call, context: Context) -> Any:
    """Texts are templates, `{expression: …}` is computed, the rest goes through.

    Rendered here and not before the call, so that a value that looks like an expression is never evaluated.
    """
    if isinstance(value, str):
        try:
            return context.render(value, call.names)
        except TemplateProblem as problem:
            raise TransformProblem(f"args.{name}", problem.message) from problem
    if isinstance(value, Mapping) and value.keys() == {"expression"}:
        computed = await compute(f"args.{name}", str(value["expression"]), context, call.names)
        return computed.value
    return value


def _outcome(call: Call, child: ChildResult) -> Outcome:
    meta: dict[str, Any] = {"child_run": child.run_id, "verdict": child.verdict}
    if child.usage:
        meta["usage"] = dict(child.usage)
    if child.verdict == "HOLD":
        waiting = list(child.waiting)
        told = f"workflow {child.run_id} waits: {', '.join(waiting) or 'a call is in doubt'}"
        doubted = {"in_doubt": True} if child.in_doubt else {}
        return Parked(told, details={"child": child.run_id, "waiting": waiting, **doubted})
    if child.verdict != "GO":
        return _child_failed(call, child, meta)
    try:
        return Done(_mapped(call.config.output_mapping, child.outputs), meta=meta, memory=child.memory)
    except _Unmapped as problem:
        failed = _failed(call, "workflow.output_mapping", str(problem))
        return Failed(failed.fault, output=child.outputs, meta=meta, effect="done")


def _child_failed(call: Call, child: ChildResult, meta: Mapping[str, Any]) -> Failed:
    cause = child.fault
    message = f"workflow {child.run_id} is {child.verdict}" + (f": {cause.message}" if cause else "")
    failed = fault(
        call,
        "workflow.failed",
        "execution_error",
        message,
        fault_class=cause.fault_class if cause else "logical",
        cause=cause.kind if cause else None,
        retry_after_s=cause.retry_after_s if cause else None,
    )
    return Failed(failed, output=child.outputs, meta=meta, effect="unknown")


def _mapped(mapping: Mapping[str, str] | None, outputs: Any) -> Any:
    """Outputs under the names the mapping gives them; a path with dots reaches inside."""
    if mapping is None:
        return dict(outputs) if isinstance(outputs, Mapping) else outputs
    if not isinstance(outputs, Mapping):
        raise _Unmapped("output_mapping needs named outputs; declare `outputs` in the workflow")
    return {name: _at(path, outputs) for name, path in mapping.items()}


def _at(path: str, outputs: Mapping[str, Any]) -> Any:
    found: Any = outputs
    for part in [path] if path in outputs else path.split("."):
        if not isinstance(found, Mapping) or part not in found:
            raise _Unmapped(f"output_mapping names '{path}', which the workflow doesn't give")
        found = found[part]
    return found


def _failed(call: Call, kind: str, message: str) -> Failed:
    return Failed(fault(call, kind, "execution_error", message))


PROVIDER = Provider(
    name="workflow",
    config=Config,
    run=run,
    effects="idempotent",
    local_only=True,
    late_templates=frozenset({"args", "workflow_inputs"}),
    default_fanout="reduce",
    handles="passed",
    summary="runs another workflow as a run of its own",
)
