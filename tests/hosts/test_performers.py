"""Who made a call, as the journal keeps it for people."""

from __future__ import annotations

from tests.hosts.fleet import Fleet
from tests.hosts.test_errands import with_calls
from tests.hosts.test_worker import Touch

from gonogo.core.events import CallDone, CallLost


def test_a_call_elsewhere_says_which_worker_made_it_and_which_one_lost_it() -> None:
    """Not who found it lost: a person has to look where it was."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        assert made.runs.pool.claim_free(run_id, calls[:1], "dead")
        await made.workers["a"].lost("dead")
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        await made.end(run_id)
        events = [record.event for record in made.runs.read(run_id).records]
        assert [event.by for event in events if isinstance(event, CallLost)] == ["dead"]
        own = [event for event in events if isinstance(event, CallDone) and event.call in calls]
        assert [event.by for event in own] == ["a", "a"]

    with_calls(story, "mutates")
