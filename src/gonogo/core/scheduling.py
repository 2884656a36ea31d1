"""Which steps may start: dependencies settled, `if` true, gate open, slot free. In configuration order, always."""

from __future__ import annotations

from gonogo.core import decisions as d
from gonogo.core import lifecycle as life
from gonogo.core.budgets import runs_refusal
from gonogo.core.dependencies import (
    all_settled,
    first_refusal,
    group_parent,
    is_foreign,
    is_leaf,
    is_superseded,
)
from gonogo.core.faults import Fault, Issue
from gonogo.core.plan import Step
from gonogo.core.scope import ROOT, depth, enclosing, within
from gonogo.core.state import Fan, Node, State
from gonogo.core.turn import Turn


def consider_all(turn: Turn) -> None:
    """Look at every step of the plan: at the start, after a resume, when the run stops."""
    for name in turn.graph.steps:
        if name in turn.state.included:
            consider(turn, name, ROOT)


def consider(turn: Turn, name: str, scope: str) -> None:
    """Look whether a step may go on towards its start in a scope, and let it."""
    state = turn.state
    node = state.node(name, scope)
    if node is None and (name not in state.included or name in state.held_back):
        return
    step = turn.graph.steps[name]
    if node is not None and node.status == life.CLEARED:
        _go_on(turn, step, scope, node)
    if node is not None and node.status != life.PENDING:
        return
    if state.stopping and not may_still_run(state, step):
        skip(turn, step, scope, stop_reason(state), state.stopped_by)
    elif not all_settled(state, step, scope, node):
        return
    elif _asks_if(turn, step, scope):
        turn.ask_once(name, scope, step.if_condition or 0)
    else:
        pass_gate(turn, step, scope)


def _go_on(turn: Turn, step: Step, scope: str, node: Node) -> None:
    """A step whose `if` was true, or whose call is to be repeated."""
    if node.retrying or node.again:
        make_ready(turn, step, scope, node)
    elif all_settled(turn.state, step, scope, node):
        pass_gate(turn, step, scope)


def _asks_if(turn: Turn, step: Step, scope: str) -> bool:
    return step.if_condition is not None and (not scope or is_foreign(turn.state, step, scope))


def pass_gate(turn: Turn, step: Step, scope: str) -> None:
    """The dependency gate; beyond it a step fans out or waits for a slot. `always()` steps need no gate."""
    node = turn.state.node(step.name, scope)
    refusal = None if step.always else first_refusal(turn.state, step, scope, node)
    if refusal is not None:
        skip(turn, step, scope, refusal.reason, refusal.because)
    elif is_leaf(turn.state, step, scope):
        make_ready(turn, step, scope, node)
    else:
        expand(turn, step, scope)


def expand(turn: Turn, step: Step, scope: str) -> None:
    """Begin a fan-out in `scope`: over no items it is skipped as `forEach_empty`."""
    source = turn.graph.fans[step.name][depth(scope)]
    parent = turn.state.node(source, scope)
    items = (parent.items or []) if parent is not None else []
    if parent is not None and items:
        _take_back(turn, step, scope)
        turn.decide(d.Expanded(step.name, scope, parent.step, parent.execution, len(items)))
        turn.expanded.append(turn.state.existing(step.name, scope))
    else:
        skip(turn, step, scope, "forEach_empty", source)


def _take_back(turn: Turn, step: Step, scope: str) -> None:
    """Items that a route has queued already start through the fan-out's window, too."""
    for item in list(turn.state.nodes[step.name]):
        if item != scope and within(item, scope):
            leave_queue(turn, step.name, item)


def make_ready(turn: Turn, step: Step, scope: str, node: Node | None) -> None:
    """The step waits for its slot only."""
    if node is not None and node.status == life.DECIDING:
        turn.decide(d.Cleared(step.name, scope))
    if turn.ready.push(turn.graph.order[step.name], step.name, scope):
        entered_queue(turn, step.name, scope)


def entered_queue(turn: Turn, name: str, scope: str) -> None:
    """An item waits for a slot: it takes up room in its fan-out."""
    fan = _fan_around(turn.state, name, scope)
    if fan is not None:
        fan.ready += 1


def left_queue(turn: Turn, name: str, scope: str) -> None:
    """An item got its slot, or lost its place."""
    fan = _fan_around(turn.state, name, scope)
    if fan is not None and fan.ready > 0:
        fan.ready -= 1


def leave_queue(turn: Turn, name: str, scope: str) -> None:
    """A step that waits for a slot must look at its dependencies again first."""
    if turn.ready.discard(name, scope):
        left_queue(turn, name, scope)


