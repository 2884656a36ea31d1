"""mcp's messages: whatever a server sends is an answer, something to answer, or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.providers._mcp.messages import MESSAGES_MAX, Inbox, Trouble, read, written

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "message"])
MESSAGES = st.dictionaries(KEYS, VALUES | st.sampled_from(["2.0", 7, "7", "ping"]), max_size=6).map(
    lambda message: {"jsonrpc": "2.0", **message}
)


def inbox() -> Inbox:
    """Whose progress nobody sees."""
    return Inbox(lambda text: None)


@given(st.binary() | VALUES.map(lambda value: json.dumps(value).encode()))
def test_what_is_no_message_is_passed_over(data: bytes) -> None:
    """Nothing is answered to it, and nothing waits for it."""
    if read(data) is None:
        assert inbox().take(data, 7) == (None, None)


@given(MESSAGES)
def test_a_message_is_an_answer_or_is_answered_or_neither(message: dict[str, Any]) -> None:
    """Never both; a reply has the asker's id, and can be sent."""
    answer, reply = inbox().take(json.dumps(message).encode(), 7)
    assert answer is None or reply is None
    if answer is not None:
        assert "method" not in answer
        assert "result" in answer or "error" in answer
    if reply is not None:
        assert reply["id"] == message["id"]
        assert ("result" in reply) != ("error" in reply)
        assert written(reply)


@pytest.mark.parametrize(
    "message",
    [
        {"id": 8, "result": {}},
        {"id": True, "result": {}},
        {"id": None, "result": {}},
        {"id": 7},
        {"id": 7, "result": {}, "method": "ping"},
        {"id": 7, "result": {}, "jsonrpc": "1.0"},
    ],
)
def test_an_answer_to_something_else_is_none(message: dict[str, Any]) -> None:
    """Only what has the id of the request, and is of this protocol."""
    answer, _ = inbox().take(json.dumps({"jsonrpc": "2.0", **message}).encode(), 7)
    assert answer is None


def test_an_error_without_an_id_is_about_the_request_that_waits() -> None:
    """A server that couldn't read it gives none."""
    answer, _ = inbox().take(b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "?"}}', 7)
    assert answer is not None


def test_a_server_may_send_so_much() -> None:
    """Law 2."""
    box = inbox()
    for _ in range(MESSAGES_MAX):
        box.take(b"", 7)
    with pytest.raises(Trouble):
        box.take(b"", 7)


@given(st.text())
def test_what_is_written_is_one_line_that_is_read_again(text: str) -> None:
    """Whatever is in it; halves of characters, which no UTF-8 has, become question marks."""
    line = written({"jsonrpc": "2.0", "method": text})
    assert b"\n" not in line
    assert read(line) == {"jsonrpc": "2.0", "method": text.encode("utf-8", "replace").decode()}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}])
def test_what_json_has_not_is_not_sent(value: Any) -> None:
    """Before the server has heard anything of it."""
    with pytest.raises(Trouble) as raised:
        written({"jsonrpc": "2.0", "params": value})
    assert (raised.value.fault_kind, raised.value.effect) == ("mcp.arguments", "none")
