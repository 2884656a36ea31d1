"""Which workers there are, and that somebody who waits for one hears that there is none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from tests.engines.world import HEAD, World

QUICK = "steps:\n  a: {type: noop}\n"
FAR = "steps:\n  far: {type: command, runs_on: far, exec: 'echo x >> began; while [ ! -e go ]; do sleep 0.05; done'}\n"

pytestmark = pytest.mark.slow


def run(here: World, text: str) -> subprocess.Popen[str]:
    """`gonogo run` in a process of its own, which is listened to."""
    (here.folder / "gonogo.yaml").write_text(HEAD + text)
    where = ["--url", here.carrier.address, "--queue", here.carrier.queue] if here.carrier.address else []
    process = subprocess.Popen(
        [sys.executable, "-m", "gonogo", "run", "--engine", here.carrier.name, *where],
        cwd=here.folder,
        env={**os.environ, "GONOGO_STORE": here.store},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    here.listen(process)
    return process


def workers(here: World) -> dict[str, Any]:
    """What `gonogo workers` says."""
    told = subprocess.run(
        [sys.executable, "-m", "gonogo", "workers", "--format", "json"],
        env={**os.environ, "GONOGO_STORE": here.store},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def says(here: World, process: subprocess.Popen[str], text: str) -> None:
    """That process does, sooner or later."""
    mark = f"[{process.pid}]"
    here.wait(lambda: any(line.startswith(mark) and text in line for line in here.said), text)


def test_a_run_that_no_worker_takes_says_so_and_that_one_came(here: World) -> None:
    """All workers ended; the advice is what to type."""
    here.worker().kill()
    here.wait(lambda: not workers(here)["workers"], "its end")
    process = run(here, QUICK)
    says(here, process, f"no worker takes work of {here.carrier.name}")
    says(here, process, f"start one: gonogo worker --engine {here.carrier.name}")
    here.worker()
    assert process.wait(60) == 0


def test_a_call_that_no_worker_has_the_label_for_says_so(here: World) -> None:
    """Though there are workers; `gonogo workers` tells of it, too."""
    here.worker("--label", "near", "--calls", "3")
    process = run(here, FAR)
    says(here, process, "no worker takes calls for the label far; start one: gonogo worker")
    told = workers(here)
    assert told["waiting"] == {"runs": 0, "calls": [{"label": "far", "calls": 1, "served": False}]}
    [near] = told["workers"]
    assert (near["engine"], near["labels"], near["runs"]) == (
        here.carrier.name,
        ["near"],
        {"now": 1, "most": 100},
    )
    far = here.worker("--label", "far")
    says(here, process, "a worker takes it now")
    here.wait(lambda: bool(here.lines("began")), "the call")
    [_, other] = workers(here)["workers"]
    assert (other["labels"], other["calls"], other["pid"]) == (["far"], {"now": 1, "most": 16}, far.pid)
    (here.folder / "go").touch()
    assert process.wait(60) == 0
    far.send_signal(signal.SIGTERM)
    far.wait(60)
    assert [one["labels"] for one in workers(here)["workers"]] == [["near"]]


def test_a_call_whose_worker_is_gone_says_that_no_other_has_its_label(here: World) -> None:
    """Whoever has another label can't even say that it is in doubt."""
    here.worker()
    far = here.worker("--label", "far")
    process = run(here, FAR)
    here.wait(lambda: bool(here.lines("began")), "the call")
    far.kill()
    says(here, process, "no worker takes calls for the label far; start one: gonogo worker")
    assert workers(here)["waiting"]["calls"] == [{"label": "far", "calls": 1, "served": False}]
    (here.folder / "go").touch()
    here.worker("--label", "far")
    assert process.wait(60) == 0


def test_a_call_that_mutates_is_in_doubt_though_the_last_worker_with_its_label_is_gone(here: World) -> None:
    """Nobody may perform it again, and to say so takes no label."""
    here.worker()
    far = here.worker("--label", "far")
    process = run(here, FAR.replace("command,", "command, mutates: true,"))
    here.wait(lambda: bool(here.lines("began")), "the call")
    far.kill()
    assert process.wait(60) == 3
    assert any("is in doubt: the worker that performed it is gone" in line for line in here.said)
    assert len(here.lines("began")) == 1
