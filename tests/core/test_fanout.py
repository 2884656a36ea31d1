"""Fan-outs (spec C.13, C.14; semantics 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Never, Script, block, plan, step

from gonogo.core.plan import Retry
from gonogo.core.values import names_for


def mapped(*more: Any, result: Any = None, items: Any = (1, 2, 3), **keys: Any) -> Script:
    """A list and a step over its items."""
    calls = {"list": list(items) if isinstance(items, tuple) else items, "each": result}
    return Script(
        plan(
            step("list", for_each=True), step("each", "list", fanout="map", **keys), *more, max_parallelism=8
        ),
        calls=calls,
    )


def bad(index: int, fault: Any = LOGICAL) -> Callable[[Any], Any]:
    """A call that fails for one item."""
    return lambda call: fault if call.scope.endswith(f"[{index}]") else call.scope


@pytest.mark.parametrize(
    ("output", "count"),
    [([1, 2], 2), ([], 0), (None, 0), ({"a": 1}, 1), ("text", 1), (5, 1), ("[1,2,3]", 3), ("[broken", 1)],
)  # fmt: skip
def test_C_13_what_gives_items(output: Any, count: int) -> None:
    """A list gives its items, null none, a list as JSON text its items, anything else one."""
    assert len([name for name in mapped(items=output).started if name.startswith("each@")]) == count


def test_FAN_1_an_empty_list_is_a_reason_of_its_own_and_a_reduce_runs_once() -> None:
    """each and deep are skipped as forEach_empty; total runs over []."""
    steps = [step("deep", "each", fanout="map"), step("total", "deep")]
    script = mapped(*steps, items=[])
    assert [script.node(name).reason for name in ("each", "deep")] == ["forEach_empty"] * 2
    assert (script.started, script.verdict) == (["list", "total"], "GO")


def test_C_13_a_failed_parent_without_items_blocks_instead() -> None:
    """forEach_empty becomes dependency_failed."""
    assert mapped(items=LOGICAL).node("each").reason == "dependency_failed"


def test_C_13_R2_inside_an_item_the_parents_output_is_the_item() -> None:
    """outputs[parent], item and index; outputs_raw has the list."""
    script = mapped(items=("a", "b"))
    names = names_for(script.state, "each", "list#1[1]")
    assert (names["outputs"]["list"], names["item"], names["index"], names["outputs_raw"]["list"]) == (
        "b",
        "b",
        1,
        ["a", "b"],
    )


def test_C_13_R3_if_is_judged_once_before_the_fan_out() -> None:
    """It sees the whole list."""
    seen = []

    def ok(names: Any) -> bool:
        seen.append(names["outputs"]["list"])
        return True

    steps = [step("list", for_each=True), step("each", "list", fanout="map", if_="ok")]
    Script(plan(*steps), calls={"list": [1, 2]}, answers={"ok": ok})
    assert seen == [[1, 2]]


def test_C_13_R3_contracts_are_judged_per_item() -> None:
    """assume, guarantee and fail_if once for each."""
    counts: dict[str, int] = {}

    def count(name: str, value: bool) -> Callable[[Any], bool]:
        def answer(names: Any) -> bool:
            counts[name] = counts.get(name, 0) + 1
            return value

        return answer

    steps = [
        step("list", for_each=True),
        step("each", "list", fanout="map", assume=["p"], guarantee=["g"], fail_if="f"),
    ]
    Script(
        plan(*steps),
        calls={"list": [1, 2]},
        answers={"p": count("p", True), "g": count("g", True), "f": count("f", False)},
    )
    assert counts == {"p": 2, "g": 2, "f": 2}


def test_FAN_2_one_bad_item_stops_no_other() -> None:
    """C.13 R5, R8: all run; what maps on it runs for the good ones; a reduce sees three places; the run is NO-GO."""
    steps = [step("after", "each", fanout="map"), step("sum", "each")]
    script = mapped(*steps, items=("a", "boom", "c"), result=bad(1))
    assert [script.outcome("each", f"list#1[{i}]") for i in range(3)] == ["passed", "failed", "passed"]
    assert [script.outcome("after", f"list#1[{i}]") for i in range(3)] == ["passed", "skipped", "passed"]
    names = names_for(script.state, "sum", "")
    assert names["outputs"]["each"] == ["list#1[0]", None, "list#1[2]"]
    assert names["outputs_meta"]["each"]["item_status"] == ["passed", "failed", "passed"]
    assert (script.outcome("sum"), script.verdict) == ("passed", "NO-GO")


def test_C_13_R5_when_all_items_fail_what_follows_is_blocked() -> None:
    """A fan-out that failed as a whole gates like a failed step."""
    assert mapped(step("sum", "each"), result=LOGICAL).outcome("sum") == "skipped"


def test_tolerated_item_failures_leave_the_run_go() -> None:
    """continue_on_failure is honoured for items (C.13 R4)."""
    script = mapped(step("after", "each", fanout="map"), result=bad(1), continue_on_failure=True)
    assert (script.outcome("after", "list#1[1]"), script.verdict) == ("passed", "GO")


def test_C_13_R8_items_run_one_at_a_time_by_default_in_order() -> None:
    """forEach_concurrency is 1 unless the step says more."""
    script = mapped(result=Never())
    assert script.started == ["list", "each@list#1[0]"]
    assert mapped(result=Never(), concurrency=2).started == ["list", "each@list#1[0]", "each@list#1[1]"]


def test_FAN_3_outputs_stay_in_item_order_whoever_ends_first() -> None:
    """The aggregate is ordered by index."""
    from gonogo.core.events import CallDone

    script = mapped(result=Never(), concurrency=3)
    for call, value in ((4, "c"), (2, "a"), (3, "b")):
        script.tell(CallDone(call=call, output=value))
    assert names_for(script.state, "each", "")["output"] == ["a", "b", "c"]


def test_C_9_R9_only_the_failed_item_is_tried_again() -> None:
    """I.1 row 4; per-item retries are independent."""
    script = mapped(
        on_fail=block(retry=Retry(1, delay_s=1)),
        result=lambda c: TRANSIENT if c.scope.endswith("[1]") and c.attempt == 1 else 1,
    )
    assert [script.started.count(f"each@list#1[{i}]") for i in range(3)] == [1, 2, 1]


def test_a_waiting_item_leaves_room_for_the_next() -> None:
    """A wait holds no slot and no place in the window."""
    script = mapped(
        on_fail=block(retry=Retry(1, delay_s=60)),
        result=lambda c: TRANSIENT if c.scope.endswith("[0]") and c.attempt == 1 else 1,
    )
    assert script.started == ["list", "each@list#1[0]", "each@list#1[1]", "each@list#1[2]", "each@list#1[0]"]


def test_C_13_R9_nested_fan_outs_have_real_scopes() -> None:
    """A map child that is a forEach itself opens a second dimension; data comes from the exact item (I.1 row 20)."""
    steps = [step("inner", "each", fanout="map", concurrency=2)]
    script = mapped(
        *steps, items=("a", "b"), result=lambda c: [f"{c.scope}-x", f"{c.scope}-y"], for_each=True
    )
    names = names_for(script.state, "inner", "list#1[1]/each#1[0]")
    assert (names["item"], names["outputs"]["list"], names["outputs"]["each"]) == (
        "list#1[1]-x",
        "b",
        "list#1[1]-x",
    )
    assert len([name for name in script.started if name.startswith("inner@")]) == 4


def test_C_13_R10_a_producers_history_is_its_list_only() -> None:
    """Not the list and then its items."""
    assert [output for _, output in mapped().state.history["list"]] == [[1, 2, 3]]


def test_C_13_R11_a_reduce_runs_once_at_the_root_and_sees_the_whole_list() -> None:
    """Whatever is before it."""
    assert mapped(step("sum", "each")).started.count("sum") == 1


def test_on_success_of_a_mapped_step_comes_once_on_fail_per_item() -> None:
    """semantics 8."""
    steps = [step("ok", start="routed"), step("fix", start="routed")]
    good = mapped(*steps, on_success=block(run=["ok"]))
    mixed = mapped(*steps, on_success=block(run=["ok"]), on_fail=block(run=["fix"]), result=bad(1))
    assert good.started.count("ok") == 1
    assert [name for name in mixed.started if name.startswith(("ok", "fix"))] == ["fix@list#1[1]"]


def finishing(items: Any = (1, 2), result: Any = None, **keys: Any) -> Script:
    """A list with an on_finish and two steps over its items."""
    steps = [
        step("list", for_each=True, on_finish=block(run=["done"])),
        step("one", "list", fanout="map", **keys),
        step("two", "one", fanout="map"),
        step("done", start="routed"),
    ]
    return Script(
        plan(*steps), calls={"list": list(items) if isinstance(items, tuple) else items, "one": result}
    )


def test_C_14_R1_on_finish_comes_once_after_every_map_descendant() -> None:
    """I.1 row 14."""
    script = finishing()
    assert script.started.count("done") == 1
    assert script.started[-1] == "done"


@pytest.mark.parametrize("items", [[], LOGICAL])
def test_C_14_R1_on_finish_comes_for_an_empty_and_for_a_failed_parent(items: Any) -> None:
    """With forEach.last_wave_size 0."""
    script = finishing(items=items)
    assert script.started == ["list", "done"]
    assert names_for(script.state, "list", "")["forEach"]["last_wave_size"] == 0


def test_on_finish_waits_for_failed_and_skipped_items_too() -> None:
    """It comes when all are finished or skipped."""
    assert finishing(result=LOGICAL).started == ["list", "one@list#1[0]", "one@list#1[1]", "done"]


def test_what_reduces_a_fan_out_waits_for_its_on_finish() -> None:
    """semantics 6: dependents look only at what is settled, and on_finish may still send it round again."""
    steps = [
        step("list", for_each=True, on_finish=block(when=[("again", "list")])),
        step("each", "list", fanout="map"),
        step("sum", "each"),
    ]
    script = Script(
        plan(*steps),
        calls={"list": [1]},
        answers={"again": lambda names: len(names["outputs_history"]["list"]) < 2},
    )
    assert script.started == ["list", "each@list#1[0]", "list", "each@list#2[0]", "sum"]


def test_outputs_wave_forgets_earlier_rounds() -> None:
    """H42: the cumulative history keeps a bad item for ever, the wave doesn't."""
    steps = [
        step("list", for_each=True, on_finish=block(when=[("again", "list")])),
        step("each", "list", fanout="map"),
    ]
    rounds = {"list": [1], "each": lambda call: call.scope}
    script = Script(
        plan(*steps), calls=rounds, answers={"again": lambda names: len(names["outputs_history"]["list"]) < 2}
    )
    names = names_for(script.state, "list", "")
    assert (names["outputs_history"]["each"], names["outputs_wave"]["each"]) == (
        ["list#1[0]", "list#2[0]"],
        ["list#2[0]"],
    )


def test_BIG_a_wide_fan_out_opens_items_as_room_appears() -> None:
    """No node exists for an item that hasn't been looked at."""
    script = mapped(items=tuple(range(1_000)), result=Never(), concurrency=4)
    assert len(script.state.nodes["each"]) == 5


def test_law_2_a_list_longer_than_the_limit_fails_its_step() -> None:
    """limits.max_items; nothing of it is run."""
    steps = [step("list", for_each=True), step("each", "list", fanout="map")]
    script = Script(plan(*steps, max_items=2), calls={"list": [1, 2, 3]})
    assert (script.rules("list"), script.started) == (["forEach/too_many_items"], ["list"])
