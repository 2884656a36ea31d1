"""Runs over several workers: what is performed where, and what happens when one of them is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec
import pytest
from tests.hosts.fleet import HEAD, Fleet, fleet

from gonogo import app
from gonogo.app import keeping, worker
from gonogo.app.again import Wish, _fitted
from gonogo.app.engines import start_of
from gonogo.core.commands import StartCall
from gonogo.core.events import CallDone, CallFailed, CancelAsked
from gonogo.core.state import State
from gonogo.engines.base import Errand
from gonogo.errors import EngineError, JournalError
from gonogo.hosts import away, errands
from gonogo.hosts.loop import RunLoop
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.pool import Ticket
from gonogo.journal.records import Record
from gonogo.provider import Call, Context, Done, Outcome, Provider

MAP = """
steps:
  list: {type: script, forEach: true, forEach_concurrency: 4, content: "return [1, 2, 3, 4, 5, 6]"}
  each: {type: touch, what: "{{ item }}", depends_on: [list]}
  sum: {type: script, fanout: reduce, depends_on: [each], content: "return outputs.each.length"}
"""


class What(msgspec.Struct, frozen=True):
    what: str = ""
    waits: bool = False


class Touch:
    """A step type that says what it does, and does it when told to."""

    def __init__(self) -> None:
        self.touched: list[str] = []
        self.begun = asyncio.Event()
        self.go = asyncio.Event()

    def type(self, effects: str = "reads", name: str = "touch") -> Provider:
        return Provider(name, What, self._run, effects=effects, templates=frozenset({"what"}))  # type: ignore[arg-type]

    async def _run(self, call: Call, context: Context) -> Outcome:
        self.touched.append(call.config.what)
        self.begun.set()
        if call.config.waits:
            await self.go.wait()
        return Done(f"did {call.config.what}")


def with_fleet(
    story: Callable[[Fleet, Touch], Coroutine[Any, Any, None]],
    *names: str,
    effects: str = "reads",
    labels: dict[str, tuple[str, ...]] | None = None,
) -> None:
    """Let a story happen to these workers."""

    async def main() -> None:
        touch = Touch()
        async with fleet(*names, labels=labels, step_types=[touch.type(effects)]) as made:
            await story(made, touch)

    asyncio.run(main())


def outcome(state: State, step: str, scope: str = "") -> str | None:
    """What became of a step."""
    return state.nodes[step][scope].outcome


def test_items_of_a_list_are_performed_by_other_workers() -> None:
    """Each once, and the run comes to what it comes to on one machine."""

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start(MAP)
        state = await made.end(run_id)
        assert state.finished is not None
        assert state.finished.verdict == "GO"
        assert sorted(touch.touched) == ["1", "2", "3", "4", "5", "6"]
        assert {name for _, _, name in made.calls} == {"a", "b"}
        assert state.nodes["sum"][""].output == 6

    with_fleet(story, "a", "b")


def test_a_step_of_its_own_stays_where_the_run_is() -> None:
    """Only what may be slow, many or elsewhere is worth a queue."""

    async def story(made: Fleet, touch: Touch) -> None:
        state = await made.end(await made.start("steps:\n  one: {type: touch, what: x}\n"))
        assert outcome(state, "one") == "passed"
        assert made.calls == []

    with_fleet(story, "a", "b")


def test_a_label_picks_the_workers() -> None:
    """`runs_on` of the step, `--label` of the worker."""

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start("steps:\n  one: {type: touch, what: x, runs_on: gpu}\n")
        state = await made.end(run_id)
        assert outcome(state, "one") == "passed"
        assert [name for _, _, name in made.calls] == ["b"]

    with_fleet(story, "a", "b", "c", labels={"b": ("gpu",)})


def test_a_label_that_nobody_has_is_a_failure_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a wait for ever (law 2)."""
    monkeypatch.setattr(away, "UNCLAIMED_S", 0.0)

    async def story(made: Fleet, touch: Touch) -> None:
        state = await made.end(await made.start("steps:\n  one: {type: touch, what: x, runs_on: gpu}\n"))
        fault = state.nodes["one"][""].fault
        assert fault is not None
        assert (fault.kind, touch.touched) == ("call.unclaimed", [])
        assert "no worker with the label 'gpu'" in fault.message

    with_fleet(story, "a")


