"""What becomes of each fault, told as it happens: detected, isolated, recovery attempted, one end (spec G16).

A fault is open from the failure of a step in a scope until that step passes there, or nothing is left to be tried for
it. A new failure while it is open is the same fault. The events explain; nothing is decided by them. Runs without
failures pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gonogo.core import decisions as d
from gonogo.core.graph import Graph
from gonogo.core.plan import Step
from gonogo.core.state import Node, OpenFault, State
from gonogo.core.suppression import blocks

Place = tuple[str, str]
NAMES_MAX = 50
"""Steps named in one event; how many there are is told in any case."""


def at_the_end(state: State) -> tuple[d.FaultEvent, ...]:
    """When a run ends for good, nothing more is tried for any fault."""
    return tuple(
        _event(place, open_fault, "recovery.failed", _because(state, place))
        for place, open_fault in state.open_faults.items()
    )


def _because(state: State, place: Place) -> dict[str, Any]:
    return {"reason": "the run ended" if state.node(*place) is not None else "its list ran again"}


def close(state: State, place: Place, reason: str) -> tuple[d.FaultEvent, ...]:
    """The end of a fault that wasn't recovered from; empty where none is open."""
    open_fault = state.open_faults.get(place)
    return () if open_fault is None else (_event(place, open_fault, "recovery.failed", {"reason": reason}),)


def _ended(state: State, decision: d.Ended) -> tuple[d.FaultEvent, ...]:
    place = (decision.step, decision.scope)
    open_fault = state.open_faults.get(place)
    if decision.outcome == "passed":
        return () if open_fault is None else (_event(place, open_fault, "recovery.succeeded"),)
    if decision.outcome == "cancelled":
        return close(state, place, "cancelled")
    if decision.fault is None:
        return ()
    found: tuple[d.FaultEvent, ...] = ()
    if open_fault is None:
        node = state.existing(*place)
        open_fault = OpenFault(state.last_fault + 1, decision.fault, node.attempt)
        kept = isolation(state, node)
        found = (_event(place, open_fault, "detected"),)
        found += (_event(place, open_fault, "isolated", kept),) if kept else ()
    return (
        found if decision.rest != "settled" else (*found, _event(place, open_fault, "recovery.failed", _LEFT))
    )


def isolation(state: State, node: Node) -> dict[str, Any]:
    """How a failure is kept from spreading: to the other items, to dependents, to what acts behind it."""
    failed = node.outcome == "failed"
    kept = state.graph.isolations.get((node.step, failed))
    if kept is None:
        kept = state.graph.isolations[node.step, failed] = _isolation(state.graph, node.step, failed)
    return {"item": node.scope, **kept} if node.scope else kept


def _isolation(graph: Graph, step: str, failed: bool) -> dict[str, Any]:
    """What the plan alone says of it: many items may fail of one step."""
    part = graph.parts[step]
    kept: dict[str, Any] = {}
    acting: list[str] = []
    if part.guards:
        acting = [name for name in graph.behind(step) if blocks(graph, step, graph.parts[name])]
    if failed:
        told = {*acting, *_remedies(part.step)}
        gated = [other for other in graph.dependents[step] if _needs(graph, other, step)]
        kept.update(_named("gated", [name for name in gated if name not in told]))
    if acting:
        kept.update(_named("suppressed", acting))
    return kept


def _remedies(step: Step) -> set[str | None]:
    """What the step's own on_fail runs: the gate lets it pass (spec C.5)."""
    block = step.on_fail
    return set() if block is None else {block.escalate, *(target.step for target in block.run)}


def _named(how: str, names: list[str]) -> dict[str, Any]:
    if len(names) > NAMES_MAX:
        return {how: names[:NAMES_MAX], f"{how}_total": len(names)}
    return {how: names} if names else {}


def _needs(graph: Graph, dependent: str, step: str) -> bool:
    """True when an entry of depends_on can be satisfied by this step alone, and no `if` takes the gate's place."""
    return not graph.steps[dependent].always and any(
        len(need.any_of) == 1 and need.any_of[0].step == step and need.any_of[0].on_failure == "block"
        for need in graph.steps[dependent].depends_on
    )


def _settled(state: State, decision: d.Settled) -> tuple[d.FaultEvent, ...]:
    place = (decision.step, decision.scope)
    open_fault = state.open_faults.get(place)
    return () if open_fault is None or open_fault.sent else close(state, place, _LEFT["reason"])


def _skipped(state: State, decision: d.Skipped) -> tuple[d.FaultEvent, ...]:
    place = (decision.step, decision.scope)
    return close(state, place, f"skipped: {decision.reason}") if decision.rest == "settled" else ()


def _retrying(state: State, decision: d.Retrying) -> tuple[d.FaultEvent, ...]:
    detail = {"action": "retry", "k": decision.retry, "delay_ms": round(decision.delay_s * 1000)}
    return _attempted(state, (decision.step, decision.scope), detail)


def _routed(state: State, decision: d.Routed) -> tuple[d.FaultEvent, ...]:
    if decision.action == "escalate":
        return _escalated(state, decision)
    if decision.trigger != "on_fail":
        return ()
    detail = {"action": decision.action, "step": decision.target}
    return _attempted(state, (decision.step, decision.scope), detail)


def _escalated(state: State, decision: d.Routed) -> tuple[d.FaultEvent, ...]:
    """Nothing is left to be tried, and somebody is told."""
    place = (decision.step, decision.scope)
    open_fault = state.open_faults.get(place)
    if open_fault is None:
        return ()
    ended = close(state, place, "escalated")
    return (*ended, _event(place, open_fault, "escalated", {"step": decision.target}))


def _attempted(state: State, place: Place, detail: dict[str, Any]) -> tuple[d.FaultEvent, ...]:
    open_fault = state.open_faults.get(place)
    return () if open_fault is None else (_event(place, open_fault, "recovery.attempted", detail),)


def _event(
    place: Place, open_fault: OpenFault, event: str, detail: dict[str, Any] | None = None
) -> d.FaultEvent:
    fault = open_fault.fault
    return d.FaultEvent(
        *place,
        event,
        open_fault.number,
        open_fault.attempt,
        fault.kind,
        fault.fault_class,
        fault.rule_id,
        detail or {},
    )


_LEFT = {"reason": "nothing was left to be tried"}


FOLLOW: dict[type, Callable[[State, Any], tuple[d.FaultEvent, ...]]] = {
    d.Ended: _ended,
    d.Settled: _settled,
    d.Skipped: _skipped,
    d.Retrying: _retrying,
    d.Routed: _routed,
}
"""The events that a decision, just applied, means."""
