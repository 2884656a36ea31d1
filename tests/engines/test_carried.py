"""Runs that real workers carry, and what happens when one of them dies, stands still or is told to end."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable

import pytest
from tests.engines.world import World
from tests.servers.postgres import Server

from gonogo import app
from gonogo.core.events import CallDone, CallFailed
from gonogo.core.scope import index_of
from gonogo.core.state import State
from gonogo.errors import UsageError

LIST = """
steps:
  list: {type: script, forEach: true, forEach_concurrency: 8, content: "return Array.from({length: 24}, (_, i) => i)"}
  each: {type: command, depends_on: [list], exec: "echo {{ item | shell_escape }} >> done; sleep 0.05", mutates: true}
  sum: {type: script, fanout: reduce, depends_on: [each], content: "return outputs.each.length"}
"""
TOGETHER = """
max_parallelism: 12
steps:
  list: {type: script, forEach: true, forEach_concurrency: 12, content: "return Array.from({length: 24}, (_, i) => i)"}
  each:
    type: command
    depends_on: [list]
    exec: "echo $PPID >> began; echo + >> at; while [ ! -e go ]; do sleep 0.05; done
      ; echo - >> at; echo {{ item | shell_escape }} >> done"
  sum: {type: script, fanout: reduce, depends_on: [each], content: "return outputs.each.length"}
"""
"""Items that wait for each other."""
SLOW = """
steps:
  slow:
    type: command
    runs_on: here
    exec: "echo $PPID >> began; while [ ! -e go ]; do sleep 0.05; done; echo x >> done"
  after: {type: log, depends_on: [slow], message: bye}
"""
LEFT = """
steps:
  slow:
    type: command
    runs_on: here
    exec: "echo $PPID >> began; while [ ! -e go-$PPID ]; do sleep 0.05; done; echo by $PPID"
  after: {type: command, depends_on: [slow], exec: "echo $PPID >> after"}
"""
"""Each try ends when the test says so, and tells who made it."""

pytestmark = pytest.mark.slow
wherever_its_run_is = pytest.mark.parametrize(
    "apart", [False, True], ids=["its run there", "its run elsewhere"]
)


def in_a_call(here: World, text: str, *, apart: bool) -> tuple[str, subprocess.Popen[str]]:
    """A run and the worker that is in its call `slow`: the one that has the run, too, or, `apart`, another."""
    host = here.worker(*([] if apart else ["--label", "here"]))
    run_id = here.submit(text)
    here.wait(lambda: here.host(run_id) == host.pid, "the run's host")
    caller = here.worker("--label", "here") if apart else host
    here.wait(lambda: here.lines("began") == [str(caller.pid)], "the call")
    assert here.host(run_id) == host.pid
    return run_id, caller


def verdict(state: State) -> str:
    """The run's verdict."""
    assert state.finished is not None
    return state.finished.verdict


def test_the_items_of_a_list_are_performed_once_each_whoever_does_it(here: World) -> None:
    """Three workers, one run: items that wait until there are more of them than a worker has places for."""
    for _ in range(2):
        here.starting("--calls", "4")
    here.worker("--calls", "4")
    run_id = here.submit(TOGETHER)
    here.wait(lambda: len(here.lines("began")) == 12, "as many items as all have places for")
    assert sorted(map(here.lines("began").count, set(here.lines("began")))) == [4, 4, 4]
    (here.folder / "go").touch()
    state = here.ended(run_id)
    assert (verdict(state), state.nodes["sum"][""].output) == ("GO", 24)
    assert sorted(map(int, here.lines("done"))) == list(range(24))


@wherever_its_run_is
def test_a_killed_workers_call_goes_to_another(here: World, apart: bool) -> None:
    """The call only reads, so it is done again; kill -9."""
    run_id, first = in_a_call(here, SLOW, apart=apart)
    second = here.worker("--label", "here")
    first.kill()
    here.wait(lambda: len(here.lines("began")) == 2, "the second try")
    (here.folder / "go").touch()
    assert verdict(here.ended(run_id)) == "GO"
    assert here.lines("began") == [str(first.pid), str(second.pid)]


