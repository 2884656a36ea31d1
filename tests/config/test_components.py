"""config/components.py: strong components and what each node reaches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gonogo.config.components import reached, strong_components

graphs = st.integers(1, 9).flatmap(
    lambda size: st.lists(st.lists(st.integers(0, size - 1), max_size=4), min_size=size, max_size=size)
)


def walked(following: list[list[int]], start: int) -> set[int]:
    """Every node that one or more steps lead to, the plain way."""
    seen: set[int] = set()
    waiting = list(following[start])
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting.extend(following[node])
    return seen


@given(graphs)
def test_each_node_reaches_what_a_walk_finds(following: list[list[int]]) -> None:
    """Against the plain search."""
    bits = reached(following)
    for start in range(len(following)):
        assert {node for node in range(len(following)) if bits[start] >> node & 1} == walked(following, start)


@given(graphs)
def test_components_are_those_that_reach_each_other_in_order(following: list[list[int]]) -> None:
    """Each comes after what it leads to."""
    components = strong_components(following)
    assert sorted(node for members in components for node in members) == list(range(len(following)))
    place = {node: at for at, members in enumerate(components) for node in members}
    for node in range(len(following)):
        for other in walked(following, node):
            assert place[other] <= place[node]
            assert (place[other] == place[node]) == (other == node or node in walked(following, other))


def test_a_long_chain_needs_no_recursion() -> None:
    """Ten thousand steps, the last first."""
    following = [[node + 1] for node in range(9_999)] + [[]]
    assert reached(following)[0].bit_count() == 9_999
