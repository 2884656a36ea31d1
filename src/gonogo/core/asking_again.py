"""A person has steps of a run run again: which ones that takes, whether it can be, and how the run goes on.

The steps that are named, those whose outputs are given, and all that depends on them: one wave (semantics.md 7). With
them goes what a stop of the run kept from running, what was undone since (semantics.md 20), and what was skipped by
words that are changed now. What only a route runs waits for its route again. All else stays, and is called no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from shlex import quote

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import holds, resuming, revising, routing, spending, stopping
from gonogo.core import lifecycle as life
from gonogo.core.absorb import absorb
from gonogo.core.dependencies import rest_at
from gonogo.core.plan import Plan
from gonogo.core.planning import plan_run
from gonogo.core.reruns import add_never_run, dependents_of
from gonogo.core.revising import Place, Unfit, has_run, is_among
from gonogo.core.scope import ROOT, enclosing, outward, step_at
from gonogo.core.state import Node, State
from gonogo.core.suppression import kept_back_by
from gonogo.core.turn import Turn

__all__ = ["Look", "Unfit", "look_at", "rerun"]

STOPS = frozenset({"fail_fast", "halted", "budget", "cancelled", "cancelled_hard"})
BY_A_STEP = frozenset({"fail_fast", "halted"})


@dataclass(slots=True)
class Look:
    """What a wish takes.

    `members`: places that run again, or are given, each with why: asked, given, behind (it depends on another member),
    stopped, undone, changed or never_ran. `unrouted`: those that wait for a route again. `spared`: one_shot steps that
    have had their run. `acts_again`: members that have acted before, themselves or by a workflow they run, and that
    nobody named. `begins`: steps that the run hasn't come to yet.
    """

    asked: tuple[Place, ...] = ()
    given: tuple[Place, ...] = ()
    members: dict[Place, str] = field(default_factory=dict)
    unrouted: tuple[Place, ...] = ()
    spared: tuple[Place, ...] = ()
    acts_again: tuple[Place, ...] = ()
    begins: tuple[str, ...] = ()


def look_at(state: State, event: e.RerunAsked) -> Look:
    """What the wish takes, decided as for the run itself. Uses up `state`, which must be the caller's own.

    Raises Unfit: the run can't go on like this.
    """
    if event.plan is not None:
        revising.refuse_removed(state, event.plan)
    absorb(state, event)
    return _begin(Turn(state), event)


def rerun(turn: Turn, event: e.RerunAsked) -> None:
    """Go on with the run for the wish. Raises Unfit, where `look_at` does: a host asks that first."""
    spending.disarm(turn)
    stopping.forget_cleanup(turn)
    found = _begin(turn, event)
    state, wave = turn.state, turn.state.last_wave + 1
    for place in found.spared:
        turn.decide(d.OneShotSkip(*place, event.by or "a person"))
    for place in (*found.members, *found.unrouted):
        waiting = state.node(*place)
        if waiting is not None:
            routing.give_up(turn, waiting)
    revised = event.plan.digest if event.plan is not None else None
    turn.decide(
        d.Rerun(event.by, wave, found.asked, found.given, tuple(found.members), found.unrouted, revised)
    )
    for given in event.outputs:
        _give(turn, given, event.by, wave)
    for place in found.members:
        node = state.node(*place)
        if node is not None:
            routing.abandon_waits(turn, node)
    resuming.resume(turn, reopens=False)


def _give(turn: Turn, given: e.GivenOutput, by: str, wave: int) -> None:
    """The word of a person passes the step; nothing of it is judged, and what follows a pass follows (routing)."""
    node = turn.state.node(given.step, given.scope)
    if node is None:
        return  # an output given before it has sent the run to make its list again
    turn.decide(d.Given(node.step, node.scope, by, given.output, node.execution + 1, wave))
    block = turn.step(node).on_success
    speaks = block is not None and turn.state.aggregate_of(node) is None
    rest = "open" if speaks else rest_at(turn.state, node.site, node.scope, node)
    turn.decide(d.Ended(node.step, node.scope, "passed", f"set by {by or 'a person'}", rest=rest))
    if speaks:
        routing.begin(turn, node, "on_success")


# --- what it takes


def _begin(turn: Turn, event: e.RerunAsked) -> Look:
    state, before = turn.state, turn.state.plan_before
    if before is not None:
        planned = plan_run(turn.graph, state)
        if isinstance(planned, d.Refusal):
            raise Unfit(planned.issue.message, "mend the workflow file")
        turn.decide(planned)
    _refuse_run(state)
    found = Look(
        asked=tuple(dict.fromkeys(_place(state, *place) for place in event.steps)),
        given=tuple(_given_place(state, each) for each in event.outputs),
    )
    _gather(state, found, before)
    for step, scope in found.given:
        if (step, scope) not in found.members:
            raise Unfit(
                f"{step}@{scope} is an item of a list that runs again whole", "give its list, or no output"
            )
    _refuse_stopped(state, found)
    _refuse_doubtful(state, found)
    if before is not None:
        revising.check(state, before, found.members)
    found.acts_again = tuple(place for place in found.members if _acts_again(state, found, place))
    found.begins = _to_begin(state, found)
    if not (found.members or found.begins or any(not node.complete for node in state.all_nodes())):
        raise Unfit("nothing of this run would run", "name a step with --from")
    return found


def _refuse_run(state: State) -> None:
    """Runs of which nothing can run again, whatever is asked for."""
    if not state.included:
        raise Unfit("this run has no steps that could run again", "start a new one")
    if state.undoing is not None:
        raise Unfit(
            f"the run was cut short while it undid what {state.undoing.step} did",
            f"let it finish first: gonogo resume {state.run_id}",
        )


def _place(state: State, step: str, scope: str) -> Place:
    """A place that can run. Raises Unfit."""
    if step not in state.graph.steps:
        raise Unfit(f"there is no step {step!r}", f"there are: {', '.join(list(state.graph.steps)[:20])}")
    if step not in state.included:
        raise Unfit(f"step {step!r} is no part of this run: {state.excluded.get(step)}", "start a new run")
    nodes = state.nodes[step]
    if (scope and scope not in nodes) or (not scope and nodes and ROOT not in nodes):
        there = ", ".join(f"{step}@{each}" for each in list(nodes)[:5] if each)
        raise Unfit(f"step {step!r} hasn't run in {scope or 'the run itself'}", f"it ran as: {there or step}")
    return step, scope


def _given_place(state: State, given: e.GivenOutput) -> Place:
    step, scope = _place(state, given.step, given.scope)
    node = state.node(step, scope)
    site = node.site if node is not None else state.graph.parts[step].root
    if not site.leaf:
        raise Unfit(f"step {step!r} runs once per item", f"give the output of an item: {step}@SCOPE.output=…")
    allowed = state.graph.plan.limits.max_items
    if state.graph.steps[step].for_each and isinstance(given.output, list) and len(given.output) > allowed:
        raise Unfit(
            f"a list of {len(given.output)} items is more than limits.max_items ({allowed})", "give fewer"
        )
    return step, scope


def _gather(state: State, found: Look, before: Plan | None) -> None:
    """Everything that goes with the wish, in the order in which it was come to."""
    seeds = dict.fromkeys(found.asked, "asked") | dict.fromkeys(found.given, "given")
    along = dict.fromkeys(found.asked)
    for place in found.asked:
        add_never_run(state, along, *place)
    for reason, places in (
        ("never_ran", along),
        ("undone", (place for place in state.undone if state.node(*place) is not None)),
        ("stopped", _stopped(state)),
        ("changed", _changed(state, before) if before is not None else ()),
    ):
        for place in places:
            seeds.setdefault(place, reason)
    taken = _with_dependents(state, seeds)
    named = {*found.asked, *found.given}
    routed = {place for place, reason in taken.items() if reason == "routed"}
    found.unrouted = tuple(place for place in taken if place in routed)
    found.spared = tuple(
        place for place in taken if place not in named | routed and _has_had_its_run(state, place)
    )
    left_out = routed | {*found.spared}
    found.members = {
        place: reason
        for place, reason in taken.items()
        if place not in left_out and not _lies_within(taken, place)
    }
    found.asked = tuple(place for place in found.asked if place in found.members)


def _with_dependents(state: State, seeds: dict[Place, str]) -> dict[Place, str]:
    """The seeds and all behind them; what only a route runs is told apart (`routed`), with what it was routed by."""
    routed_by: dict[Place, list[Place]] = {}
    for node in state.all_nodes():
        if node.requester is not None and node.step in state.held_back:
            routed_by.setdefault(node.requester, []).append((node.step, node.scope))
    taken = dict(seeds)
    looked_at = list(seeds)
    for place in looked_at:
        behind = (other for other in dependents_of(state, *place) if other not in taken)
        for other in (*behind, *(other for other in routed_by.get(place, ()) if other not in taken)):
            reached = state.node(*other)
            if other[0] in state.held_back:
                if reached is None or not reached.complete or state.aggregate_of(reached) is not None:
                    continue  # never sent for, or under way: it comes to its own end; or one item of a list of them
                taken[other] = "routed"
            elif reached is None and other[0] not in state.included:
                continue
            else:
                taken[other] = "behind"
            looked_at.append(other)
    return taken


def _stopped(state: State) -> Iterator[Place]:
    """What the stop of a run ended or kept from running."""
    if state.stopping not in STOPS:
        return
    for node in state.all_nodes():
        ended = node.outcome == "cancelled" or (node.outcome == "skipped" and node.reason in STOPS)
        if node.complete and ended and not (node.step in state.held_back and node.wave == 0):
            yield node.step, node.scope
        elif node.outcome == "passed" and node.step in state.kept_back:
            yield from kept_back_by(state, node)  # it passed while the run stopped, which set nobody free


def _changed(state: State, before: Plan) -> Iterator[Place]:
    """Steps that were skipped, or that the run was only coming to, by words that aren't theirs any more."""
    before = revising.renumbered(before, before)
    for name, nodes in state.nodes.items():
        if (
            name not in before.steps
            or any(has_run(node) for node in nodes.values())
            or name in state.held_back
        ):
            continue
        if nodes and name in state.included and revising.changed_keys(before, state.graph.plan, name):
            yield from ((name, scope) for scope in nodes)


