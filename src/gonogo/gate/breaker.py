"""A circuit breaker: a plain record and pure functions that give a new one. Time is handed in.

Closed lets calls through and counts; open refuses until its cooldown is over; half-open gives out `probes` leases,
which expire by themselves, so that a prober that died wedges nothing. Who keeps records is `stores.py`, who applies
these functions to them `breakers.py`. Source: reliability-gate, C.3; case LLM-3.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from msgspec import structs

from gonogo.core.backoff import jitter
from gonogo.gate import voices as v
from gonogo.gate.circuit import (
    ADMITTED,
    CLOSED,
    Admission,
    BreakerPolicy,
    BreakerRecord,
    Bucket,
    Change,
    Isolation,
    Lease,
)

__all__ = [
    "ADMITTED",
    "CLOSED",
    "Admission",
    "BreakerPolicy",
    "BreakerRecord",
    "Change",
    "Isolation",
    "Lease",
]

BUCKETS = 6
"""The window is counted in this many parts; a part that has gone by is forgotten as a whole."""
LEASES_MAX = 16


def admit(
    policy: BreakerPolicy,
    record: BreakerRecord,
    now_s: float,
    owner: str,
    lease_s: float,
    *,
    force: bool = False,
    me: v.Writer | None = None,
    gone: Container[v.Writer] = (),
) -> tuple[BreakerRecord, Admission]:
    """Ask to call. `force` takes a probe before the cooldown is over (never past an isolation).

    `me` is the process that asks, when processes share the record; those in `gone` have ended.
    """
    if record.isolation is not None and now_s < record.isolation.until_s:
        return record, Admission(False, f"isolated: {record.isolation.reason}", record.isolation.until_s)
    if now_s < record.rests_until_s and not force:
        return record, Admission(False, "resting", record.rests_until_s)
    if record.state == "closed":
        return record, ADMITTED
    binds, why = _binding(policy, record, now_s, me, gone)
    if record.state == "open" and now_s < record.open_until_s and not force:
        refused = Admission(False, f"open{why}", record.open_until_s)
        return record, refused if binds else Admission(True, advice=why)
    probing, admission = _probe(policy, record, now_s, Lease(owner, now_s + lease_s))
    return probing, admission if admission.admitted or binds else Admission(True, advice=why)


def _binding(
    policy: BreakerPolicy,
    record: BreakerRecord,
    now_s: float,
    me: v.Writer | None,
    gone: Container[v.Writer],
) -> tuple[bool, str]:
    """Whether an opening holds for a process, and why."""
    if me is None:
        return True, ""
    by = f" by {record.opened_by}" if record.opened_by and record.opened_by != me.name else ""
    if policy.shared == "strict":
        return True, f"{by} for all"
    found = standing(policy, record, now_s, me, gone)
    return found.binds, f"{by}: {found.why}" if found.binds else f"open{by}, but {found.why}"


def standing(
    policy: BreakerPolicy,
    record: BreakerRecord,
    now_s: float,
    me: v.Writer,
    gone: Container[v.Writer] = (),
) -> v.Standing:
    """What a process makes of an opening (B37)."""
    times = {"opened_s": record.opened_s, "now_s": now_s, "window_s": policy.window_s}
    return v.standing(record.voices, me, gone, quorum=policy.quorum, **times)


def is_clean(record: BreakerRecord) -> bool:
    """Whether it lets everybody through, whatever the time."""
    return record.state == "closed" and record.isolation is None and not record.rests_until_s


def _probe(
    policy: BreakerPolicy, record: BreakerRecord, now_s: float, lease: Lease
) -> tuple[BreakerRecord, Admission]:
    held = tuple(each for each in record.leases if now_s < each.until_s and each.owner != lease.owner)
    if len(held) >= min(policy.probes, LEASES_MAX):
        return record, Admission(False, "another call is probing", min(each.until_s for each in held))
    successes = record.successes if record.state == "half-open" else 0
    probing = structs.replace(record, state="half-open", successes=successes, leases=(*held, lease))
    return probing, Admission(True, probe=True)


def succeeded(
    policy: BreakerPolicy,
    record: BreakerRecord,
    now_s: float,
    owner: str,
    latency_s: float,
    me: v.Writer | None = None,
) -> BreakerRecord:
    """A call went well. A late caller's success doesn't close an open breaker."""
    slow = policy.slow_s is not None and latency_s >= policy.slow_s
    voices = record.voices
    if me is not None:
        voices = v.heard(voices, me, now_s, int(slow), policy.window_s)
    if record.state == "closed":
        buckets = _counted(policy, record.buckets, now_s, failed=False, slow=slow)
        counted = BreakerRecord(
            "closed",
            0,
            0,
            0.0,
            0.0,
            record.openings,
            buckets,
            (),
            record.rests_until_s,
            record.isolation,
            record.last_kind,
            voices,
        )
        if slow and (reason := _tripped(policy, counted, me)):
            return _opened(policy, counted, now_s, reason, me=me)
        return counted
    saying = record if voices is record.voices else structs.replace(record, voices=voices)
    if record.state == "open" or not _holds(record, owner):
        return _without(saying, owner)
    successes = record.successes + 1
    if successes >= policy.closes_after:
        # Who never saw it fail has no news for those who did: their next failure opens it again.
        if policy.shared == "strict" or v.failures_of(record.voices, me):
            voices = v.forgiven(voices)
        return BreakerRecord(isolation=record.isolation, rests_until_s=record.rests_until_s, voices=voices)
    return structs.replace(_without(saying, owner), successes=successes)


def failed(
    policy: BreakerPolicy,
    record: BreakerRecord,
    now_s: float,
    owner: str,
    kind: str,
    *,
    latency_s: float = 0.0,
    retry_after_s: float | None = None,
    me: v.Writer | None = None,
) -> BreakerRecord:
    """A call failed in a way that counts. A failed probe reopens for longer."""
    if me is not None:
        seen = v.failures_of(record.voices, me) + 1
        record = structs.replace(record, voices=v.heard(record.voices, me, now_s, seen, policy.window_s))
    if record.state == "open" or (record.state == "half-open" and not _holds(record, owner)):
        return _without(record, owner)
    if record.state == "half-open":
        return _opened(policy, structs.replace(record, last_kind=kind), now_s, kind, retry_after_s, me)
    slow = policy.slow_s is not None and latency_s >= policy.slow_s
    buckets = _counted(policy, record.buckets, now_s, failed=True, slow=slow)
    counted = structs.replace(record, failures=record.failures + 1, buckets=buckets, last_kind=kind)
    if _tripped(policy, counted, me):
        return _opened(policy, counted, now_s, kind, retry_after_s, me)
    return counted


def released(record: BreakerRecord, owner: str) -> BreakerRecord:
    """A call ended in a way that says nothing about the target: its lease is free again (LLM-3 a, b, d)."""
    return _without(record, owner)


def resting(record: BreakerRecord, now_s: float, owner: str, rest_s: float) -> BreakerRecord:
    """The target asked for a pause: nobody calls it until then, and nothing is opened."""
    rests_until_s = max(record.rests_until_s, now_s + rest_s)
    return structs.replace(_without(record, owner), rests_until_s=rests_until_s)


def isolated(record: BreakerRecord, now_s: float, owner: str, isolation: Isolation) -> BreakerRecord:
    """Out until a reset or until the isolation's time; a longer one in force stays."""
    before = record.isolation
    if before is not None and now_s < before.until_s and before.until_s >= isolation.until_s:
        return _without(record, owner)
    return structs.replace(_without(record, owner), isolation=isolation)


