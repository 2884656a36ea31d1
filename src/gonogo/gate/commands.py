"""What the driver of a gate call must do next; one command at a time, answered with the event it names."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Judge(Struct, frozen=True):
    """Look at the rules of a phase (`before`, `after`) from `start` on; answer with Judged.

    `only` is a verb: others are left alone. `scope` is what they see.
    """

    phase: str
    scope: dict[str, Any]
    start: int = 0
    only: str | None = None


class Admit(Struct, frozen=True):
    """Ask breaker, budgets and the share of retries for a target; answer with Admitted or Refused.

    `retry`: this call has asked the target before. The first time that it turns to another one is no retry there: each
    target gets at most one such attempt a call, and calls that fail over are what a failover list is for.
    """

    target: int
    retry: bool
    force: bool = False


class StartAttempt(Struct, frozen=True):
    """Call a target; answer with Answered. `limit_s` is all the time there is, the deadline looked at already.

    `feedback` is told with the rejected answer; `resume`: go on from the partial answer. `hedge_s`: tell with Slow when
    it has taken so long; what comes of that runs beside it.
    """

    number: int
    target: int
    limit_s: float
    deadline_first: bool = False
    feedback: str | None = None
    resume: bool = False
    hedge_s: float | None = None


class StartFallback(Struct, frozen=True):
    """Call the fallback; answer with Answered."""

    number: int
    limit_s: float


class Wait(Struct, frozen=True):
    """Wait until `until_at`; answer with Waited."""

    until_at: float


class ResetStream(Struct, frozen=True):
    """Tell the consumer that what it got is void; no answer, another command follows at once."""

    attempt: int
    discarded_chars: int
    reason: str


class Return(Struct, frozen=True):
    """The call is over: hand out the last answer (`partial`: as far as it came)."""

    partial: bool = False


class Raise(Struct, frozen=True):
    """The call is over: raise the error of this category (`failures.py`)."""

    category: str
    kind: str
    phase: str
    label: str = ""
    retry_after_s: float | None = None


Command = Judge | Admit | StartAttempt | StartFallback | Wait | ResetStream | Return | Raise
