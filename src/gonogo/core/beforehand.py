"""What a step runs before itself (`on_init`, spec C.10 R8): which items belong to which of its places, and whose turn
it is.

A step that isn't a fan-out runs all of them once an execution. A fan-out runs them once for all its items, but those
with `fanout: map` once per item, within that item's scope; a failure there is that item's alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from gonogo.core.graph import Graph
from gonogo.core.parts import Site
from gonogo.core.plan import Target
from gonogo.core.state import Init, Node, State
from gonogo.core.values import output_of

ITEMS_MAX = 50
"""Items one on_init may run (spec C.10 R8)."""


def is_wanted(graph: Graph, site: Site, node: Node | None) -> bool:
    """True when something is to run before this step's next call here. A repeated call repeats nothing of it."""
    step = site.part.step
    if node is not None and (node.again or (node.init is not None and node.init.done)):
        return False
    if step.on_init_js is not None and (site.depth == 0 or site.leaf):
        return True
    return any(belongs(graph, site, target) for target in step.on_init)


def belongs(graph: Graph, site: Site, target: Target) -> bool:
    """Whether an item runs here: a step's own place, the whole of a fan-out, or each of its items."""
    if site.foreign:
        return True
    step = graph.steps.get(target.step)
    per_item = step is not None and step.fanout_explicit and step.fanout == "map"
    return site.leaf if per_item else site.depth == 0


def here(graph: Graph, site: Site, targets: Iterable[Target]) -> tuple[Target, ...]:
    """Those of the items that belong here."""
    return tuple(target for target in targets if belongs(graph, site, target))


def proceed(state: State, node: Node, *, over: bool) -> None:
    """The item that ran is done, and its output kept under its other name; then comes the next one, or the call."""
    init = node.beginning
    results = init.results
    if init.running is not None and init.running.alias is not None:
        ran = state.node(*node.waits_for[0])
        results = {**(results or {}), init.running.alias: output_of(ran, state)}
    node.init = Init(init.left[1:], None if over else init.left[0], results, done=over)
