"""The laws, checked at every record of a simulated run. Each has a short name, which a failure gives.

fold       the state is the fold of its records, written and read back
clock      `at` never goes back
slots      never more calls and assumptions under way than there are slots; none at the end
window     never more items of a fan-out under way than its concurrency
stop       nothing starts after a stop but steps with always()
gate       nothing starts before its dependencies are settled and let it pass
once       no attempt starts twice unless its call was lost, in doubt or waits for a run of its own
effects    a mutating call acts at most once for an intent, unless a person said "again"
timers     none is left over; those of the host and of the state are the same at the end
verdict    GO, NO-GO and HOLD as semantics.md 1 to 3 say
replay     the recorded events lead to the recorded decisions
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import lifecycle as life
from gonogo.core import machine
from gonogo.core.absorb import absorb
from gonogo.core.apply import apply, fold
from gonogo.core.attempts import NO_CALL
from gonogo.core.commands import Command, LetAttempt, StartCall
from gonogo.core.scope import child, within
from gonogo.core.state import State
from gonogo.journal.codec import decode_line, encode_line
from gonogo.journal.records import Record
from gonogo.testing.attempt_laws import AttemptLaws
from gonogo.testing.broken import Broken
from gonogo.testing.canonical import difference
from gonogo.testing.gate import ancestors, nearest, why_not
from gonogo.testing.promises import Promises
from gonogo.testing.scenarios import Scenario

if TYPE_CHECKING:
    from gonogo.testing.outside import Outside

Key = tuple[str, str, int, int]


class Watch:
    """Follows a run from its records alone, by a state of its own."""

    def __init__(self, scenario: Scenario, outside: Outside) -> None:
        self.scenario = scenario
        self.outside = outside
        self.shadow: State | None = None
        self.at = 0.0
        self.started: dict[Key, str] = {}
        self.calls: dict[int, Key] = {}
        self.steps: dict[int, str] = {}
        self.owed: set[tuple[str, str]] = set()
        self.doubted = False
        self.executions: dict[tuple[str, str], int] = {}
        self.counted_from: dict[tuple[str, str], int] = {}
        self.plan = scenario.plan
        self.promises = Promises(scenario)
        self.attempts = AttemptLaws()

    def restart(self, records: Sequence[Record]) -> None:
        """After a crash: forget what was not written."""
        self.shadow = fold(records) if records else None
        self.started, self.calls, self.owed = {}, {}, set()
        self.executions, self.counted_from = {}, {}
        self.plan = self.scenario.plan
        self.promises = Promises(self.scenario)
        self.attempts = AttemptLaws()
        self.at = records[-1].event.at if records else 0.0
        state: State | None = None
        for record in records:
            state = self._take_again(state, record)

    def _take_again(self, state: State | None, record: Record) -> State:
        if state is None:
            assert isinstance(record.event, e.RunStarted)
            state = machine.begin(record.event)
        absorb(state, record.event)
        self._note_event(record.event)
        for decision in record.decisions:
            self.promises.see(state, decision)
            self.attempts.see(state, decision, state.graph.plan)
            apply(state, decision)
            self._note(decision)
        return state

    def see(self, record: Record, commands: Sequence[Command], state: State) -> None:
        """Judge one record, as a reader of the journal finds it, and the commands that go with it."""
        read = decode_line(encode_line(record))
        shadow = self._absorb(read.event)
        if read.event.at < self.at:
            raise Broken("clock", f"{read.event.at} after {self.at}")
        self.at = read.event.at
        for decision in read.decisions:
            if isinstance(decision, d.Started):
                self._check_start(shadow, decision)
                self._check_budgets(shadow, decision)
            elif isinstance(decision, d.Reopened):
                _check_reopened(shadow, decision)
            elif isinstance(decision, d.Rerun):
                _check_rerun(shadow, decision)
            elif isinstance(decision, d.Routing) and decision.trigger == "on_finish":
                _check_group(shadow, decision)
            elif isinstance(decision, d.Expanded):
                _check_gate(shadow, decision)
            elif isinstance(decision, d.Skipped):
                _check_skip(shadow, decision)
            self._check_owed(shadow, decision)
            self.promises.see(shadow, decision)
            self.attempts.see(shadow, decision, shadow.graph.plan)
            apply(shadow, decision)
            self._note(decision)
            _check_room(shadow, decision)
        _check_commands(read, commands)
        self._check_doubt(read)
        found = difference(shadow, state)
        if found is not None:
            raise Broken("fold", found)
        self._check_effects()
        self._check_loops(shadow)

    def _absorb(self, event: e.AnyEvent) -> State:
        if self.shadow is None:
            assert isinstance(event, e.RunStarted)
            self.shadow = machine.begin(event)
        absorb(self.shadow, event)
        self._note_event(event)
        return self.shadow

    # --- starts

    def _note_event(self, event: e.AnyEvent) -> None:
        self.attempts.note(event)
        if isinstance(event, e.CallDone | e.CallFailed | e.CallParked | e.CallLost):
            key = self.calls.pop(event.call, None)
            if key is not None:
                self.started[key] = type(event).__name__
        elif isinstance(event, e.RerunAsked) and event.plan is not None:
            self.plan = self.promises.plan = event.plan

    def _note(self, decision: d.AnyDecision) -> None:
        if isinstance(decision, d.Started):
            key = (decision.step, decision.scope, decision.execution, decision.attempt)
            self.started[key] = "running"
            self.calls[decision.call] = key
            self.steps[decision.call] = decision.step
            self.executions[decision.step, decision.scope] = decision.execution
        elif isinstance(decision, d.Given | d.Initialising):
            self.executions[decision.step, decision.scope] = decision.execution
        elif isinstance(decision, d.Rerun):
            self.counted_from = dict(self.executions)
        elif isinstance(decision, d.Doubted):
            self.doubted = True

    def _check_start(self, state: State, decision: d.Started) -> None:
        step = state.graph.steps[decision.step]
        where = f"{decision.step} in {decision.scope or '(run)'}"
        before = self.started.get((decision.step, decision.scope, decision.execution, decision.attempt))
        node = state.node(decision.step, decision.scope)
        if before is not None:
            waits = node is not None and node.again
            if not decision.again or (before not in ("CallLost", "CallParked") and not waits):
                raise Broken(
                    "once",
                    f"{where}, execution {decision.execution}, attempt {decision.attempt}: {before} already",
                )
        allowed = _may_run_while_stopping(state, step.name)
        if state.stopping and not allowed and not (decision.again and state.stopping == "fail_fast"):
            raise Broken("stop", f"{where} starts after {state.stopping}")
        if not decision.again and decision.attempt == 1:
            _check_gate(state, decision)

    def _check_effects(self) -> None:
        for intent, count in self.outside.acted.items():
            step = self.plan.steps.get(intent.rsplit("/", 2)[1])
            if step is None:
                continue
            if count > 1 + self.outside.allowed[intent] and step.idempotency_key is None:
                raise Broken("effects", f"{intent} acted {count} times")

    def _check_owed(self, state: State, decision: d.AnyDecision) -> None:
        """A member of a re-run set that was running is recorded as superseded, whatever it came to (semantics.md 7)."""
        if isinstance(decision, d.Routed):
            for step, scope in decision.members:
                node = state.node(step, scope)
                if node is not None and node.status in life.CALLED:
                    self.owed.add((step, scope))
        elif isinstance(decision, d.Superseded | d.Started | d.Skipped):
            self.owed.discard((decision.step, decision.scope))
        elif isinstance(decision, d.Ended) and (decision.step, decision.scope) in self.owed:
            self.owed.discard((decision.step, decision.scope))
            if not state.stopping and decision.rest != "open":
                raise Broken(
                    "again", f"{decision.step} in {decision.scope or '(run)'} was asked for while it ran"
                )

    def _check_doubt(self, record: Record) -> None:
        event = record.event
        if not isinstance(event, e.CallFailed) or event.effect != "unknown" or event.call not in self.steps:
            return
        step = self.plan.steps[self.steps[event.call]]
        asked = any(isinstance(decision, d.Doubted) for decision in record.decisions)
        if step.effects == "mutates" and step.idempotency_key is None and not asked:
            raise Broken(
                "doubt", f"nobody knows what call {event.call} of {step.name} did, and nobody is asked"
            )

    def _check_budgets(self, state: State, decision: d.Started) -> None:
        """Attempts and executions are numbered, so the numbers are the count; people and undoing have their own."""
        plan = self.plan
        step = plan.steps[decision.step]
        retry = step.on_fail.retry if step.on_fail is not None else None
        by_hand = self.promises.chosen.get((decision.step, decision.scope), 0)
        if decision.attempt > 1 + by_hand + (retry.max if retry is not None else 0):
            raise Broken("budget", f"attempt {decision.attempt} of {step.name}")
        if state.undoing is not None:
            return
        execution = decision.execution - self.counted_from.get((decision.step, decision.scope), 0)
        if execution > (step.max_runs if step.max_runs is not None else plan.limits.max_runs):
            raise Broken("budget", f"execution {decision.execution} of {step.name}")

    def _check_loops(self, state: State) -> None:
        plan = self.scenario.plan
        allowed = max(plan.limits.max_loops, *(step.loop_budget or 0 for step in plan.steps.values()))
        for scope, used in state.loops.items():
            if used > allowed:
                raise Broken("budget", f"{used} loops in {scope or '(run)'}")

    def when_idle(self, state: State, timers: Mapping[int, float]) -> None:
        """What must hold whenever nothing is left to perform."""
        for node in state.all_nodes():
            kept = _may_run_while_stopping(state, node.step)
            if state.stopping and node.status == life.HOLDING and not kept:
                raise Broken("stop", f"{node.step} in {node.scope or '(run)'} still waits for a person")
        if set(timers) != set(state.timers):
            raise Broken("timers", f"the host has {sorted(timers)}, the state {sorted(state.timers)}")

    # --- the end

    def at_the_end(self, state: State, timers: Mapping[int, float], waiting: Sequence[e.AnyEvent]) -> None:
        """What must hold when a run has ended or is parked."""
        if state.finished is None:
            raise Broken("stuck", "the run has not ended")
        if state.slots or state.calls or state.batches or waiting:
            raise Broken(
                "slots", f"{state.slots} slots, {len(state.calls)} calls and {len(waiting)} events at the end"
            )
        if set(timers) != set(state.timers):
            raise Broken("timers", f"the host has {sorted(timers)}, the state {sorted(state.timers)}")
        if state.timers and not state.finished.parked:
            raise Broken("timers", f"left over: {sorted(state.timers)}")
        expected = verdict(state)
        if state.finished.verdict != expected:
            raise Broken(
                "verdict", f"{state.finished.verdict} ({state.finished.because}) where {expected} was due"
            )
        self.promises.at_the_end(state, self.outside)


def replay(records: Sequence[Record]) -> None:
    """Decide again from the recorded events; raises Broken at the first difference (law 1)."""
    state: State | None = None
    for record in records:
        if state is None:
            assert isinstance(record.event, e.RunStarted)
            state = machine.begin(record.event)
        decisions = machine.advance(state, record.event).decisions
        if decisions != record.decisions:
            raise Broken(
                "replay",
                f"record {record.seq} ({type(record.event).__name__}) {_first(decisions, record.decisions)}",
            )


def _first(one: Sequence[Any], other: Sequence[Any]) -> str:
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            return f"gives {mine} where {theirs} was recorded"
    return f"gives {len(one)} decisions where {len(other)} were recorded"


def _may_run_while_stopping(state: State, name: str) -> bool:
    """always(), what undoes others, who is told of a failure, and what any of these runs before itself."""
    names = [name]
    for one in names:
        waiting = (node for node in state.all_nodes() if node.status == life.INITIALISING)
        names += [
            node.step
            for node in waiting
            if any(step == one for step, _ in node.waits_for) and node.step not in names
        ]
    return any(_has_leave(state, one) for one in names)


def _has_leave(state: State, name: str) -> bool:
    undoing = state.undoing is not None and state.graph.steps[state.undoing.step].compensate == name
    if (state.graph.steps[name].always or undoing) and state.stopping != "cancelled_hard":
        return True
    return _is_told(state, name)


def _is_told(state: State, step: str) -> bool:
    """Under fail_fast whom a failure was escalated to still hears of it."""
    blocks = (state.graph.steps[source].on_fail for source, _ in state.escalated)
    return state.stopping == "fail_fast" and any(block and block.escalate == step for block in blocks)


def _check_gate(state: State, decision: d.Started | d.Expanded) -> None:
    reason = why_not(state, state.graph.steps[decision.step], decision.scope)
    if reason is not None:
        raise Broken("gate", f"{decision.step} in {decision.scope or '(run)'} starts, but {reason}")


def _check_skip(state: State, decision: d.Skipped) -> None:
    """semantics.md 16: what may have been done is never passed over without asking."""
    node = state.node(decision.step, decision.scope)
    step = state.graph.steps[decision.step]
    if node is None or step.effects != "mutates" or step.idempotency_key is not None:
        return
    if node.status in (*life.CALLED, life.IN_DOUBT):
        raise Broken(
            "doubt", f"{step.name} in {decision.scope or '(run)'} is skipped while it is {node.status}"
        )


def _check_reopened(state: State, decision: d.Reopened) -> None:
    """Law 3: going on after a cancel takes nothing back that was done, and not undone since (semantics.md 20)."""
    begun = state.undoing
    undone = {*state.undone, *([(begun.step, begun.scope)] if begun is not None else [])}
    for step, scope in decision.members:
        if state.existing(step, scope).outcome == "passed" and (step, scope) not in undone:
            raise Broken("once", f"{step} in {scope or '(run)'} passed and is taken back")


def _check_rerun(state: State, decision: d.Rerun) -> None:
    """Law 3: what a person has run again takes back nothing that doesn't depend on it, nor was stopped or undone."""
    named = {*decision.asked, *decision.given}
    fresh = {step for step, _ in (*named, *decision.unrouted, *state.undone)}
    for step, scope in decision.members:
        node = state.node(step, scope)
        if node is None or (step, scope) in named or node.outcome not in ("passed", "tolerated", "failed"):
            fresh.add(step)
    for step, scope in decision.members:
        if step not in fresh and not ancestors(state.graph.plan, state.graph.steps[step]) & fresh:
            raise Broken(
                "once", f"{step} in {scope or '(run)'} is taken back, though nothing before it runs again"
            )


