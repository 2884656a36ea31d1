"""What a reply is short of, and faults as data."""

from __future__ import annotations

import pytest

from gonogo.models.conversation import ToolCall
from gonogo.models.reply import NoAnswer, Reply, Usage, shortcoming

CALL = ToolCall("t1", "weather", "{}")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply("hi", finish="stop"), None),
        (Reply("hi"), None),
        (Reply(tool_calls=(CALL,), finish="tool_calls"), None),
        (Reply("half an", finish="length"), "length-stop"),
        (Reply("", thinking="hm", finish="length"), "length-stop"),
        (Reply(refusal="no", finish="refusal"), "refusal"),
        (Reply("half", finish="content_filter"), "content-filter"),
        (Reply(" \n", finish="stop"), "empty-response"),
        (Reply(thinking="hm", finish="stop"), "empty-response"),
    ],
)
def test_LLM_2_a_reply_that_is_no_answer_is_told(reply: Reply, kind: str | None) -> None:
    """Refused, filtered, cut off and empty are four things; what had come is kept."""
    told = shortcoming(reply)
    assert (told and told.kind) == kind
    assert told is None or told.partial == reply


def test_a_fault_carries_kind_class_and_wait_as_data() -> None:
    """Nobody reads the message to find out."""
    fault = NoAnswer("rate-limit", "slow down", "status 429", status=429, retry_after_s=3.0).fault("ask")
    assert (fault.kind, fault.fault_class, fault.rule_id) == (
        "model.rate_limit",
        "transient",
        "ask/rate_limit",
    )
    assert (fault.cause, fault.retry_after_s) == ("429", 3.0)


@pytest.mark.parametrize(
    "kind", ["auth", "bad-request", "context-too-long", "quota-exhausted", "unknown", "schema-fail"]
)
def test_what_another_try_does_not_mend_is_logical(kind: str) -> None:
    """RET-3: wrong answers are no outages."""
    assert NoAnswer(kind, "m", "e").fault_class == "logical"  # type: ignore[arg-type]


def test_unknown_usage_is_not_zero() -> None:
    """Both sides must have been counted."""
    assert not Usage().known
    assert not Usage(input_tokens=3).known
    assert Usage(0, 0).known
