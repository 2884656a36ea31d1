"""Where a run goes after a step: run, run_js, retry, transitions, goto_js, goto, in that order (spec C.10).

What a block runs comes first, to its end; only then does the block retry or go elsewhere (semantics.md 6 and 7).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gonogo.core import decisions as d
from gonogo.core import exhaustion, reruns, scheduling, spending
from gonogo.core import lifecycle as life
from gonogo.core.backoff import delay_s
from gonogo.core.budgets import is_undoing, loops_refusal
from gonogo.core.dependencies import group_parent, rest_at
from gonogo.core.fanout_items import waiting_within
from gonogo.core.faults import Fault, Issue
from gonogo.core.plan import Block, Retry, Target
from gonogo.core.retries import retry_left
from gonogo.core.state import Node
from gonogo.core.turn import Turn, intent
from gonogo.expressions.results import Result, Value


def begin(turn: Turn, node: Node, trigger: str) -> None:
    """Start a block: its runs first. Expressions it needs are asked for."""
    turn.decide(d.Routing(node.step, node.scope, trigger))
    block = turn.step(node).block(trigger)
    if is_undoing(turn.state, node.step):
        # What undoes others may be tried again; it sends the run nowhere, which is over.
        retry = retry_left(node, block)
        back_off(turn, node, retry) if retry is not None else end(turn, node)
        return
    if not block.run and block.run_js is None:
        go_on(turn, node)
        return
    asks = [number for target in block.run for number in target.templates.values()]
    if block.run_js is not None:
        asks.append(block.run_js)
    if asks:
        turn.ask_anew(node.step, node.scope, "run", *asks)
    else:
        run_targets(turn, node, block, ())


def judged(turn: Turn, node: Node, construct: str, results: Sequence[Result]) -> None:
    """Answers to what a block asked."""
    block = turn.step(node).block(node.trigger)
    if turn.state.stopping:
        end(turn, node)
    elif construct == "run":
        run_targets(turn, node, block, results)
    elif construct == "when":
        transition(turn, node, block, results)
    else:
        jump(turn, node, block, results[0])


def run_targets(turn: Turn, node: Node, block: Block, results: Sequence[Result]) -> None:
    """Route to each target of `run` and `run_js`; wait for them when the block has more to say."""
    targets = [*filled_in(block.run, results), *from_script(block, results)]
    waits_for: list[tuple[str, str]] = []
    for target in targets:
        started = route_run(turn, node, target)
        if started is None:
            end(turn, node)
            return
        waits_for.extend(started)
    if node.status == life.PENDING:
        end(turn, node)  # an on_finish that has its own list made again speaks anew when that is done
    elif waits_for and (block.says_more or retry_left(node, block) or looks_again(turn, node)):
        turn.decide(d.Remediating(node.step, node.scope, tuple(waits_for)))
    else:
        go_on(turn, node)


def filled_in(targets: Sequence[Target], results: Sequence[Result]) -> list[Target]:
    """Targets with their rendered arguments; an argument that can't be rendered is null."""
    answers = iter(results)
    filled = []
    for target in targets:
        rendered = {name: _value(next(answers, None)) for name in target.templates}
        filled.append(Target(target.step, {**target.arguments, **rendered}, alias=target.alias))
    return filled


def from_script(block: Block, results: Sequence[Result]) -> list[Target]:
    """What run_js returned."""
    return targets_in(_value(results[-1])) if block.run_js is not None else []


def targets_in(value: Any) -> list[Target]:
    """The targets a script names: names or {step, with, as}; anything else is dropped (spec B.8 R2)."""
    found = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, str):
            found.append(Target(item))
        elif isinstance(item, dict) and isinstance(item.get("step"), str):
            given, alias = item.get("with"), item.get("as")
            arguments = given if isinstance(given, dict) else {}
            found.append(Target(item["step"], arguments, alias=alias if isinstance(alias, str) else None))
    return found


def _value(result: Result | None) -> Any:
    return result.value if isinstance(result, Value) else None


def route_run(turn: Turn, node: Node, target: Target) -> list[tuple[str, str]] | None:
    """Route to one run target, in each scope it has there; None when a budget or a wrong name stops the block."""
    if not known(turn, node, target.step):
        return []
    started = []
    for scope in reruns.run_scopes(turn.state, node, target.step):
        if spare(turn, node, target.step, scope):
            continue
        if not route(
            turn,
            node,
            "run",
            target.step,
            scope,
            reruns.arguments_for(turn.state, target.arguments, scope),
            None,
        ):
            return None
        started.append((target.step, scope))
    return started


