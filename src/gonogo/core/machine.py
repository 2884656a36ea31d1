"""`advance`: one event in, decisions and commands out. Picks the handler, settles what follows; no policy in here.

Same state and event in: same decisions and commands out, in another process and on another day (law 1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from gonogo.core import (
    asking_again,
    attempts,
    completion,
    contracts,
    fanout,
    holds,
    initialising,
    resuming,
    routing,
    scheduling,
    spending,
    stopping,
    verdict,
)
from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import lifecycle as life
from gonogo.core.absorb import absorb
from gonogo.core.budgets import calls_left
from gonogo.core.commands import Ask, Command, FinishRun, SetTimer, StartCall
from gonogo.core.dependencies import all_settled, is_superseded
from gonogo.core.graph import Graph
from gonogo.core.planning import plan_run
from gonogo.core.retries import may_repeat
from gonogo.core.state import DOUBTED, Node, State
from gonogo.core.turn import Turn, intent
from gonogo.expressions.results import Failure, Result


class Step(Struct, frozen=True, gc=False):
    """What one event led to."""

    decisions: tuple[d.AnyDecision, ...]
    commands: tuple[Command, ...]


def begin(event: e.RunStarted) -> State:
    """The empty state of a run, to be advanced by this same event."""
    return State(Graph(event.plan))


def advance(state: State, event: e.AnyEvent) -> Step:
    """Decide what an event means. Changes `state` in place. Raises Bug when gonogo breaks a rule of its own."""
    absorb(state, event)
    turn = Turn(state)
    _HANDLERS[type(event)](turn, event)
    if turn.graph.limited:
        spending.arm(turn)
    settle(turn)
    return Step(tuple(turn.decisions), tuple(turn.commands))


def outstanding(state: State) -> tuple[Command, ...]:
    """The commands in flight, read from the state: what a host must take up again after a resume."""
    commands: list[Command] = [SetTimer(timer, due_s) for timer, (due_s, _) in state.timers.items()]
    for number, node in state.calls.items():
        name = intent(state.run_id, node.scope, node.step, node.execution)
        effects = state.step(node).effects
        commands.append(StartCall(number, node.step, node.scope, node.execution, node.attempt, name, effects))
    if state.finished is not None:
        commands.append(FinishRun(state.finished.verdict, state.finished.parked))
    return tuple(commands)


def settle(turn: Turn) -> None:
    """Apply what follows until nothing changes, then close the batch of questions."""
    state = turn.state
    while True:
        _work_off(turn)
        if turn.state.returning and attempts.take_up(turn):
            continue
        if turn.ready.waiting and scheduling.start_ready(turn):
            continue
        if turn.graph.limited and spending.out_of_calls(turn):
            continue
        if not (state.calls or state.batches) and verdict.end_when_over(turn):
            continue
        if not (turn.has_work or (turn.asks and turn.gave_up_asks())):
            break
    if turn.asks:
        turn.send_asks()


def _work_off(turn: Turn) -> None:
    while True:
        if turn.news:
            _follow_up_one(turn)
        elif turn.sweep:
            turn.sweep = False
            scheduling.consider_all(turn)
        elif turn.routed:
            routed, turn.routed = turn.routed, []
            for step, scope in routed:
                node = turn.state.node(step, scope)
                if node is not None:  # else what was decided meanwhile has dropped it
                    completion.reconsider(turn, node)
        elif turn.inits:
            initialising.begin(turn, turn.inits.pop(0))
        elif turn.expanded:
            fanout.look_for_items(turn, turn.expanded.pop(0))
        elif turn.refills:
            _refill_one(turn)
        else:
            break


def _follow_up_one(turn: Turn) -> None:
    node = turn.news.popleft()
    # What another step's end has sent round again meanwhile may have dropped it.
    if turn.state.nodes[node.step].get(node.scope) is node:
        completion.follow_up(turn, node)


def _refill_one(turn: Turn) -> None:
    node = next(iter(turn.refills))
    del turn.refills[node]
    # A fan-out around it may have dropped it meanwhile.
    if turn.state.nodes[node.step].get(node.scope) is node:
        fanout.refill(turn, node)


# --- events


def _run_started(turn: Turn, event: e.RunStarted) -> None:
    plan = plan_run(turn.graph, event)
    turn.decide(plan)
    turn.sweep = isinstance(plan, d.Planned)


def _evaluated(turn: Turn, event: e.Evaluated) -> None:
    groups: dict[tuple[str, str], tuple[list[Ask], list[Result]]] = {}
    for ask, result in zip(turn.state.asks, event.results, strict=True):
        asks, results = groups.setdefault((ask.step, ask.scope), ([], []))
        asks.append(ask)
        results.append(result)
    for (step, scope), (asks, results) in groups.items():
        node = turn.state.nodes[step].get(scope)
        if node is not None and node.asked == event.batch:
            _answers(turn, node, asks, results)


def _answers(turn: Turn, node: Node, asks: list[Ask], results: list[Result]) -> None:
    """Answers go to whatever the step is doing now; what it no longer waits for is dropped."""
    construct = asks[0].construct
    if construct == "if" and node.status == life.DECIDING:
        _if_judged(turn, node, asks[0], results[0])
    elif construct == "init" and node.status == life.INITIALISING:
        initialising.judged(turn, node, asks, results)
    elif construct == "assume" and node.status == life.ASSUMING:
        _assume_judged(turn, node, asks, results)
    elif node.status == life.CHECKING:
        if node.requested:
            turn.supersede(node)
        else:
            contracts.conclude(turn, node, asks, results)
            _route(turn, node)
    elif construct in ("run", "when", "goto_js"):
        _routing_judged(turn, node, asks, results)


def _routing_judged(turn: Turn, node: Node, asks: list[Ask], results: list[Result]) -> None:
    if node.status == life.PENDING or node.trigger is None:
        return
    for ask, result in zip(asks, results, strict=True):
        if ask.construct == "when" or isinstance(result, Failure):
            contracts.judge(turn, ask, result)
    routing.judged(turn, node, asks[0].construct, results)


def _if_judged(turn: Turn, node: Node, ask: Ask, result: Result) -> None:
    answer = contracts.judge(turn, ask, result)
    state, site = turn.state, node.site
    if stopping.ends_now(turn, node):
        scheduling.skip(turn, site, node.scope, scheduling.stop_reason(state), state.stopped_by)
    elif answer and state.last_wave and not all_settled(state, site, node.scope, node):
        turn.decide(d.Cleared(node.step, node.scope))  # what it waits for was sent round again meanwhile
    elif answer:
        scheduling.pass_gate(turn, site, node.scope, node)
    else:
        issues = () if answer is False else (_expression_issue(node, "if", result),)
        scheduling.skip(turn, site, node.scope, "if_condition", issues=issues)


def _expression_issue(node: Node, construct: str, result: Result) -> Any:
    message = result.message if isinstance(result, Failure) else ""
    return contracts.error_issue(node.step, node.scope, construct, message)


def _assume_judged(turn: Turn, node: Node, asks: list[Ask], results: list[Result]) -> None:
    answers = [contracts.judge(turn, ask, result) for ask, result in zip(asks, results, strict=True)]
    if node.requested or is_superseded(turn.state, node.step, node.scope):
        turn.supersede(node)
    elif all(answers) and not scheduling.may_go_on(turn.state, node.site, node.scope, node):
        turn.decide(d.Cleared(node.step, node.scope))  # what it waits for was sent round again meanwhile
    elif all(answers) and not calls_left(turn.state):
        spending.breach_of_calls(turn)
    elif all(answers):
        scheduling.call(turn, node.site, node.scope, node)
    elif turn.step(node).assume_mode == "fail":
        contracts.assumption_failed(turn, node, asks[answers.index(next(a for a in answers if not a))])
        _route(turn, node)
    else:
        issues = tuple(
            _expression_issue(node, "assume", r) for r, a in zip(results, answers, strict=True) if a is None
        )
        scheduling.skip(turn, node.site, node.scope, "assume", issues=issues)


def _returned(turn: Turn, event: e.CallDone | e.CallFailed) -> None:
    node = turn.state.returned
    if node is None or node.status not in life.CALLED:
        return
    if _in_doubt(turn, node, event):
        holds.doubt(turn, node, _doubt(event))
    elif node.requested:
        turn.supersede(node)
    else:
        contracts.check(turn, node)
        _route(turn, node)
    if turn.graph.limited:
        spending.look_at_usage(turn, node)


def _doubt(event: e.CallDone | e.CallFailed) -> str:
    """What a person needs for the answer: the failure itself says where the call broke off."""
    told = "the call failed after it may have been done"
    return f"{told}: {event.fault.message}" if isinstance(event, e.CallFailed) else told


def _in_doubt(turn: Turn, node: Node, event: e.CallDone | e.CallFailed) -> bool:
    """A mutating call that failed with an unknown effect is never repeated blindly (semantics.md 16)."""
    return isinstance(event, e.CallFailed) and event.effect == "unknown" and not may_repeat(turn.step(node))


def _route(turn: Turn, node: Node) -> None:
    """After an outcome: the step's block speaks, if it is still to."""
    if node.status == life.ROUTING:
        routing.begin(turn, node, contracts.trigger_of(node))


