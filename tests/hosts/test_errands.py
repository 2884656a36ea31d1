"""Calls that a worker is given together, for runs that another one has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.hosts.fleet import Fleet, fleet
from tests.hosts.test_attempts import SPEND
from tests.hosts.test_worker import Touch, outcome

from gonogo.core import decisions as d
from gonogo.core.events import AttemptAsked, CallDone
from gonogo.core.state import State
from gonogo.engines.base import TAKEOVERS_MAX
from gonogo.errors import JournalError
from gonogo.hosts import away, errands
from gonogo.hosts.errands import SUSPECT, Errands
from gonogo.hosts.visits import Visit
from gonogo.journal.lines import NewerJournal
from gonogo.journal.pool import Claim
from gonogo.journal.replay import replay
from gonogo.journal.store import StoreAway

LIST = """
max_parallelism: 9
steps:
  list: {type: script, forEach: true, forEach_concurrency: 4, content: "return [1, 2, 3]"}
  each: {type: touch, what: "{{ item }}", runs_on: nobody, depends_on: [list]}
"""


def with_calls(
    story: Callable[[Fleet, Touch, str, list[int]], Coroutine[Any, Any, None]], effects: str = "reads"
) -> None:
    """Two workers, and a run whose three calls are on offer, and told to neither."""

    async def main() -> None:
        touch = Touch()
        async with fleet("a", "b", step_types=[touch.type(effects)]) as made:
            run_id = await made.start(LIST)
            async with asyncio.timeout(20):
                while len(made.runs.pool.open(run_id)) < 3:  # noqa: ASYNC110 - nobody tells of an offer
                    await asyncio.sleep(0)
            await story(made, touch, run_id, sorted(made.runs.pool.open(run_id)))

    asyncio.run(main())


def outcomes(state: State) -> list[str | None]:
    """Of the three items."""
    return [state.nodes["each"][scope].outcome for scope in sorted(state.nodes["each"]) if scope]


def test_calls_given_to_two_workers_are_performed_once_each() -> None:
    """Each says of all of them that they are over, or aren't for it."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        ended = {"a": 0, "b": 0}

        async def perform(name: str) -> None:
            def count(number: int) -> None:
                ended[name] += number

            await made.workers[name].calls(run_id, calls, count)

        await asyncio.gather(perform("a"), perform("b"))
        assert outcomes(await made.end(run_id)) == ["passed"] * 3
        assert (sorted(touch.touched), ended) == (["1", "2", "3"], {"a": 3, "b": 3})

    with_calls(story)


def test_a_mutating_call_of_a_lost_worker_is_in_doubt_and_the_others_are_performed() -> None:
    """Nobody knows what the lost one did of it (law 3)."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        assert made.runs.pool.claim_free(run_id, calls[:1], "dead")
        await made.workers["a"].lost("dead")
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        state = await made.end(run_id)
        assert state.finished is not None
        assert (state.finished.verdict, sorted(touch.touched)) == ("HOLD", ["2", "3"])

    with_calls(story, "mutates")


def test_calls_of_a_lost_worker_are_handed_over_once_more() -> None:
    """Whatever told of them before may have been lost with it."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        assert made.runs.pool.claim_free(run_id, calls, "dead")
        made.labels["b"] = ("nobody",)
        await made.workers["a"].lost("dead")
        await made.end(run_id)
        assert sorted(touch.touched) == ["1", "2", "3"]

    with_calls(story)


