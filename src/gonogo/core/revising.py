"""A changed workflow for a run that is under way: what may change, and how its state takes the new plan.

What ran and stays must mean the same: a step that isn't run again keeps every key that its outcome rests on, and what
the workflow says for all its steps stays. Steps that never ran may change, come and go; one that ran may not go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from gonogo.core import new_inputs
from gonogo.core.graph import Graph
from gonogo.core.parts import site_at, site_of_items
from gonogo.core.plan import Block, Expression, FailureCondition, Plan, Step, Target
from gonogo.core.scope import enclosing, order_key, outward
from gonogo.core.state import Node, State

Place = tuple[str, str]

FREE = frozenset(
    {
        "line", "group", "tags", "on", "criticality_source", "concurrency", "max_runs", "loop_budget", "timeout_s",
        "reliability", "renderer",
    }
)  # fmt: skip
"""Fields of a step that its outcome doesn't rest on: limits, how calls are tried, what is shown, where it stands."""
WORDS = {
    "if_condition": "if", "always": "if", "for_each": "forEach", "fanout_explicit": "fanout", "effects": "mutates",
    "runs_mutators": "mutates", "on_init_js": "on_init",
}  # fmt: skip
"""What fields are called in a workflow file, where it is another name."""
OF_ALL = ("fail_if", "failure_conditions", "safety")
"""What a workflow says for all its steps, so that it may change only where none stays."""
OF_THE_START = ("env", "memory")
"""What a run is given when it starts, its inputs aside (new_inputs.py)."""


