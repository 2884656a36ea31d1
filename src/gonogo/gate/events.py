"""What can happen to a gate call. Events are the only way anything, time included, gets into its core.

`at` is seconds on the gate's monotonic clock. Texts in events are redacted already. A call's events are enough to
decide it again (`replaying.py`).
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from gonogo.core.faults import Effect
from gonogo.core.plan import Effects
from gonogo.gate.breaker import Change
from gonogo.gate.rules import Entry
from gonogo.gate.signals import Classification


class Usage(Struct, frozen=True, omit_defaults=True):
    """What an attempt used, as far as anybody told."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_usd + other.cost_usd,
        )


NOTHING_USED = Usage()


class Event(Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """Base of all events."""

    at: float


class Carried(Struct, frozen=True, omit_defaults=True):
    """What an earlier part of the same call has used up, so that a resume can't reset its bounds (F21, E43).

    `lost`: a target whose attempt a crash cut short. It counts; only where it was the last one it is made again, since
    a crash alone fails no call. `target`: where to go on, after the rest of a wait (`wait_s`).
    """

    attempts: int = 0
    per_target: dict[str, int] = {}
    elapsed_s: float = 0.0
    used: Usage = NOTHING_USED
    out: dict[str, str] = {}
    validation_errors: tuple[str, ...] = ()
    fallbacks: int = 0
    unclear: str | None = None
    lost: str | None = None
    target: str | None = None
    wait_s: float = 0.0


class Began(Event, frozen=True, tag="began"):
    """A call starts. `unfit` names targets that can't serve it, and why; `deadline_at` the caller's, if sooner.

    `first` is the target to begin with when it isn't the list's first (the last good one); `seen` is what is known of
    targets' latency, seconds, and `lot` what a weighted order is drawn from, where that isn't the call's id.
    `has_key`: the call has an idempotency key. `wall_ms` places the call in the world, for people.
    """

    call_id: str
    step: str = ""
    effects: Effects = "idempotent"
    has_key: bool = False
    has_fallback: bool = False
    streaming: bool = False
    unfit: dict[str, str] = {}
    first: int = 0
    deadline_at: float | None = None
    wall_ms: int = 0
    carried: Carried | None = None
    seen: dict[str, float] = {}
    lot: str = ""


class Judged(Event, frozen=True, tag="judged"):
    """The answer to `Judge`: the entries of the rules asked about."""

    entries: tuple[Entry, ...]


class Admitted(Event, frozen=True, tag="admitted"):
    """The target may be called: breaker, budgets and the share of retries allow it.

    `advice`: its breaker is open by others' word, and why that doesn't hold here.
    """

    probe: bool = False
    change: Change | None = None
    advice: str = ""


class Refused(Event, frozen=True, tag="refused"):
    """It may not. `by`: breaker, budget, deadline or ratio; `until_at` is when to ask the breaker again."""

    by: str
    reason: str
    until_at: float = 0.0
    change: Change | None = None


class Answered(Event, frozen=True, tag="answered"):
    """An attempt ended: `failure` None is a success.

    `delivered`: content of it is with the consumer. `held`: characters it gave, delivered or not. `validation`: what
    the validator said. `response`: as rules see it. `integrity`: "ok", "unverified" (pieces were unreadable).
    `continuable`: another target could go on from the partial answer. With two attempts under way `attempt` says which
    one this is, and `lost` which one was cut off because this one has won.
    """

    failure: Classification | None = None
    usage: Usage = NOTHING_USED
    effect: Effect = "done"
    delivered: bool = False
    held: int = 0
    chunks: int = 0
    digest: str = ""
    validation: str | None = None
    response: Any = None
    integrity: str = "ok"
    continuable: bool = False
    change: Change | None = None
    attempt: int = 0
    lost: int = 0


class Slow(Event, frozen=True, tag="slow"):
    """An attempt hasn't answered for as long as the policy's hedge says."""


class Waited(Event, frozen=True, tag="waited"):
    """A wait is over."""


class Cancelled(Event, frozen=True, tag="cancelled"):
    """The caller went away, or a function of the step broke (`broken` names it); what was under way has been closed.

    `usage`, `delivered` and `held` are of the attempt that was under way, as in Answered.
    """

    usage: Usage = NOTHING_USED
    delivered: bool = False
    held: int = 0
    change: Change | None = None
    broken: str | None = None


AnyEvent = Began | Judged | Admitted | Refused | Answered | Slow | Waited | Cancelled
