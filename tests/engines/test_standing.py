"""What a run says of itself while workers carry it: whom a step waits for, and who had a call that was lost."""

from __future__ import annotations

import signal

import pytest
from tests.engines.world import World

from gonogo import app
from gonogo.report.formats import render
from gonogo.report.layout import Style
from gonogo.report.report import report_of

pytestmark = pytest.mark.slow

STEPS = """
steps:
  near: {type: command, runs_on: near, mutates: true, exec: "echo x >> began; sleep 60"}
  gone: {type: command, runs_on: nosuch, exec: "true"}
"""


def shown(here: World, run_id: str) -> str:
    """As `gonogo show` shows it."""
    view, notes = app.view_run(run_id, here.options)
    return render(report_of(view, notes=notes), "table", Style())


def test_a_step_says_which_workers_it_waits_for_and_a_doubt_which_worker_had_it(on_dbos: World) -> None:
    """Two workers; the one that performs the call is killed, then the other; then there is none."""
    near = on_dbos.worker("--label", "near")
    run_id = on_dbos.submit(STEPS)
    on_dbos.wait(lambda: bool(on_dbos.lines("began")), "the call")
    assert "RUNNING no verdict yet" in shown(on_dbos, run_id)
    assert "waits for a worker with --label nosuch" in shown(on_dbos, run_id)
    assert shown(on_dbos, run_id).count("waits for a worker") == 1
    said = next(line for line in on_dbos.said if line.startswith(f"[{near.pid}]") and " takes work" in line)
    name = said.partition(" takes work")[0].split()[-1]
    near.send_signal(signal.SIGKILL)
    near.wait(30)
    on_dbos.wait(lambda: "INTERRUPTED nobody has it now" in shown(on_dbos, run_id), "that nobody has it")
    assert "the next worker of dbos that is free goes on with it" in shown(on_dbos, run_id)
    assert "was under way when the run was cut off" in shown(on_dbos, run_id)
    on_dbos.worker("--label", "near")
    on_dbos.wait(lambda: "in doubt" in shown(on_dbos, run_id), "the doubt")
    assert f"was with {name}" in shown(on_dbos, run_id)
