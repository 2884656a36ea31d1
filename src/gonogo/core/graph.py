"""What follows from a plan alone: order, dependents, fan-out paths, groups. Computed once per run, then only read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gonogo.core.parts import Part, Waiting
from gonogo.core.plan import Block, Budget, Edge, FailureCondition, Need, Plan, Step
from gonogo.core.scope import levels_shared

REENTRIES_MIN = 50
"""The least that the run-wide ceiling of re-entries is set to (spec C.12 R4)."""


class Graph:
    """A plan with its consequences.

    `parts[step]`: what follows about one step (parts.py). `fans[step]`: the forEach steps whose items it runs in,
    outermost first. `dependents[step]`: who waits for it. `members[step]`: for a forEach step the steps that run inside
    its items. `held_back`: steps that run only when something routes to them. `isolations`: what keeps a failure
    from spreading, by step and whether it counts, as far as it was asked for (fault_events.py).
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.steps = plan.steps
        self.order = {name: number for number, name in enumerate(plan.steps)}
        self.fans, self.dependents = _fans_and_dependents(plan)
        lists = [name for name, step in self.steps.items() if step.for_each]
        inward = topological(plan) if lists else []
        self.members = {name: _members(plan, inward, self.fans, name) for name in lists}
        self.held_back = _held_back(plan)
        self.limited = plan.budget != Budget()
        routing = sum(1 for step in plan.steps.values() if blocks(step))
        self.reentries_max = max(REENTRIES_MIN, plan.limits.max_loops * routing)
        self.any_on_finish = any(step.on_finish is not None for step in plan.steps.values())
        self.parts = {name: self._part(step) for name, step in self.steps.items()}
        self.levels = {name: part.levels for name, part in self.parts.items()}
        for name, part in self.parts.items():
            part.waiting = tuple(self._waiting(name, self.parts[other]) for other in self.dependents[name])
        self._behind: dict[str, dict[str, int]] = {}
        self.isolations: dict[tuple[str, bool], dict[str, Any]] = {}

    def behind(self, name: str) -> dict[str, int]:
        """The steps behind a step, each with how many fan-out levels lie around the whole way there.

        The least of several ways counts, since one through a reduce joins all items. Found when first asked for, as
        few steps ever fail.
        """
        if name not in self._behind:
            self._behind[name] = self._find_behind(name)
        return self._behind[name]

    def _find_behind(self, name: str) -> dict[str, int]:
        found = {name: len(self.fans[name])}
        looked_at = [name]
        for step in looked_at:
            for dependent in self.dependents[step]:
                shared = min(found[step], self.common(name, dependent))
                if shared < found.get(dependent, shared + 1):
                    found[dependent] = shared
                    looked_at.append(dependent)
        del found[name]
        return found

    def common(self, one: str, other: str) -> int:
        """How many fan-out levels two steps share."""
        return levels_shared(self.fans[one], self.fans.get(other, ()))

    def _part(self, step: Step) -> Part:
        name, fan = step.name, self.fans[step.name]
        sources = tuple(_need_for(step, parent) for parent in fan)
        levels = tuple(self._level(step, need) for need in step.depends_on)
        needs = _needs_by_level(step, levels, sources)
        conditions = _conditions(self.plan, step)
        guards = self.plan.safety != "off" and step.criticality != "info" and bool(self.dependents[name])
        return Part(
            step=step,
            name=name,
            order=self.order[name],
            fan=fan,
            levels=levels,
            needs=needs,
            # All of depends_on where an `if` may read any of it.
            first_needs=needs[0] if step.if_condition is None else step.depends_on + sources[:1],
            groups=tuple(p for p in fan if self.steps[p].on_finish and name in self.members[p]),
            owns_group=step.for_each and step.on_finish is not None,
            checks=self._checks(step, conditions),
            conditions=conditions,
            routes=step.on_success is not None or step.on_fail is not None,
            inits=bool(step.on_init) or step.on_init_js is not None,
            guards=guards,
            is_kept_in_mind=guards or step.compensate is not None,
            one_shot="one_shot" in step.tags,
            acts=not step.always and (step.mutates or step.criticality == "external"),
        )

    def _level(self, step: Step, need: Need) -> int:
        if not self.fans[step.name]:
            return 0
        return max((self.common(step.name, edge.step) for edge in need.any_of), default=0)

    def _waiting(self, name: str, other: Part) -> Waiting:
        if not other.fan:
            return Waiting(other, 0, 0)
        return Waiting(other, self.common(name, other.name), max(other.levels, default=0))

    def _checks(self, step: Step, conditions: Sequence[FailureCondition]) -> tuple[tuple[str, int], ...]:
        """What is judged after each call of a step, as construct and expression, in the order of the rules."""
        found = [("guarantee", number) for number in step.guarantee]
        if self.plan.fail_if is not None:
            found.append(("global_fail_if", self.plan.fail_if))
        if step.fail_if is not None:
            found.append(("fail_if", step.fail_if))
        found += [("condition", condition.expression) for condition in conditions]
        return tuple(found)

    def expression(self, number: int) -> str:
        """The source of an expression."""
        return self.plan.expressions[number].source


