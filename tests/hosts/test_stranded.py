"""Calls that mutate, and whose worker is gone with all others that have their label."""

from __future__ import annotations

import pytest
from tests.hosts.fleet import Fleet
from tests.hosts.test_worker import Touch, with_fleet

from gonogo.app.stranded import LOOKS, Stranded
from gonogo.core import lifecycle
from gonogo.core.commands import StartCall
from gonogo.errors import JournalError
from gonogo.journal.memory_pool import MemoryPool
from gonogo.journal.pool import Ticket

FAR = "steps:\n  one: {type: touch, what: x, waits: true, runs_on: far}\n"


async def left_alone(made: Fleet, touch: Touch) -> tuple[str, Stranded]:
    """A run whose call was with a worker that is gone; and a worker without the label, which finds that call."""
    run_id = await made.start(FAR)
    await touch.begun.wait()
    await made.vanish("a")
    pool = made.runs.pool
    return run_id, Stranded("b", pool, lambda most: [(run_id, call) for call in pool.open(run_id)][:most])


def test_a_call_that_mutates_is_in_doubt_though_nobody_has_its_label() -> None:
    """Nothing is performed again; at the first looks its worker may only be late."""

    async def story(made: Fleet, touch: Touch) -> None:
        run_id, looking = await left_alone(made, touch)
        for _ in range(LOOKS):
            assert made.runs.pool.take(run_id) == []
            looking.look()
        state = await made.end(run_id)
        assert state.nodes["one"][""].status == lifecycle.IN_DOUBT
        assert touch.touched == ["x"]
        assert not made.runs.pool.open(run_id)

    with_fleet(story, "b", "a", effects="mutates", labels={"a": ("far",)})


def test_a_call_that_can_be_made_again_waits_for_the_label() -> None:
    """Whoever has no such label gives it back as it was."""

    async def story(made: Fleet, touch: Touch) -> None:
        run_id, looking = await left_alone(made, touch)
        for _ in range(LOOKS):
            looking.look()
        [call] = made.runs.pool.open(run_id)
        assert made.runs.pool.take(run_id) == []
        [claim] = made.runs.pool.claim_free(run_id, [call], "c")
        assert claim.before == 1

    with_fleet(story, "b", "a", labels={"a": ("far",)})


def test_what_was_seen_before_a_store_was_away_is_looked_at_anew() -> None:
    """Its worker could not say meanwhile that it lives."""
    pool, found = MemoryPool(), iter([[("r", 1)]] * (LOOKS - 1) + [None] + [[("r", 1)]] * (LOOKS - 1))
    pool.offer([Ticket("r", StartCall(1, "one", "", 1, 1, "", "mutates"), 0, "far")])
    pool.claim("r", 1, "a")

    def find(most: int) -> list[tuple[str, int]]:
        calls = next(found)
        if calls is None:
            raise JournalError("the store is away")
        return calls

    looking = Stranded("b", pool, find)
    for _ in range(LOOKS - 1):
        looking.look()
    with pytest.raises(JournalError):
        looking.look()
    for _ in range(LOOKS - 1):
        looking.look()
    assert pool.take("r") == []
