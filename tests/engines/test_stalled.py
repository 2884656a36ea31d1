"""A worker that stands still between what it wrote and what it does, as one thinks nobody ever would: another has the
work by the time it wakes up, a person has said that the call was never made, and it is made again (law 3).
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.engines.world import World

from gonogo import app

pytestmark = [pytest.mark.slow, pytest.mark.long]

STALLS = """
import os, signal
from gonogo.hosts.prepare import Preparation
prepare = Preparation.prepare
def stalls(self, card, step, command):
    prepared = prepare(self, card, step, command)
    if step.name == "act" and not os.path.exists("stalled"):
        open("stalled", "w").close()
        os.kill(os.getpid(), signal.SIGSTOP)
    return prepared
Preparation.prepare = stalls
"""
ACT = """
steps:
  act: {type: command, mutates: true, exec: "echo x >> acted"}
"""


def has_come_to(here: World, worker: subprocess.Popen[str]) -> None:
    """It does nothing more of what it had: on DBOS it begins anew, on Temporal it ends when it is told to."""
    if here.carrier.name == "temporal":
        worker.send_signal(signal.SIGTERM)
        worker.wait(60)
    else:
        here.wait(lambda: here.began(worker) > 1, "its new beginning")


@pytest.mark.parametrize("more", ["", ", runs_on: here"], ids=["where its run is", "elsewhere"])
def test_a_call_is_not_made_by_who_stood_still_once_it_was_made_again(
    here: World, more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right before it, after its record or its claim."""
    folder = tmp_path / "stalls"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(STALLS)
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(folder), before])))
    first = here.worker("--label", "here")
    run_id = here.submit(ACT.replace("}\n", more + "}\n"))
    here.wait((here.folder / "stalled").exists, "the moment before the call")
    monkeypatch.setenv("PYTHONPATH", before or "")
    here.worker("--label", "here")
    here.wait(lambda: (state := here.state(run_id)) is not None and state.finished is not None, "the doubt")
    app.answer_run(run_id, "act", "again", options=here.options)
    here.wait(lambda: here.lines("acted") == ["x"], "the call")
    first.send_signal(signal.SIGCONT)
    has_come_to(here, first)
    assert here.lines("acted") == ["x"]
    here.wait(lambda: app.view_run(run_id, here.options)[0].verdict == "GO", "the end of the run")
