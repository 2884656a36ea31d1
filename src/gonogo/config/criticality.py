"""How much a step's failure matters and what its calls do outside (spec A.5, C.8, G8, G34)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from gonogo.config.collect import Collector
from gonogo.config.drafts import Draft
from gonogo.config.structs import unchecked
from gonogo.config.templates import is_template
from gonogo.core.plan import Criticality, Effects, Plan

Origin = Literal["explicit", "tag", "inferred"]
RESERVED_TAGS = ("external", "internal", "critical", "info")
CRITICAL = frozenset(("external", "internal", "policy"))
_NEEDS_OUTPUT_CONTRACT = frozenset(("ai", "script", "command", "http", "http_client", "http_input"))

_MAY_CHANGE = {"workflow": "the workflow it runs may change", "mcp": "the tool it calls may change"}
"""Where nothing more is known."""


def effects_of(draft: Draft) -> Effects:
    """What a call does outside: `mutates:` wins, then that a step is said to be external, then what the type says."""
    said = draft.engine.mutates
    if said is True or (said is None and _said_to_be_external(draft)):
        return "mutates"
    by_type = _by_type(draft)
    return "idempotent" if said is False and by_type == "mutates" else by_type


def _said_to_be_external(draft: Draft) -> bool:
    """By `criticality:`, or by its tag where nothing outranks that (semantics.md 18)."""
    engine = draft.engine
    if engine.criticality is not None or engine.critical is not None:
        return engine.criticality == "external"
    return "external" in engine.tags


def _by_type(draft: Draft) -> Effects:
    """The type's word; a config whose templates aren't rendered yet is shown to it unchecked."""
    model = draft.model
    try:
        return draft.provider.effects_of(model or unchecked(draft.provider.config, draft.config))
    except (AttributeError, KeyError, TypeError, ValueError):
        return "mutates"  # it can't be known before the templates are rendered: the safe side


def criticality_of(draft: Draft, *, mutates: bool) -> tuple[Criticality, Origin]:
    """The criticality and where it comes from; `mutates`: the step does, or what it runs."""
    engine = draft.engine
    if engine.criticality is not None:
        return engine.criticality, "explicit"
    if engine.critical is not None:
        return (("external" if mutates else "internal") if engine.critical else "info"), "explicit"
    for tag in RESERVED_TAGS:
        if tag in engine.tags:
            return _by_tag(tag, mutates), "tag"
    if mutates:
        return "external", "inferred"
    return ("internal" if engine.for_each or _routes(draft) else "info"), "inferred"


def runs_mutators(draft: Draft, workflows: Mapping[str, Plan]) -> bool:
    """True when the workflow it runs changes the outside, or can't be known before the run."""
    if draft.provider.name != "workflow" or draft.engine.mutates is False:
        return False
    named = draft.config.get("workflow")
    unread = named is None or is_template(named)  # a file of `config:` is read when the step is called
    return unread or changes_outside(workflows.get(str(named)))


def changes_outside(plan: Plan | None) -> bool:
    """True for a workflow with a step that mutates, at any depth."""
    steps = plan.steps.values() if plan is not None else ()
    return any(step.mutates or step.criticality == "external" for step in steps)


def _by_tag(tag: str, mutates: bool) -> Criticality:
    if tag == "critical":
        return "external" if mutates else "internal"
    return "external" if tag == "external" else "internal" if tag == "internal" else "info"


def _routes(draft: Draft) -> bool:
    """True for a step with an on_* block that runs steps or goes to one."""
    for block in (draft.engine.on_success, draft.engine.on_fail, draft.engine.on_finish):
        if block and (block.run or block.run_js or block.goto or block.goto_js or block.transitions):
            return True
    retry = draft.engine.on_fail.retry if draft.engine.on_fail else None
    return retry is not None and not isinstance(retry.exhausted, str)


def check_criticality(draft: Draft, criticality: Criticality, origin: Origin, notes: Collector) -> None:
    """What a step of this criticality should say (A.6): warnings, errors under strict."""
    engine, path = draft.engine, draft.path
    if engine.criticality is not None and engine.critical is not None:
        notes.error("key.clash", "critical and criticality say the same; keep one", (*path, "critical"))
    if origin == "inferred" and criticality == "external":
        what = _MAY_CHANGE.get(draft.provider.name, "this step changes")
        message = f"{what} the outside; the criticality was inferred as external"
        reads = ", or mutates: false if the tool only reads" if draft.provider.name == "mcp" else ""
        notes.care("criticality.inferred", message, path, f"write criticality: external{reads}")
    if criticality not in ("external", "internal") or origin == "inferred":
        return
    if not engine.assume and not engine.if_:
        message = f"a step of criticality {criticality} should say what it assumes"
        notes.care("contract.missing_assume", message, path, "add assume: or if:")
    if draft.provider.name in _NEEDS_OUTPUT_CONTRACT and not (
        engine.guarantee or engine.schema_ or engine.output_schema
    ):
        message = f"a step of criticality {criticality} should say what it guarantees"
        notes.care("contract.missing_output", message, path, "add guarantee: or schema:")