class Unfit(Exception):  # noqa: N818 - the name says what happened
    """The run can't go on like this. `step` and `key` say where the new workflow is in the way; both may be empty."""

    def __init__(self, message: str, advice: str, step: str = "", key: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        self.step = step
        self.key = key


# --- expressions keep their numbers


def renumbered(plan: Plan, before: Plan) -> Plan:
    """The plan with the expressions of the one before at their old numbers, its own new ones behind them."""
    table = list(before.expressions)
    known: dict[tuple[str, str], int] = {}
    for number, expression in enumerate(table):
        known.setdefault(_text(expression), number)
    for expression in plan.expressions:
        if _text(expression) not in known:
            known[_text(expression)] = len(table)
            table.append(expression)

    def number_of(number: int) -> int:
        return known[_text(plan.expressions[number])]

    return replace(
        plan,
        steps={name: _step(step, number_of) for name, step in plan.steps.items()},
        expressions=tuple(table),
        fail_if=_maybe(plan.fail_if, number_of),
        failure_conditions=_conditions(plan.failure_conditions, number_of),
    )


def _text(expression: Expression) -> tuple[str, str]:
    return expression.source, expression.kind


def _maybe(number: int | None, to: Callable[[int], int]) -> int | None:
    return None if number is None else to(number)


def _conditions(
    conditions: tuple[FailureCondition, ...], to: Callable[[int], int]
) -> tuple[FailureCondition, ...]:
    return tuple(replace(each, expression=to(each.expression)) for each in conditions)


def _step(step: Step, to: Callable[[int], int]) -> Step:
    return replace(
        step,
        if_condition=_maybe(step.if_condition, to),
        assume=tuple(map(to, step.assume)),
        guarantee=tuple(map(to, step.guarantee)),
        fail_if=_maybe(step.fail_if, to),
        failure_conditions=_conditions(step.failure_conditions, to),
        on_init=_targets(step.on_init, to),
        on_init_js=_maybe(step.on_init_js, to),
        on_success=_block(step.on_success, to),
        on_fail=_block(step.on_fail, to),
        on_finish=_block(step.on_finish, to),
        idempotency_key=_maybe(step.idempotency_key, to),
    )


def _targets(targets: tuple[Target, ...], to: Callable[[int], int]) -> tuple[Target, ...]:
    return tuple(
        replace(each, templates={name: to(at) for name, at in each.templates.items()}) for each in targets
    )


def _block(block: Block | None, to: Callable[[int], int]) -> Block | None:
    if block is None:
        return None
    return replace(
        block,
        run=_targets(block.run, to),
        run_js=_maybe(block.run_js, to),
        transitions=tuple(replace(rule, when=to(rule.when)) for rule in block.transitions),
        goto_js=_maybe(block.goto_js, to),
    )


# --- what may change


def has_run(node: Node) -> bool:
    """True for what was called or came to an outcome of its own; a skip is none."""
    return node.execution > 0 or node.outcome not in (None, "skipped")


def changed_keys(before: Plan, plan: Plan, name: str) -> list[str]:
    """The keys of a step, as a workflow file calls them, that its outcome rests on and that are others now.

    `before` must be numbered by itself (`renumbered`), `plan` after it.
    """
    old, new = before.steps[name], plan.steps[name]
    found = [
        key for key in Step.__struct_fields__ if key not in FREE and getattr(old, key) != getattr(new, key)
    ]
    keys = [key for field in found for key in (_config_keys(old, new) if field == "config" else [field])]
    if old.type == new.type == "workflow" and _beneath(before, old) != _beneath(plan, new):
        keys.append("workflow")
    return list(dict.fromkeys(WORDS.get(key, key) for key in keys))


def _config_keys(old: Step, new: Step) -> Iterator[str]:
    for key in dict.fromkeys((*old.config, *new.config)):
        if old.config.get(key) != new.config.get(key) or (key in old.config) != (key in new.config):
            yield key


def _beneath(plan: Plan, step: Step) -> Any:
    """The workflow that a step runs, if it is part of the plan; lines aside."""
    found = plan.workflows.get(str(step.config.get("workflow") or step.config.get("config")))
    return None if found is None else _without_lines(found)


def _without_lines(plan: Plan) -> Plan:
    return replace(
        plan,
        steps={name: replace(step, line=0) for name, step in plan.steps.items()},
        workflows={name: _without_lines(each) for name, each in plan.workflows.items()},
        digest="",
    )


def refuse_removed(state: State, plan: Plan) -> None:
    """A step that ran can't go, nor one that the run was asked for. Raises Unfit."""
    for name in state.graph.steps:
        if name in plan.steps:
            continue
        if any(has_run(node) for node in state.nodes[name].values()) or name in state.requested:
            why = "has run" if name not in state.requested else "was asked for (--step)"
            raise Unfit(
                f"step {name!r} {why}, and the changed workflow doesn't have it",
                "keep it; with `if: false` it doesn't run again",
                name,
            )


def check(state: State, before: Plan, members: Collection[Place]) -> None:
    """Hold that all that ran and isn't among the members means the same as before. Raises Unfit where it doesn't."""
    plan = state.graph.plan
    before = renumbered(before, before)
    staying = [name for name in plan.steps if name in before.steps and _stays(state, name, members)]
    _check_steps(state, before, staying)
    _check_workflow(state, before, staying)
    _check_inputs(state, before, staying)
    for done in state.undoable:
        if before.steps[done.step].compensate != plan.steps[done.step].compensate:
            raise Unfit(
                f"step {done.step!r} has done what its `compensate` may have to undo, and that is changed",
                "leave `compensate` as it was",
                done.step,
                "compensate",
            )


def _check_steps(state: State, before: Plan, staying: Sequence[str]) -> None:
    plan = state.graph.plan
    for name in staying:
        if name not in state.included:
            raise Unfit(
                f"step {name!r} has run, and is left out now: {state.excluded.get(name, 'left out')}",
                "let its `on` and its tags include it as before",
                name,
            )
        for key in changed_keys(before, plan, name):
            raise Unfit(
                f"step {name!r} has run and stays, but its `{key}` is changed",
                f"run it again, too (--from {name}), or leave `{key}` as it was",
                name,
                key,
            )


def _check_workflow(state: State, before: Plan, staying: Sequence[str]) -> None:
    """What the workflow says for all its steps, and what a run is started with."""
    plan = state.graph.plan
    for key in (*OF_THE_START, *(OF_ALL if staying else ())):
        if getattr(before, key) != getattr(plan, key):
            under = (
                f", but {staying[0]!r} has run under it and stays"
                if key in OF_ALL
                else "; a run keeps its own"
            )
            raise Unfit(
                f"`{key}` of the workflow is changed{under}",
                f"leave `{key}` as it was, or start a new run",
                key=key,
            )


def _check_inputs(state: State, before: Plan, staying: Sequence[str]) -> None:
    plan = state.graph.plan
    why = new_inputs.misfit(state.inputs, before, plan)
    if why:
        raise Unfit(
            why, "leave `inputs` as it was, add some with a default, or start a new run", key="inputs"
        )
    changed = new_inputs.changed(before, plan)
    for name in staying if changed else ():
        read = new_inputs.first_read(_texts_of(plan, plan.steps[name]), changed)
        if read is not None:
            is_new = "is new" if read in plan.inputs else "the changed workflow doesn't have"
            raise Unfit(
                f"step {name!r} has run and stays, but reads the input {read!r}, which {is_new}",
                f"run it again, too (--from {name}), or leave `inputs` as it was",
                name,
            )


def _texts_of(plan: Plan, step: Step) -> Iterator[str]:
    """All that may read an input before the step has ended, and what the workflow says for all its steps."""
    numbers: list[int] = []

    def noted(number: int) -> int:
        numbers.append(number)
        return number

    _step(step, noted)
    _maybe(plan.fail_if, noted)
    _conditions(plan.failure_conditions, noted)
    yield from (plan.expressions[number].source for number in numbers)
    yield from new_inputs.texts_in([step.config, step.env, plan.env])


def _stays(state: State, name: str, members: Collection[Place]) -> bool:
    return any(has_run(node) and not is_among(node, members) for node in state.nodes[name].values())


def is_among(node: Node, members: Collection[Place]) -> bool:
    """True for a member, and for an item of a fan-out that is one."""
    return any((node.step, scope) in members for scope in outward(node.scope))


# --- taking it


def take_plan(state: State, plan: Plan) -> None:
    """Have the state rest on another plan. What ran is as it was; a step that is gone, and never ran, is forgotten."""
    nodes = state.nodes
    state.inputs = new_inputs.renewed(state.inputs, state.graph.plan, plan)
    state.graph = graph = Graph(plan)
    state.limit_of_slots = plan.limits.max_parallelism
    state.ready.clear()
    state.nodes = {name: nodes.get(name, {}) for name in graph.steps}
    _forget_removed(state, {name: scopes for name, scopes in nodes.items() if name not in graph.steps})
    for scopes in state.nodes.values():
        for scope in sorted(scopes, key=lambda each: (len(order_key(each)), order_key(each))):
            _place_anew(state, scopes[scope])


def _forget_removed(state: State, removed: dict[str, dict[str, Node]]) -> None:
    """Steps that never ran leave nothing but what was asked about them, and that they were kept back."""
    for scopes in removed.values():
        state.open_nodes -= sum(not node.complete for node in scopes.values())
    state.lost_asks = tuple(ask for ask in state.lost_asks if ask.step not in removed)
    for kept in state.kept_back.values():
        for place in [place for place in kept if place[0] in removed]:
            del kept[place]


def _place_anew(state: State, node: Node) -> None:
    """Nodes know the part of the plan they stand for, and items share what they have in common."""
    part, scope = state.graph.parts[node.step], node.scope
    aggregate = state.nodes[node.step].get(enclosing(scope)) if scope else None
    fan = aggregate.fan if aggregate is not None else None
    if not scope:
        node.site = part.root
    elif fan is not None and scope.startswith(fan.site.items):
        node.site = fan.site
    else:
        node.site = site_at(part, scope)
    if node.fan is not None:
        node.fan.site = site_of_items(part, scope, node.fan.site.items)