def known(turn: Turn, node: Node, target: str) -> bool:
    """A name that run_js or goto_js made up is an issue, not a silence (spec C.10 R7)."""
    if target in turn.graph.steps:
        return True
    message = f"step {node.step} routes to {target!r}, which isn't a step of this workflow"
    issue = Issue(
        f"{node.step}/routing/unknown_target",
        message,
        check_name=node.step,
        scope=node.scope or None,
        engine=True,
    )
    turn.decide(d.Flagged(node.step, node.scope, issue, fatal=not turn.step(node).continue_on_failure))
    return False


def route(
    turn: Turn,
    node: Node,
    action: str,
    target: str,
    scope: str,
    arguments: dict[str, Any],
    event: str | None,
    *,
    trigger: str | None = None,
) -> bool:
    """Make one route, if the loop budget allows it. It counts as a loop when any of what is to run has run before.

    What on_init runs doesn't: it comes once an execution, and leads no further. Nor do reminders, which are counted.
    """
    state = turn.state
    found = reruns.members(state, action, target, scope, event)
    reentry = action not in ("init", "remind") and any(has_run(state.node(*member)) for member in found)
    if reentry:
        refusal = loops_refusal(state, node, target, scope)
        if refusal is not None:
            turn.decide(refusal)
            if turn.graph.plan.safety == "strict":
                fail_for_loops(turn, node, refusal)
            return False
    members = tuple(member for member in found if not spare(turn, node, *member))
    for member in members:
        scheduling.leave_queue(turn, *member)
        waiting = state.node(*member)
        if waiting is not None:
            give_up(turn, waiting)
    turn.decide(
        d.Routed(
            node.step,
            node.scope,
            trigger or ("on_init" if action == "init" else node.trigger or ""),
            action,
            target,
            scope,
            state.last_wave + 1,
            members,
            arguments,
            event,
            reentry,
        )
    )
    for member in members:
        abandon_waits(turn, state.existing(*member))
    turn.routed.extend(members)
    return True


def has_run(node: Node | None) -> bool:
    """True for a step that has come to something before, be it a skip or a refusal."""
    return node is not None and (node.execution > 0 or node.outcome is not None)


def fail_for_loops(turn: Turn, node: Node, refusal: d.Refused) -> None:
    """Under strict safety a loop that goes on too long is a failure of the step that asked for it (spec C.6)."""
    issue = refusal.issue
    if node.status not in (life.ROUTING, life.REMEDIATING) or issue is None or node.fan is not None:
        return
    fault = Fault("budget.loops", "logical", issue.rule_id, issue.message)
    rest = rest_at(turn.state, node.site, node.scope, node)
    issues = (*node.issues, issue)
    turn.decide(d.Ended(node.step, node.scope, "failed", "max_loops", fault, issues, rest))


def spare(turn: Turn, node: Node, name: str, scope: str) -> bool:
    """True when a step has had the one run it is to have (spec C.15 R3); a retry isn't another run."""
    if not turn.graph.parts[name].one_shot or turn.state.runs_before(name, scope) == 0:
        return False
    turn.decide(d.OneShotSkip(name, scope, node.step))
    return True


def give_up(turn: Turn, node: Node) -> None:
    """What is to run again waits for no timer, and where it is complete, its items go at once."""
    turn.clear_timer(node)
    if node.complete:
        abandon_waits(turn, node)


def abandon_waits(turn: Turn, node: Node) -> None:
    """A fan-out that is to run again waits for running items only, not for timers, persons and items to come."""
    if node.fan is None:
        return
    for inner in waiting_within(turn.state, node, node.fan, _GIVEN_UP):
        if inner.status == life.EXPANDING:
            turn.refills[inner] = None
            continue
        if inner.in_doubt:
            continue
        turn.clear_timer(inner)
        rest = rest_at(turn.state, inner.site, inner.scope, inner)
        turn.decide(
            d.Ended(inner.step, inner.scope, "cancelled", "superseded", inner.fault, inner.issues, rest)
        )
    turn.refills[node] = None


_GIVEN_UP = frozenset({life.EXPANDING, life.BACKING_OFF, life.HOLDING, *life.AWAITS_RUNS})
"""Items in one of these wait, for others as it may be."""


def runs_are_complete(turn: Turn, node: Node) -> bool:
    """True when all a block ran is complete."""
    found = (turn.state.node(step, scope) for step, scope in node.waits_for)
    return all(other is None or other.complete for other in found)


def go_on(turn: Turn, node: Node) -> None:
    """The runs of a block are done: retry, or look at transitions, goto_js and goto."""
    block = turn.step(node).block(node.trigger)
    if turn.state.stopping:
        end(turn, node)
        return
    if node.status == life.REMEDIATING:
        turn.decide(d.Routing(node.step, node.scope, node.trigger or ""))
    retry = retry_left(node, block)
    if retry is not None and not spending.refuses_retry(turn, node):
        back_off(turn, node, retry)
    elif block.retry is not None and exhaustion.is_exhausted(node, block.retry):
        after_the_last(turn, node, block.retry, block)
    else:
        look_for_rules(turn, node, block)


