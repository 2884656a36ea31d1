"""Server-sent events out of bytes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.models.sse import SseEvent, SseParser


def events(*pieces: bytes, **limits: int) -> tuple[list[SseEvent], str]:
    """All events of a stream in pieces, and the overflow."""
    parser = SseParser(**limits)
    return [event for piece in pieces for event in parser.feed(piece)], parser.overflow


def datas(*pieces: bytes) -> list[bytes]:
    """The data of all events."""
    return [event.data for event in events(*pieces)[0]]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_line_may_end_in_any_of_three_ways(end: bytes) -> None:
    """LF, CRLF and CR are the same."""
    assert datas(b"data: a" + end + b"data: b" + end + end) == [b"a\nb"]


def test_crlf_cut_in_two_is_one_end_of_line() -> None:
    """A CR at the end of a piece ends its line; an LF that begins the next is part of it."""
    assert datas(b"data: a\r", b"\n\r", b"\n", b"data: b\r", b"\n\r\n") == [b"a", b"b"]


def test_crlf_byte_by_byte_makes_no_blank_lines() -> None:
    """Lines of one event stay in one event."""
    stream = b"data: a\r\ndata: b\r\n\r\n"
    assert datas(*(stream[i : i + 1] for i in range(len(stream)))) == [b"a\nb"]


def test_an_event_that_ends_in_cr_does_not_wait_for_the_next_byte() -> None:
    """A live stream with CR is told as soon as it can be."""
    assert datas(b"data: a\r\r") == [b"a"]


def test_comments_ids_and_unknown_fields_are_no_events() -> None:
    """Pings keep a connection open and say nothing."""
    assert datas(b": ping\n\nid: 7\nretry: 10\nfoo: bar\n\n:\n\ndata: x\n\n") == [b"x"]


def test_one_space_after_the_colon_is_dropped_and_no_more() -> None:
    """`data:x`, `data: x` and `data:  x`; a field without a colon has no value."""
    assert datas(b"data:x\n\ndata: x\n\ndata:  x\n\ndata\n\n") == [b"x", b"x", b" x", b""]


def test_the_name_of_an_event_is_told_and_then_forgotten() -> None:
    """It belongs to its own event only."""
    told, _ = events(b"event: error\ndata: 1\n\ndata: 2\n\n")
    assert told == [SseEvent(b"error", b"1"), SseEvent(b"", b"2")]


def test_a_byte_order_mark_at_the_start_is_dropped() -> None:
    """Only there, however it is cut."""
    assert datas(b"\xef", b"\xbb", b"\xbfdata: x\n\n") == [b"x"]
    assert datas(b"\xef\xbb\xbfdata: \xef\xbb\xbf\n\n") == [b"\xef\xbb\xbf"]


def test_data_that_is_no_utf_8_stays_as_it_is() -> None:
    """Whoever decodes it sees the damage."""
    assert datas(b"data: \xff\xfe\n\n") == [b"\xff\xfe"]


def test_an_event_without_its_blank_line_is_pending_and_not_told() -> None:
    """What was cut off is never taken for whole."""
    parser = SseParser()
    assert parser.feed(b"data: x\n") == []
    assert parser.pending


@pytest.mark.parametrize("pieces", [[b"data: " + b"x" * 20 + b"\n\n"], [b"d"] + [b"x"] * 20, [b"x" * 20]])
def test_a_line_over_its_limit_stops_the_parser(pieces: list[bytes]) -> None:
    """An endless line costs no more memory than its limit, whether or not its end comes."""
    told, overflow = events(*pieces, b"\n\ndata: y\n\n", line_bytes_max=10)
    assert told == []
    assert overflow == "a line is longer than 10 bytes"


def test_a_line_without_end_is_stopped_before_its_end() -> None:
    """At its limit, and not when the memory is full."""
    parser = SseParser(line_bytes_max=10)
    parser.feed(b"x" * 10)
    assert not parser.overflow
    parser.feed(b"x")
    assert parser.overflow


def test_an_event_over_its_limit_stops_the_parser() -> None:
    """Many short lines make a large event too; what came before it is told."""
    told, overflow = events(b"data: a\n\n" + b"data: xxxx\n" * 10, event_bytes_max=20)
    assert [event.data for event in told] == [b"a"]
    assert overflow == "an event is larger than 20 bytes"


ENDS = [b"\n", b"\r", b"\r\n"]
LINES = [line + end for line in (b"data: x", b"data:y", b"event: e", b"", b": c", b"id: 1") for end in ENDS]
PIECES = st.sampled_from([*LINES, b"\xef\xbb\xbf", b"\xff", b" ", b":", b"data", b"xxxx"])


@given(
    st.lists(PIECES, max_size=40).map(b"".join), st.lists(st.integers(0, 200), max_size=8), st.integers(4, 30)
)
def test_any_cut_gives_the_same_events(stream: bytes, cuts: list[int], limit: int) -> None:
    """Where the network cuts the bytes changes nothing, limits included."""
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    pieces = [stream[start:end] for start, end in itertools.pairwise(places)]
    limits = {"line_bytes_max": limit, "event_bytes_max": limit}
    whole = events(stream, **limits)
    assert events(*pieces, **limits) == whole
    assert events(*(stream[i : i + 1] for i in range(len(stream))), **limits) == whole
