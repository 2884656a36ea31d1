"""State is the fold of decisions (semantics 12, law 1)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Parks, Script, block, plan, step

from gonogo.core import lifecycle as life
from gonogo.core import machine
from gonogo.core.apply import fold
from gonogo.core.changes import move
from gonogo.core.plan import Retry
from gonogo.core.state import Node, State
from gonogo.errors import Bug


def visible(state: State) -> dict[str, Any]:
    """What of a state must be the same however it came about."""
    nodes = {
        f"{node.step}@{node.scope}": (
            node.status,
            node.outcome,
            node.execution,
            node.attempt,
            node.output,
            node.settled,
        )
        for node in state.all_nodes()
    }
    return {
        "nodes": nodes,
        "memory": state.memory,
        "loops": state.loops,
        "timers": sorted(state.timers),
        "slots": state.slots,
    }


def busy_script() -> Script:
    """A run with a bit of everything."""
    steps = [
        step("list", for_each=True, on_finish=block(run=["tidy"])),
        step("each", "list", fanout="map", on_fail=block(retry=Retry(1, delay_s=5)), concurrency=2),
        step("sum", "each", guarantee=["fine"]),
        step("ask", "sum"),
        step("tidy", start="routed"),
        step("back", "sum", on_fail=block(goto="sum")),
    ]
    calls = {
        "list": [1, 2, 3],
        "each": lambda c: TRANSIENT if c.attempt == 1 else c.scope,
        "ask": Parks(),
        "back": LOGICAL,
    }
    return Script(plan(*steps, max_loops=2), calls=calls)


def test_law_1_the_fold_of_the_records_is_the_state() -> None:
    """Nothing is known that isn't in a record."""
    script = busy_script()
    assert visible(script.folded()) == visible(script.state)


def test_law_1_deciding_again_from_the_events_gives_the_same_decisions() -> None:
    """Replay matches, record by record."""
    script = busy_script()
    state = machine.begin(script.records[0][0])  # type: ignore[arg-type]
    for event, decisions in script.records:
        assert machine.advance(state, event).decisions == decisions


def test_a_fold_needs_a_first_record() -> None:
    """An empty journal has no state."""
    with pytest.raises(Bug, match="without records"):
        fold([])


def test_an_impossible_move_names_the_step_and_both_ends() -> None:
    """The table of moves is held at run time."""
    state = Script(plan(step("a"))).state
    node = Node(state.graph.parts["a"].root, "")
    with pytest.raises(Bug, match="step a .* can't go from pending to backing_off"):
        move(state, node, life.BACKING_OFF)


def test_every_status_has_moves_to_known_statuses_only() -> None:
    """The table is closed."""
    assert all(moves <= life.MOVES.keys() for moves in life.MOVES.values())