def test_a_mutating_call_that_is_offered_again_after_its_end_is_not_performed_again() -> None:
    """By a host that stood still between writing and offering it, while another one had the run and ended the call."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        offered = [entry.ticket for entry in made.runs.pool._entries.values()]  # type: ignore[attr-defined]
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        await made.end(run_id)
        assert made.runs.pool.open(run_id) == set()
        made.runs.pool.offer(offered)
        await made.workers["b"].calls(run_id, calls, lambda number: None)
        assert sorted(touch.touched) == ["1", "2", "3"]

    with_calls(story, "mutates")


def test_calls_that_lost_several_workers_are_performed_one_at_a_time() -> None:
    """One of them may be what ends workers; beside it the others would be taken for it."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        for call in calls[:2]:
            for _ in range(SUSPECT):
                assert made.runs.pool.claim(run_id, call, "dead")
        await made.workers["a"].lost("dead")
        claimed: list[int] = []
        pool, claim_free = made.runs.pool, made.runs.pool.claim_free

        def noted(run_id: str, calls: list[int], worker: str, *, below: int | None = None) -> list[Claim]:
            found = claim_free(run_id, calls, worker, below=below)
            claimed.append(len(pool.suspects(run_id, calls, SUSPECT + 1)))
            return found

        pool.claim_free = noted  # type: ignore[method-assign]
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        assert outcomes(await made.end(run_id)) == ["passed"] * 3
        assert max(claimed) == 1

    with_calls(story)


def test_a_call_that_lost_too_many_workers_is_given_up_and_the_others_are_performed() -> None:
    """They came with it, and have done nothing wrong."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        for _ in range(TAKEOVERS_MAX):
            assert made.runs.pool.claim(run_id, calls[0], "dead")
        await made.workers["a"].lost("dead")
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        state = await made.end(run_id)
        assert outcomes(state) == ["failed", "passed", "passed"]
        assert sorted(touch.touched) == ["2", "3"]

    with_calls(story)


def break_visits(monkeypatch: pytest.MonkeyPatch, *problems: Exception) -> None:
    """Each of these keeps a worker from a call once."""
    left, visit = list(problems), Errands._visit

    async def seldom(self: Errands, run_id: str, seq: int) -> Any:
        if left:
            raise left.pop()
        return await visit(self, run_id, seq)

    monkeypatch.setattr(Errands, "_visit", seldom)


def test_a_call_that_cannot_be_performed_for_now_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its group is never told again, so nobody else would."""
    monkeypatch.setattr(errands, "AGAIN_S", (0.0, 0.0))
    break_visits(monkeypatch, JournalError("not now"), ValueError("nor now"))

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        assert outcomes(await made.end(run_id)) == ["passed"] * 3

    with_calls(story)


def test_a_call_that_can_never_be_performed_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its run goes on (law 2)."""
    monkeypatch.setattr(errands, "AGAIN_S", (0.0, 0.0))

    async def never(self: Errands, run_id: str, seq: int) -> Any:
        raise JournalError("the sandbox is gone")

    monkeypatch.setattr(Errands, "_visit", never)

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        state = await made.end(run_id)
        assert outcomes(state) == ["failed"] * 3
        assert outcome(state, "list") == "passed"
        faults = [node.fault for scope, node in state.nodes["each"].items() if scope]
        assert {(each.kind, each.message) for each in faults if each is not None} == {
            ("call.unperformed", "each can't be performed: the sandbox is gone")
        }

    with_calls(story)


@pytest.mark.parametrize("effects", ["reads", "mutates"])
def test_what_came_of_a_call_is_kept_once_the_store_takes_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, effects: str
) -> None:
    """Nobody else has the call while its worker lives, and to perform it again would put it in doubt, if it mutates."""
    monkeypatch.setattr(errands, "KEPT_S", (0.0,) * 9)

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        full, leave_all = [True] * 8, made.runs.pool.leave_all

        def seldom(*given: Any) -> Any:
            if full:
                full.pop()
                raise JournalError("no space left")
            return leave_all(*given)

        monkeypatch.setattr(made.runs.pool, "leave_all", seldom)
        await made.workers["a"].calls(run_id, calls[:1], lambda number: None)
        await made.workers["a"].calls(run_id, calls[1:], lambda number: None)
        assert outcomes(await made.end(run_id)) == ["passed"] * 3
        assert sorted(touch.touched) == ["1", "2", "3"]
        assert caplog.text.count("waits until the store keeps what became of it: no space left") == 1

    with_calls(story, effects)


def test_a_call_whose_answer_the_store_never_takes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes what is smaller, and the run goes on (law 2)."""
    monkeypatch.setattr(errands, "KEPT_S", (0.0, 0.0))

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        leave_all = made.runs.pool.leave_all

        def small(run_id: str, answers: Any) -> Any:
            if any(isinstance(event, CallDone) for _, event, _ in answers):
                raise JournalError("too large")
            return leave_all(run_id, answers)

        monkeypatch.setattr(made.runs.pool, "leave_all", small)
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        state = await made.end(run_id)
        assert outcomes(state) == ["failed"] * 3
        faults = [node.fault for scope, node in state.nodes["each"].items() if scope]
        assert {each.message for each in faults if each is not None} == {"each can't be performed: too large"}

    with_calls(story)


