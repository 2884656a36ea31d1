"""What holds for streams of both wire formats: one end, whatever comes and wherever it is cut."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.wires import (
    ANTHROPIC_START,
    NOW_S,
    anthropic_end,
    anthropic_event,
    anthropic_text,
    chunk,
    openai_chunk,
    read_all,
)

from gonogo.models import anthropic_stream, openai_stream
from gonogo.models.events import Broken, Delta, Done, StreamEvent
from gonogo.models.reply import NoAnswer
from gonogo.models.streaming import StreamReader

Make = Callable[[], StreamReader]
OPENAI = openai_chunk({"content": "Hé"}) + openai_chunk({"content": "llo"}) + openai_chunk({}, "stop")
ANTHROPIC = ANTHROPIC_START + anthropic_text("Hé") + anthropic_text("llo") + anthropic_end()


def broken(told: list[StreamEvent]) -> NoAnswer:
    """Why a stream broke; it is the last event and the only end."""
    assert isinstance(told[-1], Broken)
    assert not any(isinstance(event, Done | Broken) for event in told[:-1])
    return told[-1].no_answer


def test_F12_a_stream_that_just_ends_is_never_an_answer(either: Make) -> None:
    """LLM-1 (c): neither a finish reason nor an end event; what had come is kept."""
    for make, pieces in ((openai_stream, OPENAI), (anthropic_stream, ANTHROPIC)):
        for end in range(len(pieces) - 200):
            told = broken(read_all(make.reader({}, NOW_S), pieces[:end]))
            assert told.kind in ("truncated-stream", "empty-response")
    assert broken(read_all(either(), b"data: ")).kind == "truncated-stream"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "empty-response"),
        (b"\n\n", "empty-response"),
        (b": ping\n\n: ping\n\n", "truncated-stream"),
        (b"event: x\n", "truncated-stream"),
        (b"<html>oops</html>", "not-json"),
        (b'{"error": {"message": "m", "type": "overloaded_error"}}', "overloaded"),
        (b'{"choices": null}', "empty-response"),
        (b"[1, 2", "not-json"),
        (b"data: " + b"x" * (2 << 20), "malformed-stream"),
        (b"\x00\xff" * 1000, "truncated-stream"),
    ],
)
def test_a_body_that_is_no_stream_is_told(either: Make, body: bytes, kind: str) -> None:
    """LLM-2: an empty one, an error page, an error in one piece, a line without end."""
    assert broken(read_all(either(), body)).kind == kind


def test_F12a_an_event_that_cannot_be_read_is_passed_over_and_told(either: Make) -> None:
    """S10, LLM-1 (d): the rest is still read, the damage recorded."""
    for garbage in (
        b"data: {broken\n\n",
        b"data: \xff\n\n",
        b"data: 17\n\n",
        b"data: " + b"[" * 5000 + b"\n\n",
    ):
        reader = either()
        stream = OPENAI if "Chunks" in type(reader._wire).__name__ else ANTHROPIC
        told = read_all(reader, garbage + stream)
        assert isinstance(told[-1], Done)
        assert told[-1].reply.text == "Héllo"
        assert told[-1].reply.integrity == "unverified"
        assert told[-1].reply.notes[0].startswith("passed over: ")


def test_after_its_end_a_stream_tells_nothing_more(either: Make) -> None:
    """Whatever still comes on the connection."""
    reader = either()
    assert isinstance(read_all(reader, b"event: error\ndata: {}\n\n")[-1], Broken)
    assert reader.state == "closed"
    assert reader.feed(OPENAI) == []
    assert reader.end() == []


def test_a_stream_larger_than_any_reply_ends(either: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless body of comments, too."""
    monkeypatch.setattr("gonogo.models.streaming.STREAM_BYTES_MAX", 1000)
    reader = either()
    told = [event for _ in range(100) for event in reader.feed(b": ping ping ping ping\n\n")]
    assert broken(told).kind == "malformed-stream"


