"""What concerns several steps: cycles, loops without a budget, what is read before it can be there, fan-out surprises.

Graphs are read with `components.py`, so that ten thousand steps cost little.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import dropwhile

from gonogo.config.collect import Collector, nearest, shown
from gonogo.config.components import reached, strong_components
from gonogo.config.expressions import Use
from gonogo.core.cycles import cycle_through_lists
from gonogo.core.graph import Graph
from gonogo.core.plan import Block, Plan, Step
from gonogo.expressions.analyse import Reading

_OUTPUT_NAMES = frozenset(("outputs", "outputs_history", "outputs_raw", "outputs_wave", "outputs_meta"))
_MAX_LOOPS_DEFAULT = 10
_MAX_RUNS_DEFAULT = 50
_BLOCKS = ("on_success", "on_fail", "on_finish")


class Order:
    """Who comes before whom. Positions are those of `steps`."""

    def __init__(self, steps: dict[str, Step]) -> None:
        self.steps = steps
        self.names = list(steps)
        self.index = {name: position for position, name in enumerate(steps)}
        self.parents = [self._known(_dependencies(step)) for step in steps.values()]
        self.before = [self._known(target.step for target in step.on_init) for step in steps.values()]
        self.aliases = {target.alias for step in steps.values() for target in step.on_init}
        self.routes = [self._known(name for _, name in routes(step)) for step in steps.values()]

    def _known(self, names: Iterable[str]) -> list[int]:
        return [self.index[name] for name in dict.fromkeys(names) if name in self.index]

    @cached_property
    def leads_to(self) -> list[int]:
        """For each step the bits of all that may run because of it: dependents, what they route to, and so on."""
        following = [list(targets) for targets in self.routes]
        for position, parents in enumerate(self.awaited):
            for parent in parents:
                following[parent].append(position)
        return reached(following)

    def may_follow(self, later: int, earlier: int) -> bool:
        """True when `later` may run because `earlier` did."""
        return bool(self.leads_to[earlier] >> later & 1)

    @cached_property
    def awaited(self) -> list[list[int]]:
        """What each step waits for: its dependencies, and what runs before it."""
        return [[*parents, *before] for parents, before in zip(self.parents, self.before, strict=True)]

    @cached_property
    def rings(self) -> list[list[str]]:
        """Cycles of dependencies, each with its first step again at the end: one of each knot of steps."""
        return [
            self._ring_in(set(members))
            for members in self._components
            if len(members) > 1 or members[0] in self.awaited[members[0]]
        ]

    @cached_property
    def _components(self) -> list[list[int]]:
        return strong_components(self.awaited)

    @cached_property
    def parents_first(self) -> list[int]:
        """All positions, each after those it depends on (when there is no cycle)."""
        return [position for members in self._components for position in members]

    def _ring_in(self, members: set[int]) -> list[str]:
        here = min(members)
        path: dict[int, None] = {}
        while here not in path:
            path[here] = None
            here = next(parent for parent in self.awaited[here] if parent in members)
        ring = dropwhile(lambda position: position != here, path)
        return [self.names[position] for position in (*ring, here)]


def _dependencies(step: Step) -> Iterator[str]:
    for need in step.depends_on:
        for edge in need.any_of:
            yield edge.step


def routes(step: Step) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every step that `step` names in its blocks or for its waits, with the path (below the step) where it does."""
    if step.hold is not None and step.hold.remind is not None:
        yield ("remind", "run"), step.hold.remind.step
    if step.hold is not None and step.hold.escalate is not None and step.hold.escalate.step is not None:
        yield ("escalate", "run"), step.hold.escalate.step
    for key in _BLOCKS:
        block: Block | None = getattr(step, key)
        if block is None:
            continue
        for index, target in enumerate(block.run):
            yield (key, "run", index), target.step
        for index, rule in enumerate(block.transitions):
            if rule.to is not None:
                yield (key, "transitions", index, "to"), rule.to
        if block.goto is not None:
            yield (key, "goto"), block.goto
        if block.escalate is not None:
            yield (key, "escalate"), block.escalate
        if block.retry is not None and block.retry.exhausted_goto is not None:
            yield (key, "retry", "exhausted", "goto"), block.retry.exhausted_goto