def test_a_call_whose_answer_the_store_never_takes_costs_no_other_one_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that end together are written together."""
    monkeypatch.setattr(errands, "KEPT_S", (0.0, 0.0))

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        leave_all = made.runs.pool.leave_all

        def small(run_id: str, answers: Any) -> Any:
            if any(isinstance(event, CallDone) and call == calls[0] for call, event, _ in answers):
                raise JournalError("too large")
            return leave_all(run_id, answers)

        monkeypatch.setattr(made.runs.pool, "leave_all", small)
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        assert outcomes(await made.end(run_id)) == ["failed", "passed", "passed"]

    with_calls(story)


def test_what_came_of_a_call_is_kept_however_long_the_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take it all, once it is back; to leave less then would lose what was done."""
    monkeypatch.setattr(errands, "KEPT_S", (0.0, 0.0))

    def refuse(told: Any) -> None:
        told(JournalError("it didn't answer for 60 s"))

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        away, leave_all = [True] * 3, made.runs.pool.leave_all

        def seldom(*given: Any) -> Any:
            if away:
                away.pop()
                raise StoreAway("it doesn't answer", advice="wait", when_back=refuse)
            return leave_all(*given)

        monkeypatch.setattr(made.runs.pool, "leave_all", seldom)
        for call in calls:
            await made.workers["a"].calls(run_id, [call], lambda number: None)
        assert outcomes(await made.end(run_id)) == ["passed"] * 3
        assert sorted(touch.touched) == ["1", "2", "3"]

    with_calls(story, "mutates")


def test_a_call_that_is_tried_again_is_claimed_once_the_store_lets_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its worker, which lives, would have it for ever, and forget it."""
    monkeypatch.setattr(errands, "AGAIN_S", (0.0, 0.0))
    monkeypatch.setattr(errands, "KEPT_S", (0.0,))
    break_visits(monkeypatch, JournalError("not now"))

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        full, claim = [True] * 5, made.runs.pool.claim

        def refused(*given: Any, **more: Any) -> Any:
            if full and "again" not in more:
                full.pop()
                raise JournalError("no space left")
            return claim(*given, **more)

        monkeypatch.setattr(made.runs.pool, "claim", refused)
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        assert full == []
        assert outcomes(await made.end(run_id)) == ["passed"] * 3
        assert caplog.text.count("no space left") == 1

    with_calls(story)


def test_a_call_for_a_newer_worker_is_given_back_once_the_store_takes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Till then no newer one could have it."""
    monkeypatch.setattr(errands, "KEPT_S", (0.0,))

    async def unread(self: Errands, run_id: str, seq: int) -> Any:
        raise NewerJournal("format 9")

    monkeypatch.setattr(Errands, "_visit", unread)

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        full, pass_over = [True] * 3, made.runs.pool.pass_over

        def seldom(*given: Any) -> None:
            if full:
                full.pop()
                raise JournalError("no space left")
            pass_over(*given)

        monkeypatch.setattr(made.runs.pool, "pass_over", seldom)
        assert sorted(await made.workers["a"].calls(run_id, calls, lambda number: None)) == calls
        assert [call for call, _ in made.runs.pool.unclaimed(run_id)] == calls

    with_calls(story)


