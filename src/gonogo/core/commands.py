"""What a host must do. A command is complete: the host asks the core for nothing else but the names in scope."""

from __future__ import annotations

from msgspec import Struct

from gonogo.core.plan import Effects


class Ask(Struct, frozen=True, gc=False):
    """One evaluation wanted: an expression, by its number, for a construct (if, assume, when…) of a step."""

    step: str
    scope: str
    construct: str
    expression: int


class Evaluate(Struct, frozen=True, gc=False):
    """Evaluate all asks against the state as it is now; answer with one `Evaluated`."""

    batch: int
    asks: tuple[Ask, ...]


class StartCall(Struct, frozen=True, gc=False):
    """Perform a step. `intent` names the call over retries, crashes and take-overs (semantics.md 17).

    `tool`: it is no call of the run, but a use of this step within the call.
    """

    call: int
    step: str
    scope: str
    execution: int
    attempt: int
    intent: str
    effects: Effects
    tool: str = ""


class LetAttempt(Struct, frozen=True, gc=False):
    """Let an attempt go out that a call's gate asked for by this ticket; with a `refusal`, tell it why it may not.

    `durable`: the record must be safe before.
    """

    call: int
    ticket: int
    refusal: str = ""
    durable: bool = False


class StopCall(Struct, frozen=True, gc=False):
    """Stop a call in flight; answer with its CallFailed of class cancelled, or with its result if it was faster."""

    call: int


class SetTimer(Struct, frozen=True, gc=False):
    """Fire `timer` when the run's clock reaches `due_s`."""

    timer: int
    due_s: float


class ClearTimer(Struct, frozen=True, gc=False):
    """Forget a timer; one that fires nevertheless is ignored."""

    timer: int


class FinishRun(Struct, frozen=True, gc=False):
    """Nothing more will happen: the run is over, or parked until a person acts."""

    verdict: str
    parked: bool = False


Command = Evaluate | StartCall | LetAttempt | StopCall | SetTimer | ClearTimer | FinishRun
