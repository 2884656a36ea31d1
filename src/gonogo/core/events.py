"""What can happen to a run. Events are the only way anything, time included, gets into the core.

`at` is seconds on the run's own clock: monotonic from the start of the run, carried on over a resume, never
set back. `started_at_ms` in `RunStarted` places that clock in the world, for people.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from gonogo.core.faults import Effect, Fault, Issue
from gonogo.core.plan import Effects, Plan
from gonogo.expressions.results import MemoryOp, Result


class Event(Struct, frozen=True, omit_defaults=True, tag_field="type", kw_only=True, gc=False):
    """Base of all events. Plain data without cycles, so the garbage collector needn't look."""

    at: float = 0.0


class RunStarted(Event, frozen=True, tag="run_started"):
    """The first event: everything a journal needs to stand alone (semantics.md 12).

    `trigger` is the event as expressions see it ({name, action, …}) or None for no event; `context` holds pr, files,
    branch and the like; `env` is already filtered; `requested` limits the run to these steps and what they depend on.
    `host` is who decides, for people: nothing is decided by it.
    """

    run_id: str
    plan: Plan
    started_at_ms: int
    seed: str = ""
    trigger: dict[str, Any] | None = None
    context: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    env: dict[str, Any] = {}
    arguments: dict[str, Any] = {}
    requested: tuple[str, ...] = ()
    parent: dict[str, Any] | None = None
    safe_mode: bool = False
    format_version: int = 1
    core_version: str = ""
    host: str = ""


class Evaluated(Event, frozen=True, tag="evaluated"):
    """The answers to one batch, in the order they were asked."""

    batch: int
    results: tuple[Result, ...]
    duration_ms: float = 0.0


class CallDone(Event, frozen=True, tag="call_done"):
    """A call returned. `output` UNSET means the provider gave none (JavaScript's undefined).

    `yields_memory`: the output is the result of the last memory operation, computed when it is applied.
    `inputs` are the rendered inputs of the attempt, secrets as handles. `key`: the digest of the key that the step's
    `idempotency_key` gave, if it has one. `by`: the worker that performed it, where that wasn't the run's own host.
    """

    call: int
    output: Any = UNSET
    issues: tuple[Issue, ...] = ()
    meta: dict[str, Any] = {}
    memory: tuple[MemoryOp, ...] = ()
    yields_memory: bool = False
    schema_errors: tuple[str, ...] = ()
    content: str | None = None
    inputs: Any = None
    effect: Effect = "done"
    key: str | None = None
    by: str = ""


class CallFailed(Event, frozen=True, tag="call_failed"):
    """A call failed; whatever output and issues it left are kept."""

    call: int
    fault: Fault
    output: Any = UNSET
    issues: tuple[Issue, ...] = ()
    meta: dict[str, Any] = {}
    memory: tuple[MemoryOp, ...] = ()
    content: str | None = None
    inputs: Any = None
    effect: Effect = "none"
    by: str = ""


class CallParked(Event, frozen=True, tag="call_parked"):
    """A call waits for a person. `default` answers when `timeout_s` runs out; without one a timeout is a failure."""

    call: int
    prompt: str = ""
    details: dict[str, Any] = {}
    timeout_s: float | None = None
    default: str | None = None


class CallLost(Event, frozen=True, tag="call_lost"):
    """A call was in flight when its host died, or the worker that had it (`by`); nobody knows what became of it."""

    call: int
    by: str = ""


class Told(Struct, frozen=True, omit_defaults=True, gc=False):
    """One thing that a call's gate decided, at `at_s` on the call's own clock: its kind, its sentence, its evidence."""

    kind: str
    text: str
    at_s: float = 0.0
    data: dict[str, Any] = {}


class AttemptAsked(Event, frozen=True, tag="attempt_asked"):
    """The gate of a call in flight wants to call a target: attempt `number` of the call's request `request`.

    Asked before anything goes out, so for an attempt that mutates its start is the durable intent (semantics.md 23).
    `ticket` tells the wishes of a call apart. `tool`: the step that is used within the call, if it is that one's gate.
    `tokens` and `money` are what it may use. `elapsed_s`: how long the request has been under way. `told`: what the
    gate has decided since the last event of the request. `beneath`: not this run's own attempt, but what a run beneath
    this call wants to spend, `calls` of it included.
    """

    call: int
    ticket: int
    request: int = 1
    tool: str = ""
    number: int = 1
    target: str = ""
    effects: Effects = "idempotent"
    tokens: int = 0
    money: float = 0.0
    calls: int = 0
    beneath: str = ""
    elapsed_s: float = 0.0
    told: tuple[Told, ...] = ()


