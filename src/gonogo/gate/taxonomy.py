"""What each kind of failure means for a call: one table, read by the core, the breaker and the docs. Pure.

How a kind is recognised is in `signals.py`; what is done about it, after guards and rules, in `verdicts.py`.
Source: reliability-gate, D.2.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gonogo.core.faults import Effect

TAXONOMY_VERSION = 1

Same = Literal["no", "yes", "once", "wait", "feedback"]
"""May the same target be asked again: never, yes, one time, after the far side's wait, with the answer's fault told."""

Other = Literal["no", "yes", "larger", "opt-in"]
"""May another target be asked: never, yes, only one with a larger window, only if the policy names the kind."""

Counting = Literal["no", "failure", "cool", "isolate"]
"""For the breaker: nothing; a failure; the target rests without opening; the target is out until reset."""

Terminal = Literal["no", "yes", "if-none"]
"""Ends the call at once: no; yes; only when there is nowhere else to go."""


class Row(Struct, frozen=True):
    """One kind. `effect` is what such a failure proves about the far side when nothing better is known."""

    kind: str
    same: Same
    other: Other
    counting: Counting
    terminal: Terminal
    effect: Effect
    meaning: str


_TABLE = (
    Row("cancelled", "no", "no", "no", "yes", "unknown", "the caller went away"),
    Row("deadline", "no", "no", "no", "yes", "unknown", "the call's own time was up"),
    Row("timeout-connect", "yes", "yes", "failure", "no", "none", "no connection in time"),
    Row("timeout-first-token", "no", "yes", "failure", "no", "unknown", "connected, then silence"),
    Row("timeout-idle", "once", "yes", "failure", "no", "unknown", "the stream stopped coming"),
    Row("timeout-total", "no", "yes", "failure", "no", "unknown", "the attempt's time was up"),
    Row("network", "yes", "yes", "failure", "no", "unknown", "reset, name lookup, TLS, protocol"),
    Row("server-5xx", "yes", "yes", "failure", "no", "unknown", "500, 502, 504, 408"),
    Row("overloaded", "wait", "yes", "failure", "no", "unknown", "503, 529"),
    Row("rate-limit", "wait", "yes", "cool", "no", "none", "429, or a limit's code"),
    Row("quota-exhausted", "no", "yes", "isolate", "if-none", "none", "money or hard quota is used up"),
    Row("auth", "no", "yes", "isolate", "if-none", "none", "401"),
    Row("permission", "no", "yes", "no", "if-none", "none", "403"),
    Row("not-found", "no", "yes", "isolate", "if-none", "none", "404, the model is gone"),
    Row("bad-request", "no", "no", "no", "yes", "none", "400, 422: the request is wrong"),
    Row("context-too-long", "no", "larger", "no", "if-none", "none", "413, or a vendor's code"),
    Row("content-filter", "no", "opt-in", "no", "yes", "none", "the vendor's filter stopped it"),
    Row("refusal", "no", "opt-in", "no", "no", "done", "the model declined"),
    Row("schema-fail", "feedback", "yes", "no", "no", "done", "the answer isn't valid"),
    Row("empty-response", "once", "yes", "failure", "no", "done", "an answer without content"),
    Row("truncated-stream", "yes", "yes", "failure", "no", "unknown", "ended without an end"),
    Row("malformed-stream", "yes", "yes", "failure", "no", "unknown", "an error inside a 200, or unreadable"),
    Row("length-stop", "no", "opt-in", "no", "no", "done", "cut off at the length limit"),
    Row("circuit-open", "wait", "yes", "no", "no", "none", "refused by the breaker"),
    Row(
        "budget-exceeded", "no", "no", "no", "yes", "none", "money, tokens, attempts or the share of retries"
    ),
    Row("side-effect-unsafe", "no", "no", "no", "yes", "unknown", "a repeat could do it twice"),
    Row("inner-gate", "no", "yes", "no", "no", "unknown", "a gate within gave up; it has tried"),
    Row("unknown", "once", "yes", "failure", "no", "unknown", "anything else"),
)

ROWS: dict[str, Row] = {row.kind: row for row in _TABLE}
"""Every kind, in the order of the docs."""


def row_of(kind: str) -> Row:
    """The row of a kind; a kind that a step made up itself is treated as `unknown`."""
    return ROWS.get(kind, ROWS["unknown"])
