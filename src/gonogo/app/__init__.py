"""The one place that puts a run together: journal, host, step types, sandbox, people and watchers.

The command line and programs that embed gonogo call these functions; nothing else wires anything. Blocking
ones
run an event loop of their own; those ending in `_async` belong into one that is running.
"""

from gonogo.app.loading import load, loads, with_limits
from gonogo.app.looking import find_run, list_runs, open_run
from gonogo.app.options import RUNS_DIR, Options, Start, Summary
from gonogo.app.requests import answer_run, cancel_run
from gonogo.app.running import resume_run, resume_run_async, start_run, start_run_async
from gonogo.app.wiring import runs_in
from gonogo.hosts.base import RunResult

__all__ = [
    "RUNS_DIR", "Options", "RunResult", "Start", "Summary", "answer_run", "cancel_run", "find_run", "list_runs", "load",
    "loads", "open_run", "resume_run", "resume_run_async", "runs_in", "start_run", "start_run_async", "with_limits",
]  # fmt: skip
