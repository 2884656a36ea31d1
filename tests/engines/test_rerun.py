"""Whoever asks for it: a run that others carry, or steps of it, goes on with those, not with who asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import process
from tests.engines.world import HEAD, World

import gonogo as package
from gonogo import app
from gonogo.app import again
from gonogo.app.again import Wish, hand_over_wish
from gonogo.app.carried import carried_in
from gonogo.app.engines import CARRIED, submit_run
from gonogo.app.looking import has_ended
from gonogo.app.options import Start
from gonogo.core.events import RunStarted
from gonogo.errors import EngineError, UsageError

pytestmark = pytest.mark.slow

TALE = """
steps:
  first: {type: command, exec: "echo first-$PPID >> done"}
  second: {type: command, depends_on: [first], exec: "echo second >> done; test -e good"}
"""
ASKS = """
outputs: [{name: made, value_js: outputs.act}]
steps:
  ask: {type: human-input, prompt: ok}
  act: {type: command, depends_on: [ask], exec: "echo $PPID"}
"""
BENEATH = """
version: "1.0"
id: beneath
steps:
  ask: {type: human-input, prompt: ok}
  act: {type: command, depends_on: [ask], exec: "echo $PPID >> done"}
"""
ABOVE = """
version: "1.0"
imports: [beneath.yaml]
steps:
  below: {type: workflow, workflow: beneath}
