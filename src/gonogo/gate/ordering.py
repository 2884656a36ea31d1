"""Which targets a call asks first: tiers, then the list, weights or what was seen of their latency (F8). Pure.

A weighted choice is a hash of what the call is, never a random number: the same call has the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gonogo.core.backoff import jitter
from gonogo.gate.decisions import TargetsOrdered
from gonogo.gate.events import Began
from gonogo.gate.policy import Policy

Rank = Callable[[int], tuple[float, ...]]

_LEAST = 2.0**-64
"""A draw of nothing would have no logarithm."""


def order_of(policy: Policy, began: Began) -> tuple[int, ...]:
    """Places in the policy's list, best first. What decides within a tier comes before the list's order."""
    targets = policy.targets
    rank = _RANKS[policy.order](policy, began)
    return tuple(sorted(range(len(targets)), key=lambda index: (targets[index].tier, *rank(index), index)))


def reasons(policy: Policy, began: Began, order: tuple[int, ...], offset_ms: float) -> TargetsOrdered:
    """The decision that says why the order is what it is."""
    names = tuple(policy.targets[index].name for index in order)
    weighs = policy.order == "weighted"
    evidence = (
        {policy.targets[index].name: weight(policy, index) for index in order} if weighs else began.seen
    )
    return TargetsOrdered(offset_ms, policy.order, names, evidence)


def weight(policy: Policy, index: int) -> float:
    """A target's weight; without a word it is 1."""
    said = policy.targets[index].weight
    return 1.0 if said is None else said


def _configured(policy: Policy, began: Began) -> Rank:
    """A last good target comes before its tier's others."""
    return lambda index: (index != began.first,)


def _weighted(policy: Policy, began: Began) -> Rank:
    """The least of exponential draws by weight: a target comes first as often as its part of its tier's weights."""
    lot = began.lot or began.call_id

    def rank(index: int) -> tuple[float, ...]:
        share = weight(policy, index)
        draw = max((jitter(f"{lot}/{policy.targets[index].name}") + 1) / 2, _LEAST)
        return (-math.log(draw) / share if share > 0 else math.inf,)

    return rank


def _least_latency(policy: Policy, began: Began) -> Rank:
    """Unknown ones first. A call that is taken up has those first that it has asked, so that it passes none over."""
    asked = began.carried.per_target if began.carried is not None else {}

    def rank(index: int) -> tuple[float, ...]:
        name = policy.targets[index].name
        return (name not in asked, began.seen.get(name, -1.0))

    return rank


_RANKS: dict[str, Callable[[Policy, Began], Rank]] = {
    "configured": _configured,
    "weighted": _weighted,
    "least-latency": _least_latency,
}
