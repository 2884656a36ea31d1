"""Which item of a fan-out is opened next, and when none is any more (spec C.13 R8, semantics 4 to 6)."""

from __future__ import annotations

from typing import Any

from tests.core.script import TRANSIENT, Never, Script, Unclear, block, plan, step

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import fanout
from gonogo.core.plan import Retry
from gonogo.core.turn import Turn


def mapped(calls: Any = None, items: int = 3, slots: int = 3, **keys: Any) -> Script:
    """A list, and a step over its items."""
    return Script(
        plan(
            step("list", for_each=True),
            step("work", "list", fanout="map", **keys),
            max_parallelism=slots,
        ),
        calls={"list": list(range(items)), "work": calls},
    )


def item(index: int) -> str:
    """The scope of an item."""
    return f"list#1[{index}]"


def test_an_item_that_something_has_changed_for_has_its_fan_out_looked_at() -> None:
    """C.13 R8: there may be room for it."""
    state = mapped(Never()).state
    turn = Turn(state)
    fanout.item_may_open(turn, state.graph.parts["work"], item(1))
    assert list(turn.refills) == [state.node("work", "")]


def test_an_item_of_an_older_list_has_nothing_looked_at() -> None:
    """C.13: the fan-out that is under way is over other items."""
    state = mapped(Never()).state
    turn = Turn(state)
    fanout.item_may_open(turn, state.graph.parts["work"], "list#2[1]")
    fanout.item_may_open(turn, state.graph.parts["list"], item(1))
    fanout.item_may_open(turn, state.graph.parts["work"], f"{item(0)}/other#1[0]")
    assert list(turn.refills) == []


def test_only_an_item_that_was_passed_over_is_queued() -> None:
    """C.13 R8: those still ahead are looked at in their turn."""
    script = mapped(Never())
    node = script.node("work")
    for index in (0, 1, 2):
        fanout.may_open(Turn(script.state), node, item(index))
    assert (node.fan_out.cursor, node.fan_out.queue) == (1, [0])


def test_an_item_that_is_queued_and_still_ahead_overtakes_none() -> None:
    """C.13 R8: in the order of the list."""
    script = mapped(lambda command: Never() if command.scope == item(0) else "fine")
    script.node("work").fan_out.queue = [2]
    script.tell(e.CallDone(call=script.state.last_call))
    assert script.started == ["list", *(f"work@{item(index)}" for index in (0, 1, 2))]


def test_semantics_19_a_retry_of_an_item_does_not_ask_again_whether_it_may_act() -> None:
    """Semantics 19: what has begun is brought to its end."""
    script = Script(
        plan(
            step("check", criticality="internal"),
            step("list", for_each=True),
            step(
                "work", "list", "check?", fanout="map", effects="mutates",
                on_fail=block(retry=Retry(1, delay_s=5.0)),
            ),
        ),
        calls={"list": [1], "work": lambda command: Never() if command.attempt == 1 else "fine"},
    )  # fmt: skip
    script.state.critical_failures["check", ""] = None
    script.tell(e.CallFailed(call=script.state.last_call, fault=TRANSIENT))
    assert script.outcome("work", item(0)) == "passed"


def test_semantics_6_an_item_that_a_resume_reopens_asks_again_whether_it_may_act() -> None:
    """Semantics 6: a check that has failed since keeps it back, too."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("check", "list", fanout="map", criticality="internal"),
            step("work", "check?", fanout="map", effects="mutates", concurrency=2),
        ),
        calls={"list": [1, 2], "work": Never()},
    )
    script.tell(e.CancelAsked(by="me"))
    assert script.outcome("work", item(0)) == "cancelled"
    script.state.critical_failures["check", item(0)] = None
    script.tell(e.Resumed(by="me"))
    assert script.node("work", item(0)).reason == "suppressed"
    assert script.started[-1] == f"work@{item(1)}"


def test_semantics_5_a_fan_out_with_an_item_in_doubt_is_not_over() -> None:
    """Semantics 5 and 16: though the run stops, and its other items have come to their end."""
    script = mapped(
        lambda command: Unclear() if command.scope == item(1) else "fine", items=2, effects="mutates"
    )
    script.tell(e.CancelAsked(by="me"))
    assert (script.verdict, script.outcome("work")) == ("HOLD", None)


def test_semantics_8_a_fan_out_whose_block_is_still_to_speak_is_open() -> None:
    """Semantics 8: on_success of the whole comes after its end."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("work", "list", fanout="map", on_success=block(run=["tell"])),
            step("tell", start="routed"),
        ),
        calls={"list": [1]},
    )
    assert [one.rest for one in script.decided(d.Ended, "work") if not one.scope] == ["open"]


def fails_first(command: Any) -> Any:
    """The first item fails once; no other one comes back."""
    if command.scope != item(0):
        return Never()
    return TRANSIENT if command.attempt == 1 else "fine"


def test_an_item_whose_wait_is_over_needs_room_in_the_window_again() -> None:
    """C.13 R8: another one has taken its place; it is the first to have the next."""
    script = mapped(fails_first, on_fail=block(retry=Retry(1)))
    assert script.started == ["list", f"work@{item(0)}", f"work@{item(1)}"]
    assert script.node("work").fan_out.queue == [0]
    script.tell(e.CallDone(call=script.state.last_call))
    assert script.started[3:] == [f"work@{item(0)}", f"work@{item(2)}"]


def test_an_item_that_waits_for_a_slot_has_its_place_in_the_window() -> None:
    """C.13 R8: one whose wait is over can't have it, too."""
    script = mapped(fails_first, slots=1, concurrency=2, on_fail=block(retry=Retry(1)))
    assert script.started == ["list", f"work@{item(0)}", f"work@{item(1)}"]
    assert script.node("work").fan_out.queue == [0]


def test_an_item_whose_wait_is_over_goes_on_where_there_is_room() -> None:
    """C.13 R8: beside those that are under way."""
    script = mapped(fails_first, items=2, concurrency=2, on_fail=block(retry=Retry(1)))
    assert script.started == ["list", f"work@{item(0)}", f"work@{item(1)}", f"work@{item(0)}"]
    assert script.node("work").fan_out.queue == []
