"""What a model said, or why there is nothing: the same for both wire formats.

Kinds are the rows of the gate's taxonomy (reliability-gate.md D.2), so that a policy speaks one language.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gonogo.core.faults import Fault, FaultClass
from gonogo.models.conversation import ToolCall

Finish = Literal["stop", "length", "tool_calls", "content_filter", "refusal", "pause", "unknown"]
Integrity = Literal["whole", "unverified", "partial"]
"""Whole; whole as far as can be told although parts of the stream could not be read; ended before its end."""

Kind = Literal[
    "server-5xx",
    "overloaded",
    "rate-limit",
    "quota-exhausted",
    "auth",
    "permission",
    "not-found",
    "bad-request",
    "context-too-long",
    "content-filter",
    "refusal",
    "schema-fail",
    "empty-response",
    "not-json",
    "truncated-stream",
    "malformed-stream",
    "length-stop",
    "unknown",
]
"""Rows of D.2 that an answer's bytes can show, and `not-json` for a whole answer that is no JSON."""

TRANSIENT: frozenset[str] = frozenset(
    {
        "server-5xx",
        "overloaded",
        "rate-limit",
        "empty-response",
        "not-json",
        "truncated-stream",
        "malformed-stream",
    }
)


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens as the server counted them; None is unknown, never zero.

    `input_tokens` holds all input: `cached_tokens` were read from a cache, `cache_write_tokens` put into one, and
    both are part of it. `reasoning_tokens` are part of `output_tokens`.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def known(self) -> bool:
        """Whether both sides were counted."""
        return self.input_tokens is not None and self.output_tokens is not None


class Reply(Struct, frozen=True, omit_defaults=True):
    """What the model said. `finish_raw` is the vendor's word; `notes` tell what was odd and has been lived with."""

    text: str = ""
    thinking: str = ""
    refusal: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: Finish = "unknown"
    finish_raw: str = ""
    usage: Usage = Usage()
    model: str = ""
    id: str = ""
    integrity: Integrity = "whole"
    notes: tuple[str, ...] = ()


class NoAnswer(Struct, frozen=True, omit_defaults=True):
    """Why there is no usable answer (B40). `evidence` says which test matched on which field.

    `retry_after_s` counts from the moment the answer came, and `retry_after_from` names where it stood.
    `should_retry` is the server's own word, where it gave one. `partial` holds what had come by then.
    """

    kind: Kind
    message: str
    evidence: str
    status: int | None = None
    vendor_code: str = ""
    request_id: str = ""
    retry_after_s: float | None = None
    retry_after_from: str = ""
    should_retry: bool | None = None
    partial: Reply | None = None
    notes: tuple[str, ...] = ()

    @property
    def fault_class(self) -> FaultClass:
        """Transient when another attempt may go better."""
        return "transient" if self.kind in TRANSIENT else "logical"

    def fault(self, step: str) -> Fault:
        """The fault of the step that called; its kind is `model.<row>`."""
        name = self.kind.replace("-", "_")
        return Fault(
            kind=f"model.{name}",
            fault_class=self.fault_class,
            rule_id=f"{step}/{name}",
            message=self.message,
            cause=self.vendor_code or (str(self.status) if self.status is not None else None),
            retry_after_s=self.retry_after_s,
        )


def shortcoming(reply: Reply) -> NoAnswer | None:
    """Why a reply that came in order is still no answer: filtered, refused, cut off at its limit, or empty (LLM-2).

    A cut is told before emptiness: a model that spent its tokens on thinking was cut off, not silent.
    """
    told = f"finish reason {reply.finish_raw}" if reply.finish_raw else "the reply's content"
    if reply.finish == "content_filter":
        return _short(reply, "content-filter", "the server's content filter stopped the answer", told)
    if reply.finish == "refusal":
        return _short(reply, "refusal", "the model declined to answer", told)
    if reply.finish == "length":
        message = "the answer was cut off at its limit of tokens; raise the limit or ask for less"
        return _short(reply, "length-stop", message, told)
    if not reply.text.strip() and not reply.tool_calls:
        return _short(reply, "empty-response", "the model answered with nothing", "no text and no tool call")
    return None


def _short(reply: Reply, kind: Kind, message: str, evidence: str) -> NoAnswer:
    return NoAnswer(kind, message, evidence, vendor_code=reply.finish_raw, partial=reply, notes=reply.notes)
