"""What a circuit breaker is: when it opens (its policy), all that is known of it (its record), and what it answers."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gonogo.gate.voices import Voice


class BreakerPolicy(Struct, frozen=True, omit_defaults=True):
    """When a breaker opens and for how long. Durations in seconds.

    It opens at `failures` in a row, or when at least `calls_min` calls of the window failed at `failure_rate`, or were
    slower than `slow_s` at `slow_rate`. The cooldown doubles with each reopening up to `cooldown_s_max` and varies by
    `jitter`. `closes_after` successes of probes close it. `isolate_s` is how long a refused credential or a missing
    model keeps its target out. `key` says what tells targets apart.
    `shared`: whom an opening binds of the processes that share the store. `strict`: all. `advisory`: those for which
    the target failed, too, and all when more than `quorum` of them see it fail (`voices.py`).
    """

    failures: int = 5
    calls_min: int = 20
    failure_rate: float = 0.5
    window_s: float = 60.0
    slow_s: float | None = None
    slow_rate: float = 0.5
    cooldown_s: float = 30.0
    cooldown_s_max: float = 300.0
    jitter: float = 0.2
    probes: int = 1
    closes_after: int = 1
    lease_margin_s: float = 5.0
    isolate_s: float = 600.0
    key: tuple[Literal["step", "name", "model", "endpoint", "credential"], ...] = (
        "name",
        "model",
        "endpoint",
        "credential",
    )
    shared: Literal["advisory", "strict"] = "advisory"
    quorum: float = 0.5


class Lease(Struct, frozen=True):
    """The right to probe, until it expires."""

    owner: str
    until_s: float


class Bucket(Struct, frozen=True, array_like=True):
    """Calls of one part of the window."""

    slot: int
    calls: int
    failures: int
    slow: int


class Isolation(Struct, frozen=True):
    """Out by decision of a person or of a kind of failure, until reset or `until_s`."""

    until_s: float
    reason: str
    by: str


class BreakerRecord(Struct, frozen=True, omit_defaults=True):
    """All of a breaker. Times are on the clock of whoever keeps it (`sheets.py` moves them to another's).

    `voices` is what each process has seen; `opened_by` names the one that opened it, `shared` says whom that binds.
    """

    state: Literal["closed", "open", "half-open"] = "closed"
    failures: int = 0
    successes: int = 0
    opened_s: float = 0.0
    open_until_s: float = 0.0
    openings: int = 0
    buckets: tuple[Bucket, ...] = ()
    leases: tuple[Lease, ...] = ()
    rests_until_s: float = 0.0
    isolation: Isolation | None = None
    last_kind: str | None = None
    voices: tuple[Voice, ...] = ()
    opened_by: str = ""
    shared: str = ""


class Change(Struct, frozen=True, omit_defaults=True):
    """A breaker went from one state to another, and why; counted once, wherever it is seen."""

    key: str
    before: str
    after: str
    reason: str


class Admission(Struct, frozen=True, omit_defaults=True):
    """Whether a call may go. Refused: `until_s` is when to ask again. `probe`: a lease was given.

    `advice`: it goes although others have opened the breaker, and why.
    """

    admitted: bool
    reason: str = ""
    until_s: float = 0.0
    probe: bool = False
    advice: str = ""


CLOSED = BreakerRecord()
ADMITTED = Admission(admitted=True)