def _has_had_its_run(state: State, place: Place) -> bool:
    """A one_shot step that was undone counts as not done: semantics.md 20 comes before spec C.15."""
    return (
        state.graph.parts[place[0]].one_shot and state.runs_before(*place) > 0 and place not in state.undone
    )


def _lies_within(taken: Iterable[Place], place: Place) -> bool:
    """True for an item of a fan-out that is taken whole."""
    step, scope = place
    return bool(scope) and any((step, outer) in taken for outer in outward(enclosing(scope)))


def _refuse_doubtful(state: State, found: Look) -> None:
    """Whether a mutating call was done must be known before another one is made."""
    for step, scope in found.members:
        for node in () if (step, scope) in found.given else list(state.nodes[step].values()):
            lost = node.status in life.CALLED and not resuming.may_be_lost(node)
            if (lost or node.status == life.IN_DOUBT) and is_among(node, ((step, scope),)):
                place = step_at(node.step, node.scope)
                move = f"gonogo answer {state.run_id} {quote(place)} {quote('|'.join(holds.WORDS))}"
                raise Unfit(
                    f"nobody knows whether {place} was done, which would run again",
                    f"say so first: {f'gonogo resume {state.run_id}, then ' if lost else ''}{move}",
                )


def _refuse_stopped(state: State, found: Look) -> None:
    """A run that a step stopped goes on only if that step runs again: its failure would stop it again."""
    by = state.stopped_by
    if state.stopping in BY_A_STEP and by is not None and all(step != by for step, _ in found.members):
        raise Unfit(
            f"step {by!r} stopped the run ({state.stopping}) and would stay as it is",
            f"run it again, too: --from {by}",
        )


def _acts_again(state: State, found: Look, place: Place) -> bool:
    """A member that nobody named, and that has changed something outside which wasn't undone. Who names a step that
    runs a workflow has named none of that one's steps.
    """
    step = state.graph.steps[place[0]]
    named = place in found.asked and step.type != "workflow"
    if named or place in found.given or place in state.undone or not step.mutates:
        return False
    return any(
        _has_acted(state, node) and is_among(node, (place,)) for node in state.nodes[step.name].values()
    )


def _has_acted(state: State, node: Node) -> bool:
    if node.fan is not None or (node.step, node.scope) in state.undone:
        return False
    return node.execution > 0 and (node.effect != "none" or node.status in (life.IN_DOUBT, *life.CALLED))


def _to_begin(state: State, found: Look) -> tuple[str, ...]:
    """Steps of the run without a trace so far."""
    return tuple(
        name
        for name in state.graph.steps
        if name in state.may_begin and not state.nodes[name] and (name, ROOT) not in found.members
    )