def _parked(turn: Turn, event: e.CallParked) -> None:
    node = turn.state.returned
    if node is None or node.status not in life.CALLED:
        return
    if node.requested and not event.details.get(DOUBTED):
        turn.supersede(node)  # nobody need answer for a run that doesn't count
    else:
        holds.hold(turn, node, event)


def _lost(turn: Turn, event: e.CallLost) -> None:
    node = turn.state.returned
    if node is not None and node.status in life.CALLED:
        resuming.lost(turn, node)


def _noted(turn: Turn, event: e.AttemptEnded | e.GateEnded) -> None:
    """A fact of a call's gate, which goes on by itself."""


def _timer_fired(turn: Turn, event: e.TimerFired) -> None:
    node = turn.state.fired
    if event.timer == turn.state.cleanup_timer:
        stopping.stop(turn, "cancelled_hard")
    elif event.timer == turn.state.budget_timer:
        spending.out_of_time(turn)
    elif node is None or node.timer != event.timer:
        return
    elif node.status == life.HOLDING:
        holds.woken(turn, node)
        _route(turn, node)
    elif node.status == life.BACKING_OFF:
        turn.decide(d.TimedOut(node.step, node.scope))
        completion.go_on(turn, node)


def _answer_given(turn: Turn, event: e.AnswerGiven) -> None:
    holds.answered(turn, event)
    node = turn.state.nodes.get(event.step, {}).get(event.scope)
    if node is not None:
        _route(turn, node)


def _cancel_asked(turn: Turn, event: e.CancelAsked) -> None:
    again = turn.state.stopping in ("cancelled", "cancelled_hard")
    stopping.stop(turn, "cancelled_hard" if again else "cancelled")


def _resumed(turn: Turn, event: e.Resumed) -> None:
    spending.disarm(turn)
    resuming.resume(turn, reopens=event.reopens)


def _rerun_asked(turn: Turn, event: e.RerunAsked) -> None:
    asking_again.rerun(turn, event)


_HANDLERS: dict[type, Callable[[Turn, Any], None]] = {
    e.RunStarted: _run_started,
    e.Evaluated: _evaluated,
    e.CallDone: _returned,
    e.CallFailed: _returned,
    e.CallParked: _parked,
    e.CallLost: _lost,
    e.AttemptAsked: attempts.asked,
    e.AttemptEnded: _noted,
    e.GateWaits: attempts.waits,
    e.GateEnded: _noted,
    e.TimerFired: _timer_fired,
    e.AnswerGiven: _answer_given,
    e.CancelAsked: _cancel_asked,
    e.Resumed: _resumed,
    e.RerunAsked: _rerun_asked,
}
