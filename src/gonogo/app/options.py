"""What the functions of `gonogo.app` are given and give back, beside plans and results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from gonogo.hosts.base import Asker, Log, Sink, nobody, unheard
from gonogo.journal.store import Durability, Runs

if TYPE_CHECKING:
    from gonogo.app.ahead import Ahead
    from gonogo.providers.table import Table

RUNS_DIR = ".gonogo/runs"


class Options(Struct, frozen=True):
    """How a run is hosted, which never changes what it decides.

    `runs`: a folder, or a place that keeps runs (`gonogo.journal.memory.MemoryRuns`). `ask` answers questions,
    `message` the first one. `sinks` are told of each record, `log` of lines for the person who watches. `patience_s`:
    how long a parked run waits for an answer before it ends as HOLD. `signals`: SIGINT and SIGTERM cancel the run
    (main thread only). `env`: variables for this run, over the process's own. `table`: other step types than the
    built-in ones. `ahead`: a sandbox that was started before; the run then starts, as its expressions see it, when
    that was made.
    """

    runs: str | Path | Runs = RUNS_DIR
    durability: Durability = "effects"
    ask: Asker = nobody
    message: str | None = None
    sinks: tuple[Sink, ...] = ()
    log: Log = unheard
    patience_s: float = 0.0
    signals: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    table: Table | None = None
    ahead: Ahead | None = None


def runs_in(options: Options) -> Runs:
    """The place that keeps the runs."""
    if isinstance(options.runs, str | Path):
        from gonogo.journal.jsonl import JsonlRuns

        return JsonlRuns(options.runs, durability=options.durability)
    return options.runs


class Start(Struct, frozen=True):
    """What a run is started with; all of it goes into its first record.

    `trigger` is the event ({name, action, …}) or None for no event, `context` holds pr, files, branch and
    the like, `requested` limits the run to these steps and what they depend on.
    """

    trigger: Mapping[str, Any] | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    requested: tuple[str, ...] = ()
    seed: str | None = None
    run_id: str | None = None
    safe_mode: bool = False


class Summary(Struct, frozen=True):
    """One line of a list of runs. `verdict` None: it is running, or was interrupted. Times are Unix seconds.

    `problem` tells why a run can't be read; then only the id is known.
    """

    run_id: str
    verdict: str | None = None
    name: str = ""
    event: str | None = None
    started_at: float = 0.0
    last_at: float = 0.0
    records: int = 0
    parent: str | None = None
    problem: str | None = None