"""


def asked(here: World, run_id: str, wish: Wish) -> None:
    """Somebody wants that of the run."""
    carried = carried_in(here.runs, run_id)
    assert carried is not None
    hand_over_wish(run_id, wish, carried, here.options)


def test_a_step_runs_again_where_the_run_is_carried(here: World) -> None:
    """By one of the workers, once, with what depends on it."""
    worker = here.worker()
    run_id = here.submit(TALE)
    assert here.ended(run_id).finished.verdict == "NO-GO"  # type: ignore[union-attr]
    (here.folder / "good").touch()
    known = len(list(here.runs.records(run_id)))
    asked(here, run_id, Wish(steps=("second",), by="ann"))
    here.wait(
        lambda: (
            (state := here.state(run_id)) is not None
            and state.finished is not None
            and state.finished.verdict == "GO"
        ),
        "the end",
    )
    assert [line.partition("-")[0] for line in here.lines("done")] == ["first", "second", "second"]
    assert len(list(here.runs.records(run_id))) > known
    assert here.runs.inbox(run_id).take() == []
    result = package.resume(run_id, runs=here.store, from_steps=["first"])
    assert (result.verdict, len(here.lines("done"))) == ("GO", 5)
    assert {line for line in here.lines("done") if line.startswith("first")} == {f"first-{worker.pid}"}


def test_what_does_not_fit_is_refused_before_anybody_is_asked(here: World) -> None:
    """As on one machine."""
    here.worker()
    run_id = here.submit(TALE)
    here.ended(run_id)
    with pytest.raises(UsageError, match="nothing"):
        asked(here, run_id, Wish(steps=("nothing",)))
    assert here.runs.inbox(run_id).take() == []


def test_a_program_that_resumes_a_carried_run_has_its_workers_go_on_and_follows(here: World) -> None:
    """It hears of each new record; what it gets is what the run came to, with the outputs that it declares."""
    worker = here.worker()
    run_id = here.submit(ASKS)
    here.ended(run_id)
    app.cancel_run(run_id, options=here.options)
    here.wait(lambda: here.ended(run_id).finished.verdict == "NO-GO", "the cancel")  # type: ignore[union-attr]
    known = len(list(here.runs.records(run_id)))
    heard: list[int] = []
    result = package.resume(run_id, runs=here.store, sinks=(lambda record: heard.append(record.seq),))
    assert (result.verdict, result.waiting) == ("HOLD", ("ask",))
    assert heard == list(range(known, known + len(heard)))
    assert package.answer(run_id, "ask", "yes", runs=here.store) is None
    here.wait(lambda: here.ended(run_id).finished.verdict == "GO", "the end")  # type: ignore[union-attr]
    known = len(list(here.runs.records(run_id)))
    result = package.resume(run_id, runs=here.store)
    assert (result.verdict, result.outputs) == ("GO", {"made": worker.pid})
    assert len(list(here.runs.records(run_id))) == known


def test_a_run_beneath_goes_on_with_the_one_around_it(here: World, tmp_path: Path) -> None:
    """Else nobody would hear what it came to."""
    worker = here.worker()
    (tmp_path / "beneath.yaml").write_text(BENEATH)
    (tmp_path / "above.yaml").write_text(ABOVE)
    run_id = submit_run(app.load(tmp_path / "above.yaml").plan, Start(), here.options, here.carrier)
    assert here.ended(run_id).finished.verdict == "HOLD"  # type: ignore[union-attr]
    (below,) = (each for each in here.runs.ids() if each != run_id)
    known = len(list(here.runs.records(run_id)))
    result = package.resume(below, runs=here.store)
    assert (result.run_id, result.verdict) == (run_id, "HOLD")
    assert len(list(here.runs.records(run_id))) > known
    assert package.answer(run_id, "below", "yes", runs=here.store) is None
    here.wait(lambda: here.ended(run_id).finished.verdict == "GO", "the end")  # type: ignore[union-attr]
    assert here.lines("done") == [str(worker.pid)]


def test_what_wouldnt_reach_the_workers_is_refused(on_dbos: World) -> None:
    """Variables and answers that are given on the command line, for one run and for all that are due."""
    worker = on_dbos.worker()
    run_id = on_dbos.submit("steps:\n  ask: {type: human-input, prompt: ok, timeout: 600, default: 'no'}\n")
    on_dbos.ended(run_id)
    worker.kill()
    worker.wait(30)
    before = [record.seq for record in on_dbos.runs.records(run_id)]

    def refused(*arguments: str) -> str:
        told = process("resume", *arguments, "--store", on_dbos.store, cwd=on_dbos.folder)
        assert told.code == 2
        return told.err

    reach = f"-e NAME doesn't reach the workers that go on with run {run_id}"
    assert reach in refused(run_id, "-e", "NAME=x")
    assert f"gonogo answer {run_id} STEP TEXT" in refused(run_id, "--message", "yes")
    on_dbos.wait(lambda: bool(app.due_runs(app.waiting_runs(on_dbos.options))), "the timer")
    assert f"{run_id} can't go on: {reach}" in refused("--due", "-e", "NAME=x")
    assert [record.seq for record in on_dbos.runs.records(run_id)] == before


def test_a_carried_run_whose_engine_is_away_stays_as_it_is(on_dbos: World) -> None:
    """Nobody goes on with it where it was asked for instead."""
    plan = app.loads(HEAD + TALE).plan
    on_dbos.runs.submit(
        RunStarted(run_id="r", plan=plan, started_at_ms=1, context={CARRIED: {"name": "dbos"}})
    )
    with pytest.raises(EngineError, match="no worker has ever been started"):
        package.resume("r", runs=on_dbos.store)
    on_dbos.runs.create("r").close()
    assert on_dbos.lines("done") == []


def test_a_wish_whose_engine_never_heard_of_it_waits_for_a_resume_or_a_later_wish(
    on_dbos: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever left it was gone before. Later it may not come true beside what is asked for then."""
    on_dbos.worker()
    (on_dbos.folder / "good").touch()
    run_id = on_dbos.submit(TALE)
    on_dbos.ended(run_id)
    hand_on = again.hand_on
    monkeypatch.setattr(again, "hand_on", lambda *_, **__: None)
    asked(on_dbos, run_id, Wish(steps=("first",)))
    asked(on_dbos, run_id, Wish(steps=("second",)))
    assert not has_ended(run_id, on_dbos.options)
    monkeypatch.setattr(again, "hand_on", hand_on)
    package.resume(run_id, runs=on_dbos.store)
    on_dbos.wait(lambda: has_ended(run_id, on_dbos.options), "the end")
    assert [line.partition("-")[0] for line in on_dbos.lines("done")] == ["first", "second", "second"]
