"""`gonogo show RUN --explain FAULT`: the story of one fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Gonogo, write

STEPS = """
list: { type: script, content: "return ['a', 'b']", forEach: true }
each:
  type: script
  depends_on: list
  fanout: map
  content: if (outputs.list === 'b') throw new Error('no answer')
  on_fail: { retry: { max: 1 } }
check: { type: script, content: return 4, guarantee: output >= 10 }
"""


@pytest.fixture
def ran(gonogo: Gonogo, tmp_path: Path) -> Gonogo:
    """A run with two faults."""
    write(tmp_path, STEPS)
    assert gonogo("run", "-q", "-j", "1").code == 1
    return gonogo


@pytest.mark.parametrize("name", ["1", "each", "each@list#1[1]"])
def test_a_fault_is_told_from_its_detection_to_its_end(ran: Gonogo, name: str) -> None:
    """By its number, its step or its place; in the order things happened."""
    told = ran("show", "last", "--explain", name)
    assert told.code == 0
    words = [
        "fault 1: script.error (transient)",
        "no answer",
        "detected",
        "retry 1",
        "started attempt 2",
        "recovery.failed",
    ]
    places = [told.out.index(word) for word in words]
    assert places == sorted(places)
    assert "guarantee" not in told.out


def test_the_values_a_contract_read_are_in_its_story(ran: Gonogo) -> None:
    """What answers most questions."""
    assert "output = 4" in ran("show", "last", "--explain", "check").out


def test_all_faults_can_be_told_as_data(ran: Gonogo) -> None:
    """One object a fault, with its lines."""
    told = ran("show", "last", "--explain", "all", "--format", "json").json
    assert [(fault["fault"], fault["step"], fault["end"]) for fault in told] == [
        (1, "each", "recovery.failed"),
        (2, "check", "recovery.failed"),
    ]
    assert all(fault["lines"] for fault in told)


def test_a_fault_that_is_not_there_is_refused_with_those_that_are(ran: Gonogo) -> None:
    """Exit code 2; the advice names them."""
    refused = ran("show", "last", "--explain", "7")
    assert (refused.code, refused.out) == (2, "")
    assert "1 (each@list#1[1])" in refused.err


def test_a_run_without_faults_says_so_when_asked_for_all(gonogo: Gonogo, tmp_path: Path) -> None:
    """No fault is no mistake of who asks."""
    write(tmp_path, "a: {type: noop}")
    gonogo("run", "-q")
    told = gonogo("show", "last", "--explain", "all")
    assert (told.code, told.out) == (0, "nothing failed in this run\n")
    assert gonogo("show", "last", "--explain", "all", "--format", "json").json == []
    assert gonogo("show", "last", "--explain", "a").code == 2


def test_one_way_to_show_a_run_at_a_time(ran: Gonogo) -> None:
    """Records, a fault, or metrics."""
    assert ran("show", "last", "--explain", "1", "--records").code == 2


def test_what_was_undone_because_of_a_fault_ends_its_story(gonogo: Gonogo, tmp_path: Path) -> None:
    """Though it is another step's doing."""
    write(
        tmp_path,
        """
done: { type: command, exec: "true", mutates: true, compensate: undo }
check: { type: script, depends_on: done, content: return 4, guarantee: output >= 10 }
undo: { type: noop, start: routed }
""",
    )
    assert gonogo("run", "-q").code == 1
    last = gonogo("show", "last", "--explain", "check").out.splitlines()[-1]
    assert "done" in last
    assert last.endswith("fault 1 compensated, by: undo, execution: 1")
