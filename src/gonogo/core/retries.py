"""Which failures are worth another attempt (spec C.9), and which calls may be made again at all (semantics.md 16)."""

from __future__ import annotations

from gonogo.core.plan import Block, Retry, Step
from gonogo.core.state import Node


def retry_left(node: Node, block: Block) -> Retry | None:
    """How to try again, when that is worth it, and a retry is left."""
    retry = block.retry
    return retry if retry is not None and is_worth_it(node, retry) and node.retries < retry.max else None


def is_worth_it(node: Node, retry: Retry) -> bool:
    """True when the fault is of a class worth another attempt (spec C.9 R5), and nothing would be done twice."""
    if node.trigger != "on_fail" or node.fault is None or node.fault.fault_class not in retry.on:
        return False
    return node.effect == "none" or may_repeat(node.site.part.step)


def may_repeat(step: Step) -> bool:
    """Reading and idempotent calls, and those under a key the author gives because the far side honours it."""
    return step.effects != "mutates" or step.idempotency_key is not None