def test_calls_that_are_claimed_are_performed_though_others_cannot_be_looked_at() -> None:
    """The failure is told once they are over."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        pool = made.runs.pool
        assert pool.claim(run_id, calls[0], "b")

        def broken(*_: Any) -> Any:
            raise JournalError("not now")

        suspects, pool.suspects = pool.suspects, broken  # type: ignore[method-assign]
        with pytest.raises(JournalError, match="not now"):
            await made.workers["a"].calls(run_id, calls, lambda number: None)
        pool.suspects = suspects  # type: ignore[method-assign]
        assert sorted(touch.touched) == ["2", "3"]

    with_calls(story)


def test_calls_of_a_newer_run_are_as_they_were_for_a_newer_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is older did nothing, so one that mutates isn't in doubt."""
    visit = Errands._visit

    async def unread(self: Errands, run_id: str, seq: int) -> Any:
        if self._worker == "a":
            raise NewerJournal("format 9")
        return await visit(self, run_id, seq)

    monkeypatch.setattr(Errands, "_visit", unread)

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        assert sorted(await made.workers["a"].calls(run_id, calls, lambda number: None)) == calls
        assert await made.workers["a"].call(run_id, calls[0], takes_over=True) is False
        assert touch.touched == []
        assert made.runs.pool.passed_over(run_id, calls[0]) == "worker a is older than the run: format 9"
        assert await made.workers["b"].calls(run_id, calls, lambda number: None) == []
        assert outcomes(await made.end(run_id)) == ["passed"] * 3

    with_calls(story, "mutates")


def test_a_call_that_only_older_workers_saw_says_so_when_nobody_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an hour, like one that nobody saw."""
    monkeypatch.setattr(away, "UNCLAIMED_S", 0.3)

    async def unread(self: Errands, run_id: str, seq: int) -> Any:
        raise NewerJournal("format 9")

    monkeypatch.setattr(Errands, "_visit", unread)

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        state = await made.end(run_id)
        faults = [node.fault for scope, node in state.nodes["each"].items() if scope]
        told = "no worker with the label 'nobody' took each within 0.3 s: worker a is older than the run: format 9"
        assert {(each.kind, each.message) for each in faults if each is not None} == {
            ("call.unclaimed", told)
        }

    with_calls(story)


def test_calls_of_a_run_that_come_together_meet_while_room_is_made_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each finds the other's visit, and no visit is closed that another call has come to meanwhile."""
    monkeypatch.setattr(errands, "VISITS_MAX", 1)
    closed: list[str] = []
    close = Visit.close

    async def slowly(self: Visit) -> None:
        assert not self.is_busy
        closed.append(self.run_id)
        await asyncio.sleep(0)
        await close(self)

    async def main() -> None:
        touch = Touch()
        async with fleet("a", step_types=[touch.type("reads")]) as made:
            runs = [await made.start(LIST), await made.start(LIST)]
            pool = made.runs.pool
            async with asyncio.timeout(20):
                while any(len(pool.open(run_id)) < 3 for run_id in runs):  # noqa: ASYNC110 - nobody tells of an offer
                    await asyncio.sleep(0)
            made_for: list[str] = []

            def around(event: Any, plan: Any) -> Any:
                made_for.append(event.run_id)
                return worker._around_of(event, plan)

            worker = made.workers["a"]._errands
            own = Errands("a", made.runs, around)
            await own.perform_free(runs[0], sorted(pool.open(runs[0]))[:1], lambda number: None, tries=9)
            monkeypatch.setattr(Visit, "close", slowly)
            left = [(run_id, call) for run_id in runs for call in pool.open(run_id)]
            await asyncio.gather(
                *(
                    own.perform(run_id, call, takes_over=False, tries=9)
                    for run_id, call in left
                    if run_id == runs[1]
                )
            )
            assert made_for == runs
            assert closed == runs[:1]
            assert own.under_way == 0
            await own.close()
            assert outcomes(await made.end(runs[1])) == ["passed"] * 3

    asyncio.run(main())


def test_calls_of_a_run_can_be_stopped_though_its_journal_cannot_be_read_further() -> None:
    """The worker keeps what it knew of the run: calls are under way with that."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        own = Errands("a", made.runs, made.workers["a"]._errands._around_of)
        visit = await own._visit(run_id, 0)
        with pytest.raises(JournalError, match="ends before record 999"):
            await own._visit(run_id, 999)
        assert await own._visit(run_id, 0) is visit
        await own.close()

    with_calls(story)


SPENDING = """
max_parallelism: 6
budget: {tokens: 100}
steps:
  list: {type: script, forEach: true, forEach_concurrency: 6, content: "return [1, 2, 3, 4, 5, 6]"}
  each: {type: spend, depends_on: [list], criticality: info}
