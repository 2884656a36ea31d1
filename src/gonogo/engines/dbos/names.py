"""Names that every worker and every caller of one database must agree on."""

from __future__ import annotations

import hashlib
import re
import secrets

from gonogo.engines.base import WIRE

VERSION = f"gonogo-{WIRE}"
"""DBOS' application version. Pinned: its default is a hash of source code, and any edit would strand parked runs."""
_SCHEMA = "gonogo_dbos"
_PLAIN = re.compile(r"[a-z0-9_]{1,40}")
SEGMENT = "gonogo.segment"
CALLS_OF = "gonogo.calls"
SEGMENTS = "gonogo-segments"
CALLS = "gonogo-calls"
_SEGMENT_ID = "segment-"
_GROUP_ID = "calls-"


STORE = """
    select coalesce((
        select nspname::text from pg_class join pg_namespace on pg_namespace.oid = relnamespace
        where pg_class.oid = to_regclass('gonogo_runs')
    ), current_schema()::text, 'public')
"""
"""Asks which schema has a store's tables, or will have them."""


def schema_of(store: str) -> str:
    """DBOS' schema for the store in this schema: stores in one database have no queue in common."""
    if store == "public":
        return _SCHEMA
    plain = store if _PLAIN.fullmatch(store) else hashlib.sha256(store.encode()).hexdigest()[:32]
    return f"{_SCHEMA}_{plain}"


def queue_of(label: str) -> str:
    """The queue of calls for workers with this label; without one, for all of them."""
    return f"{CALLS}-{label}" if label else CALLS


def segment_id(run_id: str) -> str:
    """The workflow of a run's segment: of each try to hand it over, since a run has many."""
    return f"{run_id}/{_SEGMENT_ID}{secrets.token_hex(6)}"


def group_id(run_id: str) -> str:
    """The workflow of some calls of a run: of each try to hand them over, since what is left of a group is another."""
    return f"{run_id}/{_GROUP_ID}{secrets.token_hex(6)}"


def run_of(workflow_id: str) -> str | None:
    """The run whose segment a workflow is; None for calls, and for what somebody named otherwise."""
    run_id, _, rest = workflow_id.partition("/")
    return run_id if rest.startswith(_SEGMENT_ID) else None
