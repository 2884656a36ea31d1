"""An output that a person gives for a call in doubt: as it may be kept, and only if the step could have given it."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from gonogo.app.carried import outermost_of
from gonogo.app.engines import start_of
from gonogo.app.options import Options
from gonogo.app.places import Place
from gonogo.app.wiring import redactor_of
from gonogo.errors import UsageError
from gonogo.hosts.schemas import Schemas
from gonogo.hosts.vault import Vault
from gonogo.journal.handles import shortened
from gonogo.journal.normalise import NotStorable, normalise
from gonogo.journal.redact import Redactor
from gonogo.journal.restoring import state_of
from gonogo.journal.store import Runs

GIVEN_BYTES_MAX = 256 * 1024
"""Bytes of an output as JSON: so much of one is kept in the journal itself."""


def fitting(output: Any, places: list[Place], runs: Runs, options: Options) -> Any:
    """The output as the journal will give it back, secrets masked; UNSET stays so.

    Raises UsageError: it is no plain data, too large, or doesn't fit the schema of a step. JournalError.
    """
    if output is UNSET:
        return UNSET
    try:
        output = normalise(shortened(output), "output", size_bytes_max=GIVEN_BYTES_MAX)
    except NotStorable as problem:
        raise UsageError(
            f"the output can't be kept: {problem}", advice="give plain, smaller data"
        ) from problem
    for run_id in dict.fromkeys(each for place in places for each in _hosted(runs, place)):
        output = _masking(runs, run_id, options).value(output)
    for place in places:
        _refuse_misfit(place, output)
    return output


def _masking(runs: Runs, run_id: str, options: Options) -> Redactor:
    """What the run's host knows: it may be another process, and what is left for it lies there meanwhile."""
    state = state_of(runs.records(run_id))
    redactor = redactor_of(start_of(runs, run_id), state.graph.plan, options)
    Vault(state, runs.seals(run_id), redactor, resumed=True).load()
    return redactor


def _hosted(runs: Runs, place: Place) -> tuple[str, str]:
    """The run that waits, and the one around it whose host both have."""
    return place.run_id, outermost_of(runs, place.run_id)


def _refuse_misfit(place: Place, output: Any) -> None:
    step = place.node.site.part.step
    wrong = Schemas().errors(step.name, step.schema, output) if step.schema is not None else ()
    if wrong:
        raise UsageError(
            f"the output doesn't fit the schema of {place.label}: {'; '.join(wrong[:3])}",
            advice="give what the call gave; nothing was answered",
        )
