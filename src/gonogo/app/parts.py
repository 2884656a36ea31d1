"""The parts that are made without a run: the place that keeps runs, a sandbox, the table of step types."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gonogo.app.options import Options
    from gonogo.expressions.sandbox import Sandbox
    from gonogo.journal.store import Runs
    from gonogo.providers.table import Table


def runs_in(options: Options) -> Runs:
    """The place that keeps the runs."""
    if isinstance(options.runs, str | Path):
        from gonogo.journal.jsonl import JsonlRuns

        return JsonlRuns(options.runs, durability=options.durability)
    return options.runs


def new_sandbox(started_at_ms: float) -> Sandbox:
    """The sandbox of a run that started then (Unix time, ms); its process starts at the first expression."""
    from gonogo.expressions.sandbox import Sandbox

    return Sandbox(started_at_ms)


def built_in_table() -> Table:
    """The built-in step types and those of installed packages."""
    from gonogo.providers.table import built_in

    return built_in()
