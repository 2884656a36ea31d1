"""One record, one line."""

from __future__ import annotations

import json
from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.core.events import RunStarted, TimerFired
from gonogo.journal.codec import LineDamaged, NewerFormat, check_format, decode_line, encode_line
from gonogo.journal.records import FORMAT_VERSION, Record


def sealed(body: str) -> bytes:
    """A line as a newer or other version could have written it."""
    open_body = body.removesuffix("}").encode()
    return b'%s,"crc":"%08x"}\n' % (open_body, crc32(open_body))


def test_a_record_comes_back_equal(record) -> None:
    """Encoding loses nothing."""
    for seq in (0, 1):
        assert decode_line(encode_line(record(seq))) == record(seq)


def test_a_line_is_compact_json_with_its_checksum_last(record) -> None:
    """Any JSON parser can read a journal."""
    line = encode_line(record(3))
    assert line.endswith(b'"}\n')
    assert line.count(b"\n") == 1
    assert list(json.loads(line)) == ["seq", "at", "event", "decisions", "crc"]


def test_text_with_line_ends_stays_on_one_line(record) -> None:
    """A newline in an output is no end of a record."""
    line = encode_line(record(1, "a\nb\r\nc\u2028d\x00"))
    assert line.count(b"\n") == 1
    assert decode_line(line).event.output == "a\nb\r\nc\u2028d\x00"


LINE = encode_line(Record(7, 1.5, TimerFired(at=2.0, timer=4)))


@given(st.integers(0, len(LINE) - 2), st.integers(0, 7))
def test_every_flipped_bit_is_noticed(position: int, bit: int) -> None:
    """A changed record is never taken for what was written."""
    changed = bytearray(LINE)
    changed[position] ^= 1 << bit
    with pytest.raises(LineDamaged):
        decode_line(bytes(changed))


@given(st.integers(0, len(LINE) - 2))
def test_every_cut_is_noticed(length: int) -> None:
    """RES-1: a part of a line is no record."""
    with pytest.raises(LineDamaged):
        decode_line(LINE[:length])


def test_a_line_from_elsewhere_is_damaged() -> None:
    """JSON without a checksum was not written by a journal."""
    with pytest.raises(LineDamaged, match="its end is missing"):
        decode_line(b'{"seq":1,"at":0,"event":{"type":"timer_fired","timer":1}}\n')


def test_unknown_members_of_a_newer_version_are_skipped() -> None:
    """New optional fields don't make a journal unreadable."""
    line = sealed('{"seq":1,"at":0.0,"event":{"type":"timer_fired","timer":1,"why":"new"},"mood":"good"}')
    assert decode_line(line).event == TimerFired(timer=1)


def test_an_unknown_event_is_a_newer_format_not_damage() -> None:
    """The file is well; this version is too old for it."""
    with pytest.raises(NewerFormat, match="tea_served"):
        decode_line(sealed('{"seq":1,"at":0.0,"event":{"type":"tea_served"}}'))


def test_a_newer_format_is_refused_before_anything_else_is_read() -> None:
    """A journal's first line says what is needed to read it, and who wrote it."""
    head = '{"seq":0,"at":0.0,"event":{"type":"run_began","format_version":2,"core_version":"9.1","plan":[]}}'
    with pytest.raises(NewerFormat, match=r"format 2 by gonogo 9\.1; this version reads up to 1"):
        check_format(sealed(head))


def test_the_default_format_version_is_one_for_ever() -> None:
    """A default that rose would make old lines claim what they aren't: they leave it out."""
    default = msgspec.structs.fields(RunStarted)
    assert {field.name: field.default for field in default}["format_version"] == 1
    assert FORMAT_VERSION >= 1
