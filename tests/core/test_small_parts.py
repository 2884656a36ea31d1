"""Scopes, items, memory and the graph: small pure parts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.core.script import block, plan, step

from gonogo.core import scope as sc
from gonogo.core.cycles import cycle
from gonogo.core.graph import Graph, topological
from gonogo.core.memory import apply_operation, show
from gonogo.expressions.results import MemoryOp

names = st.text("abc-._ é", min_size=1, max_size=6)


@given(st.lists(st.tuples(names, st.integers(1, 50), st.integers(0, 10_000)), max_size=4))
def test_a_scope_says_where_it_is(levels: list[tuple[str, int, int]]) -> None:
    """Depth, parents, order and prefixes are read back from the text."""
    scope = sc.ROOT
    for name, execution, index in levels:
        scope = sc.child(scope, name, execution, index)
    assert sc.depth(scope) == len(levels)
    assert sc.parents(scope) == tuple(name for name, _, _ in levels)
    assert sc.order_key(scope) == tuple(index for _, _, index in levels)
    assert sc.prefix(scope, len(levels)) == scope
    assert len(sc.outward(scope)) == len(levels) + 1


def test_scopes_that_only_look_alike_are_not_within_each_other() -> None:
    """Item 1 isn't around item 10."""
    assert not sc.within("list#1[10]", "list#1[1]")
    assert sc.within("list#1[1]/x#1[0]", "list#1[1]")
    assert sc.within("list#1[1]", "")


def test_E_4_memory_operations_and_their_results() -> None:
    """set, append, increment, delete and clear."""
    memory: dict[str, dict[str, object]] = {}

    def do(op: str, key: str | None = None, value: object = None, namespace: str | None = None) -> object:
        return apply_operation(memory, MemoryOp(op, key, value, namespace))

    assert do("set", "a", 1) == 1
    assert do("append", "a", 2) == [1, 2]
    assert do("append", "new", 1) == [1]
    assert [do("increment", "n"), do("increment", "n", 2.5)] == [1, 3.5]
    assert [do("delete", "n"), do("delete", "n")] == [True, False]
    assert do("set", "a", 1, "other") == 1
    assert (do("clear", namespace="other"), memory["other"]) == (None, {})
    assert (do("clear"), memory) == (None, {})


def test_memory_values_are_replaced_never_changed() -> None:
    """A reader that holds an old list isn't surprised."""
    memory: dict[str, dict[str, object]] = {"default": {"l": [1]}}
    held = memory["default"]["l"]
    apply_operation(memory, MemoryOp("append", "l", 2))
    assert held == [1]


def test_memory_that_was_shown_is_not_sent_again_unless_it_changed() -> None:
    """The sandbox knows values by their identity: an unchanged namespace stays the same object."""
    memory: dict[str, dict[str, object]] = {}
    apply_operation(memory, MemoryOp("set", "k", 1))
    first = show(memory)["default"]
    apply_operation(memory, MemoryOp("set", "k", 1, "other"))
    assert show(memory)["default"] is first
    apply_operation(memory, MemoryOp("set", "k", 2))
    assert (first, show(memory)["default"]) == ({"k": 1}, {"k": 2})


def test_the_graph_knows_fans_levels_and_members() -> None:
    """Nested fan-outs carry over to what depends on them; a reduce collapses all."""
    graph = Graph(
        plan(
            step("l", for_each=True),
            step("m", "l", fanout="map", for_each=True),
            step("x", "m", fanout="map"),
            step("plain"),
            step("mixed", "plain", "x", fanout="map"),
            step("sum", "x"),
        )
    )
    assert graph.fans == {"l": (), "m": ("l",), "x": ("l", "m"), "plain": (), "mixed": ("l", "m"), "sum": ()}
    assert graph.levels["mixed"] == (0, 2)
    assert graph.members == {"l": ("m", "x", "mixed"), "m": ("x", "mixed")}


def test_a_run_target_that_its_runner_waits_for_is_not_held_back() -> None:
    """Else neither could ever start."""
    graph = Graph(
        plan(step("prepare"), step("tests", "prepare", on_fail=block(run=["prepare", "logs"])), step("logs"))
    )
    assert graph.held_back == {"logs"}


def test_cycles_are_found_and_long_chains_are_not_deep() -> None:
    """No recursion anywhere."""
    chain = plan(*[step(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(5_000)])
    assert cycle(chain) == ()
    assert len(topological(chain)) == 5_000
    assert cycle(plan(step("a", "b"), step("b", "c"), step("c", "b"))) == ("b", "c", "b")
