"""on_init at work: what a step runs before itself runs item by item, each to completion (spec C.10 R8).

The step holds no slot meanwhile. It waits as a step does for what its block routed, so a stop, a resume and a hold of
an item are what they are there. An item that fails fails the step, which may try again: then all of them run again.
"""

from __future__ import annotations

from collections.abc import Sequence

from gonogo.core import contracts, reruns, routing
from gonogo.core import decisions as d
from gonogo.core import lifecycle as life
from gonogo.core.beforehand import ITEMS_MAX, here
from gonogo.core.commands import Ask
from gonogo.core.faults import Fault, FaultClass
from gonogo.core.plan import Target
from gonogo.core.state import Node
from gonogo.core.turn import Turn
from gonogo.expressions.results import Failure, Result, Value

HARMLESS_SKIPS = frozenset({"if_condition", "assume", "forEach_empty"})
"""An item that had nothing to do has done its part."""


def begin(turn: Turn, node: Node) -> None:
    """Ask for what the items' arguments and `run_js` are; with nothing to ask for the first item runs at once."""
    if node.status != life.INITIALISING:
        return
    step = turn.step(node)
    targets = here(turn.graph, node.site, step.on_init)
    asks = [number for target in targets for number in target.templates.values()]
    if step.on_init_js is not None:
        asks.append(step.on_init_js)
    if asks:
        turn.ask_anew(node.step, node.scope, "init", *asks)
    else:
        _set_out(turn, node, targets)


def judged(turn: Turn, node: Node, asks: Sequence[Ask], results: Sequence[Result]) -> None:
    """The answers. One that couldn't be had fails the step: nobody knows what should have run (law 4)."""
    wrong = [(ask, result) for ask, result in zip(asks, results, strict=True) if isinstance(result, Failure)]
    for ask, result in wrong:
        contracts.judge(turn, ask, result)
    if wrong:
        text = f"on_init could not be evaluated: {wrong[0][1].message}"
        _fail(turn, node, "logical", "error", text)
        return
    step = turn.step(node)
    targets = routing.filled_in(here(turn.graph, node.site, step.on_init), results)
    if step.on_init_js is not None:
        last = results[-1]
        found = routing.targets_in(last.value) if isinstance(last, Value) else []
        targets += here(turn.graph, node.site, found)
    _set_out(turn, node, tuple(targets))


def _set_out(turn: Turn, node: Node, targets: tuple[Target, ...]) -> None:
    if len(targets) > ITEMS_MAX:
        text = f"on_init of {node.step} runs {len(targets)} items, {ITEMS_MAX} are allowed"
        _fail(turn, node, "logical", "too_many", text)
        return
    turn.decide(d.Initialising(node.step, node.scope, node.execution, node.attempt, node.wave, targets))
    _run_next(turn, node)


def go_on(turn: Turn, node: Node) -> None:
    """An item is over, or can't run any more: the next one, or the failure of the step."""
    step, scope = node.waits_for[0]
    ran = turn.state.node(step, scope)
    if ran is None or not ran.complete:
        _fail(turn, node, "logical", "stuck", f"on_init: {step} can't run, what it waits for never comes")
    elif _is_fine(ran):
        _run_next(turn, node)
    else:
        told = ran.fault.message if ran.fault is not None else ran.reason or "no reason given"
        fault_class: FaultClass = "cancelled" if ran.outcome == "cancelled" else "logical"
        _fail(
            turn,
            node,
            ran.fault.fault_class if ran.fault is not None else fault_class,
            "failed",
            f"on_init: {step} {ran.outcome}: {told}",
            ran.fault,
        )


def _is_fine(ran: Node) -> bool:
    if ran.outcome == "skipped":
        return ran.reason in HARMLESS_SKIPS and not ran.issues
    return ran.outcome in ("passed", "tolerated")


def _run_next(turn: Turn, node: Node) -> None:
    while node.init is not None and node.init.left:
        target = node.init.left[0]
        if target.step not in turn.graph.steps:
            text = f"on_init names {target.step!r}, which isn't a step of this workflow"
            _fail(turn, node, "logical", "unknown_target", text)
            return
        circle = _circle(turn, node, target.step)
        if circle:
            _fail(turn, node, "logical", "circle", f"on_init goes round in a circle: {' → '.join(circle)}")
            return
        arguments = reruns.arguments_for(turn.state, target.arguments, node.scope)
        routing.route(turn, node, "init", target.step, node.scope, arguments, None)
        if not routing.runs_are_complete(turn, node):
            return
        ran = turn.state.node(*node.waits_for[0])
        if ran is not None and not _is_fine(ran):
            go_on(turn, node)
            return
    turn.decide(d.Initialised(node.step, node.scope))
    turn.routed.append((node.step, node.scope))


def _circle(turn: Turn, node: Node, target: str) -> tuple[str, ...]:
    """The steps that would wait for each other, the first one repeated at the end; empty when none would."""
    path = [node.step, target]
    other = turn.state.node(target, node.scope)
    while other is not None and other is not node and other.status == life.INITIALISING and other.waits_for:
        path.append(other.waits_for[0][0])
        other = turn.state.node(*other.waits_for[0])
    return tuple(path) if other is node else ()


def _fail(
    turn: Turn, node: Node, fault_class: FaultClass, rule: str, text: str, cause: Fault | None = None
) -> None:
    """What comes before the step went wrong, so it isn't called; its own block speaks as after a failed call."""
    findings = contracts.Findings(turn, node, turn.step(node))
    findings.fail(
        Fault(
            "on_init",
            fault_class,
            f"{node.step}/on_init/{rule}",
            text,
            cause.rule_id if cause is not None else None,
            cause.retry_after_s if cause is not None else None,
        )
    )
    contracts.end(turn, node, findings)
    if node.status == life.ROUTING:
        routing.begin(turn, node, "on_fail")