class AttemptEnded(Event, frozen=True, tag="attempt_ended"):
    """An attempt that was let go has come to its end; `kind` names its failure, empty for an answer.

    `out`: why its target serves the request no more. `wrong`: what the validator said of its answer. `next`: the target
    that the request goes on to. `over`: it ends with this attempt.
    """

    call: int
    ticket: int
    kind: str = ""
    status: int | None = None
    effect: Effect = "done"
    input_tokens: int = 0
    output_tokens: int = 0
    money: float = 0.0
    out: str = ""
    wrong: str | None = None
    next: str = ""
    over: bool = False
    elapsed_s: float = 0.0
    told: tuple[Told, ...] = ()


class GateWaits(Event, frozen=True, tag="gate_waits"):
    """The gate of a call waits so long before its next attempt that others may have the call's slot meanwhile."""

    call: int
    wait_s: float
    request: int = 1
    tool: str = ""
    target: str = ""
    elapsed_s: float = 0.0
    told: tuple[Told, ...] = ()


class GateEnded(Event, frozen=True, tag="gate_ended"):
    """A request of a call is over without another attempt."""

    call: int
    request: int = 1
    tool: str = ""
    told: tuple[Told, ...] = ()


class TimerFired(Event, frozen=True, tag="timer_fired"):
    """A timer that was set came due."""

    timer: int


class AnswerGiven(Event, frozen=True, tag="answer_given"):
    """A person answered a hold, or said what became of a call in doubt (a word of `holds.WORDS`).

    `request` is the id of the message that brought it, so that one message is never acted on twice. `start`: which call
    of the step it is about, by how many there had been when it was given; 0 is whichever waits. Else a word that is
    given twice, for no answer came at first, could be taken for one about a later call, which nobody has looked at.
    `output`: what a call in doubt gave that was done, where somebody knows.
    """

    step: str
    text: str
    scope: str = ""
    by: str = ""
    request: str = ""
    start: int = 0
    output: Any = UNSET


class CancelAsked(Event, frozen=True, tag="cancel_asked"):
    """Someone wants the run to stop; the second time cleanup stops too. `interrupted` when it was Ctrl-C or a signal.

    `request` is the id of the message that brought it, so that one message is never acted on twice.
    """

    by: str = ""
    interrupted: bool = False
    request: str = ""


class Resumed(Event, frozen=True, tag="resumed"):
    """A host goes on with the run after a stop, whatever the reason was.

    `reopens`: what a cancel ended may run again. Who only answers a question of a cancelled run doesn't ask for that.
    """

    by: str = ""
    reopens: bool = True


class GivenOutput(Struct, frozen=True, omit_defaults=True):
    """What a person gives in place of a run of a step."""

    step: str
    output: Any
    scope: str = ""


class RerunAsked(Event, frozen=True, tag="rerun_asked"):
    """A person wants steps to run again, or gives their outputs, and a host goes on with the run for it (as `Resumed`).

    `steps`: step and scope pairs, which run again with what depends on them. `plan`: the workflow as it is from now on;
    its expressions begin with those of the plan before (`revising.renumbered`), so that older records keep their sense.
    `request` is the id of the message that brought it, if one did. `host`: as in `RunStarted`.
    """

    by: str = ""
    host: str = ""
    steps: tuple[tuple[str, str], ...] = ()
    outputs: tuple[GivenOutput, ...] = ()
    plan: Plan | None = None
    request: str = ""


AnyEvent = (
    RunStarted
    | Evaluated
    | CallDone
    | CallFailed
    | CallParked
    | CallLost
    | AttemptAsked
    | AttemptEnded
    | GateWaits
    | GateEnded
    | TimerFired
    | AnswerGiven
    | CancelAsked
    | Resumed
    | RerunAsked
)
__all__ = [
    "UNSET", "AnswerGiven", "AnyEvent", "AttemptAsked", "AttemptEnded", "CallDone", "CallFailed", "CallLost",
    "CallParked", "CancelAsked", "Evaluated", "Event", "GateEnded", "GateWaits", "GivenOutput", "RerunAsked", "Resumed",
    "RunStarted", "TimerFired", "Told", "UnsetType",
]  # fmt: skip