@wherever_its_run_is
def test_a_frozen_workers_run_is_with_another_and_it_writes_no_more(here: World, apart: bool) -> None:
    """SIGSTOP: its connections live, and it knows nothing of what happens meanwhile. Its own try has ended when it
    wakes up, and the other's hasn't.
    """
    run_id, first = in_a_call(here, LEFT, apart=apart)
    second = here.worker("--label", "here")
    host = here.host(run_id) if apart else second.pid
    first.send_signal(signal.SIGSTOP)
    here.wait(lambda: here.lines("began") == [str(first.pid), str(second.pid)], "the second try")
    here.wait(lambda: here.host(run_id) == host, "the run's host")
    (here.folder / f"go-{first.pid}").touch()
    first.send_signal(signal.SIGCONT)
    has_noticed(here, first)
    ends = [each for each in here.runs.records(run_id) if isinstance(each.event, CallDone | CallFailed)]
    assert (ends, here.lines("after")) == ([], [])
    (here.folder / f"go-{second.pid}").touch()
    state = here.ended(run_id)
    assert (verdict(state), state.nodes["slow"][""].output) == ("GO", f"by {second.pid}")
    assert here.lines("after") == [str(host)]


def has_noticed(here: World, worker: subprocess.Popen[str]) -> None:
    """It has nothing any more of what it had: on DBOS it begins anew, on Temporal it ends when it is told to."""
    if here.carrier.name == "temporal":
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    else:
        here.wait(lambda: here.began(worker) > 1, "its new beginning")


@wherever_its_run_is
def test_a_killed_worker_in_a_mutating_call_leaves_a_doubt_and_nothing_twice(
    here: World, apart: bool
) -> None:
    """Nobody knows whether it was done; a person says so (law 3)."""
    text = SLOW.replace("runs_on: here", "runs_on: here\n    mutates: true")
    run_id, first = in_a_call(here, text, apart=apart)
    here.worker("--label", "here")
    first.kill()
    state = here.ended(run_id)
    assert verdict(state) == "HOLD"
    assert app.answer_run(run_id, "slow", "done", options=here.options) is None
    here.wait(lambda: verdict(here.ended(run_id)) == "GO", "the end")
    assert here.lines("began") == [str(first.pid)]


def test_a_worker_that_is_told_to_end_leaves_its_runs_to_others(here: World) -> None:
    """SIGTERM: what is under way ends first, and nothing is cancelled."""
    first = here.worker("--label", "here")
    run_id = here.submit(SLOW.replace("runs_on: here", "mutates: true"))
    here.wait(lambda: len(here.lines("began")) == 1, "the call")
    here.worker()
    first.send_signal(signal.SIGTERM)
    (here.folder / "go").touch()
    assert first.wait(60) == 0
    assert verdict(here.ended(run_id)) == "GO"
    assert len(here.lines("done")) == 1


@pytest.mark.long
@pytest.mark.parametrize("drain_s", [1, 60], ids=["out of patience", "killed"])
def test_a_call_that_its_run_has_left_behind_is_another_workers_when_its_own_ends(
    here: World, drain_s: int
) -> None:
    """Told to end, a worker lets its runs go at once and its calls later."""
    first = here.worker("--label", "here", "--drain", f"{drain_s}s")
    run_id = here.submit(SLOW)
    here.wait(lambda: len(here.lines("began")) == 1, "the call")
    second = here.worker("--label", "here")
    first.send_signal(signal.SIGTERM)
    here.wait(lambda: here.host(run_id) == second.pid, "the run's next host")
    if drain_s > 1:
        first.kill()
    here.wait(lambda: len(here.lines("began")) == 2, "the second try")
    (here.folder / "go").touch()
    assert verdict(here.ended(run_id)) == "GO"


def test_a_label_picks_the_worker(here: World) -> None:
    """Without one that has it the call waits, and any other step goes on."""
    here.worker()
    run_id = here.submit(SLOW)
    other = here.submit("steps:\n  one: {type: noop}\n")
    assert verdict(here.ended(other)) == "GO"
    (here.folder / "go").touch()
    assert here.lines("began") == []
    here.worker("--label", "here")
    assert verdict(here.ended(run_id)) == "GO"


def test_a_run_that_waits_for_a_person_is_woken_by_the_answer(here: World) -> None:
    """And by a timer, when nobody answers."""
    here.worker()
    asked = here.submit("steps:\n  ask: {type: human-input, prompt: ok}\n")
    timed = here.submit("steps:\n  ask: {type: human-input, prompt: ok, timeout: 300, default: no}\n")
    assert verdict(here.ended(asked)) == "HOLD"
    assert app.answer_run(asked, "ask", "yes", options=here.options) is None
    here.wait(lambda: verdict(here.ended(asked)) == "GO", "the end")
    here.wait(lambda: verdict(here.ended(timed)) == "GO", "the timer")