def test_a_reply_larger_than_its_limit_ends(either: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """What had come stays within it."""
    monkeypatch.setattr("gonogo.models.assembly.REPLY_CHARACTERS_MAX", 10)
    reader = either()
    piece = (
        openai_chunk({"content": "xxx"}) if "Chunks" in type(reader._wire).__name__ else anthropic_text("xxx")
    )
    told = broken([event for _ in range(9) for event in reader.feed(piece)])
    assert told.kind == "malformed-stream"
    assert told.partial is not None
    assert told.partial.text == "xxxxxxxxx"


PIECES = {
    "openai": [
        openai_chunk({"content": "Hé"}),
        openai_chunk({"content": ""}),
        openai_chunk({"reasoning_content": "hm"}),
        openai_chunk({"refusal": "no"}),
        openai_chunk({"tool_calls": [{"index": 0, "id": "t", "function": {"name": "f", "arguments": "{"}}]}),
        openai_chunk({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}),
        openai_chunk({}, "stop"),
        chunk({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
        chunk({"error": {"message": "m"}}),
        chunk("[DONE]"),
    ],
    "anthropic": [
        ANTHROPIC_START,
        anthropic_text("Hé"),
        anthropic_event("ping"),
        anthropic_event(
            "content_block_start", index=1, content_block={"type": "tool_use", "id": "t", "name": "f"}
        ),
        anthropic_event(
            "content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": "{}"}
        ),
        anthropic_event("content_block_stop", index=1),
        anthropic_event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
        anthropic_event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2}),
        anthropic_event("message_stop"),
    ],
}
ODD = [
    b": ping\r\n\r\n",
    b"data: {\n\n",
    b"\xff\xfe",
    b"event: error\n",
    b"\r",
    b'data: {"choices": 7}\n\n',
    b"\n\n",
]
SHAPES = st.sampled_from(sorted(PIECES)).flatmap(
    lambda name: st.tuples(
        st.just(openai_stream if name == "openai" else anthropic_stream),
        st.lists(st.sampled_from(PIECES[name] + ODD), max_size=12).map(b"".join),
    )
)


@given(SHAPES, st.lists(st.integers(0, 3000), max_size=12))
def test_any_cut_of_the_bytes_gives_the_same_events(shape: tuple[object, bytes], cuts: list[int]) -> None:
    """Where the network cuts a stream changes nothing of what is told."""
    module, stream = shape
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    pieces = [stream[start:end] for start, end in itertools.pairwise(places)]
    whole = read_all(module.reader({}, NOW_S), stream)  # type: ignore[attr-defined]
    assert read_all(module.reader({}, NOW_S), *pieces) == whole  # type: ignore[attr-defined]
    single = [stream[i : i + 1] for i in range(len(stream))]
    assert read_all(module.reader({}, NOW_S), *single) == whole  # type: ignore[attr-defined]


@given(SHAPES)
def test_every_stream_has_exactly_one_end_and_its_pieces_make_the_reply(shape: tuple[object, bytes]) -> None:
    """What was shown piece by piece is what the end holds."""
    module, stream = shape
    told = read_all(module.reader({}, NOW_S), stream)  # type: ignore[attr-defined]
    ends = [event for event in told if isinstance(event, Done | Broken)]
    assert ends == told[-1:]
    reply = ends[0].reply if isinstance(ends[0], Done) else ends[0].no_answer.partial
    shown = "".join(event.text for event in told if isinstance(event, Delta) and event.channel == "text")
    assert reply is None or reply.text == shown


@given(st.lists(st.binary(max_size=60), max_size=10))
def test_any_bytes_are_an_answer_or_a_fault(pieces: list[bytes]) -> None:
    """Garbage makes no reader fail."""
    for module in (openai_stream, anthropic_stream):
        assert isinstance(read_all(module.reader({}, NOW_S), *pieces)[-1], Done | Broken)