def state_of(record: BreakerRecord, now_s: float) -> str:
    """For people and rules: closed, open, half-open, resting or isolated."""
    if record.isolation is not None and now_s < record.isolation.until_s:
        return "isolated"
    if now_s < record.rests_until_s:
        return "resting"
    return "half-open" if record.state == "open" and now_s >= record.open_until_s else record.state


def moved(record: BreakerRecord, by_s: float, now_s: float, reach_s: float) -> BreakerRecord:
    """The same record on a clock that differs by `by_s`. No wait is longer than `reach_s` from now (TIM-2)."""
    latest_s = now_s + reach_s

    def at(then_s: float) -> float:
        return min(then_s + by_s, latest_s) if then_s else 0.0

    isolation = record.isolation
    if isolation is not None:
        isolation = structs.replace(isolation, until_s=isolation.until_s + by_s)
    return structs.replace(
        record,
        opened_s=at(record.opened_s),
        open_until_s=at(record.open_until_s),
        rests_until_s=at(record.rests_until_s),
        leases=tuple(Lease(lease.owner, at(lease.until_s)) for lease in record.leases),
        buckets=record.buckets if by_s == 0 else (),
        isolation=isolation,
        voices=v.moved(record.voices, by_s, now_s),
    )


def _holds(record: BreakerRecord, owner: str) -> bool:
    return any(lease.owner == owner for lease in record.leases)