def _check_group(state: State, decision: d.Routing) -> None:
    """semantics.md 8: on_finish speaks when all that runs over the items is done."""
    for name in state.graph.members[decision.step]:
        node = nearest(state, name, decision.scope)
        missing = node is None and name in state.included - state.held_back
        if missing or (node is not None and not node.complete):
            raise Broken("group", f"on_finish of {decision.step} speaks before {name}")
        _check_items(state, decision, name)
        if state.graph.steps[name].on_finish is not None:
            _check_inner_groups(state, decision, name)


def _check_items(state: State, decision: d.Routing, name: str) -> None:
    """In the items of this execution nothing is under way, what routes run there included."""
    execution = state.existing(decision.step, decision.scope).execution
    items = child(decision.scope, decision.step, execution, 0).removesuffix("0]")
    for node in state.nodes[name].values():
        if node.scope.startswith(items) and not node.complete:
            raise Broken("group", f"on_finish of {decision.step} speaks before {name} in {node.scope}")


def _check_inner_groups(state: State, decision: d.Routing, name: str) -> None:
    """What a list among that has begun to say is said; its items that were routed to since may still run."""
    for node in state.nodes[name].values():
        if within(node.scope, decision.scope) and node.trigger == "on_finish":
            raise Broken("group", f"on_finish of {decision.step} speaks before {name} in {node.scope} has")