def _fan_around(state: State, name: str, scope: str) -> Fan | None:
    if not scope or is_foreign(state, state.graph.steps[name], scope):
        return None
    aggregate = state.node(name, enclosing(scope))
    return aggregate.fan if aggregate is not None else None


def may_still_run(state: State, step: Step) -> bool:
    """While a run stops, steps with always() still run; after a second cancel nothing does (semantics.md 5)."""
    return step.always and state.stopping != "cancelled_hard"


def stop_reason(state: State) -> str:
    """The reason given for what no longer runs."""
    return "cancelled" if state.stopping == "cancelled_hard" else state.stopping or ""


def skip(
    turn: Turn,
    step: Step,
    scope: str,
    reason: str,
    because: str | None = None,
    issues: tuple[Issue, ...] = (),
) -> None:
    """Record that a step doesn't run here, with its reason."""
    turn.decide(d.Skipped(step.name, scope, reason, because, issues, rest_of(turn, step.name, scope)))


def rest_of(turn: Turn, name: str, scope: str) -> str:
    """How final an outcome is: a fan-out's on_finish may still send its steps round again."""
    node = turn.state.node(name, scope)
    if node is None:
        node = Node(name, scope)
    return "settled" if group_parent(turn.state, node) is None else "complete"


def start_ready(turn: Turn) -> bool:
    """Start what there are slots for; True when something was started or skipped.

    With one slot everything is sequential, evaluations too: that makes the journal reproducible (semantics.md 11).
    """
    state = turn.state
    limit = state.limit_of_slots
    worked = False
    while state.slots < limit and len(turn.ready):
        if limit == 1 and (state.batches or turn.asks):
            break
        entry = turn.ready.pop()
        if entry is None:
            break
        left_queue(turn, *entry)
        if state.stopping and not may_still_run(state, turn.graph.steps[entry[0]]):
            turn.refills[entry[0], enclosing(entry[1])] = None
            worked = True
            continue
        node = state.node(*entry)
        if node is None or node.status in (life.PENDING, life.CLEARED):
            if may_go_on(state, turn.graph.steps[entry[0]], entry[1], node):
                begin(turn, *entry, node)
            elif entry[1]:
                turn.refills[entry[0], enclosing(entry[1])] = None
            worked = True
    return worked


def may_go_on(state: State, step: Step, scope: str, node: Node | None) -> bool:
    """A step that waited for a slot starts only if nothing it needs was sent round again; a repeat doesn't look."""
    if state.last_wave == 0:
        return True  # nothing was ever routed
    if is_superseded(state, step.name, scope):
        return False
    if node is not None and (node.retrying or node.again):
        return True
    return all_settled(state, step, scope, node)


def begin(turn: Turn, name: str, scope: str, node: Node | None) -> None:
    """Give a step its slot: first its assumptions, then its call."""
    step = turn.graph.steps[name]
    refusal = runs_refusal(turn.state, step, scope)
    if node is not None and node.again:
        call(turn, step, scope, again=True)
    elif refusal is not None:
        refuse_run(turn, step, scope, refusal)
    elif step.assume:
        turn.ask(name, scope, "assume", *step.assume)
        turn.send_asks()
    else:
        call(turn, step, scope)


def refuse_run(turn: Turn, step: Step, scope: str, refusal: d.Refused) -> None:
    """A step that has run often enough fails instead of running again (spec C.12 R6)."""
    issue = refusal.issue
    fault = Fault("budget.runs", "logical", issue.rule_id if issue else "", issue.message if issue else "")
    outcome = "tolerated" if step.continue_on_failure else "failed"
    issues = (issue,) if issue else ()
    turn.decide(
        d.Ended(step.name, scope, outcome, "max_runs", fault, issues, rest_of(turn, step.name, scope))
    )


def call(turn: Turn, step: Step, scope: str, *, again: bool = False) -> None:
    """Send the step's call out: a retry goes on with its execution, anything else begins a new one."""
    state = turn.state
    node = state.node(step.name, scope)
    around = state.node(step.name, enclosing(scope)) if scope else None
    execution, attempt = state.runs_before(step.name, scope) + 1, 1
    wave = around.wave if around is not None else 0
    if node is not None:
        same = node.retrying or again
        execution = node.execution if same else execution
        attempt = node.attempt + 1 if node.retrying else (node.attempt if again else 1)
        wave = node.wave
    turn.start_call(step, d.Started(step.name, scope, state.last_call + 1, execution, attempt, wave, again))
