"""What concerns several steps: cycles, loops without a budget, what is read before it can be there, fan-out
surprises.

Sets of steps are bits of an integer, so that a thousand steps cost little. Positions are those of
`plan.steps`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gonogo.config.collect import Collector, nearest, shown
from gonogo.config.expressions import Use
from gonogo.core.plan import Block, Step
from gonogo.expressions.analyse import Reading

_OUTPUT_NAMES = frozenset(("outputs", "outputs_history", "outputs_raw", "outputs_wave", "outputs_meta"))
_MAX_LOOPS_DEFAULT = 10
_BLOCKS = ("on_success", "on_fail", "on_finish")


class Order:
    """Who comes before whom. `below[i]`: all steps that depend on step i, through any number of others."""

    def __init__(self, steps: dict[str, Step]) -> None:
        self.steps = steps
        self.index = {name: position for position, name in enumerate(steps)}
        self.names = list(steps)
        self._parents = [self._parents_of(step) for step in steps.values()]
        self._routes = [self._routes_of(step) for step in steps.values()]
        self.above = self._closure_of_parents()

    def _parents_of(self, step: Step) -> list[int]:
        edges = [edge.step for need in step.depends_on for edge in need.any_of]
        return [self.index[name] for name in dict.fromkeys(edges) if name in self.index]

    def _routes_of(self, step: Step) -> list[int]:
        names = [name for _, name in routes(step)]
        return [self.index[name] for name in dict.fromkeys(names) if name in self.index]

    def cycle(self) -> list[str] | None:
        """One cycle of dependencies, its first step again at the end; None when there is none."""
        state = [0] * len(self.names)  # 0 unseen, 1 on the path, 2 done
        for start in range(len(self.names)):
            path: list[int] = []
            stack = [(start, iter(self._parents[start]))] if state[start] == 0 else []
            while stack:
                here, rest = stack[-1]
                if state[here] == 0:
                    state[here] = 1
                    path.append(here)
                following = next(rest, None)
                if following is None:
                    state[here] = 2
                    path.pop()
                    stack.pop()
                elif state[following] == 1:
                    ring = [*path[path.index(following) :], following]
                    return [self.names[position] for position in ring]
                elif state[following] == 0:
                    stack.append((following, iter(self._parents[following])))
        return None

    def _closure_of_parents(self) -> list[int]:
        """For each step the bits of all it depends on. Settles after few rounds in configuration order."""
        above = [0] * len(self.names)
        changed = True
        while changed:
            changed = False
            for position, parents in enumerate(self._parents):
                bits = above[position]
                for parent in parents:
                    bits |= above[parent] | (1 << parent)
                if bits != above[position]:
                    above[position], changed = bits, True
        return above

    def depends(self, later: int, earlier: int) -> bool:
        """True when `later` depends on `earlier`, directly or not."""
        return bool(self.above[later] >> earlier & 1)

    def reaches(self, start: int) -> int:
        """The bits of all steps that may run because of step `start`: dependents and what they route to."""
        seen, waiting = 0, [start]
        while waiting:
            here = waiting.pop()
            for following in (*self._children()[here], *self._routes[here]):
                if not seen >> following & 1:
                    seen |= 1 << following
                    waiting.append(following)
        return seen

    def _children(self) -> list[list[int]]:
        children = getattr(self, "_made_children", None)
        if children is None:
            children = [[] for _ in self.names]
            for position, parents in enumerate(self._parents):
                for parent in parents:
                    children[parent].append(position)
            self._made_children: list[list[int]] = children
        return children


def routes(step: Step) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every step that `step` names in its blocks, with the path (below the step) where it does."""
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


def check_cycles(order: Order, notes: Collector) -> None:
    """A dependency cycle is an error that names its path."""
    ring = order.cycle()
    if ring is not None:
        message = f"these steps wait for each other: {' -> '.join(ring[:20])}"
        notes.add_key(
            "error", "depends_on.cycle", message, ("steps", ring[0], "depends_on"), "remove one of them"
        )


def check_loops(order: Order, max_loops: int, notes: Collector) -> None:
    """A route that leads back to its own step needs a budget below the default (A.6)."""
    if max_loops < _MAX_LOOPS_DEFAULT:
        return
    reached: dict[int, int] = {}
    for position, (name, step) in enumerate(order.steps.items()):
        if step.max_runs is not None and step.max_runs > 0:
            continue
        for path, target in routes(step):
            goal = order.index.get(target)
            if goal is None or order.steps[target].max_runs:
                continue
            if goal not in reached:
                reached[goal] = order.reaches(goal)
            if goal == position or reached[goal] >> position & 1:
                message = (
                    f"going to {shown(target)} leads back to {shown(name)}, with no budget but the default"
                )
                advice = "set routing: {max_loops: …} below 10, or max_runs on one of them"
                notes.warn("routing.loop", message, ("steps", name, *path), advice)


def check_reads(order: Order, uses: list[tuple[Use, Reading]], notes: Collector) -> None:
    """Outputs that are read: the step must exist and be ordered before or beneath the reader (semantics.md
    10).
    """
    for use, reading in uses:
        for path in reading.paths:
            if len(path) > 1 and path[0] in _OUTPUT_NAMES and isinstance(path[1], str):
                _check_read(order, use, path[1], notes)


def _check_read(order: Order, use: Use, name: str, notes: Collector) -> None:
    if name == "history":
        return
    read = order.index.get(name, order.index.get(name.removesuffix("-raw")))
    if read is None and notes.full:
        return
    if read is None:
        near = nearest(name, order.names)
        message = f"outputs of {shown(name)} are read, but there is no such step"
        notes.warn("reference.unknown_output", message, use.path, f"did you mean {near}?" if near else None)
        return
    reader = order.index.get(use.step) if use.step is not None else read
    if reader is None or reader == read or _ordered(order, reader, read):
        return
    message = f"{shown(name)} may not have run yet: it isn't ordered before or beneath {shown(use.step)}"
    notes.warn("reference.unordered", message, use.path, f"add {name} to depends_on")


def _ordered(order: Order, reader: int, read: int) -> bool:
    if order.depends(reader, read) or order.depends(read, reader):
        return True
    return bool(order.reaches(read) >> reader & 1 or order.reaches(reader) >> read & 1)


def check_fanout(order: Order, explicit: frozenset[str], notes: Collector) -> None:
    """A step that maps over the results of a step that maps already, without saying so (C.13 R11)."""
    carries: dict[int, bool] = {}
    for position in sorted(range(len(order.names)), key=lambda at: order.above[at].bit_count()):
        name = order.names[position]
        step = order.steps[name]
        parents = order._parents[position]
        behind = any(carries.get(parent, False) for parent in parents)
        carries[position] = step.for_each or (step.fanout == "map" and behind)
        mapped = [at for at in parents if carries.get(at) and not order.steps[order.names[at]].for_each]
        if mapped and step.fanout == "map" and name not in explicit:
            message = f"runs once per item, as {shown(order.names[mapped[0]])} does"
            notes.note(
                "fanout.implicit", message, ("steps", name), "write fanout: map, or reduce to run once"
            )
