"""Which failures are worth another attempt (spec C.9, semantics 16)."""

from __future__ import annotations

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Script, plan, step

from gonogo.core.faults import Fault
from gonogo.core.plan import Block, Retry
from gonogo.core.retries import is_worth_it, retry_left
from gonogo.core.state import Node


def failed(fault: Fault | None = TRANSIENT, trigger: str = "on_fail", **keys: object) -> Node:
    """A step whose block speaks after a failure."""
    node = Node(Script(plan(step("a", **keys))).state.graph.parts["a"].root, "")
    node.fault, node.trigger = fault, trigger
    return node


def test_a_failure_of_a_class_that_is_tried_again_is_worth_it() -> None:
    """C.9 R5: transient ones, where nothing else is said."""
    assert is_worth_it(failed(), Retry(1))
    assert not is_worth_it(failed(LOGICAL), Retry(1))
    assert is_worth_it(failed(LOGICAL), Retry(1, on=("logical",)))


@pytest.mark.parametrize("trigger", ["on_success", "on_finish"])
def test_only_the_block_for_failures_tries_again(trigger: str) -> None:
    """C.9: whatever the step's latest fault was."""
    assert not is_worth_it(failed(trigger=trigger), Retry(1))


def test_nothing_is_tried_again_without_a_fault() -> None:
    """C.9 R5: its class decides."""
    assert not is_worth_it(failed(None), Retry(1))


@pytest.mark.parametrize(
    ("keys", "effect", "expected"),
    [
        ({}, "unknown", True),
        ({"effects": "idempotent"}, "done", True),
        ({"effects": "mutates"}, "none", True),
        ({"effects": "mutates"}, "unknown", False),
        ({"effects": "mutates"}, "done", False),
        ({"effects": "mutates", "idempotency_key": "k"}, "unknown", True),
    ],
)
def test_semantics_16_what_may_have_been_done_is_not_done_again(
    keys: dict[str, object], effect: str, expected: bool
) -> None:
    """Semantics 16: unless the far side knows the call by its key, or doing it twice is doing it once."""
    node = failed(**keys)
    node.effect = effect
    assert is_worth_it(node, Retry(1)) is expected


@pytest.mark.parametrize(("made", "left"), [(0, True), (1, True), (2, False), (3, False)])
def test_a_retry_is_left_until_all_are_made(made: int, left: bool) -> None:
    """C.9: `max` of them."""
    node, retry = failed(), Retry(2)
    node.retries = made
    assert (retry_left(node, Block(retry=retry)) is retry) is left


def test_a_block_that_does_not_retry_has_none_left() -> None:
    """Whatever went wrong."""
    assert retry_left(failed(), Block()) is None