"""


def spending(story: Callable[[Fleet], Coroutine[Any, Any, None]]) -> None:
    """Two workers and a step type that spends 40 tokens, through its gate."""

    async def main() -> None:
        async with fleet("a", "b", step_types=[SPEND]) as made:
            await story(made)

    asyncio.run(main())


def test_calls_on_several_workers_spend_no_more_than_their_run_may() -> None:
    """Each attempt asks the run's core before it goes out (semantics.md 23); two of six have leave."""

    async def story(made: Fleet) -> None:
        state = await made.end(run_id := await made.start(SPENDING))
        assert {name for _, _, name in made.calls} == {"a", "b"}
        assert (state.spent.tokens, state.spent.tokens_kept) == (80, 0)
        records = list(made.runs.records(run_id))
        decisions = [each for record in records for each in record.decisions]
        assert sum(isinstance(each, d.AttemptStarted) for each in decisions) == 2
        refused = [each for each in decisions if isinstance(each, d.AttemptRefused)]
        assert {(each.limit, each.allowed) for each in refused} == {("budget.tokens", 100)}
        assert len(refused) == 4
        assert replay(records) == []

    spending(story)


def test_attempts_on_other_workers_count_as_further_ones_of_the_run() -> None:
    """The budget of retries is the run's, wherever they are made."""
    text = SPENDING.replace("tokens: 100", "retries: 2").replace(
        "type: spend", "type: spend, fails: true, reliability: {breaker: null, backoff: {base_s: 0.001}}"
    )

    async def story(made: Fleet) -> None:
        state = await made.end(await made.start(text))
        assert state.spent.retries == 2

    spending(story)


def test_a_run_without_a_budget_asks_nobody() -> None:
    """A way through the pool and back for each attempt would cost more than a short call."""

    async def story(made: Fleet) -> None:
        run_id = await made.start(SPENDING.replace("budget: {tokens: 100}", ""))
        assert (await made.end(run_id)).finished.verdict == "GO"  # type: ignore[union-attr]
        assert not any(isinstance(record.event, AttemptAsked) for record in made.runs.records(run_id))

    spending(story)


def test_who_lost_a_call_asks_for_no_leave_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its place would be taken until the call's deadline."""

    async def story(made: Fleet) -> None:
        pool = made.runs.pool
        leave = pool.leave

        def robbed(
            run_id: str, call: int, event: Any, last: bool = True, *, before: int | None = None
        ) -> bool:
            if isinstance(event, AttemptAsked) and before == 0:
                pool.claim(run_id, call, "other")
            return leave(run_id, call, event, last, before=before)

        monkeypatch.setattr(pool, "leave", robbed)
        run_id = made.submitted(SPENDING.replace("type: spend", "type: spend, runs_on: nobody"))
        made.submit(run_id)
        async with asyncio.timeout(20):
            while len(pool.open(run_id)) < 6:  # noqa: ASYNC110 - nobody tells of an offer
                await asyncio.sleep(0)
            ended: list[int] = []
            await made.workers["b"].calls(run_id, sorted(pool.open(run_id)), ended.append)
        assert sum(ended) == 6

    spending(story)


def test_what_waits_for_leave_hears_from_the_runs_next_host() -> None:
    """The one before ended between its record and its word; what was spent stays spent, once."""

    async def story(made: Fleet) -> None:
        let, unsaid = made.runs.pool.let, []
        made.runs.pool.let = unsaid.append  # type: ignore[method-assign]
        run_id = await made.start(SPENDING)
        async with asyncio.timeout(20):
            while not unsaid:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0)
        first = made.at(run_id)
        made.runs.pool.let = let  # type: ignore[method-assign]
        await made.die(first)
        state = await made.end(run_id)
        assert state.spent.tokens <= 100
        assert state.spent.tokens_kept == 0
        assert all(node.complete for node in state.nodes["each"].values())

    spending(story)
