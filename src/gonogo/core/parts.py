"""A step with all that follows about it from the plan, and the sites it runs at. Made by `graph.py`, then only read.

A `Part` is made once a plan. A `Site` is what all scopes have in common that differ in their last index only: the run
itself, or the items of one fan-out. Nodes link their site, so nothing parses a scope or looks up the plan per event.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gonogo.core.plan import FailureCondition, Need, Step
from gonogo.core.scope import ROOT, depth, enclosing, parents


@dataclass(slots=True, eq=False)
class Part:
    """One step of a plan.

    `order`: its number in configuration order. `fan`: the forEach steps whose items it runs in, outermost first.
    `levels`: for each entry of depends_on the fan-out depth at which it can be judged; `needs` the entries by depth,
    the source of the next items among them; `first_needs` what is judged before it fans out. `groups`: the forEach
    steps around it whose on_finish waits for it; `owns_group`: it is such a forEach step itself. `checks`: what is
    judged after each call; `conditions`: the failure conditions among that. `routes`: an outcome may send the run on.
    `guards`: while it has failed, steps behind it that act are suppressed; `acts`: it is such a step (suppression.py).
    `inits`: it runs something before itself. `one_shot`: no route runs it a second time. `is_kept_in_mind`: its outcome
    matters later.
    """

    step: Step
    name: str
    order: int
    fan: tuple[str, ...]
    levels: tuple[int, ...]
    needs: tuple[tuple[Need, ...], ...]
    first_needs: tuple[Need, ...]
    groups: tuple[str, ...]
    owns_group: bool
    checks: tuple[tuple[str, int], ...]
    conditions: tuple[FailureCondition, ...]
    routes: bool
    inits: bool
    guards: bool
    acts: bool
    one_shot: bool
    is_kept_in_mind: bool
    waiting: tuple[Waiting, ...] = ()
    root: Site = field(init=False)

    def __post_init__(self) -> None:
        self.root = Site(self, ROOT, "", 0, False, not self.fan, self.first_needs)


@dataclass(slots=True, eq=False)
class Waiting:
    """A part that waits for another: how many fan-out levels both share, the deepest level at which it judges any."""

    part: Part
    common: int
    deepest: int


class Site:
    """Where a part runs: in the scopes that begin with `items` and differ in the index that follows it.

    `around`: the scope around them. `foreign`: a route runs the part inside an item of a fan-out that isn't its own.
    `leaf`: the part itself runs here, it doesn't fan out further. `needs`: what is to be judged here. `group`: the
    forEach step whose on_finish decides whether an outcome here is settled; `owns_group`: the part's own does.
    """

    __slots__ = ("around", "depth", "foreign", "group", "items", "leaf", "needs", "owns_group", "part")

    def __init__(
        self,
        part: Part,
        around: str,
        items: str,
        level: int,
        foreign: bool,
        leaf: bool,
        needs: tuple[Need, ...],
    ) -> None:
        self.part = part
        self.around = around
        self.items = items
        self.depth = level
        self.foreign = foreign
        self.leaf = leaf
        self.needs = needs
        self.owns_group = part.owns_group and leaf
        inner = part.fan[level] if level < len(part.fan) else None
        self.group = inner if inner in part.groups else None


def site_of_items(part: Part, around: str, items: str) -> Site:
    """The site of a part in the scopes that begin with `items`, inside `around`."""
    level = depth(items)
    foreign = parents(items) != part.fan[:level]
    needs = part.step.depends_on if foreign else part.needs[level]
    return Site(part, around, items, level, foreign, foreign or level >= len(part.fan), needs)


def site_at(part: Part, scope: str) -> Site:
    """The site of a part in a scope, from the scope's text."""
    return site_of_items(part, enclosing(scope), scope[: scope.rindex("[") + 1]) if scope else part.root