def test_a_reading_call_of_a_dead_worker_is_repeated_by_another() -> None:
    """Nothing can have been changed by it."""

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start("steps:\n  one: {type: touch, what: x, waits: true, runs_on: l}\n")
        await touch.begun.wait()
        await made.die(made.calls[0][2])
        touch.go.set()
        state = await made.end(run_id)
        assert outcome(state, "one") == "passed"
        assert touch.touched == ["x", "x"]

    with_fleet(story, "a", "c", "b", labels={"b": ("l",), "c": ("l",)})


def test_a_mutating_call_of_a_dead_worker_is_in_doubt() -> None:
    """Whoever claims it next doesn't perform it again: nobody knows what the first one did (law 3)."""

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start("steps:\n  one: {type: touch, what: x, waits: true, runs_on: l}\n")
        await touch.begun.wait()
        await made.die(made.calls[0][2])
        state = await made.end(run_id)
        assert state.finished is not None
        assert (state.finished.verdict, touch.touched) == ("HOLD", ["x"])

    with_fleet(story, "a", "c", "b", effects="mutates", labels={"b": ("l",), "c": ("l",)})


def test_what_others_perform_goes_on_when_the_run_changes_its_worker() -> None:
    """The new one takes up the call that is under way, and nothing is done twice."""

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start("steps:\n  one: {type: touch, what: x, waits: true, runs_on: l}\n")
        await touch.begun.wait()
        assert made.at(run_id) == "a"
        await made.die("a")
        touch.go.set()
        state = await made.end(run_id)
        assert outcome(state, "one") == "passed"
        assert (touch.touched, made.segments) == (["x"], ["a", "b"])

    with_fleet(story, "a", "b", effects="mutates", labels={"b": ("l",)})


def test_a_call_that_is_carried_twice_is_performed_once() -> None:
    """While it is under way, and after it has ended."""

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start("steps:\n  one: {type: touch, what: x, waits: true, runs_on: l}\n")
        await touch.begun.wait()
        _, call, name = made.calls[0]
        await made.workers[name].call(run_id, call, takes_over=False)
        touch.go.set()
        await made.end(run_id)
        await made.workers[name].call(run_id, call, takes_over=True)
        assert touch.touched == ["x"]

    with_fleet(story, "a", "b", effects="mutates", labels={"b": ("l",)})


def test_a_cancel_reaches_a_call_on_another_worker() -> None:
    """Its worker is rung for."""

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start("steps:\n  one: {type: touch, what: x, waits: true, runs_on: l}\n")
        await touch.begun.wait()
        made.runs.inbox(run_id).put(CancelAsked(by="somebody"))
        state = await made.end(run_id)
        assert outcome(state, "one") == "cancelled"

    with_fleet(story, "a", "b", labels={"b": ("l",)})


def test_a_worker_prepares_itself_anew_for_a_run_that_goes_on_under_another_plan() -> None:
    """What is hidden, and what calls are let in by, may be another by then."""
    text = "steps:\n  one: {type: touch, what: WHAT, runs_on: l}\n"

    async def story(made: Fleet, touch: Touch) -> None:
        errands, plans = made.workers["b"]._errands, []
        around_of = errands._around_of
        errands._around_of = lambda first, plan: (plans.append(plan), around_of(first, plan))[1]
        run_id = await made.start(text.replace("WHAT", "a"))
        await made.end(run_id)
        changed = app.loads(HEAD + text.replace("WHAT", "b"), table=made.options.table).plan
        known = len(list(made.runs.records(run_id))) - 1
        journal = made.runs.reopen(run_id)
        wish = Wish(steps=("one",), workflow=changed, by="ann")
        journal.inbox.put(_fitted(wish, journal, made.runs, made.options)[0])
        journal.close()
        made.submit(run_id, reopens=True)
        await made.end(run_id, known)
        assert touch.touched == ["a", "b"]
        assert [plan.steps["one"].config["what"] for plan in plans] == ["a", "b"]

    with_fleet(story, "a", "b", labels={"b": ("l",)})


def test_a_worker_that_ends_leaves_its_run_to_another() -> None:
    """What is under way here ends first; the run isn't cancelled."""

    async def story(made: Fleet, touch: Touch) -> None:
        text = "steps:\n  one: {type: touch, what: x, waits: true}\n  two: {type: touch, what: y, depends_on: [one]}\n"
        run_id = await made.start(text)
        await touch.begun.wait()
        stopping = asyncio.Event()
        leaving = made.workers.pop("a")
        stopping.set()
        await leaving.leave_when(stopping)
        touch.go.set()
        state = await made.end(run_id)
        assert (outcome(state, "two"), touch.touched) == ("passed", ["x", "y"])
        assert made.calls[-1][2] == "b"

    with_fleet(story, "a", "b", effects="mutates")


