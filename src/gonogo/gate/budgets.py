"""Budgets that calls share: purses (attempts, tokens, money, time) and the share of retries. Safe to use from threads.

What an attempt may need is reserved before it and settled after it, so that calls side by side can't spend the same
money. A purse may have a parent (a run's, or that of the call around this one): what is taken here is taken there.
"""

from __future__ import annotations

import threading

from msgspec import Struct

from gonogo.gate.events import NOTHING_USED, Usage

_TINY_USD = 1e-9
_BUCKETS = 10


class Amounts(Struct, frozen=True, omit_defaults=True):
    """Something reserved, spent or allowed."""

    attempts: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


NOTHING = Amounts()
ONE = Amounts(1)
_ATTEMPTS = (NOTHING, ONE)


class Purse:
    """What may be used up together. A limit of None is no limit; `until_at` is when its time is up (monotonic)."""

    __slots__ = (
        "_kept_attempts", "_kept_tokens", "_kept_usd", "_lock", "_spent_attempts", "_spent_tokens", "_spent_usd",
        "attempts_max", "cost_usd_max", "parent", "tokens_max", "until_at",
    )  # fmt: skip

    def __init__(
        self,
        *,
        attempts_max: int | None = None,
        tokens_max: int | None = None,
        cost_usd_max: float | None = None,
        until_at: float | None = None,
        parent: Purse | None = None,
    ) -> None:
        self.attempts_max = attempts_max
        self.tokens_max = tokens_max
        self.cost_usd_max = cost_usd_max
        self.until_at = until_at
        self.parent = parent
        self._spent_attempts = self._spent_tokens = self._kept_attempts = self._kept_tokens = 0
        self._spent_usd = self._kept_usd = 0.0
        # One lock for a whole family, so that a reservation is all or nothing.
        self._lock: threading.Lock = parent._lock if parent is not None else threading.Lock()

    @property
    def spent(self) -> Amounts:
        """What is gone."""
        return Amounts(self._spent_attempts, self._spent_tokens, round(self._spent_usd, 9))

    @property
    def reserved(self) -> Amounts:
        """What is set aside for attempts under way."""
        return Amounts(self._kept_attempts, self._kept_tokens, round(self._kept_usd, 9))

    def reserve(self, amounts: Amounts) -> str | None:
        """Set aside here and in every purse above; or say what is short, and set nothing aside."""
        with self._lock:
            purse: Purse | None = self
            while purse is not None:
                short = purse._short(amounts)
                if short is not None:
                    return short
                purse = purse.parent
            purse = self
            while purse is not None:
                purse._kept_attempts += amounts.attempts
                purse._kept_tokens += amounts.tokens
                purse._kept_usd += amounts.cost_usd
                purse = purse.parent
        return None

    def settle(self, reserved: Amounts, spent: Amounts) -> None:
        """Turn a reservation into what was really spent, here and above."""
        with self._lock:
            purse: Purse | None = self
            while purse is not None:
                purse._kept_attempts -= reserved.attempts
                purse._kept_tokens -= reserved.tokens
                purse._kept_usd -= reserved.cost_usd
                purse._spent_attempts += spent.attempts
                purse._spent_tokens += spent.tokens
                purse._spent_usd += spent.cost_usd
                purse = purse.parent

    def deadline(self) -> float | None:
        """When the time of this purse, or of one above, is up."""
        above = self.parent.deadline() if self.parent is not None else None
        times = [at for at in (self.until_at, above) if at is not None]
        return min(times, default=None)

    def _short(self, wanted: Amounts) -> str | None:
        attempts = self._spent_attempts + self._kept_attempts + wanted.attempts
        if self.attempts_max is not None and wanted.attempts and attempts > self.attempts_max:
            return f"attempts: {attempts} would pass the budget of {self.attempts_max}"
        tokens = self._spent_tokens + self._kept_tokens + wanted.tokens
        if self.tokens_max is not None and _passes(tokens, wanted.tokens, self.tokens_max):
            return f"tokens: {tokens} would pass the budget of {self.tokens_max}"
        if self.cost_usd_max is not None:
            cost_usd = self._spent_usd + self._kept_usd + wanted.cost_usd
            if _passes(cost_usd, wanted.cost_usd, self.cost_usd_max + _TINY_USD):
                return f"cost: ${cost_usd:.4f} would pass the budget of ${self.cost_usd_max:.4f}"
        return None


def _passes(total: float, wanted: float, limit: float) -> bool:
    """A call that says nothing of its needs may start while anything is left."""
    return total > limit or (not wanted and total >= limit)


def spent(attempts: int, usage: Usage) -> Amounts:
    """What an attempt used, as an amount."""
    if usage is NOTHING_USED:
        return _ATTEMPTS[attempts]
    return Amounts(attempts, usage.input_tokens + usage.output_tokens, usage.cost_usd)


class RetryShare:
    """How many of a process's calls may be retries: a share of the calls of the last `window_s`, and always `floor`.

    Keeps an outage from being multiplied by everybody's retries (F22).
    """

    __slots__ = ("_buckets", "_lock", "floor", "share", "window_s")

    def __init__(self, share: float = 0.1, floor: int = 3, window_s: float = 10.0) -> None:
        self.share = share
        self.floor = floor
        self.window_s = window_s
        self._lock = threading.Lock()
        self._buckets: list[list[int]] = []  # slot, calls, retries; oldest first, at most _BUCKETS

    def count_call(self, now_s: float) -> None:
        """A first attempt."""
        slot = int(now_s * _BUCKETS / self.window_s)
        with self._lock:
            buckets = self._buckets
            (buckets[-1] if buckets and buckets[-1][0] >= slot else self._bucket(slot))[1] += 1

    def take(self, now_s: float) -> str | None:
        """Count a retry; or say why there may be none now."""
        with self._lock:
            bucket = self._bucket(int(now_s * _BUCKETS / self.window_s))
            calls = sum(each[1] for each in self._buckets)
            retries = sum(each[2] for each in self._buckets)
            if retries + 1 <= max(self.floor, self.share * calls):
                bucket[2] += 1
                return None
        return f"{retries} retries among {calls} calls in {self.window_s:g} s"

    def _bucket(self, slot: int) -> list[int]:
        buckets = self._buckets
        if buckets and buckets[-1][0] >= slot:
            return buckets[-1]
        while buckets and buckets[0][0] <= slot - _BUCKETS:
            del buckets[0]
        buckets.append([slot, 0, 0])
        return buckets[-1]
