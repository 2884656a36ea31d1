"""The reliability gate: outbound calls go through it, to be tried again, elsewhere or stopped, and it says why.

    from gonogo.gate import Gate

    gate = Gate("weather")
    answer = await gate.call(fetch, "Oslo")

A pure core decides (`machine.py`: events in, decisions and commands out), faces act (`calling.py`, `streaming.py`).
Names are imported when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gonogo.gate.breaker import BreakerPolicy
    from gonogo.gate.budgets import Amounts, Purse, RetryShare
    from gonogo.gate.doubting import doubts
    from gonogo.gate.events import Carried, Usage
    from gonogo.gate.failures import (
        BudgetExceeded,
        CircuitOpen,
        DeadlineExceeded,
        Exhausted,
        GateError,
        Misconfigured,
        NotRetryable,
        PreCheckFailed,
        StepFailed,
        ValidationStuck,
    )
    from gonogo.gate.fronts import HttpAnswer, http_answer
    from gonogo.gate.gate import Gate
    from gonogo.gate.latencies import Latencies
    from gonogo.gate.policy import (
        Backoff,
        Bounds,
        Expression,
        Hedge,
        Policy,
        Predicate,
        Rule,
        Target,
        Timers,
        rule,
    )
    from gonogo.gate.record import CallRecord
    from gonogo.gate.rules import Answer as Judgement
    from gonogo.gate.rules import Choice, decide
    from gonogo.gate.signals import Signal, Test
    from gonogo.gate.step import Answer, Attempt, Chunk, Step, StreamReset
    from gonogo.gate.stores import FileStore, MemoryStore

_HOMES = {
    "breaker": ("BreakerPolicy",),
    "doubting": ("doubts",),
    "budgets": ("Amounts", "Purse", "RetryShare"),
    "events": ("Carried", "Usage"),
    "failures": (
        "BudgetExceeded", "CircuitOpen", "DeadlineExceeded", "Exhausted", "GateError", "Misconfigured", "NotRetryable",
        "PreCheckFailed", "StepFailed", "ValidationStuck",
    ),
    "fronts": ("HttpAnswer", "http_answer"),
    "gate": ("Gate",),
    "latencies": ("Latencies",),
    "policy": ("Backoff", "Bounds", "Expression", "Hedge", "Policy", "Predicate", "Rule", "Target", "Timers", "rule"),
    "record": ("CallRecord",),
    "rules": ("Choice", "decide"),
    "signals": ("Signal", "Test"),
    "step": ("Answer", "Attempt", "Chunk", "Step", "StreamReset"),
    "stores": ("FileStore", "MemoryStore"),
}  # fmt: skip

__all__ = [
    "Amounts", "Answer", "Attempt", "Backoff", "Bounds", "BreakerPolicy", "BudgetExceeded", "CallRecord",
    "Carried", "Choice", "Chunk", "CircuitOpen", "DeadlineExceeded", "Exhausted", "Expression", "FileStore",
    "Gate", "GateError", "Hedge", "HttpAnswer", "Judgement", "Latencies", "MemoryStore", "Misconfigured",
    "NotRetryable", "Policy", "PreCheckFailed", "Predicate", "Purse", "RetryShare", "Rule", "Signal", "Step",
    "StepFailed", "StreamReset", "Target", "Test", "Timers", "Usage", "ValidationStuck", "decide", "doubts",
    "http_answer", "rule",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "Judgement":
        return import_module("gonogo.gate.rules").Answer
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'gonogo.gate' has no attribute {name!r}")
    return getattr(import_module(f"gonogo.gate.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
