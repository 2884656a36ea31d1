"""Requests as bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gonogo.models.conversation import Ask, Message
from gonogo.models.writing import call, json_bytes


@given(st.text(st.characters()))
def test_any_text_becomes_utf_8(text: str) -> None:
    """Halves of pairs included."""
    assert json_bytes(text).decode("utf-8")


def test_the_same_request_is_the_same_bytes() -> None:
    """Keys stand in the order they were given."""
    ask = Ask("m", (Message("user", "x"),), extra={"b": 1, "a": 2})
    made = call("http://h", ask, {"model": "m"}, {"x-a": "1"})
    assert made.body == b'{"model":"m","b":1,"a":2}'
    assert made.headers == {"content-type": "application/json", "accept": "application/json", "x-a": "1"}


def test_a_stream_is_asked_for_in_the_header_too() -> None:
    """Proxies look there."""
    ask = Ask("m", (Message("user", "x"),), stream=True)
    assert call("http://h", ask, {}, {}).headers["accept"] == "text/event-stream"
