"""Which of a step's on_init belongs to which of its places, and whether it is still to come (C.10 R8)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.script import plan, step

from gonogo.core.beforehand import belongs, here, is_wanted
from gonogo.core.graph import Graph
from gonogo.core.parts import Site, site_at
from gonogo.core.plan import Target
from gonogo.core.state import Init, Node

PLACES = {"whole": "", "item": "l#1[0]", "inner": "l#1[0]/m#1[2]", "foreign": "other#1[0]"}


def graph_of(**keys: Any) -> Graph:
    """`a` fans out over the lists l and m; `x` is set up once, `y` once per item; `one` fans out over nothing."""
    return Graph(
        plan(
            step("l", for_each=True),
            step("m", "l", fanout="map", for_each=True),
            step("a", "m", fanout="map", **keys),
            step("one", **keys),
            step("x", start="routed"),
            step("y", start="routed", fanout="map", fanout_explicit=True),
            step("by_default", start="routed", fanout="map"),
            step("reduced", start="routed", fanout="reduce", fanout_explicit=True),
        )
    )


def site_of(graph: Graph, name: str, place: str = "whole") -> Site:
    """Where a step runs."""
    return site_at(graph.parts[name], PLACES[place])


def wanted(graph: Graph, name: str = "one", place: str = "whole", **about: Any) -> bool:
    """Whether something is to run before a step's next call; `about` is what is known of its node, if there is one."""
    site = site_of(graph, name, place)
    node = Node(site, PLACES[place]) if about else None
    for key, value in about.items():
        setattr(node, key, value)
    return is_wanted(graph, site, node)


# --- where


@pytest.mark.parametrize("target", ["x", "by_default", "reduced", "unknown"])
@pytest.mark.parametrize(
    ("place", "runs"), [("whole", True), ("item", False), ("inner", False), ("foreign", True)]
)
def test_a_fan_out_runs_an_item_once_for_all(target: str, place: str, runs: bool) -> None:
    """C.10 R8: but where the step says `fanout: map` itself; inside of another list it is a step like any other."""
    graph = graph_of()
    assert belongs(graph, site_of(graph, "a", place), Target(target)) is runs


@pytest.mark.parametrize(
    ("place", "runs"), [("whole", False), ("item", False), ("inner", True), ("foreign", True)]
)
def test_a_mapped_item_runs_where_the_step_itself_does(place: str, runs: bool) -> None:
    """C.10 R8: not for a list of lists, nor for the lists within it."""
    graph = graph_of()
    assert belongs(graph, site_of(graph, "a", place), Target("y")) is runs


@pytest.mark.parametrize("target", ["x", "y", "unknown"])
@pytest.mark.parametrize("place", ["whole", "foreign"])
def test_a_step_that_is_no_fan_out_runs_all_of_them(target: str, place: str) -> None:
    """C.10 R8: where it runs, which is one place."""
    graph = graph_of()
    assert belongs(graph, site_of(graph, "one", place), Target(target))


def test_those_that_belong_to_a_place_keep_their_order() -> None:
    """And are all there is of them."""
    graph = graph_of()
    targets = [Target(name) for name in ("y", "x", "y", "by_default")]
    assert [target.step for target in here(graph, site_of(graph, "a"), targets)] == ["x", "by_default"]
    assert [target.step for target in here(graph, site_of(graph, "a", "inner"), targets)] == ["y", "y"]


# --- when


def test_a_step_that_has_not_begun_wants_its_on_init() -> None:
    """There is nothing of it yet."""
    assert wanted(graph_of(on_init=["x"]))


def test_a_step_without_on_init_wants_nothing() -> None:
    """Wherever it runs."""
    assert not wanted(graph_of())
    assert not wanted(graph_of(), "a")
    assert not wanted(graph_of(), "a", "inner")


def test_on_init_that_was_broken_off_is_wanted_again() -> None:
    """It holds for the execution only when all of it is done."""
    assert wanted(graph_of(on_init=["x"]), init=Init(left=(Target("x"),)))


def test_on_init_that_is_done_is_not_wanted_in_the_same_execution() -> None:
    """C.10 R8: once an execution."""
    assert not wanted(graph_of(on_init=["x"]), init=Init(done=True))


def test_a_call_that_is_made_again_has_had_its_on_init() -> None:
    """Also where a workflow that was changed meanwhile has given the step one."""
    assert not wanted(graph_of(on_init=["x"]), again=True)


@pytest.mark.parametrize(
    ("items", "place", "expected"),
    [(["x"], "whole", True), (["x"], "item", False), (["x"], "inner", False),
     (["y"], "whole", False), (["y"], "item", False), (["y"], "inner", True), (["y", "x"], "whole", True)],
)  # fmt: skip
def test_a_fan_out_wants_what_belongs_to_the_place(items: list[str], place: str, expected: bool) -> None:
    """One item that belongs there is enough."""
    assert wanted(graph_of(on_init=items), "a", place) is expected


@pytest.mark.parametrize(("place", "expected"), [("whole", True), ("item", False), ("inner", True)])
def test_a_script_is_asked_where_any_of_its_items_could_belong(place: str, expected: bool) -> None:
    """Not for a list within a list, to which none of them does."""
    assert wanted(graph_of(on_init_js="items"), "a", place) is expected