def check_cycles(order: Order, notes: Collector) -> None:
    """Steps that wait for each other, by depends_on or on_init, are an error that names the way round."""
    for ring in order.rings:
        if notes.only_counted():
            continue
        message = f"these steps wait for each other: {' -> '.join(ring[:20])}"
        notes.add_key(
            "error", "depends_on.cycle", message, ("steps", ring[0], "depends_on"), "remove one of them"
        )


def check_lists(plan: Plan, notes: Collector) -> None:
    """Two lists with on_finish whose inner steps wait for each other would never settle."""
    if not any(step.on_finish is not None for step in plan.steps.values()):
        return
    ring = cycle_through_lists(Graph(plan))
    if ring:
        message = f"these wait for each other: {' -> '.join(ring[:20])}"
        first = next(name for name in ring if name in plan.steps)
        notes.add_key(
            "error", "on_finish.cycle", message, ("steps", first), "let one of them depend on neither list"
        )


def check_loops(order: Order, max_loops: int, notes: Collector) -> None:
    """A route that leads back to its own step needs a budget below the default (A.6)."""
    if max_loops < _MAX_LOOPS_DEFAULT:
        return
    for position, (name, step) in enumerate(order.steps.items()):
        if _bounded(step) or (step.loop_budget is not None and step.loop_budget < _MAX_LOOPS_DEFAULT):
            continue
        for path, target in routes(step):
            goal = order.index.get(target)
            told = path[1] == "escalate" or path[0] not in _BLOCKS
            if goal is None or told or _bounded(order.steps[target]):
                continue  # a failure is told of once, a wait as often as it says
            if goal == position or order.may_follow(position, goal):
                message = (
                    f"going to {shown(target)} leads back to {shown(name)}, with no budget but the default"
                )
                advice = (
                    "set loop_budget here or routing: {max_loops: …} below 10, or max_runs on one of them"
                )
                notes.care("routing.loop", message, ("steps", name, *path), advice)


def _bounded(step: Step) -> bool:
    return step.max_runs is not None and 0 < step.max_runs < _MAX_RUNS_DEFAULT


def check_reads(order: Order, uses: list[tuple[Use, Reading]], notes: Collector) -> None:
    """Outputs that are read: the step must exist and be ordered before or beneath the reader (semantics.md 10)."""
    for use, reading in uses:
        for path in reading.paths:
            if len(path) > 1 and path[0] in _OUTPUT_NAMES and isinstance(path[1], str):
                _check_read(order, use, path[1], notes)


def _check_read(order: Order, use: Use, name: str, notes: Collector) -> None:
    if name == "history" or name in order.aliases:
        return
    read = order.index.get(name, order.index.get(name.removesuffix("-raw")))
    if read is None:
        if notes.only_counted():
            return
        near = nearest(name, order.names)
        message = f"outputs of {shown(name)} are read, but there is no such step"
        notes.warn("reference.unknown_output", message, use.path, f"did you mean {near}?" if near else None)
        return
    reader = order.index.get(use.step) if use.step is not None else read
    if reader is None or reader == read or order.may_follow(reader, read) or order.may_follow(read, reader):
        return
    message = f"{shown(name)} may not have run yet: it isn't ordered before or beneath {shown(use.step)}"
    notes.warn("reference.unordered", message, use.path, f"add {name} to depends_on")


def check_fanout(order: Order, explicit: frozenset[str], notes: Collector) -> None:
    """A step that maps over the results of a step that maps already, without saying so (C.13 R11)."""
    carries: dict[int, bool] = {}
    for position in order.parents_first:
        name = order.names[position]
        step = order.steps[name]
        parents = order.parents[position]
        behind = any(carries.get(parent, False) for parent in parents)
        carries[position] = step.for_each or (step.fanout == "map" and behind)
        mapped = [at for at in parents if carries.get(at) and not order.steps[order.names[at]].for_each]
        if mapped and step.fanout == "map" and name not in explicit:
            message = f"runs once per item, as {shown(order.names[mapped[0]])} does"
            notes.note(
                "fanout.implicit", message, ("steps", name), "write fanout: map, or reduce to run once"
            )