def back_off(turn: Turn, node: Node, retry: Retry) -> None:
    """Wait by a timer, holding no slot."""
    state = turn.state
    number = node.retries + 1
    identity = f"{state.seed}/{intent('', node.scope, node.step, node.execution)}"
    wait_s = delay_s(retry, number, identity, node.failure.retry_after_s)
    timer = state.last_timer + 1
    turn.decide(d.Retrying(node.step, node.scope, number, wait_s, timer, state.at + wait_s))
    turn.set_timer(timer, state.at + wait_s)


def after_the_last(turn: Turn, node: Node, retry: Retry, block: Block) -> None:
    """The author's choice for a failure that its retries have not mended."""
    if retry.exhausted == "hold":
        exhaustion.hold(turn, node)
    elif retry.exhausted == "continue":
        exhaustion.end(turn, node, "tolerated", "retries_exhausted")
    elif retry.exhausted_goto is not None:
        goto(turn, node, retry.exhausted_goto, None)
    else:
        look_for_rules(turn, node, block)


def look_for_rules(turn: Turn, node: Node, block: Block) -> None:
    """Transitions first, then goto_js and goto."""
    if block.transitions:
        turn.ask_anew(node.step, node.scope, "when", *(rule.when for rule in block.transitions))
    else:
        ask_jump(turn, node, block)


def transition(turn: Turn, node: Node, block: Block, results: Sequence[Result]) -> None:
    """The first rule that is true wins; `to: null` means stop here (spec B.8 R3)."""
    for rule, result in zip(block.transitions, results, strict=True):
        if isinstance(result, Value) and result.value is True:
            if rule.to is None:
                end(turn, node)
            else:
                goto(turn, node, rule.to, rule.event)
            return
    ask_jump(turn, node, block)


def ask_jump(turn: Turn, node: Node, block: Block) -> None:
    """No rule matched: goto_js, then goto."""
    if block.goto_js is not None:
        turn.ask_anew(node.step, node.scope, "goto_js", block.goto_js)
    elif block.goto:
        goto(turn, node, block.goto, block.goto_event)
    else:
        end(turn, node)


def jump(turn: Turn, node: Node, block: Block, result: Result) -> None:
    """goto_js names a step; null means no goto at all; an error or nothing falls back to goto (spec B.8 R1)."""
    value = _value(result)
    if isinstance(value, str) and value:
        goto(turn, node, value, block.goto_event)
    elif isinstance(result, Value) and result.value is None and not result.undefined:
        end(turn, node)
    elif block.goto:
        goto(turn, node, block.goto, block.goto_event)
    else:
        end(turn, node)


def goto(turn: Turn, node: Node, target: str, event: str | None) -> None:
    """Go to a step: it and what depends on it run again, within the scope they share with the source."""
    went = False
    if known(turn, node, target):
        scope = reruns.goto_scope(turn.state, node, target)
        went = not spare(turn, node, target, scope) and route(turn, node, "goto", target, scope, {}, event)
    end(turn, node, went=went)


def end(turn: Turn, node: Node, *, went: bool = False) -> None:
    """A block has spoken. A node that is to run again stays open; anything else is complete or settled."""
    if node.requested:
        turn.supersede(node)
    elif node.trigger == "on_finish":
        again = bool(node.waits_for) and not went
        end_group(turn, node)
        if again:
            look_again(turn, node)
    elif node.status in (life.ROUTING, life.REMEDIATING):
        target = None if went else exhaustion.escalates(turn, node)
        if target is not None:
            route(turn, node, "escalate", target, node.scope, exhaustion.told(node), None)
        rest = d.Settled if group_parent(turn.state, node) is None else d.Completed
        turn.decide(rest(node.step, node.scope))


def end_group(turn: Turn, parent: Node) -> None:
    """on_finish has spoken: what it doesn't run again is settled."""
    for name in (parent.step, *turn.graph.members[parent.step]):
        node = turn.state.node(name, parent.scope)
        if node is not None and node.complete and not node.settled:
            turn.decide(d.Settled(node.step, node.scope))


def looks_again(turn: Turn, node: Node) -> bool:
    """True when what on_finish runs may change the mind of a step that its `if` has skipped."""
    return node.trigger == "on_finish" and bool(reruns.skipped_by_if(turn.state, node.scope))


def look_again(turn: Turn, parent: Node) -> None:
    """After what on_finish ran, steps that their `if` skipped are judged again, once (spec C.14 R3)."""
    found = reruns.skipped_by_if(turn.state, parent.scope)
    if found and not turn.state.stopping:
        wave = turn.state.last_wave + 1
        place = (parent.step, parent.scope)
        turn.decide(d.Routed(*place, "on_finish", "if", *place, wave, found))
        turn.routed.extend(found)