def _without(record: BreakerRecord, owner: str) -> BreakerRecord:
    if not record.leases or not _holds(record, owner):
        return record
    return structs.replace(record, leases=tuple(lease for lease in record.leases if lease.owner != owner))


def _counted(
    policy: BreakerPolicy, buckets: tuple[Bucket, ...], now_s: float, *, failed: bool, slow: bool
) -> tuple[Bucket, ...]:
    slot = int(now_s * BUCKETS / policy.window_s)
    kept = buckets
    if buckets and buckets[0].slot <= slot - BUCKETS:
        kept = tuple(bucket for bucket in buckets if slot - BUCKETS < bucket.slot)
    if not kept or kept[-1].slot < slot:
        return (*kept, Bucket(slot, 1, int(failed), int(slow)))
    last = kept[-1]
    counted = Bucket(last.slot, last.calls + 1, last.failures + failed, last.slow + slow)
    return (*kept[:-1], counted)


def _tripped(policy: BreakerPolicy, record: BreakerRecord, me: v.Writer | None) -> str | None:
    """In a row over all processes, or for one whose failures the others' successes would hide."""
    in_a_row = max(record.failures, v.failures_of(record.voices, me) if me is not None else 0)
    if in_a_row >= policy.failures:
        return f"{in_a_row} failures in a row"
    calls = sum(bucket.calls for bucket in record.buckets)
    if calls < policy.calls_min:
        return None
    if sum(bucket.failures for bucket in record.buckets) >= policy.failure_rate * calls:
        return "failure rate"
    if (
        policy.slow_s is not None
        and sum(bucket.slow for bucket in record.buckets) >= policy.slow_rate * calls
    ):
        return "slow calls"
    return None


def _opened(
    policy: BreakerPolicy,
    record: BreakerRecord,
    now_s: float,
    kind: str,
    retry_after_s: float | None = None,
    me: v.Writer | None = None,
) -> BreakerRecord:
    openings = record.openings + 1
    until_s = now_s + cooldown_s(policy, openings, retry_after_s, f"{now_s}/{openings}")
    return structs.replace(
        record,
        state="open",
        failures=0,
        successes=0,
        opened_s=now_s,
        open_until_s=until_s,
        openings=openings,
        buckets=(),
        leases=(),
        last_kind=kind,
        opened_by="" if me is None else me.name,
        shared="" if me is None else policy.shared,
    )


def cooldown_s(policy: BreakerPolicy, openings: int, retry_after_s: float | None, identity: str) -> float:
    """How long an opening lasts: doubled each time, varied, raised by the far side's wish; capped in the end (B34)."""
    doubled = min(policy.cooldown_s * (1 << min(openings - 1, 32)), policy.cooldown_s_max)
    varied = doubled * (1 + policy.jitter * jitter(identity))
    return min(max(varied, retry_after_s or 0.0), reach_s(policy))


def reach_s(policy: BreakerPolicy) -> float:
    """No cooldown, rest or lease lasts longer."""
    return policy.cooldown_s_max * (1 + policy.jitter)


def change(key: str, before: BreakerRecord, after: BreakerRecord) -> Change | None:
    """What to tell of a new record: each change of state once."""
    if before.isolation != after.isolation:
        isolation = after.isolation
        reason = f"{isolation.reason}, by {isolation.by}" if isolation else "reset"
        return Change(key, before.state, "isolated" if isolation else after.state, reason)
    if before.state == after.state:
        return None
    reasons = {"half-open": "probe", "closed": "recovered"}
    return Change(key, before.state, after.state, reasons.get(after.state) or after.last_kind or "")


def summary(record: BreakerRecord, now_s: float) -> dict[str, Any]:
    """A breaker as rules and people see it."""
    return {"state": state_of(record, now_s), "failures": record.failures, "openings": record.openings}
