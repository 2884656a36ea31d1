"""Which steps may start: dependencies settled, `if` true, gate open, slot free. In configuration order, always."""

from __future__ import annotations

from gonogo.core import beforehand
from gonogo.core import decisions as d
from gonogo.core import lifecycle as life
from gonogo.core.budgets import calls_left, is_undoing, runs_refusal
from gonogo.core.dependencies import all_settled, first_refusal, is_superseded, rest_at
from gonogo.core.faults import Fault, Issue
from gonogo.core.parts import Part, Site
from gonogo.core.plan import Step
from gonogo.core.scope import ROOT, within
from gonogo.core.state import Fan, Node, State
from gonogo.core.suppression import suppressor
from gonogo.core.turn import Turn


def consider_all(turn: Turn) -> None:
    """Look at every step of the plan: at the start, after a resume, when the run stops."""
    for part in turn.graph.parts.values():
        if part.name in turn.state.included:
            consider(turn, part, ROOT)


def consider(turn: Turn, part: Part, scope: str) -> None:
    """Look whether a step may go on towards its start in a scope, and let it."""
    state = turn.state
    node = state.nodes[part.name].get(scope)
    if node is None:
        if part.name not in state.may_begin:
            return
        site = state.site(part, scope) if scope else part.root
    else:
        site = node.site
        if node.status == life.CLEARED:
            _go_on(turn, node)
        if node.status != life.PENDING:
            return
    if state.stopping and not may_still_run(state, part.step):
        skip(turn, site, scope, stop_reason(state), state.stopped_by)
    elif not all_settled(state, site, scope, node):
        return
    elif part.step.if_condition is not None and (not scope or site.foreign):
        turn.ask_once(part.name, scope, part.step.if_condition)
    else:
        pass_gate(turn, site, scope, node)


def _go_on(turn: Turn, node: Node) -> None:
    """A step whose `if` was true, or whose call is to be repeated."""
    if (node.retrying or node.again) and node.site.leaf:
        make_ready(turn, node.site, node.scope, node)
    elif all_settled(turn.state, node.site, node.scope, node):
        pass_gate(turn, node.site, node.scope, node)


def pass_gate(turn: Turn, site: Site, scope: str, node: Node | None) -> None:
    """The dependency gate; beyond it a step fans out or waits for a slot. `always()` steps need no gate."""
    if is_kept_out(turn, site, scope, node):
        return
    if site.leaf:
        make_ready(turn, site, scope, node)
    else:
        expand(turn, site, scope)


def is_kept_out(turn: Turn, site: Site, scope: str, node: Node | None) -> bool:
    """Skip a step whose dependencies don't let it pass, or that may not act behind a failure; True when it was."""
    refusal = None if site.part.step.always else first_refusal(turn.state, site, scope, node)
    guard = suppressor(turn.state, site, scope, node) if turn.state.critical_failures else None
    if guard is not None and (refusal is None or refusal.reason == "dependency_failed"):
        skip(turn, site, scope, "suppressed", guard)  # says more: nothing about its edges would let it act
    elif refusal is not None:
        skip(turn, site, scope, refusal.reason, refusal.because)
    else:
        return False
    return True


def expand(turn: Turn, site: Site, scope: str) -> None:
    """Begin a fan-out in `scope`: over no items it is skipped as `forEach_empty`."""
    name, source = site.part.name, site.part.fan[site.depth]
    parent = turn.state.node(source, scope)
    items = (parent.items or []) if parent is not None else []
    if parent is not None and items:
        node = turn.state.node(name, scope)
        if site.part.inits and beforehand.is_wanted(turn.graph, site, node):
            initialise(turn, site, scope, node)
            return
        _take_back(turn, name, scope)
        turn.decide(d.Expanded(name, scope, parent.step, parent.execution, len(items)))
        turn.expanded.append(turn.state.existing(name, scope))
    else:
        skip(turn, site, scope, "forEach_empty", source)


