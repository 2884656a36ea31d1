"""Which target a call asks first: the list, weights or latency, always within tiers; and the record says why (F8)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec import structs
from tests.gate.world import Http, Slow, StepFailed, answered, gate, play, policy, world

from gonogo.errors import ConfigError
from gonogo.gate import Bounds, Gate, Latencies, Policy, Target, doubts
from gonogo.gate.checking import problems
from gonogo.gate.decisions import TargetsOrdered
from gonogo.gate.latencies import FORGET_S
from gonogo.gate.reading import policy_of
from gonogo.gate.replaying import replay
from gonogo.gate.sheets import KEYS_MAX

ONCE = Bounds(attempts_per_target=1)


def weighted(**weights: float | None) -> Policy:
    """A policy whose targets have these weights."""
    targets = tuple(Target(name, weight=weight) for name, weight in weights.items())
    return Policy(targets=targets, order="weighted", breaker=None, bounds=ONCE)


def firsts(given: Policy, calls: int, seed: str = "s") -> list[str]:
    """The target that each of so many calls of one gate begins with."""

    async def story() -> list[str]:
        one, there = gate(given, seed=seed), world(**{target.name: "good" for target in given.targets})
        for _ in range(calls):
            await one.call(there.step())
        return there.called

    return play(story)


def order(record: Any) -> TargetsOrdered:
    """What a record says of its order."""
    found = record.decisions[0]
    assert isinstance(found, TargetsOrdered)
    return found


# --- weights


def test_a_target_comes_first_as_often_as_its_weight_says() -> None:
    """Three of four, within what chance allows a thousand draws."""
    found = Counter(firsts(weighted(a=1.0, b=3.0), 1000))
    assert 700 <= found["b"] <= 800


def test_the_same_call_has_the_same_order() -> None:
    """The draw is a hash of the call's id: nothing is random, and another seed draws otherwise."""
    given = weighted(a=1.0, b=1.0, c=1.0)
    assert firsts(given, 50) == firsts(given, 50) != firsts(given, 50, seed="t")


def test_calls_under_one_idempotency_key_ask_the_same_target_first() -> None:
    """They are one call to the far side, whatever gate asks."""

    async def story(key: str) -> set[str]:
        there = world(a=1, b=1, c=1)
        for seed in map(str, range(20)):
            await gate(weighted(a=1, b=1, c=1), seed=seed).call(there.step(key=key))
        return set(there.called)

    chosen = [play(lambda key=key: story(key)) for key in map(str, range(20))]  # type: ignore[misc]
    assert {len(each) for each in chosen} == {1}
    assert set().union(*chosen) == {"a", "b", "c"}


def test_a_key_is_not_in_the_record_of_its_draw() -> None:
    """A hash of it is."""
    record = answered(weighted(a=1, b=1), world(a=1, b=1), key="secret-key").record
    assert record.events[0].lot
    assert "secret-key" not in str(record.events)


def test_a_target_without_weight_has_the_weight_one_and_zero_comes_last() -> None:
    """Zero is for targets that only stand in."""
    found = Counter(firsts(weighted(a=0.0, b=None, c=1.0), 200))
    assert set(found) == {"b", "c"}
    there = world(a="good", b=Http(500), c=Http(500))
    assert answered(weighted(a=0.0, b=None, c=1.0), there).target == "a"
    assert there.called[2] == "a"


def test_tiers_come_before_weights() -> None:
    """A heavy target of a higher tier waits."""
    given = weighted(a=100.0, b=1.0)
    given = structs.replace(given, targets=(structs.replace(given.targets[0], tier=1), given.targets[1]))
    assert set(firsts(given, 20)) == {"b"}


def test_the_record_says_why_the_order_is_by_weight() -> None:
    """With the weights as evidence."""
    found = order(answered(weighted(a=1.0, b=3.0), world(a=1, b=1)).record)
    assert (found.by, found.evidence) == ("weighted", {"a": 1.0, "b": 3.0})
    assert found.sentence() in ("order is weighted: b (3), a (1)", "order is weighted: a (1), b (3)")


