"""How long to wait before a retry. Pure: jitter is a hash of the run's seed, never a random number.

Source: spec C.9 R4, and the faults of overflowing backoffs (cap before exponent grows, jitter inside the cap).
"""

from __future__ import annotations

import hashlib

from gonogo.core.plan import Retry


def delay_s(retry: Retry, number: int, identity: str, retry_after_s: float | None = None) -> float:
    """Seconds before re-run `number` (from 1): fixed, or doubled each time; never above `max_delay_s`.

    The far side's `retry_after_s` raises the delay; a computed backoff never shortens it, the cap does.
    """
    delay = retry.delay_s
    if retry.mode == "exponential" and delay > 0:
        doublings = min(number - 1, 63)
        delay = min(delay * (1 << doublings), retry.max_delay_s)
    if delay and retry.jitter:
        delay *= 1 + retry.jitter * jitter(f"{identity}/{number}")
    if retry_after_s is not None:
        delay = max(delay, retry_after_s)
    return max(0.0, min(delay, retry.max_delay_s))


def jitter(identity: str) -> float:
    """A number from -1 to 1 that depends on the identity alone."""
    digest = hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / float(1 << 63) - 1.0