def _take_back(turn: Turn, name: str, scope: str) -> None:
    """Items that a route has queued already start through the fan-out's window, too; what isn't an item doesn't."""
    for item, node in list(turn.state.nodes[name].items()):
        if item != scope and within(item, scope) and not node.site.foreign:
            leave_queue(turn, name, item)


def make_ready(turn: Turn, site: Site, scope: str, node: Node | None) -> None:
    """The step waits for its slot only; an item of a fan-out takes up room there meanwhile."""
    if (
        site.part.inits
        and beforehand.is_wanted(turn.graph, site, node)
        and runs_refusal(turn.state, site.part.step, scope, node) is None
    ):
        initialise(turn, site, scope, node)
        return
    if node is not None and node.status == life.DECIDING:
        turn.decide(d.Cleared(site.part.name, scope))
    if turn.ready.push(site, scope) and scope:
        fan = _fan_around(turn.state, site)
        if fan is not None:
            fan.ready += 1


def initialise(turn: Turn, site: Site, scope: str, node: Node | None) -> None:
    """What the step runs before itself runs now, while it holds no slot (spec C.10 R8)."""
    numbers = numbers_of_call(turn.state, site, scope, node, again=False)
    turn.decide(d.Initialising(site.part.name, scope, *numbers))
    turn.inits.append(turn.state.existing(site.part.name, scope))


def left_queue(turn: Turn, site: Site) -> None:
    """An item got its slot, or lost its place."""
    fan = _fan_around(turn.state, site)
    if fan is not None and fan.ready > 0:
        fan.ready -= 1


def leave_queue(turn: Turn, name: str, scope: str) -> None:
    """A step that waits for a slot must look at its dependencies again first."""
    site = turn.ready.discard(name, scope)
    if site is not None:
        left_queue(turn, site)


def _fan_around(state: State, site: Site) -> Fan | None:
    if not site.items or site.foreign:
        return None
    aggregate = state.nodes[site.part.name].get(site.around)
    return aggregate.fan if aggregate is not None else None


def may_still_run(state: State, step: Step) -> bool:
    """While a run stops, steps with always() still run, and what undoes others (semantics.md 5 and 20).

    What their on_init runs is part of them. fail_fast acts on a failure that is final: whom it was escalated to is told
    all the same. After a second cancel nothing runs.
    """
    return any(_has_leave(state, name) for name in _with_those_it_runs_for(state, step.name))


def _has_leave(state: State, name: str) -> bool:
    if state.stopping == "fail_fast" and name in escalated_to(state):
        return True
    if state.stopping == "cancelled_hard":
        return False
    return state.graph.steps[name].always or is_undoing(state, name)


def _with_those_it_runs_for(state: State, name: str) -> list[str]:
    """The step itself, and those that wait for it in their on_init; what scripts name there may go in circles."""
    names = [name]
    for one in names:
        names += [
            node.step
            for node in state.remediating.values()
            if node.status == life.INITIALISING
            and node.step not in names
            and any(step == one for step, _ in node.waits_for)
        ]
    return names


def escalated_to(state: State) -> set[str | None]:
    """The steps that failures were escalated to."""
    blocks = (state.graph.steps[source].on_fail for source, _ in state.escalated)
    return {block.escalate for block in blocks if block is not None}


def stop_reason(state: State) -> str:
    """The reason given for what no longer runs."""
    return "cancelled" if state.stopping == "cancelled_hard" else state.stopping or ""


def skip(
    turn: Turn,
    site: Site,
    scope: str,
    reason: str,
    because: str | None = None,
    issues: tuple[Issue, ...] = (),
) -> None:
    """Record that a step doesn't run here, with its reason."""
    turn.decide(d.Skipped(site.part.name, scope, reason, because, issues, rest_here(turn, site, scope)))


def rest_here(turn: Turn, site: Site, scope: str) -> str:
    """How final an outcome is here, whether or not the step has been looked at before."""
    return rest_at(turn.state, site, scope, turn.state.node(site.part.name, scope))


