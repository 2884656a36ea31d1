"""What the gates of a process have seen of their targets' latency: a decaying mean for each, in memory alone.

A failure that speaks against a target counts as the longest that an attempt may take: a target that fails at once is
none to begin with.
"""

from __future__ import annotations

import hashlib
import threading

from msgspec import structs

from gonogo.gate.events import Began
from gonogo.gate.policy import Policy, Target
from gonogo.gate.sheets import KEYS_MAX
from gonogo.gate.signals import Classification
from gonogo.gate.step import Step
from gonogo.gate.taxonomy import row_of

NEWEST = 0.3
"""How much of the mean the newest attempt is."""
FORGET_S = 60.0
"""A target that nobody has called for so long counts as unknown for one call, so that one that was slow comes back."""

Key = tuple[str, str, str, str]


class Latencies:
    """Safe to use from threads. Times are seconds on the gates' monotonic clock."""

    __slots__ = ("_lock", "_means")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._means: dict[Key, tuple[float, float]] = {}  # the mean, and when it was last news

    def saw(
        self,
        step: str,
        target: Target,
        now_s: float,
        latency_s: float,
        failure: Classification | None,
        limit_s: float,
    ) -> None:
        """An attempt has ended. What says nothing of how quick the target is (a wrong request, say) counts nothing."""
        if failure is not None:
            if row_of(failure.kind).counting != "failure":
                return
            latency_s = max(latency_s, limit_s)
        key = _key(step, target)
        with self._lock:
            before = self._means.pop(key, None)
            if before is None and len(self._means) >= KEYS_MAX:
                del self._means[next(iter(self._means))]
            mean_s = latency_s if before is None else before[0] + NEWEST * (latency_s - before[0])
            self._means[key] = mean_s, now_s

    def of(self, step: str, policy: Policy, now_s: float) -> dict[str, float]:
        """Means by target, seconds. Of those nobody has called for long one is left out: this call may ask it first."""
        found: dict[str, float] = {}
        with self._lock:
            forgotten = False
            for target in policy.targets:
                key = _key(step, target)
                mean = self._means.get(key)
                if mean is not None and (forgotten or now_s - mean[1] < FORGET_S):
                    found[target.name] = mean[0]
                elif mean is not None:
                    forgotten = True
                    self._means[key] = mean[0], now_s
        return found


def with_evidence(began: Began, policy: Policy, step: Step, latencies: Latencies | None) -> Began:
    """The start of a call with what its order of targets is made from.

    An idempotency key says what the call is, over several of them: each asks the same target first.
    """
    if policy.order == "least-latency" and latencies is not None:
        return structs.replace(began, seen=latencies.of(step.name, policy, began.at))
    if policy.order == "weighted" and step.key is not None:
        return structs.replace(began, lot=hashlib.blake2b(step.key.encode(), digest_size=8).hexdigest())
    return began


def _key(step: str, target: Target) -> Key:
    return step, target.name, target.model, target.endpoint
