"""Answers kept by key: a call under an `idempotency_key` that was used before is answered from here, not made (G12).

A key is the step's own and known by its digest alone, since it may hold what is secret. It counts for the whole run,
its items and resumes included, until what was done under it is undone.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gonogo.core.events import CallDone
from gonogo.core.state import Kept, State

KEYS_MAX = 10_000
"""Answers kept for a run (law 2); the oldest ones go first."""


def keep(state: State, step: str, scope: str, event: CallDone) -> None:
    """Remember what the first call under a key gave; one that was answered with it tells nothing new."""
    if event.key is None:
        return
    state.answers.setdefault((step, event.key), Kept(scope, event))
    if len(state.answers) > KEYS_MAX:
        del state.answers[next(iter(state.answers))]


def forget(state: State, step: str, scope: str) -> None:
    """What a step did in a scope was undone: its keys are good for another call."""
    for place in [place for place, kept in state.answers.items() if place[0] == step and kept.scope == scope]:
        del state.answers[place]


def answer(kept: CallDone, call: int, at: float, key: str, inputs: Any) -> CallDone:
    """The event of a call that wasn't made. It changes nothing, uses up nothing, and says whose answer it has."""
    meta = {name: value for name, value in kept.meta.items() if name not in ("usage", "gate")}
    return replace(
        kept,
        at=at,
        call=call,
        meta={**meta, "replayed": key},
        memory=(),
        yields_memory=False,
        inputs=inputs,
        effect="none",
    )
