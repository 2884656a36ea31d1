"""How long to wait before the next attempt. Pure; jitter is a hash (reliability-gate, F23; cases RET-1, RET-4)."""

from __future__ import annotations

from gonogo.core.backoff import jitter
from gonogo.gate.policy import Backoff
from gonogo.gate.signals import Classification
from gonogo.gate.taxonomy import row_of


def wait_s(backoff: Backoff, failure: Classification, number: int, identity: str) -> float:
    """Seconds before another attempt on a target that was called `number` times (from 1).

    Transient failures: anything up to the doubled step (full jitter), so that callers don't march in step. Throttling:
    never earlier than the far side asked, a tenth later at most; without a wish at least half the step (equal jitter).
    A wrong answer needs no wait. A wish may be longer than `cap_s`; whoever asks decides whether to wait that long.
    """
    row = row_of(failure.kind)
    if row.same == "feedback" and failure.retry_after_s is None:
        return 0.0
    share = (jitter(identity) + 1) / 2
    step = min(backoff.cap_s, backoff.base_s * (1 << min(max(number, 1) - 1, 60)))
    asked = failure.retry_after_s
    if asked is not None:
        return asked + share * min(asked * 0.1, backoff.cap_s)
    if row.same == "wait":
        return step / 2 + share * step / 2
    return share * step
