"""What the functions of `gonogo.app` are given and give back, beside plans and results."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from gonogo.core.decisions import Wait
from gonogo.core.secrecy import BLOBS
from gonogo.errors import UsageError
from gonogo.hosts.base import Asker, Log, LogLine, Sink, nobody, unheard
from gonogo.journal.postgres.address import Address, secrets_of
from gonogo.journal.standing import standing
from gonogo.journal.store import Durability, Runs

if TYPE_CHECKING:
    from gonogo.app.ahead import Ahead
    from gonogo.providers.table import Table

RUNS_DIR = ".gonogo/runs"
CARRIED = "$engine"
"""Where the first record's context keeps which engine carries the run."""


class Options(Struct, frozen=True):
    """How a run is hosted, which never changes what it decides.

    `runs`: a folder, the URL of a Postgres, or a place that keeps runs (`gonogo.journal.memory.MemoryRuns`). `ask`
    answers questions, `message` the first one. `sinks` are told of each record, `log` of lines for the person who
    watches. `patience_s`: how long a parked run waits for an answer before it ends as HOLD. `signals`: SIGINT and
    SIGTERM cancel the run (main thread only). `env`: variables for this run, over the process's own. `table`: other
    step types than the built-in ones. `ahead`: a sandbox that was started before; the run then starts, as its
    expressions see it, when that was made.
    """

    runs: str | Path | Address | Runs = RUNS_DIR
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
    """The place that keeps the runs. Raises UsageError for a URL of nothing we know, or without its library."""
    place = options.runs
    if isinstance(place, Address) or (isinstance(place, str) and "://" in place):
        return _in_postgres(Address(place) if isinstance(place, str) else place, options)
    if isinstance(place, str | Path):
        from gonogo.journal.jsonl import JsonlRuns

        return JsonlRuns(place, durability=options.durability)
    return place


@contextmanager
def opened(options: Options | None) -> Iterator[tuple[Runs, Options]]:
    """The place that keeps the runs, and options for what is done there meanwhile: whoever opens it here closes it.
    A folder needs no closing, and what lies beside its runs is found by its path. Raises as `runs_in`.
    """
    options = options or Options()
    runs = runs_in(options)
    if runs is options.runs or not isinstance(runs, AbstractContextManager):
        yield runs, options
    else:
        with runs:
            yield runs, replace(options, runs=runs)


def store_secrets(options: Options) -> tuple[str, ...]:
    """The passwords in the address of the place that keeps the runs, which no text may hold."""
    place = options.runs
    if isinstance(place, str | Address):
        return secrets_of(place) if isinstance(place, str) else place.secrets
    address = getattr(place, "address", None)
    return address.secrets if isinstance(address, Address) else ()


def _in_postgres(address: Address, options: Options) -> Runs:
    try:
        from gonogo.journal.postgres.folder import folder_named
        from gonogo.journal.postgres.runs import PostgresRuns
        from gonogo.journal.postgres.seals import SEAL_KEY
    except ImportError as error:
        if not str(error.name).startswith("psycopg") and error.name is not None:
            raise
        raise UsageError(
            f"runs in Postgres need a library that isn't installed or doesn't work: {error}",
            advice="pip install 'gonogo[durable]'",
        ) from error
    return PostgresRuns(
        address,
        durability=options.durability,
        tell=lambda text: options.log(LogLine("", "", "", "warn", text)),
        seal_key=os.environ.get(SEAL_KEY, ""),
        folder=folder_named(os.environ.get(BLOBS, "")),
    )


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
    """One line of a list of runs. `verdict` None: it is `running`, was interrupted (nobody writes it), or is `queued`
    and nobody has begun with it. Times are Unix seconds.

    `problem` tells why a run can't be read; then only the id is known. `interrupted`: its verdict is that of a run
    which a signal stopped. `aside`: why no worker goes on with it until somebody asks for that. Of a run on HOLD
    `waits` are its questions, with times on its own clock, whose zero was at `zero_at`; `wake_at` is when its next
    timer is due, if it has one.
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
    waits: tuple[Wait, ...] = ()
    wake_at: float | None = None
    zero_at: float = 0.0
    queued: bool = False
    aside: str | None = None
    running: bool = False
    interrupted: bool = False

    @property
    def standing(self) -> str | None:
        """How it stands in one word, as its report says it (`gonogo.journal.standing.WORDS`); None when it can't be
        read.
        """
        return (
            None
            if self.problem is not None
            else standing(
                self.verdict,
                interrupted=self.interrupted,
                running=self.running,
                queued=self.queued,
                aside=self.aside,
            )
        )

    def is_due(self, now: float) -> bool:
        """True when a timer of it fell due that nobody was there to notice."""
        return self.wake_at is not None and self.wake_at <= now
