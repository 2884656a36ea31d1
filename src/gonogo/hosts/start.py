"""The first record of a run: complete, plain JSON, without secrets (semantics.md 12)."""

from __future__ import annotations

import secrets
import time

from msgspec.structs import replace

from gonogo.core.events import RunStarted
from gonogo.errors import UsageError
from gonogo.journal.handles import shortened
from gonogo.journal.normalise import NotStorable, normalise_event
from gonogo.journal.redact import Redactor


def new_run_id() -> str:
    """An id that sorts by time and is unique: `20261130-141503-042ab2` (UTC; milliseconds, then chance)."""
    milliseconds = time.time_ns() // 1_000_000
    day = time.strftime("%Y%m%d-%H%M%S", time.gmtime(milliseconds // 1000))
    return f"{day}-{milliseconds % 1000:03d}{secrets.token_hex(2)[:3]}"


def first_event(event: RunStarted, redactor: Redactor) -> RunStarted:
    """The event as the journal will give it back, secrets masked. Only a run above can hand handles on (as inputs).

    Raises:
        UsageError: a part of it is no plain data.
    """
    take = shortened if event.parent is None else lambda value: value
    masked = replace(
        event,
        trigger=redactor.value(take(event.trigger)),
        context=redactor.value(take(event.context)),
        inputs=redactor.value(take(event.inputs)),
        env=redactor.value(take(event.env)),
        arguments=redactor.value(take(event.arguments)),
    )
    try:
        stored = normalise_event(masked)
    except NotStorable as problem:
        raise UsageError(f"the run can't be started: {problem}", advice="give plain data") from problem
    assert isinstance(stored, RunStarted)
    return stored
