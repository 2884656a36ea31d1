"""What a host is given (`Surroundings`), what it asks of people, and what a run came to (`RunResult`).

Shared by all hosts and by those who start them; nothing here acts. `app/wiring.py` fills in `Surroundings`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from gonogo.hosts.kept import Kept
from gonogo.hosts.outbound import Outbound

if TYPE_CHECKING:
    from gonogo.core.faults import Fault
    from gonogo.core.plan import Plan
    from gonogo.core.state import State
    from gonogo.expressions.sandbox import Sandbox
    from gonogo.hosts.above import Above
    from gonogo.hosts.slots import Places
    from gonogo.hosts.spread import Spread
    from gonogo.journal.records import Record
    from gonogo.journal.redact import Redactor
    from gonogo.journal.store import Runs
    from gonogo.providers.table import Table

EXIT_CODES = {"GO": 0, "NO-GO": 1, "HOLD": 3}
EXIT_INTERRUPTED = 130


class LogLine(Struct, frozen=True):
    """A line for the person who watches. `level` is debug, info, warn, error, or progress: what a call is doing now,
    of which only the latest line matters. Secrets are masked.
    """

    run_id: str
    step: str
    scope: str
    level: str
    text: str


class Question(Struct, frozen=True):
    """What a step asks of the person at hand."""

    run_id: str
    step: str
    scope: str
    prompt: str
    multiline: bool = False
    secret: bool = False


Sink = Callable[["Record"], None]
"""Told of each record of the run (not of its children) after it is in the journal. What it raises is dropped:
watching never changes a run.
"""
Log = Callable[[LogLine], None]
Asker = Callable[[Question], Awaitable[str | None]]
"""Answers a question; None when nobody is there."""


def unheard(line: LogLine) -> None:
    """Nobody watches."""


async def nobody(question: Question) -> str | None:
    """Nobody is at hand: what asks waits, and the run may end in HOLD."""
    return None


class Surroundings(Struct, frozen=True):
    """Everything around a run. Children get the same.

    `new_sandbox` makes a run's sandbox from the Unix time in ms at which the run started. `environment` is the real
    one, secrets included, for references and commands; `overlay` the part of it that was given for this run.
    `plan_of` loads the plan of a file a workflow step names. `patience_s` is how long a parked run waits for an
    answer or a timer. `slots` bounds calls over a run and its children together (case CON-2), `places` those of
    this process, whatever runs they are of; None: nothing does.
    `outbound` is what their gates share, `above` where a run beneath another asks before it spends.
    `spread` is how calls get to other workers, where there are any; `kept` whose slots are kept, after a take-over.
    """

    table: Table
    runs: Runs
    new_sandbox: Callable[[float], Sandbox]
    redactor: Redactor
    environment: Mapping[str, str]
    overlay: Mapping[str, str] = field(default_factory=dict)
    working_directory: str = "."
    plan_of: Callable[[str], Plan] | None = None
    ask: Asker = nobody
    sinks: tuple[Sink, ...] = ()
    log: Log = unheard
    patience_s: float = 0.0
    slots: Places | None = None
    places: Places | None = None
    outbound: Outbound = field(default_factory=Outbound)
    above: Above | None = None
    spread: Spread | None = None
    kept: Kept = field(default_factory=Kept)


class RunResult(Struct, frozen=True):
    """How a run stands after its host let go of it.

    `verdict`: GO, NO-GO or HOLD. `because`: what made it NO-GO. `waiting`: places (`step` or `step@scope`) that wait
    for a person. `wakes_in_s`: seconds until a timer of a run that waits comes due. `outputs`: what the file declares
    as outputs, None where it declares none. `fault`: the first failure that counts. `notes`: warnings about the journal
    or the outputs. `state` is the core's own; read it, don't change it.
    """

    run_id: str
    verdict: str
    state: State
    because: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    interrupted: bool = False
    outputs: Any = None
    fault: Fault | None = None
    notes: tuple[str, ...] = ()
    wakes_in_s: float | None = None

    @property
    def exit_code(self) -> int:
        """0 GO, 1 NO-GO, 3 HOLD, 130 interrupted (cli.md)."""
        return EXIT_INTERRUPTED if self.interrupted else EXIT_CODES[self.verdict]

    def output(self, step: str) -> Any:
        """A step's output as an expression of the run would see it; a fan-out's is a list. Raises KeyError."""
        from gonogo.core.values import output_of

        return output_of(self.state.nodes[step].get(""), self.state)