def _check_room(state: State, decision: d.AnyDecision) -> None:
    """When something begins to run, there was room for it."""
    if not isinstance(decision, d.Started | d.Asked | d.AttemptStarted):
        return
    nodes = [node for node in state.all_nodes() if node.status in (life.RUNNING, life.ASSUMING)]
    if len(nodes) > state.limit_of_slots:
        raise Broken("slots", f"{len(nodes)} steps run where {state.limit_of_slots} may")
    begun = {ask.step for ask in decision.asks} if isinstance(decision, d.Asked) else {decision.step}
    items: dict[tuple[str, str], int] = {}
    for node in nodes:
        aggregate = state.aggregate_of(node)
        if (
            aggregate is not None and node.step in begun
        ):  # routes may have run others before their fan-out began
            place = aggregate.step, aggregate.scope
            items[place] = items.get(place, 0) + 1
            if items[place] > state.step(node).concurrency:
                raise Broken(
                    "window", f"{items[place]} items of {place} run where {state.step(node).concurrency} may"
                )


def _check_commands(record: Record, commands: Sequence[Command]) -> None:
    """Every start that was decided is commanded, and nothing else is."""
    decided = [decision.call for decision in record.decisions if isinstance(decision, d.Started)]
    commanded = [command.call for command in commands if isinstance(command, StartCall)]
    if decided != commanded:
        raise Broken("commands", f"calls {commanded} are started where {decided} were decided")
    kinds = (d.AttemptStarted, d.AttemptRefused)
    answered = [decision.ticket for decision in record.decisions if isinstance(decision, kinds)]
    let = [each.ticket for each in commands if isinstance(each, LetAttempt) and each.refusal != NO_CALL]
    if answered != let:
        raise Broken("commands", f"attempts {let} are answered where {answered} were decided")


def verdict(state: State) -> str:
    """The verdict by semantics.md 1 to 3, from the nodes alone; where undoing has begun the run had failed (20)."""
    nodes = list(state.all_nodes())
    if any(node.status in (life.HOLDING, life.IN_DOUBT) for node in nodes):
        return "HOLD"
    stopped = state.stopping in ("cancelled", "cancelled_hard", "halted", "budget")
    failed = any(
        node.outcome == "failed"
        or (node.outcome == "skipped" and node.issues and not state.step(node).continue_on_failure)
        or (node.outcome == "cancelled" and state.stopping not in ("fail_fast", "halted", "budget"))
        for node in nodes
    )
    undone = state.undone_for is not None
    return "NO-GO" if failed or stopped or undone or state.breaches else "GO"
