"""Breakers at work: applies the pure functions of `breaker.py` to a store's records, again until nobody was faster.

A store in trouble costs no call: this process's own records go on, and the trouble is told once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct, structs

from gonogo.gate import breaker as b
from gonogo.gate.policy import Target
from gonogo.gate.signals import Classification
from gonogo.gate.stores import KEYS_MAX, MemoryStore, Store, StoreTrouble
from gonogo.gate.taxonomy import row_of
from gonogo.gate.voices import Voice, Writer

TRIES_MAX = 20

T = TypeVar("T")


class Listed(Struct, frozen=True, omit_defaults=True):
    """One breaker for people: its key, state, and until when (seconds from now).

    Of one that is open and shared: who opened it, whom that binds, and how many of the processes that call see it fail.
    """

    key: str
    state: str
    failures: int
    openings: int
    until_s: float | None = None
    reason: str | None = None
    opened_by: str = ""
    shared: str = ""
    failing: int = 0
    processes: int = 0


class Breakers:
    """All breakers of a gate. Methods may block when the store does."""

    __slots__ = ("_keys", "_local", "_now", "_processes", "_tell", "policy", "store", "trouble")

    def __init__(
        self,
        policy: b.BreakerPolicy,
        store: Store,
        now: Callable[[], float],
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """`now` is the clock that the store's records are on; `tell` hears of a store in trouble, once each time."""
        self.policy = policy
        self.store = store
        self.trouble: str | None = None
        self._local = MemoryStore()
        self._keys: dict[tuple[str, str], str] = {}
        self._now = now
        self._processes = store.processes
        self._tell = tell

    def key(self, step: str, target: Target) -> str:
        """What tells this target's breaker from others (B30)."""
        known = self._keys.get((step, target.name))
        if known is None:
            if len(self._keys) >= KEYS_MAX:
                self._keys.clear()
            known = self._keys[step, target.name] = self._key(step, target)
        return known

    def _key(self, step: str, target: Target) -> str:
        parts = {
            "step": step,
            "name": target.name,
            "model": target.model,
            "endpoint": target.endpoint,
            "credential": target.credential,
        }
        return "/".join(f"{part}={parts[part]}" for part in self.policy.key if parts[part])

    def admit(
        self, key: str, owner: str, lease_s: float, force: bool = False
    ) -> tuple[b.Admission, b.Change | None]:
        """Ask to call."""
        try:
            if b.is_clean(self.store.load(key).record):
                return b.ADMITTED, None  # the usual case: nothing to write, nothing to refuse
        except StoreTrouble:
            pass  # the long way deals with it

        me, policy = self._me(), self.policy

        def ask(record: b.BreakerRecord) -> tuple[b.BreakerRecord, b.Admission]:
            gone = self._gone(record)
            return b.admit(policy, record, self._now(), owner, lease_s, force=force, me=me, gone=gone)

        return self._update(key, ask)

    def report(
        self, key: str, owner: str, failure: Classification | None, latency_s: float, lasting: bool = True
    ) -> b.Change | None:
        """How a call that was let through ended; None is a success. `lasting`: what is wrong stays with this key."""

        def tell(record: b.BreakerRecord) -> tuple[b.BreakerRecord, None]:
            if failure is None:
                me = None if self._processes is None else self._processes.me()
                return b.succeeded(self.policy, record, self._now(), owner, latency_s, me), None
            return self._after(record, owner, failure, latency_s, lasting), None

        return self._update(key, tell)[1]

    def release(self, key: str, owner: str) -> b.Change | None:
        """The call said nothing about the target: cancelled, or never made."""
        return self._update(key, lambda record: (b.released(record, owner), None))[1]

    def isolate(self, key: str, reason: str, *, by: str, for_s: float) -> b.Change | None:
        """Keep a target out, by a person's decision."""
        isolation = b.Isolation(self._now() + for_s, reason, by)
        return self._update(key, lambda record: (b.isolated(record, self._now(), "", isolation), None))[1]

    def reset(self, key: str) -> b.Change | None:
        """Close it, whatever it was."""
        return self._update(key, lambda record: (b.CLOSED, None))[1]

    def listed(self) -> list[Listed]:
        """Every breaker there is, by key."""
        try:
            records = {key: self.store.load(key).record for key in list(self.store.keys())}
        except StoreTrouble as trouble:
            self._troubled(trouble)
            records = {key: self._local.load(key).record for key in list(self._local.keys())}
        return [self._listed(key, records[key]) for key in sorted(records)]

    def _listed(self, key: str, record: b.BreakerRecord) -> Listed:
        now_s = self._now()
        state = b.state_of(record, now_s)
        until_s = {"open": record.open_until_s, "resting": record.rests_until_s}.get(state)
        reason = record.last_kind
        if state == "isolated" and record.isolation is not None:
            until_s, reason = record.isolation.until_s, f"{record.isolation.reason}, by {record.isolation.by}"
        left_s = None if until_s is None else max(0.0, until_s - now_s)
        listed = Listed(key, state, record.failures, record.openings, left_s, reason)
        if not record.opened_by or record.state == "closed":
            return listed
        reporting = self._reporting(record, now_s)
        failing = sum(each.failures > 0 for each in reporting)
        return structs.replace(
            listed,
            opened_by=record.opened_by,
            shared=record.shared,
            failing=failing,
            processes=len(reporting),
        )

    def _reporting(self, record: b.BreakerRecord, now_s: float) -> list[Voice]:
        """Processes that have reported lately and run."""
        since_s, gone = now_s - self.policy.window_s, self._gone(record)
        return [each for each in record.voices if each.at_s > since_s and each.writer not in gone]

    def _me(self) -> Writer | None:
        return None if self._processes is None else self._processes.me()

    def _gone(self, record: b.BreakerRecord) -> frozenset[Writer]:
        if self._processes is None or record.state == "closed":
            return frozenset()
        return self._processes.gone(each.writer for each in record.voices)

    def _after(
        self,
        record: b.BreakerRecord,
        owner: str,
        failure: Classification,
        latency_s: float,
        lasting: bool,
    ) -> b.BreakerRecord:
        now_s, policy = self._now(), self.policy
        counting = row_of(failure.kind).counting
        wish_s = failure.retry_after_s
        if counting == "failure":
            seen = now_s, owner, failure.kind
            return b.failed(policy, record, *seen, latency_s=latency_s, retry_after_s=wish_s, me=self._me())
        if counting == "cool" and wish_s is not None:
            return b.resting(record, now_s, owner, min(wish_s, b.reach_s(policy)))
        if counting == "isolate" and lasting:
            isolation = b.Isolation(now_s + policy.isolate_s, failure.kind, "the gate")
            return b.isolated(record, now_s, owner, isolation)
        return b.released(record, owner)

    def _update(
        self, key: str, act: Callable[[b.BreakerRecord], tuple[b.BreakerRecord, T]]
    ) -> tuple[T, b.Change | None]:
        try:
            done = self._apply(self.store, key, act)
            self.trouble = None
        except StoreTrouble as trouble:
            self._troubled(trouble)
            done = self._apply(self._local, key, act)
        return done

    def _apply(
        self, store: Store, key: str, act: Callable[[b.BreakerRecord], tuple[b.BreakerRecord, T]]
    ) -> tuple[T, b.Change | None]:
        for _ in range(TRIES_MAX):
            stored = store.load(key)
            record, answer = act(stored.record)
            if record is stored.record:
                return answer, None
            if store.compare_and_set(key, stored.version, record):
                return answer, b.change(key, stored.record, record)
        raise StoreTrouble(f"{key}: others were faster {TRIES_MAX} times")

    def _troubled(self, trouble: StoreTrouble) -> None:
        first, self.trouble = self.trouble is None, str(trouble)
        if first and self._tell is not None:
            self._tell(str(trouble))