def test_a_cancel_ends_a_call_on_another_worker(here: World) -> None:
    """Within two seconds, on a quiet machine (law 7)."""
    run_id, caller = in_a_call(here, SLOW, apart=True)
    assert here.host(run_id) != caller.pid
    assert app.cancel_run(run_id, options=here.options) is None
    here.wait(lambda: (state := here.state(run_id)) is not None and state.finished is not None, "the end", 10)
    assert here.ended(run_id).nodes["slow"][""].outcome == "cancelled"
    (here.folder / "go").touch()
    caller.send_signal(signal.SIGTERM)
    assert caller.wait(60) == 0
    assert here.lines("done") == []


def test_a_store_that_restarts_costs_time_and_nothing_else(here: World, postgres: Server) -> None:
    """Nothing is lost, nothing done twice; the workers wait for it, and a person says what became of calls in doubt."""
    here.worker()
    here.worker()
    run_id = here.submit(LIST)
    here.wait(lambda: len(here.lines("done")) > 5, "some items")
    postgres.stop()
    postgres.start()
    here.wait(is_over_with_the_truth(here, run_id), "the end")
    state = here.ended(run_id)
    assert (verdict(state), state.nodes["sum"][""].output) == ("GO", 24)
    assert sorted(map(int, here.lines("done"))) == list(range(24))


def is_over_with_the_truth(here: World, run_id: str) -> Callable[[], bool]:
    """Answers what a run asks about its items, as somebody does who looks at what was done; whether it is over. An item
    that isn't done is looked at again while others are under way: no worker has any call in a run that waits.
    """

    def look() -> bool:
        if here.state(run_id) is None or here.runs.submitted(run_id) is not None:
            return False
        view, _ = app.view_run(run_id, here.options)
        for waiting in view.waiting if view.verdict == "HOLD" else ():
            assert waiting.in_doubt
            word = "done" if str(index_of(waiting.scope)) in here.lines("done") else "again"
            try:
                app.answer_run(run_id, waiting.step, word, scope=waiting.scope, options=here.options)
            except UsageError:
                return False  # an answer of an earlier look came through meanwhile
        return view.verdict in ("GO", "NO-GO")

    return look


def test_no_more_calls_than_are_let_in_run_at_once_over_all_workers(on_dbos: World) -> None:
    """`--calls-everywhere`, with three workers that could take more; no one of them could take as many."""
    for _ in range(2):
        on_dbos.starting("--calls-everywhere", "3", "--calls", "2")
    on_dbos.worker("--calls-everywhere", "3", "--calls", "2")
    run_id = on_dbos.submit(TOGETHER)
    on_dbos.wait(lambda: len(on_dbos.lines("began")) >= 3, "as many as are let in")
    (on_dbos.folder / "go").touch()
    assert verdict(on_dbos.ended(run_id)) == "GO"
    assert len(set(on_dbos.lines("began")[:3])) > 1
    assert most_at_once(on_dbos) == 3


def test_no_more_calls_than_a_rate_lets_in_start(on_dbos: World) -> None:
    """`--rate`: the fourth is due in an hour, on whichever worker, and all else goes on."""
    for _ in range(2):
        on_dbos.worker("--rate", "3/3600", "--label", "here")
    (on_dbos.folder / "go").touch()
    paced = on_dbos.submit(TOGETHER.replace("type: command", "type: command\n    runs_on: here"))
    on_dbos.wait(lambda: len(on_dbos.lines("done")) == 3, "as many as are let in")
    assert verdict(on_dbos.ended(on_dbos.submit("steps:\n  one: {type: noop}\n"))) == "GO"
    assert app.cancel_run(paced, options=on_dbos.options) is None
    assert on_dbos.ended(paced).stopping == "cancelled"
    assert len(on_dbos.lines("began")) == 3


def most_at_once(here: World) -> int:
    """Of the items that said when they began and ended."""
    most = now = 0
    for line in here.lines("at"):
        now += 1 if line == "+" else -1
        most = max(most, now)
    return most
