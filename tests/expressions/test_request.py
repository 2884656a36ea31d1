"""Which values a run is given: what it names, what it turned out to need, in the end everything."""

from __future__ import annotations

import json
from typing import Any

from gonogo.expressions.compiled import Functions
from gonogo.expressions.request import FAULTS_MAX, Pending, Request, spec_of
from gonogo.expressions.slots import Slots


def pending(source: str, **names: Any) -> Pending:
    """A request as the sandbox holds it before the first try."""
    made = Pending(0, Request(source, "value", names))
    made.compiled = Functions().compiled(source)
    return made


def spec(asked: Pending) -> Any:
    """What the child would be told."""
    return json.loads(spec_of(asked, Slots()))


def test_plain_names_are_slots_and_absent_ones_null() -> None:
    """In the order of the parameters."""
    assert spec(pending("item + index + now", item=5, now=None)) == {"names": [None, 1, None]}


def test_a_view_holds_the_keys_that_are_named() -> None:
    """0 marks a key that isn't there; the list of keys comes only when it is needed."""
    made = pending("outputs.a + outputs.z", outputs={"a": 1, "b": 2})
    assert spec(made)["names"] == [["outputs", {"given": {"a": 1, "z": 0}, "keys": None}]]


def test_a_computed_read_brings_the_list_of_keys() -> None:
    """It saves a try."""
    made = pending("outputs[item]", outputs={"a": 1}, item="a")
    assert spec(made)["names"][1][1]["keys"] == ["a"]


def test_what_was_asked_for_is_sent_the_next_time() -> None:
    """A key, the list of keys, the history."""
    made = pending("outputs.a", outputs={"a": 1, "b": 2}, outputs_history={"a": [1]})
    made.want([("outputs", "b"), ("outputs", None), ("history", None)])
    found = spec(made)
    assert found["names"][0][1] == {"given": {"a": 1, "b": 2}, "keys": ["a", "b"]}
    assert found["history"] == ["outputs_history", {"given": {}, "keys": None}]


def test_after_some_surprises_everything_is_sent() -> None:
    """expressions.md: after four faults send all."""
    made = pending("outputs.a", outputs={key: key for key in "abcdefgh"})
    for _ in range(FAULTS_MAX + 1):
        made.want([("outputs", "b")])
    assert list(spec(made)["names"][0][1]["given"]) == list("abcdefgh")


def test_memory_brings_its_default_namespace() -> None:
    """Others are sent when they are read."""
    made = pending("memory.get('k')", memory={"$namespace": "d", "d": {"k": 1}, "o": {}})
    assert spec(made)["names"] == [["memory", {"given": {"d": 1}, "keys": ["d", "o"], "namespace": "d"}]]
    assert spec(pending("memory.get('k')"))["names"][0][1]["namespace"] == "default"


def test_helpers_bring_what_they_look_at() -> None:
    """Status and association, only when a helper asks for them."""
    assert spec(pending("success() && isMember()", **{"$status": {"success": True}})) == {
        "names": [],
        "status": 1,
        "association": 2,
    }