def _needs_by_level(
    step: Step, levels: Sequence[int], sources: Sequence[Need]
) -> tuple[tuple[Need, ...], ...]:
    """For each fan-out depth the needs judged there, the source of the next items included.

    A source is the step's own entry for it, where it has one.
    """
    if not sources:
        return (step.depends_on,)
    found = []
    for level in range(len(sources) + 1):
        here = tuple(need for need, at in zip(step.depends_on, levels, strict=True) if at == level)
        source = sources[level] if level < len(sources) else None
        found.append(here if source is None or source in here else (*here, source))
    return tuple(found)


def _conditions(plan: Plan, step: Step) -> tuple[FailureCondition, ...]:
    """Global failure conditions, then the step's own, which replace global ones of their name (spec C.7 R7)."""
    if not step.failure_conditions:
        return plan.failure_conditions
    own = {condition.name for condition in step.failure_conditions}
    return (*(c for c in plan.failure_conditions if c.name not in own), *step.failure_conditions)


def _need_for(step: Step, parent: str) -> Need:
    for need in step.depends_on:
        if any(edge.step == parent for edge in need.any_of):
            return need
    return Need((Edge(parent),))


def edges(step: Step) -> list[Edge]:
    """All dependency edges of a step, OR members included."""
    return [edge for need in step.depends_on for edge in need.any_of]


def blocks(step: Step) -> list[Block]:
    """The on_* blocks a step has."""
    return [block for block in (step.on_success, step.on_fail, step.on_finish) if block]


def topological(plan: Plan) -> list[str]:
    """Step names, dependencies first, configuration order among equals; steps on a cycle are left out."""
    return _in_order(_sources(plan))


def _sources(plan: Plan) -> dict[str, list[str]]:
    """The steps each step depends on, each once, those that there are."""
    return {
        name: [source for source in _sources_of(step) if source in plan.steps]
        for name, step in plan.steps.items()
    }


def _sources_of(step: Step) -> Iterable[str]:
    needs = step.depends_on
    if not needs or (len(needs) == 1 and len(needs[0].any_of) == 1):
        return (needs[0].any_of[0].step,) if needs else ()
    return dict.fromkeys(edge.step for edge in edges(step))


def _in_order(sources: dict[str, list[str]]) -> list[str]:
    waiting = {name: len(found) for name, found in sources.items()}
    dependents = _turned_round(sources)
    ready = [name for name, count in waiting.items() if count == 0]
    for name in ready:
        for dependent in dependents[name]:
            waiting[dependent] -= 1
            if waiting[dependent] == 0:
                ready.append(dependent)
    return ready


