"""Runs that real workers carry, and what happens when one of them dies, stands still or is told to end."""

from __future__ import annotations

import signal

import pytest
from tests.engines.world import World

from gonogo import app
from gonogo.core.state import State

LIST = """
steps:
  list: {type: script, forEach: true, forEach_concurrency: 8, content: "return Array.from({length: 24}, (_, i) => i)"}
  each: {type: command, depends_on: [list], exec: "echo {{ item | shell_escape }} >> done; sleep 0.05", mutates: true}
  sum: {type: script, fanout: reduce, depends_on: [each], content: "return outputs.each.length"}
"""
SLOW = """
steps:
  slow:
    type: command
    runs_on: here
    exec: "echo $PPID >> began; while [ ! -e go ]; do sleep 0.05; done; echo x >> done"
  after: {type: log, depends_on: [slow], message: bye}
"""

pytestmark = pytest.mark.slow


def verdict(state: State) -> str:
    """The run's verdict."""
    assert state.finished is not None
    return state.finished.verdict


def test_the_items_of_a_list_are_performed_once_each_whoever_does_it(here: World) -> None:
    """Three workers, one run."""
    for _ in range(3):
        here.starting()
    here.worker()
    state = here.ended(here.submit(LIST))
    assert (verdict(state), state.nodes["sum"][""].output) == ("GO", 24)
    assert sorted(map(int, here.lines("done"))) == list(range(24))


def test_a_killed_workers_call_goes_to_another(here: World) -> None:
    """The call only reads, so it is done again; kill -9."""
    first = here.worker("--label", "here")
    run_id = here.submit(SLOW)
    here.wait(lambda: len(here.lines("began")) == 1, "the call")
    here.worker("--label", "here")
    first.kill()
    here.wait(lambda: len(here.lines("began")) == 2, "the second try")
    (here.folder / "go").touch()
    assert verdict(here.ended(run_id)) == "GO"


def test_a_frozen_workers_run_is_with_another_and_it_writes_no_more(here: World) -> None:
    """SIGSTOP: its connections live, and it knows nothing of what happens meanwhile."""
    first = here.worker("--label", "here")
    run_id = here.submit(SLOW)
    here.wait(lambda: len(here.lines("began")) == 1, "the call")
    second = here.worker("--label", "here")
    first.send_signal(signal.SIGSTOP)
    here.wait(lambda: len(here.lines("began")) == 2, "the second try")
    (here.folder / "go").touch()
    state = here.ended(run_id)
    first.send_signal(signal.SIGCONT)
    first.send_signal(signal.SIGTERM)
    assert second.poll() is None
    assert verdict(state) == "GO"
    records = [record.seq for record in here.runs.records_after(run_id, -1)]
    assert records == list(range(len(records)))


def test_a_killed_worker_in_a_mutating_call_leaves_a_doubt_and_nothing_twice(here: World) -> None:
    """Nobody knows whether it was done; a person says so (law 3)."""
    first = here.worker("--label", "here")
    run_id = here.submit(SLOW.replace("runs_on: here", "runs_on: here\n    mutates: true"))
    here.wait(lambda: len(here.lines("began")) == 1, "the call")
    here.worker("--label", "here")
    first.kill()
    state = here.ended(run_id)
    assert verdict(state) == "HOLD"
    assert app.answer_run(run_id, "slow", "done", options=here.options) is None
    here.wait(lambda: verdict(here.ended(run_id)) == "GO", "the end")
    assert len(here.lines("began")) == 1


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
    here.worker("--label", "here")
    here.worker("--label", "here")
    run_id = here.submit(SLOW)
    here.wait(lambda: len(here.lines("began")) == 1, "the call")
    assert app.cancel_run(run_id, options=here.options) is None
    state = here.ended(run_id)
    assert state.nodes["slow"][""].outcome == "cancelled"
    assert here.lines("done") == []


def test_a_store_that_restarts_costs_time_and_nothing_else(here: World, postgres: object) -> None:
    """Nothing is lost, nothing done twice; the workers wait for it."""
    here.worker()
    here.worker()
    run_id = here.submit(LIST)
    here.wait(lambda: len(here.lines("done")) > 5, "some items")
    postgres.stop()  # type: ignore[attr-defined]
    postgres.start()  # type: ignore[attr-defined]
    here.starting()
    here.wait(lambda: (state := here.state(run_id)) is not None and state.finished is not None, "the end")
    assert sorted(map(int, here.lines("done"))) == sorted({int(line) for line in here.lines("done")})


def test_no_more_calls_than_are_let_in_run_at_once_over_all_workers(on_dbos: World) -> None:
    """`--calls-everywhere`, with three workers that could take more."""
    for _ in range(3):
        on_dbos.worker("--calls-everywhere", "3")
    text = LIST.replace(
        'exec: "echo {{ item | shell_escape }} >> done; sleep 0.05"',
        'exec: "echo + >> at; sleep 0.2; echo - >> at; echo {{ item | shell_escape }} >> done"',
    ).replace("mutates: true", "mutates: false")
    assert verdict(on_dbos.ended(on_dbos.submit(text))) == "GO"
    most = here = 0
    for line in on_dbos.lines("at"):
        here += 1 if line == "+" else -1
        most = max(most, here)
    assert 1 <= most <= 3