def test_a_run_that_cannot_leave_its_worker_keeps_no_other_from_leaving() -> None:
    """Nor the worker from ending: where it can't hand on what waits, the run stops as it is."""

    async def story(made: Fleet, touch: Touch) -> None:
        def broken() -> None:
            raise JournalError("the disk is full")

        leaving = made.workers["a"]._spread.leaving
        heard: list[str] = []
        text = "steps:\n  one: {type: touch, what: x, waits: true}\n"
        await made.start(text)
        await touch.begun.wait()
        leaving.listen(lambda: heard.append("other"))
        loops = [ear.__self__ for ear in leaving._ears if isinstance(getattr(ear, "__self__", None), RunLoop)]
        loops[0]._leave_if_idle = broken  # type: ignore[method-assign,assignment]
        leaving.ask()
        assert heard == ["other"]
        with pytest.raises(JournalError, match="the disk is full"):
            await loops[0]._done

    with_fleet(story, "a", "b", effects="mutates")


def test_a_worker_that_is_given_a_run_that_is_over_keeps_nothing_of_it() -> None:
    """Its outputs are computed once more, and nobody listens for it after that."""

    async def story(made: Fleet, touch: Touch) -> None:
        text = "steps:\n  one: {type: touch, what: x}\noutputs:\n  - {name: all, value_js: outputs.one}\n"
        run_id = await made.start(text)
        await made.end(run_id)
        own = made.workers["a"]
        await made.workers["a"].segment(run_id)
        assert run_id not in own._bells._ears
        assert not own._spread.leaving._ears

    with_fleet(story, "a")


def test_a_run_that_cannot_be_taken_over_leaves_nobody_who_listens_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is tried again, and each time another would."""

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start("steps:\n  one: {type: touch, what: x, waits: true, runs_on: l}\n")
        await touch.begun.wait()
        known, ears = made.runs.pool.open, made.workers["b"]._bells._ears
        tries: list[int] = []

        def seldom(run_id: str) -> set[int]:
            tries.append(len(ears.get(run_id, ())))
            if len(tries) < 3:
                raise JournalError("not now")
            touch.go.set()
            return known(run_id)

        monkeypatch.setattr(made.runs.pool, "open", seldom)
        monkeypatch.setattr(keeping, "AGAIN_S", (0.0, 0.0))
        await made.die("a")
        await made.end(run_id)
        assert tries == [1, 1, 1]

    with_fleet(story, "a", "b", labels={"b": ("l",)})


def test_a_large_output_comes_back_whole() -> None:
    """It is too large for a record, and goes apart."""

    async def story(made: Fleet, touch: Touch) -> None:
        text = f"steps:\n  one: {{type: touch, what: {'x' * 600_000}, runs_on: l}}\n"
        state = await made.end(await made.start(text))
        assert state.nodes["one"][""].output == "did " + "x" * 600_000

    with_fleet(story, "a", "b", labels={"b": ("l",)})


def test_an_answer_wakes_a_run_that_waits() -> None:
    """A run that waits holds no worker."""

    async def story(made: Fleet, touch: Touch) -> None:
        from gonogo.core.events import AnswerGiven

        run_id = await made.start("steps:\n  ask: {type: human-input, prompt: ok}\n")
        state = await made.end(run_id)
        assert state.finished is not None
        assert state.finished.parked
        known = len(made.runs.read(run_id).records) - 1
        made.runs.inbox(run_id).put(AnswerGiven(step="ask", text="yes"))
        made.submit(run_id)
        state = await made.end(run_id, known)
        assert state.nodes["ask"][""].output == {"text": "yes", "by": ""}

    with_fleet(story, "a")


def test_who_lost_a_run_without_a_word_leaves_the_answers_to_who_has_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Only another host can have started a call of that number; without its answer the run would wait for ever."""
    monkeypatch.setattr(keeping, "AGAIN_S", ())

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start("steps:\n  one: {type: touch, what: x, waits: true, runs_on: l}\n")
        await touch.begun.wait()
        (call,) = made.runs.pool.open(run_id)
        pool = made.runs.pool
        pool.offer([Ticket(run_id, StartCall(call + 1, "one", "", 1, 1, "other", "reads"), 0)])
        pool.leave(run_id, call + 1, CallDone(call=call + 1))
        async with asyncio.timeout(20):
            while True:
                if f"run {run_id} was taken over by another process" in caplog.text:
                    break
                await asyncio.sleep(0.01)
        assert [event.call for _, event in pool.take(run_id)] == [call + 1]
        touch.go.set()

    with_fleet(story, "a", "b", labels={"b": ("l",)})


