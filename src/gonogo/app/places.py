"""Where a run waits for a person, found by the name of a step: in the run itself, in items of lists, in runs beneath.

A name may be a pattern (`*` any text, `?` one sign), and one without a scope stands for whatever of the step waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gonogo.core import approvals, lifecycle
from gonogo.core.exhaustion import CHOICES, is_choice
from gonogo.core.holds import SEALED, SEALED_WORDS
from gonogo.core.holds import WORDS as IN_DOUBT_WORDS
from gonogo.core.scope import step_at
from gonogo.core.state import Node, State
from gonogo.errors import UsageError
from gonogo.journal.restoring import state_of
from gonogo.journal.store import Runs

ANY = "*"
SHOWN_MAX = 5


class Place(Struct, frozen=True):
    """A node that waits in run `run_id`, which may be beneath the one that was named; `label`: as seen from that."""

    run_id: str
    node: Node
    label: str

    @property
    def in_doubt(self) -> bool:
        """Whether it is a call that nobody knows the end of."""
        return self.node.status == lifecycle.IN_DOUBT


def places_of(runs: Runs, run_id: str, step: str, scope: str, *, every: bool = False) -> list[Place]:
    """The places an answer is for: one, or all that fit if `every` one is meant.

    Raises UsageError: nothing there waits, or several do and one is meant. JournalError.
    """
    state = state_of(runs.records(run_id))
    found = list(_found(runs, state, step, scope))
    bare = [place for place in found if not scope and not place.node.scope and place.run_id == run_id]
    if not every and len(bare) == 1 and bare[0].label == step:
        return bare
    if not found:
        raise _waits_for_nothing(runs, state, step, scope)
    if len(found) > 1 and not every:
        name = step_at(step, scope)
        raise UsageError(
            f"{len(found)} of {name} wait: {listed(found)}",
            advice="name one of them, or answer all of them alike with --all",
        )
    return found


def all_places(runs: Runs, run_id: str) -> list[Place]:
    """Wherever a run waits for a person, and those beneath it. Raises JournalError."""
    return list(_found(runs, state_of(runs.records(run_id)), ANY, ANY))


def doubts_of(runs: Runs, run_id: str) -> list[Place]:
    """All calls in doubt of a run, and of those beneath it. Raises JournalError."""
    return [place for place in all_places(runs, run_id) if place.in_doubt]


def listed(places: list[Place]) -> str:
    """The first few of them, and how many more there are."""
    return named([place.label for place in places])


def named(labels: Sequence[str]) -> str:
    """As `listed`."""
    shown = ", ".join(labels[:SHOWN_MAX])
    more = len(labels) - SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown


def waits(node: Node) -> bool:
    """Whether a person must act."""
    return node.status in (lifecycle.HOLDING, lifecycle.IN_DOUBT)


def end_of(state: State) -> str | None:
    """The verdict of a run that nobody is at work on and nothing is waited for in."""
    return state.finished.verdict if state.finished is not None and not state.finished.parked else None


def words_of(node: Node) -> tuple[str, ...]:
    """The words that a step takes; empty for any text."""
    if is_choice(node):
        return CHOICES
    if node.status == lifecycle.IN_DOUBT:
        return IN_DOUBT_WORDS
    if node.hold is not None and SEALED in node.hold.details:
        return SEALED_WORDS
    return approvals.WORDS if node.hold is not None and node.hold.quorum is not None else ()


def _found(
    runs: Runs, state: State, step: str, scope: str, seen: frozenset[str] = frozenset()
) -> Iterator[Place]:
    """Through workflow steps (of the runs `seen` so far) to where somebody waits."""
    outer, _, inner = (step, "", "") if step in state.nodes else step.partition(".")
    nodes = () if end_of(state) is not None else [node for node in state.all_nodes() if waits(node)]
    named = [node for node in nodes if approvals.fits(outer, node.step)]
    here = [node for node in named if not scope or approvals.fits(scope, node.scope)]
    seen |= {state.run_id}
    for node in here or (named if inner else ()):
        child = node.hold.details.get("child") if node.hold is not None else None
        label = _label(node)
        if isinstance(child, str) and child not in seen:
            beneath = state_of(runs.records(child))
            within = scope if inner and (node not in here or scope == ANY) else ""
            for place in _found(runs, beneath, inner or ANY, within, seen):
                yield Place(place.run_id, place.node, f"{label}.{place.label}")
        elif not inner:
            yield Place(state.run_id, node, label)


def _label(node: Node) -> str:
    return step_at(node.step, node.scope)


def _waits_for_nothing(runs: Runs, state: State, step: str, scope: str) -> UsageError:
    from gonogo.app.taken import SHOWN, told_of

    end = end_of(state)
    if end is not None:
        return UsageError(
            f"run {state.run_id} is over: {end}; nothing of it waits for an answer",
            advice=f"'gonogo show {state.run_id}' shows how it ended",
        )
    waiting = [Place(state.run_id, node, _label(node)) for node in state.all_nodes() if waits(node)]
    outer, _, inner = step.partition(".")
    if inner and step not in state.nodes and any(place.node.step == outer for place in waiting):
        return UsageError(
            f"{outer} waits for no run of its own just now in which {inner} could take an answer",
            advice=f"'gonogo show {state.run_id}' shows what waits",
        )
    node = state.nodes.get(step, {}).get(scope)
    if node is not None and (reason := approvals.past(node)) != "nothing":
        return UsageError(told_of(state, step, scope, reason), advice=SHOWN.format(run=state.run_id))
    name = f"{step!r} in {scope}" if scope else repr(step)
    if waiting:
        advice = f"these wait: {listed(list(_found(runs, state, ANY, ANY)) or waiting)}"
    else:
        advice = (
            f"nothing of this run waits; 'gonogo show {state.run_id}' says how it stands and how to go on"
        )
    return UsageError(f"step {name} waits for nothing", advice=advice)