def start_ready(turn: Turn) -> bool:
    """Start what there are slots for; True when something was started or skipped.

    With one slot everything is sequential, evaluations too: that makes the journal reproducible (semantics.md 11).
    """
    state = turn.state
    limit = state.limit_of_slots
    worked = False
    while state.slots < limit and turn.ready.waiting and (not turn.graph.limited or calls_left(state)):
        if limit == 1 and (state.batches or turn.asks):
            break
        entry = turn.ready.pop()
        if entry is None:
            break
        site, scope = entry
        if scope:
            left_queue(turn, site)
        worked = start(turn, site, scope) or worked
    return worked


def start(turn: Turn, site: Site, scope: str) -> bool:
    """Start a step that has waited for its slot, if it still may; False when it is under way already."""
    state, part = turn.state, site.part
    if state.stopping and not may_still_run(state, part.step):
        turn.refill_around(site)
        return True
    node = state.nodes[part.name].get(scope)
    if node is not None and node.status not in (life.PENDING, life.CLEARED):
        return False
    if may_go_on(state, site, scope, node):
        # What was routed meanwhile may have failed since it passed the gate.
        repeats = state.last_wave == 0 or (node is not None and (node.retrying or node.again))
        if repeats or not is_kept_out(turn, site, scope, node):
            begin(turn, site, scope, node)
    elif scope:
        turn.refill_around(site)
    return True


def may_go_on(state: State, site: Site, scope: str, node: Node | None) -> bool:
    """A step that waited for a slot starts only if nothing it needs was sent round again; a repeat doesn't look. One of
    an item that is no more starts only to look what became of a run beneath.
    """
    if state.last_wave == 0:
        return True  # nothing was ever routed
    if node is not None and node.looks_again:
        return True
    if is_superseded(state, site.part.name, scope):
        return False
    if node is not None and (node.retrying or node.again):
        return True
    return all_settled(state, site, scope, node)


def begin(turn: Turn, site: Site, scope: str, node: Node | None) -> None:
    """Give a step its slot: first its assumptions, then its call."""
    step = site.part.step
    refusal = runs_refusal(turn.state, step, scope, node)
    if node is not None and node.again:
        call(turn, site, scope, node, again=True)
    elif refusal is not None:
        refuse_run(turn, site, scope, refusal)
    elif step.assume:
        turn.ask_anew(step.name, scope, "assume", *step.assume)
        turn.send_asks()
    else:
        call(turn, site, scope, node)


def refuse_run(turn: Turn, site: Site, scope: str, issue: Issue) -> None:
    """A step that has run often enough fails instead of running again (spec C.12 R6)."""
    step = site.part.step
    fault = Fault("budget.runs", "logical", issue.rule_id, issue.message)
    outcome = "tolerated" if step.continue_on_failure else "failed"
    turn.decide(d.Ended(step.name, scope, outcome, "max_runs", fault, (issue,), rest_here(turn, site, scope)))


def call(turn: Turn, site: Site, scope: str, node: Node | None, *, again: bool = False) -> None:
    """Send the step's call out: a retry goes on with its execution, anything else begins a new one."""
    state, step = turn.state, site.part.step
    execution, attempt, wave = numbers_of_call(state, site, scope, node, again=again)
    turn.start_call(step, d.Started(step.name, scope, state.last_call + 1, execution, attempt, wave, again))


def numbers_of_call(
    state: State, site: Site, scope: str, node: Node | None, *, again: bool
) -> tuple[int, int, int]:
    """Execution, attempt and wave of the call to come; on_init, which comes before it, has them already."""
    if node is None:
        around = state.nodes[site.part.name].get(site.around) if scope else None
        return state.runs_before(site.part.name, scope) + 1, 1, around.wave if around is not None else 0
    if again or node.continues or (node.init is not None and node.init.numbered):
        return node.execution, node.attempt or 1, node.wave
    if node.retrying:
        return node.execution, node.attempt + 1, node.wave
    return node.execution + 1, 1, node.wave
