"""The one place that puts a run together: journal, host, step types, sandbox, people and watchers.

The command line and programs that embed gonogo call these functions; nothing else wires anything. Blocking ones
run an event loop of their own; those ending in `_async` belong into one that is running. Names are imported when
they are used: who validates a file or shows a run needs no event loop.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gonogo.app.again import Foreseen, Wish, foresee, run_again_from, run_again_from_async
    from gonogo.app.ahead import Ahead
    from gonogo.app.breakers import isolate_breaker, list_breakers, reset_breaker
    from gonogo.app.loading import load, loads, with_limits
    from gonogo.app.looking import find_run, list_runs, open_run, run_ids, view_run
    from gonogo.app.options import RUNS_DIR, Options, Start, Summary
    from gonogo.app.requests import answer_run, cancel_run
    from gonogo.app.running import resume_run, resume_run_async, start_run, start_run_async
    from gonogo.app.waiting import due_runs, waiting_runs, wake_run
    from gonogo.core.decisions import Wait
    from gonogo.hosts.base import RunResult

__all__ = [
    "RUNS_DIR", "Ahead", "Foreseen", "Options", "RunResult", "Start", "Summary", "Wait", "Wish", "answer_run",
    "cancel_run", "due_runs", "find_run", "foresee", "isolate_breaker", "list_breakers", "list_runs", "load", "loads",
    "open_run", "reset_breaker", "resume_run", "resume_run_async", "run_again_from", "run_again_from_async", "run_ids",
    "start_run", "start_run_async", "view_run", "waiting_runs", "wake_run", "with_limits",
]  # fmt: skip

_HOMES = MappingProxyType(
    {
        "gonogo.app.again": ("Foreseen", "Wish", "foresee", "run_again_from", "run_again_from_async"),
        "gonogo.app.ahead": ("Ahead",),
        "gonogo.app.breakers": ("isolate_breaker", "list_breakers", "reset_breaker"),
        "gonogo.app.loading": ("load", "loads", "with_limits"),
        "gonogo.app.looking": ("find_run", "list_runs", "open_run", "run_ids", "view_run"),
        "gonogo.app.options": ("RUNS_DIR", "Options", "Start", "Summary"),
        "gonogo.app.requests": ("answer_run", "cancel_run"),
        "gonogo.app.running": ("resume_run", "resume_run_async", "run_ids", "start_run", "start_run_async"),
        "gonogo.app.waiting": ("due_runs", "waiting_runs", "wake_run"),
        "gonogo.core.decisions": ("Wait",),
        "gonogo.hosts.base": ("RunResult",),
    }
)


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(home), name)
    raise AttributeError(f"module 'gonogo.app' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
