"""What workers of one version share. A change of it would have older workers do something else than newer ones mean."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from gonogo.core.commands import StartCall
from gonogo.engines import base
from gonogo.engines.dbos import names
from gonogo.engines.dbos import worker as dbos
from gonogo.engines.temporal import engine, flows
from gonogo.engines.temporal import worker as temporal

RECORDED = {
    "wire": "2",
    "call": "call: int, step: str, scope: str, execution: int, attempt: int, intent: str,"
    " effects: Literal['reads', 'idempotent', 'mutates'], tool: str = ''",
    "dbos version": "gonogo-2",
    "dbos": {
        "gonogo.segment in gonogo-segments": "run_id: str, reopens: bool",
        "gonogo.calls in gonogo-calls-gpu": "run_id: str, calls: list[int], label: str",
    },
    "temporal id": "r-v2",
    "temporal queues": ["q-v2", "q-v2-calls", "q-v2-calls-gpu"],
    "temporal workflows": {
        "gonogo.segment": "run_id: str, reopens: bool, delay_s: float",
        "wake": "reopens: bool",
        "gonogo.calls": "run_id: str, calls: list[int], queue: str",
    },
    "temporal activities": {
        "gonogo.segment": "run_id: str, reopens: bool",
        "gonogo.call": "run_id: str, number: int",
        "gonogo.aside": "run_id: str, number: int | None, times: int",
    },
}


def given(function: Callable[..., Any]) -> str:
    """What a function is called with, as its source says it."""
    found = inspect.signature(function).parameters.values()
    return ", ".join(str(each) for each in found if each.name != "self").replace("'", "")


def of_a_call() -> str:
    """The fields of what a worker is to perform."""
    told = []
    for field in msgspec.structs.fields(StartCall):
        kind = str(field.type).replace("typing.", "") if "Literal" in str(field.type) else field.type.__name__
        default = "" if field.default is msgspec.NODEFAULT else f" = {field.default!r}"
        told.append(f"{field.name}: {kind}{default}")
    return ", ".join(told)


def of_dbos(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Its workflows, as a worker defines them."""
    found: dict[str, str] = {}
    queues = {names.SEGMENT: names.SEGMENTS, names.CALLS_OF: names.queue_of("gpu")}

    def workflow(*, name: str) -> Callable[[Any], Any]:
        return lambda function: found.setdefault(f"{name} in {queues[name]}", given(function))

    monkeypatch.setattr(dbos, "DBOS", SimpleNamespace(workflow=workflow))
    dbos._define(None, None, base.Limits(), None, {names.SEGMENTS: None})  # type: ignore[arg-type, dict-item]
    return found


def test_what_workers_share_is_what_their_version_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, what is given with them, and what a ticket says."""
    activities = {each.__temporal_activity_definition.name: each for each in temporal._activities(None)}  # type: ignore[attr-defined, arg-type]
    shared = {
        "wire": base.WIRE,
        "call": of_a_call(),
        "dbos version": names.VERSION,
        "dbos": of_dbos(monkeypatch),
        "temporal id": engine.workflow_of("r"),
        "temporal queues": [
            engine.queue_of_segments("q"),
            *(engine.queue_of("q", each) for each in ("", "gpu")),
        ],
        "temporal workflows": {
            flows.SEGMENT: given(flows.SegmentFlow.run),
            "wake": given(flows.SegmentFlow.wake),
            flows.CALLS: given(flows.CallsFlow.run),
        },
        "temporal activities": {name: given(each) for name, each in activities.items()},
    }
    assert shared == RECORDED, (
        "what workers share has changed: raise WIRE in engines/base.py, record the new shape here, and say in a"
        " fragment of changes/ that workers of the old version have to stay until its runs are over"
    )
