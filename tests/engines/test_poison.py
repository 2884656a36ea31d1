"""Work that ends every worker that takes it up, and whatever comes with it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.engines.world import World

from gonogo.engines.base import TAKEOVERS_MAX

pytestmark = [pytest.mark.slow, pytest.mark.long]

LIST = """
steps:
  list: {type: script, forEach: true, content: "return ['bad', 'good', 'fine']"}
  each:
    type: command
    depends_on: [list]
    criticality: info
    exec: "echo {{ item | shell_escape }} >> began; [ {{ item | shell_escape }} != bad ] || kill -9 $PPID; sleep 0.1"
"""
STEP = """
steps:
  bad: {type: command, exec: "echo bad >> began; kill -9 $PPID; sleep 9"}
"""


@pytest.fixture
def replaced(here: World) -> Iterator[World]:
    """Two workers; whoever dies is replaced, as a supervisor does."""
    here.worker()
    here.starting()
    closed = threading.Event()

    def supervise() -> None:
        while not closed.wait(0.2):
            if sum(worker.poll() is None for worker in here.workers) < 2:
                here.starting()

    thread = threading.Thread(target=supervise, daemon=True)
    thread.start()
    yield here
    closed.set()
    thread.join(10)


def test_a_call_that_ends_its_workers_is_given_up_and_what_came_with_it_is_performed(replaced: World) -> None:
    """It is made five times; the run goes on without it."""
    state = replaced.ended(replaced.submit(LIST))
    assert state.finished is not None
    faults = [state.nodes["each"][scope].fault for scope in sorted(state.nodes["each"]) if scope]
    assert [fault.kind if fault is not None else None for fault in faults] == ["call.poison", None, None]
    assert Counter(replaced.lines("began"))["bad"] == TAKEOVERS_MAX


def test_a_run_that_ends_its_workers_is_set_aside(replaced: World) -> None:
    """Its own step does, where it is performed; nobody goes on with it until somebody asks."""
    run_id = replaced.submit(STEP)
    replaced.wait(lambda: replaced.runs.summaries([run_id])[0].aside is not None, "the end of patience")
    assert len(replaced.lines("began")) == TAKEOVERS_MAX + 1
