"""Lists and the steps that run once per item: how many at a time, and what fans out over nothing (spec C.13).

What a fan-out does is the core's.
"""

from __future__ import annotations

from msgspec.structs import replace

from gonogo.config.collect import Collector
from gonogo.config.drafts import Draft
from gonogo.config.order import Order
from gonogo.config.templates import is_template
from gonogo.core.plan import Block, Step


def sources(order: Order) -> dict[str, str]:
    """For each step that runs once per item the step whose list it is, the innermost one."""
    found: dict[int, int] = {}
    for position in order.parents_first:
        step = order.steps[order.names[position]]
        if step.fanout != "map":
            continue
        for parent in order.parents[position]:
            source = parent if order.steps[order.names[parent]].for_each else found.get(parent)
            if source is not None:
                found[position] = source
                break
    return {order.names[position]: order.names[source] for position, source in found.items()}


def with_concurrency(
    steps: dict[str, Step], drafts: dict[str, Draft], found: dict[str, str]
) -> dict[str, Step]:
    """What a list says about items at a time, for the steps that run once per item of it and say nothing."""
    made = dict(steps)
    for name, source in found.items():
        if source in drafts and source not in found and name in drafts:
            said = drafts[source].engine.for_each_concurrency
            if said is not None and drafts[name].engine.for_each_concurrency is None:
                made[name] = replace(made[name], concurrency=said)
    return made


def check_lists(order: Order, drafts: dict[str, Draft], found: dict[str, str], notes: Collector) -> None:
    """Report fan-outs and concurrency without a list. A step that others run may get the items of theirs."""
    run_by_others = _run_by_others(order)
    for name in found:
        if name in drafts:
            _check_key(drafts[name], notes)
    for name, draft in drafts.items():
        if name in found or run_by_others is None or name in run_by_others:
            continue
        if draft.engine.fanout == "map" or draft.engine.reduce is False:
            key = "fanout" if draft.engine.fanout else "reduce"
            message = "there is no list that this step could run once per item of"
            advice = "depend on a step with forEach: true, or remove it"
            notes.warn("fanout.no_list", message, (*draft.path, key), advice)
        elif draft.engine.for_each_concurrency is not None and not draft.engine.for_each:
            key = next(key for key in ("forEach_concurrency", "concurrency") if draft.written(key))
            message = "this step has no list and runs once"
            notes.warn("key.idle", message, (*draft.path, key), "remove it")


def _check_key(draft: Draft, notes: Collector) -> None:
    """A call whose key was used before isn't made (G12): a key without a template is the same for all items."""
    key = draft.engine.idempotency_key
    if key is not None and not is_template(key):
        message = "every item has this key, so only the first one is called"
        notes.warn(
            "idempotency_key.same", message, (*draft.path, "idempotency_key"), "put {{ item }} into it"
        )


def _run_by_others(order: Order) -> frozenset[str] | None:
    """The steps that blocks run; None when JavaScript may run any (C.10 R5)."""
    names: set[str] = set()
    for step in order.steps.values():
        names.update(target.step for target in step.on_init)
        if step.on_init_js is not None:
            return None
        names.update(step.hold.names if step.hold is not None else ())
        for block in (step.on_success, step.on_fail, step.on_finish):
            if block is not None and block.run_js is not None:
                return None
            names.update(_run_by(block))
    return frozenset(names)


def _run_by(block: Block | None) -> list[str]:
    if block is None:
        return []
    return [*(target.step for target in block.run), *([block.escalate] if block.escalate else [])]
