"""Answers kept by key (spec G12, semantics 17)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.script import LOGICAL, Returns, Script, block, plan, step

from gonogo.core import events as e
from gonogo.core import replays
from gonogo.core.faults import Fault
from gonogo.testing.canonical import difference


def keyed(key: str = "k", **more: Any) -> Returns:
    """A call that was made under a key."""
    return Returns({"id": 1}, key=key, **more)


def test_G_12_what_a_call_under_a_key_gave_is_part_of_the_state() -> None:
    """G12: kept for the step, and found again in the records."""
    script = Script(plan(step("a"), step("b")), calls={"a": keyed(), "b": "no key"})
    assert list(script.state.answers) == [("a", "k")]
    assert script.state.answers["a", "k"].event.output == {"id": 1}
    assert difference(script.folded(), script.state) is None


def test_G_12_a_failed_call_is_not_kept() -> None:
    """G12: a key is good for another attempt until one has succeeded."""
    failed = Fault("x", "transient", "x", "x")
    assert not Script(plan(step("a")), calls={"a": failed}).state.answers


def test_law_2_the_oldest_answers_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 2: bounded."""
    monkeypatch.setattr(replays, "KEYS_MAX", 2)
    script = Script(
        plan(step("a", on_success=block(goto="a")), max_loops=3),
        calls={"a": lambda command: keyed(f"k{command.execution}")},
    )
    assert list(script.state.answers) == [("a", "k3"), ("a", "k4")]


def test_G_12_what_was_undone_may_be_done_again_under_its_key() -> None:
    """G12, semantics 20: a step that was compensated counts as not done."""
    script = Script(
        plan(step("a", effects="mutates", compensate="undo"), step("undo"), step("b", "a")),
        calls={"a": keyed(), "b": LOGICAL},
    )
    assert "undo" in script.started
    assert not script.state.answers


def test_semantics_20_an_answer_from_the_store_is_not_undone() -> None:
    """Semantics 20: it did nothing, so there is nothing to undo; what the first call did is undone once."""
    script = Script(
        plan(
            step("a", effects="mutates", compensate="undo", on_success=block(goto="a")),
            step("undo"),
            step("b", "a"),
            max_loops=1,
        ),
        calls={
            "a": lambda command: keyed(effect="done" if command.execution == 1 else "none"),
            "b": LOGICAL,
        },
    )
    assert script.started.count("undo") == 1


def test_G_12_an_answer_again_changes_nothing_and_uses_nothing() -> None:
    """G12: no memory is written and nothing spent a second time; its meta says which key it was."""
    first = e.CallDone(
        call=1, output=1, meta={"status": 201, "usage": {"tokens": 5}}, yields_memory=True, key="digest"
    )
    again = replays.answer(first, 7, 2.5, "order-1", {"body": "x"})
    assert (again.call, again.at, again.output, again.effect) == (7, 2.5, 1, "none")
    assert again.meta == {"status": 201, "replayed": "order-1"}
    assert (again.memory, again.yields_memory, again.inputs) == ((), False, {"body": "x"})


def test_G_12_the_first_answer_under_a_key_is_the_one_that_is_kept() -> None:
    """G12, semantics 20: once what the first item did is undone its key is good again, whoever else was answered."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("a", "list", fanout="map", effects="mutates", compensate="undo"),
            step("undo"),
            step("last", "a"),
        ),
        calls={
            "list": [1, 2],
            "a": lambda command: keyed(effect="done" if command.scope == "list#1[0]" else "none"),
            "last": LOGICAL,
        },
    )
    assert script.started[-1] == "undo@list#1[0]"
    assert not script.state.answers
