"""Sites say what the text of a scope says (spec C.13)."""

from __future__ import annotations

import pytest
from tests.core.script import plan, step

from gonogo.core.graph import Graph
from gonogo.core.parts import site_at
from gonogo.core.scope import depth, enclosing, parents
from gonogo.core.state import Fan, State

GRAPH = Graph(
    plan(
        step("l", for_each=True),
        step("m", "l", fanout="map", for_each=True),
        step("x", "m", fanout="map"),
        step("plain"),
    )
)
SCOPES = ("", "l#1[0]", "l#2[10]", "l#1[3]/m#1[2]", "other#1[0]", "l#1[3]/other#1[2]")


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", ["l", "m", "x", "plain"])
def test_a_site_agrees_with_the_text_of_its_scope(name: str, scope: str) -> None:
    """Depth, the scope around, whether the fan-out is the step's own, and whether it runs here itself."""
    part = GRAPH.parts[name]
    site = site_at(part, scope)
    assert (site.depth, site.around) == (depth(scope), enclosing(scope))
    assert site.foreign == (parents(scope) != part.fan[: depth(scope)])
    assert site.leaf == (site.foreign or depth(scope) >= len(part.fan))


@pytest.mark.parametrize("scope", SCOPES)
def test_all_of_depends_on_is_judged_inside_items_of_another_list(scope: str) -> None:
    """A foreign item has no levels of the step's own."""
    part = GRAPH.parts["x"]
    site = site_at(part, scope)
    assert site.needs == (part.step.depends_on if site.foreign else part.needs[site.depth])


def test_items_of_a_fan_out_share_one_site() -> None:
    """A hundred thousand items cost one site, and another execution of the list has another."""
    state = State(GRAPH)
    fan = Fan(GRAPH.parts["m"], "", "l", 1, 2)
    assert [fan.item(0), fan.item(1)] == ["l#1[0]", "l#1[1]"]
    assert fan.site.items == site_at(GRAPH.parts["m"], fan.item(1)).items
    assert fan.site.items != state.site(GRAPH.parts["m"], "l#2[0]").items