def _turned_round(sources: dict[str, list[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in sources}
    for name, those in sources.items():
        for source in those:
            found[source].append(name)
    return found


def _fans_and_dependents(plan: Plan) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """The fan-outs around each step; and who waits for it: those that depend on it, and those whose items it gives."""
    sources = _sources(plan)
    fans: dict[str, tuple[str, ...]] = dict.fromkeys(plan.steps, ())
    if any(step.for_each for step in plan.steps.values()):
        for name in _in_order(sources):
            step = plan.steps[name]
            if step.fanout == "map":
                fans[name] = _fan_of(step, fans, plan)
    all_sources = {
        name: list(dict.fromkeys((*those, *fans[name]))) if fans[name] else those
        for name, those in sources.items()
    }
    return fans, {name: tuple(names) for name, names in _turned_round(all_sources).items()}


def _fan_of(step: Step, fans: dict[str, tuple[str, ...]], plan: Plan) -> tuple[str, ...]:
    """A map step takes the fan-out of the first dependency that carries items (spec C.13 R1)."""
    for edge in edges(step):
        fan = fans.get(edge.step, ())
        carried = (*fan, edge.step) if edge.step in plan.steps and plan.steps[edge.step].for_each else fan
        if carried:
            return carried
    return ()


def _members(
    plan: Plan, inward: Sequence[str], fans: dict[str, tuple[str, ...]], parent: str
) -> tuple[str, ...]:
    """The steps inside a forEach that its on_finish waits for.

    One that also waits for a step behind the fan-out isn't among them: that step waits for on_finish itself.
    """
    behind: set[str] = set()
    members: set[str] = set()
    for name in inward:
        sources = {edge.step for edge in edges(plan.steps[name])}
        if parent not in fans[name]:
            if sources & (behind | members | {parent}):
                behind.add(name)
        elif sources & behind:
            behind.add(name)
        else:
            members.add(name)
    return tuple(name for name in plan.steps if name in members)


def _held_back(plan: Plan) -> frozenset[str]:
    """Run targets and `start: routed` steps wait for a route; goto targets don't (spec C.2 R4).

    A target that all who run it depend on is not held back: they couldn't start before it, so nothing would ever run.
    Nor is, for the same reason, the first of a ring of steps that only each other run.
    """
    routed = {step.name for step in plan.steps.values() if step.start == "routed"}
    held: set[str] = set()
    for step in plan.steps.values():
        found = blocks(step)
        if not (found or step.on_init or step.hold is not None or step.compensate is not None):
            continue  # most say nothing of the kind
        targets = {name for block in found for name in _run_by(block)}
        targets = (targets | {target.step for target in step.on_init} | set(_asked_by(step))) - routed
        if targets:
            held |= targets - _ancestors(plan, step)
        if step.compensate is not None:
            held.add(step.compensate)
    return frozenset(routed | _without_rings(plan, held, routed)) if held else frozenset(routed)


def _without_rings(plan: Plan, held: set[str], routed: set[str]) -> set[str]:
    """Those of the held back steps that some other step can send the run to; of a ring all but the first.

    A step that waits for a route by its own word (`routed`) may be part of a ring, but never its beginning. Where
    scripts say what runs, nobody knows who reaches it.
    """
    waiting = set() if any(_is_scripted(step) for step in plan.steps.values()) else routed
    while True:
        reached = _reached(plan, [name for name in plan.steps if name not in held and name not in waiting])
        missed = next(
            (
                name
                for name in plan.steps
                if name in held and name not in reached and name in _reached(plan, _targets(plan.steps[name]))
            ),
            None,
        )
        if missed is None:
            return held
        held = held - {missed}


def _reached(plan: Plan, begun: Iterable[str]) -> dict[str, None]:
    """Steps that the run can come to from those that begin it, these among them."""
    reached = dict.fromkeys(name for name in begun if name in plan.steps)
    looked_at = list(reached)
    for name in looked_at:
        found = [
            target for target in _targets(plan.steps[name]) if target in plan.steps and target not in reached
        ]
        reached.update(dict.fromkeys(found))
        looked_at += found
    return reached


def _is_scripted(step: Step) -> bool:
    scripts = [script for block in blocks(step) for script in (block.run_js, block.goto_js)]
    return step.on_init_js is not None or any(script is not None for script in scripts)


def _targets(step: Step) -> list[str]:
    """Where the blocks of a step may send the run, by name."""
    found = [*(target.step for target in step.on_init), *_asked_by(step)]
    for block in blocks(step):
        found += _run_by(block)
        found += [name for name in (block.goto, *(rule.to for rule in block.transitions)) if name]
        if block.retry is not None and block.retry.exhausted_goto is not None:
            found.append(block.retry.exhausted_goto)
    return list(dict.fromkeys(found if step.compensate is None else [*found, step.compensate]))


def _run_by(block: Block) -> list[str]:
    """The steps that a block runs, the one it escalates to among them."""
    found = [target.step for target in block.run]
    return found if block.escalate is None else [*found, block.escalate]


def _asked_by(step: Step) -> tuple[str, ...]:
    """The steps that run while a step waits for people."""
    return step.hold.names if step.hold is not None else ()


def _ancestors(plan: Plan, step: Step) -> set[str]:
    found = {edge.step for edge in edges(step)}
    looked_at = [name for name in found if name in plan.steps]
    for name in looked_at:
        for edge in edges(plan.steps[name]):
            if edge.step in plan.steps and edge.step not in found:
                found.add(edge.step)
                looked_at.append(edge.step)
    return found
