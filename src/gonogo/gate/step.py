"""What goes through a gate: a step says how to call a target and how to read what comes back. Nothing here acts."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable
from typing import Any, Literal

from msgspec import Struct

from gonogo.core.plan import Effects
from gonogo.gate.budgets import Amounts
from gonogo.gate.events import Carried, Usage
from gonogo.gate.policy import Target
from gonogo.gate.record import CallRecord
from gonogo.gate.signals import Signal, Test


class Attempt(Struct, frozen=True):
    """What a step is called with. `timeout_s` is all the time it has; the gate cuts it off then.

    `feedback` is to be told to the model after `rejected`, its own answer that wasn't valid. `partial` is the text to
    go on from (mode continue). `key` is the call's idempotency key, the same for all its attempts.
    """

    number: int
    target: Target
    timeout_s: float
    connect_s: float
    key: str | None = None
    feedback: str | None = None
    rejected: Any = None
    partial: str | None = None


class Chunk(Struct, frozen=True):
    """One piece of a stream, as the gate needs to see it.

    `text` or `tool` is content. `finish` is the reason the far side gives for its end, `end` its end event. `bad`: it
    couldn't be decoded. `error`: the far side told of an error inside the stream. `tokens` counts the piece's own.
    """

    text: str = ""
    tool: bool = False
    finish: str | None = None
    end: bool = False
    bad: bool = False
    error: Signal | None = None
    usage: Usage | None = None
    tokens: int = 0


class StreamReset(Struct, frozen=True):
    """Comes out of a stream in mode restart: what came before it is void, the answer starts again."""

    attempt: int
    discarded_chars: int
    reason: str


def plain_chunk(raw: Any) -> Chunk:
    """A Chunk as it is, a text as text, anything else as content of unknown length."""
    if isinstance(raw, Chunk):
        return raw
    return Chunk(text=raw) if isinstance(raw, str) else Chunk(tool=True)


class Step(Struct, frozen=True):
    """One kind of call. Only `name` and one of `invoke` and `stream` are needed.

    `invoke` gives an answer; `stream` an async iterable of pieces, read through `chunk`, complete with a finish reason
    or an end event (`ends` finish) or simply when it is exhausted. `effects` as in workflows; what declares nothing
    counts as repeatable. `needs` are capabilities a target must have; `unfit` says why a target can't serve, or None.
    `inspect` sees an answer that came without an exception and may still call it a failure; `validate` gives what is
    wrong with an answer, or None. `usage` reads what an answer used, `view` what rules see of it. `tests` come before
    the built-in ones. `estimate` is reserved before an attempt. `fallback` gives an answer when nothing else does.
    `continuable` says whether another target may go on from a partial answer.
    """

    name: str
    invoke: Callable[[Attempt], Awaitable[Any]] | None = None
    stream: Callable[[Attempt], AsyncIterable[Any]] | None = None
    effects: Effects = "idempotent"
    key: str | None = None
    needs: frozenset[str] = frozenset()
    unfit: Callable[[Target], str | None] | None = None
    inspect: Callable[[Any], Signal | None] | None = None
    validate: Callable[[Any], str | None] | None = None
    usage: Callable[[Any], Usage] | None = None
    view: Callable[[Any], Any] | None = None
    tests: tuple[Test, ...] = ()
    estimate: Callable[[Target], Amounts] | None = None
    fallback: Callable[[BaseException | None], Awaitable[Any]] | None = None
    chunk: Callable[[Any], Chunk] = plain_chunk
    ends: Literal["finish", "exhaustion"] = "finish"
    continuable: Callable[[str], bool] | None = None
    carried: Carried | None = None


class Answer(Struct, frozen=True):
    """What a call gave, which target served it, and its record. `partial`: a rule accepted less than all."""

    value: Any
    target: str
    model: str
    record: CallRecord
    partial: bool = False

    @property
    def usage(self) -> Usage:
        """All that the call used, failed attempts included."""
        return self.record.used