@pytest.mark.parametrize("knows", [True, False])
def test_who_has_lost_a_run_forgets_no_answer_that_its_next_host_waits_for(
    monkeypatch: pytest.MonkeyPatch, knows: bool
) -> None:
    """Though it has a call of that number behind it; whether it has heard that it lost the run or not."""
    monkeypatch.setattr(keeping, "AGAIN_S", ())
    loops: list[RunLoop] = []
    run = RunLoop.run

    def noted(self: RunLoop) -> Coroutine[Any, Any, None]:
        loops.append(self)
        return run(self)

    monkeypatch.setattr(RunLoop, "run", noted)

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start(
            "steps:\n  one: {type: touch, what: x}\n"
            "  two: {type: touch, what: y, waits: true, runs_on: l, depends_on: [one]}\n"
        )
        async with asyncio.timeout(20):
            while "y" not in touch.touched:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0)
        pool, (call,), [host] = made.runs.pool, made.runs.pool.open(run_id), loops
        assert host._away is not None
        if knows:
            host.fail(JournalError("it is another's"))
        else:
            made.runs.cut_off(run_id)
        pool.offer([Ticket(run_id, StartCall(call - 1, "one", "", 1, 1, "other", "reads"), 0)])
        pool.leave(run_id, call - 1, CallDone(call=call - 1))
        host._away.look()
        assert [event.call for _, event in pool.take(run_id)] == [call - 1]
        with pytest.raises(JournalError):
            host._done.result()
        touch.go.set()

    with_fleet(story, "a", "b", labels={"b": ("l",)})


def test_a_call_that_ended_many_workers_is_a_failure_of_its_own() -> None:
    """It is set aside, and the run goes on."""

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start("steps:\n  one: {type: touch, what: x, waits: true, runs_on: l}\n")
        await touch.begun.wait()
        await made.workers["a"].aside(run_id, made.calls[0][1], 6)
        state = await made.end(run_id)
        fault = state.nodes["one"][""].fault
        assert fault is not None
        assert (fault.kind, fault.fault_class) == ("call.poison", "bug")
        touch.go.set()

    with_fleet(story, "a", "b", labels={"b": ("l",)})


def broken(*_: Any, **__: Any) -> Any:
    """What a store says that can't be used."""
    raise JournalError("the store is gone")


def test_a_call_of_a_run_without_a_journal_fails_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its journal was removed, or restored from before the run; an engine would offer it for ever."""
    monkeypatch.setattr(errands, "AGAIN_S", (0.0, 0.0))

    async def story(made: Fleet, touch: Touch) -> None:
        made.runs.pool.offer([Ticket("gone", StartCall(1, "one", "", 1, 1, "i", "reads"), 3)])
        monkeypatch.setattr(made.runs, "records_after", lambda run_id, seq: [])
        assert await made.workers["a"].call("gone", 1, takes_over=False)
        [(_, event)] = made.runs.pool.take("gone")
        assert isinstance(event, CallFailed)
        assert event.fault.kind == "call.unperformed"
        assert "gone doesn't begin with its start" in event.fault.message

    with_fleet(story, "a")


def test_a_run_that_cannot_say_that_nobody_came_is_set_aside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else its call would wait for ever (law 2). It was tried again, and what takes it up is told."""
    monkeypatch.setattr(away, "UNCLAIMED_S", 0.0)
    monkeypatch.setattr(keeping, "AGAIN_S", (0.0, 0.0))

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = made.submitted("steps:\n  one: {type: touch, what: x, runs_on: gpu}\n")
        monkeypatch.setattr(made.runs.pool, "leave", broken)
        assert await made.workers["a"].segment(run_id) is None
        assert caplog.text.count("can't go on: the store is gone; it is tried again in 0 s") == 2
        assert f"is set aside: the store is gone; 'gonogo resume {run_id}' tries again" in caplog.text

    with_fleet(story, "a")