# --- latency


def latency(*names: str, **more: Any) -> Policy:
    """A policy that goes by latency."""
    return policy(*names, **{"order": "least-latency", "bounds": ONCE, **more})


def test_unknown_targets_come_first_then_the_quickest() -> None:
    """Each is tried once, in the list's order, and then the one that took least."""

    async def story() -> list[str]:
        there, one = world(a=Slow(3), b=Slow(1), c=Slow(2)), gate(latency("a", "b", "c"))
        for _ in range(5):
            await one.call(there.step())
        return there.called

    assert play(story) == ["a", "b", "c", "b", "b"]


def test_the_mean_follows_a_target_that_becomes_slow() -> None:
    """The newest attempt is three tenths of it."""

    async def story() -> list[str]:
        there, one = world(a=[Slow(1), Slow(9)], b=Slow(2)), gate(latency("a", "b"))
        for _ in range(5):
            await one.call(there.step())
        return there.called

    assert play(story) == ["a", "b", "a", "b", "b"]


def test_equal_targets_keep_the_order_of_the_list() -> None:
    """Ties go by it."""

    async def story() -> list[str]:
        there, one = world(a=Slow(1), b=Slow(1)), gate(latency("a", "b"))
        for _ in range(4):
            await one.call(there.step())
        return there.called

    assert play(story) == ["a", "b", "a", "a"]


def test_a_target_that_fails_at_once_is_not_the_quickest() -> None:
    """A failure counts as the longest attempt there may be."""

    async def story() -> list[str]:
        there, one = world(a=Http(500), b=Slow(2)), gate(latency("a", "b"))
        for _ in range(3):
            await one.call(there.step())
        return there.called

    assert play(story) == ["a", "b", "b", "b"]


def test_what_says_nothing_of_a_target_leaves_it_unknown() -> None:
    """A refused credential is no measure."""

    async def story() -> Any:
        there, one = world(a=StepFailed("auth"), b=Slow(2)), gate(latency("a", "b"))
        await one.call(there.step())
        return order((await one.answer(there.step())).record)

    found = play(story)
    assert (found.order, found.evidence) == (("a", "b"), {"b": 2.0})
    assert found.sentence() == "order is least-latency: a (not seen lately), b (2 s)"


def test_a_slow_target_is_asked_again_after_a_while_by_one_call_alone() -> None:
    """Nobody would learn else that it is quick again; and a crowd isn't sent there to find out."""

    async def story() -> list[str]:
        there, one = world(a=Slow(5), b=Slow(1)), gate(latency("a", "b"))
        for _ in range(int(FORGET_S) + 4):
            await one.call(there.step())
        return there.called

    assert play(story) == ["a", *"b" * int(FORGET_S), "a", "b", "b"]
    seen, given = Latencies(), latency("a", "b")
    for target in given.targets:
        seen.saw("ask", target, 0.0, 1.0, None, 30.0)
    assert [sorted(seen.of("ask", given, FORGET_S)) for _ in range(3)] == [["b"], ["a"], ["a", "b"]]


def test_tiers_come_before_latency() -> None:
    """A quick target of a higher tier waits."""

    async def story() -> list[str]:
        targets = Target("a", tier=1), Target("b")
        there = world(a=1, b=Slow(2))
        one = gate(Policy(targets=targets, order="least-latency", breaker=None))
        for _ in range(3):
            await one.call(there.step())
        return there.called

    assert play(story) == ["b", "b", "b"]


def test_gates_can_share_what_they_have_seen() -> None:
    """By step and target; another step knows nothing of it."""

    async def story() -> list[str]:
        there, seen = world(a=Slow(3), b=Slow(1)), Latencies()
        for _ in range(3):
            await gate(latency("a", "b"), latencies=seen).call(there.step())
        await gate(latency("a", "b"), latencies=seen).beside(latency("a", "b")).call(there.step())
        await gate(latency("a", "b"), latencies=seen).call(structs.replace(there.step(), name="other"))
        return there.called

    assert play(story) == ["a", "b", "b", "b", "a"]


