"""Keys that are right and do nothing where they are written: warnings, errors under strict.

Whether a list is behind a step is known from `lists.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gonogo.config.collect import Collector
from gonogo.config.drafts import Draft
from gonogo.config.schema.blocks import Fail
from gonogo.config.schema.top import Document
from gonogo.core.plan import Plan, Step

_BLOCKS = ("on_success", "on_fail", "on_finish")


def check_idle(plan: Plan, drafts: dict[str, Draft], document: Document, notes: Collector) -> None:
    """Report what is written for nothing."""
    for name, draft in drafts.items():
        for key, message, advice in _of_step(draft, plan.steps[name]):
            notes.warn("key.idle", message, (*draft.path, *key), advice)
        _check_key(draft, plan.steps[name], notes)
    if document.compensate_on and not any(step.compensate for step in plan.steps.values()):
        message = "no step has compensate, so nothing is undone at any end"
        notes.warn(
            "key.idle", message, ("compensate_on",), "say compensate: STEP where something is to be undone"
        )


def _check_key(draft: Draft, step: Step, notes: Collector) -> None:
    """A call whose key was used before isn't made (G12): right for what mutates, a surprise where something is read."""
    if step.idempotency_key is not None and step.effects != "mutates":
        message = "this step doesn't mutate, but is called only once for each key"
        path = (*draft.path, "idempotency_key")
        notes.warn("idempotency_key.reads", message, path, "write mutates: true, or remove it")


Found = tuple[tuple[str, ...], str, str]


def _of_step(draft: Draft, step: Step) -> Iterator[Found]:
    engine = draft.engine
    for key, has in (
        ("assume", bool(engine.assume)),
        ("guarantee", bool(engine.guarantee)),
        ("schema", step.schema is not None),
    ):
        if draft.written(f"{key}_mode") and not has:
            yield (f"{key}_mode",), f"there is no {key} that could be violated", f"add {key}:, or remove it"
    if engine.loop_budget is not None and not _asks_for_loops(step):
        yield ("loop_budget",), "this step sends the run nowhere", "add on_fail: or on_success:, or remove it"
    for name in _BLOCKS:
        yield from _of_block(draft, name)


def _asks_for_loops(step: Step) -> bool:
    """True when a block runs something or goes somewhere."""
    blocks = (block for block in (step.on_success, step.on_fail, step.on_finish) if block is not None)
    return any(
        block.run
        or block.run_js is not None
        or block.decides_a_goto
        or (block.retry is not None and block.retry.exhausted == "route")
        for block in blocks
    )


def _of_block(draft: Draft, name: str) -> Iterator[Found]:
    block = getattr(draft.engine, name)
    if block is None:
        return
    if block.goto_event is not None and block.goto is None and block.goto_js is None:
        yield (name, "goto_event"), "there is no goto that could run under it", "add goto:, or remove it"
    if isinstance(block, Fail) and block.retry_on is not None and block.retry is None:
        yield (name, "retry_on"), "nothing is retried", "add retry: {max: 2}, or remove it"