def test_a_run_that_can_neither_go_on_nor_be_set_aside_goes_on_when_it_can(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a full disk. The worker keeps it: an engine takes a failure for its end, and nobody would know of it."""
    monkeypatch.setattr(keeping, "AGAIN_S", ())
    monkeypatch.setattr(worker, "ASIDE_AGAIN_S", 0.0)

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = made.submitted("steps:\n  one: {type: touch, what: x}\n")
        create, full = made.runs.create, [True] * 3
        monkeypatch.setattr(
            made.runs, "create", lambda *given: broken() if full and full.pop() else create(*given)
        )
        monkeypatch.setattr(made.runs, "set_aside", broken)
        assert await made.workers["a"].segment(run_id) is None
        assert outcome(await made.end(run_id), "one") == "passed"
        assert caplog.text.count("nor can it be set aside: the store is gone; it is tried again in 0 s") == 3

    with_fleet(story, "a")


def test_a_run_is_woken_though_its_engine_is_away_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """No queue has it, and nobody else looks at its timers."""
    monkeypatch.setattr(worker, "DISPATCH_AGAIN_S", (0.0,))

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = made.submitted("steps:\n  one: {type: touch, what: x}\n")
        submit, away = made.submit, [True] * 3

        def seldom(*given: Any, **more: Any) -> None:
            if away:
                away.pop()
                raise EngineError("the queues can't be asked")
            submit(*given, **more)

        monkeypatch.setattr(made, "submit", seldom)
        await made.workers["a"].wake(run_id, 0.0)
        assert outcome(await made.end(run_id), "one") == "passed"

    with_fleet(story, "a")


def test_a_run_that_fails_once_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that restarts is no reason to leave a run lying."""
    monkeypatch.setattr(keeping, "AGAIN_S", (0.0,))

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = made.submitted("steps:\n  one: {type: touch, what: x, runs_on: l}\n")
        take, broke = made.runs.pool.take, iter([True])
        monkeypatch.setattr(
            made.runs.pool, "take", lambda *given: broken() if next(broke, False) else take(*given)
        )
        assert await made.workers["a"].segment(run_id) is None
        assert outcome(await made.end(run_id), "one") == "passed"

    with_fleet(story, "a", labels={"a": ("l",)})


@pytest.mark.parametrize("effects", ["reads", "mutates"])
def test_a_worker_that_is_given_its_own_run_and_call_again_goes_on_with_them(effects: str) -> None:
    """An engine lost sight of it for a moment: nothing is cut off, in doubt or begun again."""

    async def story(made: Fleet, touch: Touch) -> None:
        text = "steps:\n  one: {type: touch, what: x, waits: true, runs_on: l}\n"
        run_id = made.submitted(text)
        here = made.workers["a"]
        run = asyncio.ensure_future(here.segment(run_id))
        await touch.begun.wait()
        again = asyncio.ensure_future(here.segment(run_id, takes_over=True))
        call = asyncio.ensure_future(here.call(run_id, made.calls[0][1], takes_over=True))
        await asyncio.sleep(0)
        touch.go.set()
        assert await asyncio.gather(run, again, call) == [None, None, None]
        state = await made.end(run_id)
        assert (outcome(state, "one"), touch.touched) == ("passed", ["x"])

    with_fleet(story, "a", effects=effects, labels={"a": ("l",)})


def test_calls_are_handed_over_again_after_an_engine_broke(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever it raises: calls that were never handed over would wait for nobody."""
    monkeypatch.setattr(worker, "DISPATCH_AGAIN_S", (0.0,))

    async def story(made: Fleet, touch: Touch) -> None:
        perform, tries = made.perform, iter([ValueError("odd")])

        def once_broken(errands: Sequence[Errand]) -> None:
            for problem in tries:
                raise problem
            perform(errands)

        monkeypatch.setattr(made, "perform", once_broken)
        state = await made.end(await made.start("steps:\n  one: {type: touch, what: x, runs_on: l}\n"))
        assert outcome(state, "one") == "passed"
        assert "1 calls wait: the engine broke" in caplog.text

    with_fleet(story, "a", labels={"a": ("l",)})


def test_a_run_without_its_start_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks what carries it, say to cancel it, learns that its journal is damaged."""
    runs = MemoryRuns()
    monkeypatch.setattr(runs, "records", lambda run_id: [Record(0, 0.0, CancelAsked())])
    with pytest.raises(JournalError, match="r holds no record of its start") as caught:
        start_of(runs, "r")
    assert caught.value.advice == "restore its journal from a backup"