def test_what_is_seen_is_bounded() -> None:
    """The oldest goes."""
    seen = Latencies()
    for number in range(KEYS_MAX + 5):
        seen.saw(f"step {number}", Target("a"), 0.0, 1.0, None, 30.0)
    given = Policy(targets=(Target("a"),))
    assert (seen.of("step 0", given, 1.0), seen.of(f"step {KEYS_MAX + 4}", given, 1.0)) == ({}, {"a": 1.0})


def test_a_call_that_is_taken_up_passes_no_target_over() -> None:
    """Another order than that of its first part must not put one that wasn't asked behind the place it is at."""

    async def story() -> list[str]:
        seen, given = Latencies(), latency("a", "b", "c")
        for place, target in enumerate(given.targets):
            seen.saw("ask", target, 0.0, 1.0 + place, None, 30.0)
        there = world(a=1, b=1, c=Http(500))
        carried = structs.replace(
            gate(given)._call(there.step(), (), {}).state.carried(0.0),
            attempts=1,
            per_target={"c": 1},
            target="c",
        )
        await gate(given, latencies=seen).call(there.step(carried=carried))
        return there.called

    assert play(story) == ["a"]


# --- both


@pytest.mark.parametrize("by", ["weighted", "least-latency"])
def test_a_record_is_replayed_to_the_same_order(by: Any) -> None:
    """What it was made from is in the record."""

    async def story() -> Any:
        there, one = world(a=Slow(3), b=[Slow(1), Http(500)]), gate(policy("a", "b", order=by, bounds=ONCE))
        for _ in range(2):
            await one.call(there.step())
        return (await one.answer(there.step(key="k"))).record

    record = play(story)
    assert replay(record.policy, record.events) == record.decisions


@pytest.mark.parametrize("given", [policy("a", "b"), policy("a", order="weighted")])
def test_an_order_that_is_the_files_is_not_told(given: Policy) -> None:
    """There is nothing to explain, also where there is one target."""
    record = answered(given, world(a=1, b=1)).record
    assert not any(isinstance(each, TargetsOrdered) for each in record.decisions)
    assert Gate(given).latencies is None


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_weights_without_sense_are_refused(weight: float) -> None:
    """At their place."""
    [found] = problems(weighted(a=1.0, b=weight))
    assert (found.code, found.path, found.severity) == ("policy.number", "targets[1].weight", "error")


@pytest.mark.parametrize("by", ["weighted", "least-latency"])
def test_an_order_of_its_own_and_a_sticky_target_are_refused_together(by: Any) -> None:
    """Both say who is first."""
    [found] = problems(policy("a", "b", order=by, sticky_s=1.0))
    assert (found.code, found.path) == ("policy.order", "sticky_s")


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (policy("a", "b", order="weighted"), "order"),
        (structs.replace(weighted(a=1, b=None), order="configured"), "targets[0].weight"),
        (structs.replace(weighted(a=None, b=2), order="least-latency"), "targets[1].weight"),
        (weighted(a=1), "order"),
        (policy("a", order="least-latency"), "order"),
    ],
)
def test_an_order_that_cannot_be_meant_is_doubted(given: Policy, path: str) -> None:
    """Weights and `order: weighted` belong together, and an order needs two."""
    assert [found.path for found in doubts(given)] == [path]


def test_targets_that_others_bring_are_not_doubted() -> None:
    """Their weights aren't known here."""
    assert doubts(policy("a", order="weighted"), {"targets"}) == ()


def test_an_order_is_read_from_data() -> None:
    """And a misspelt one is told with those there are."""
    found = policy_of({"order": "weighted", "targets": [{"name": "a", "weight": 2}]})
    assert (found.order, found.targets[0].weight) == ("weighted", 2.0)
    with pytest.raises(ConfigError, match="least-latency"):
        policy_of({"order": "quickest"})
