"""Names that every worker and every caller of one database must agree on."""

from __future__ import annotations

from gonogo.engines.base import WIRE

VERSION = f"gonogo-{WIRE}"
"""DBOS' application version. Pinned: its default is a hash of source code, and any edit would strand parked runs."""
SCHEMA = "gonogo_dbos"
SEGMENT = "gonogo.segment"
CALL = "gonogo.call"
SEGMENTS = "gonogo-segments"
CALLS = "gonogo-calls"
_DIGITS_MAX = 18
"""Of a call's number; the store has 64 bits for it."""


def queue_of(label: str) -> str:
    """The queue of calls for workers with this label; without one, for all of them."""
    return f"{CALLS}-{label}" if label else CALLS


def call_id(run_id: str, call: int) -> str:
    """The workflow of a call. The same for every try to hand it over, so it is one workflow."""
    return f"{run_id}/{call}"


def place_of(workflow_id: str) -> tuple[str, int | None]:
    """Run and call (None: a segment) of a workflow, whoever named it."""
    run_id, _, rest = workflow_id.partition("/")
    return run_id, int(rest) if rest.isascii() and rest.isdigit() and len(rest) <= _DIGITS_MAX else None
