"""Frames and JSON: what goes over the pipe comes out the same."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonogo.expressions.frames import decode_value, encode_value, pack, unpack

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@settings(deadline=None)
@given(PLAIN)
def test_every_json_value_survives(value: object) -> None:
    """Integers of any size and text of any language included."""
    assert decode_value(encode_value(value)) == value


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8") | st.sampled_from("\ud83d\udc00")))
def test_half_characters_are_escaped(text: str) -> None:
    """No value makes the pipe fail: the JSON is always UTF-8 without NUL."""
    assert b"\0" not in encode_value({"a": text}).encode()


@settings(deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1))
def test_parts_survive_the_frame(parts: list[str]) -> None:
    """Length first, then the parts."""
    frame = bytearray(pack(parts))
    assert unpack(frame) == parts
    assert unpack(frame[:-1]) is None or frame[:-1] == b""
    assert unpack(frame[:3]) is None


def test_mappings_and_sequences_are_taken_for_objects_and_lists() -> None:
    """Lazy views of the host's state need no copies."""
    assert encode_value({"a": MappingProxyType({"b": range(2)})}) == '{"a":{"b":[0,1]}}'


def test_what_is_no_data_is_refused() -> None:
    """A host's mistake, not an expression's."""
    with pytest.raises(TypeError):
        encode_value(object())


def test_bytes_that_are_no_text_are_refused() -> None:
    """The client treats such a child as dead."""
    with pytest.raises(ValueError, match="utf-8"):
        unpack(bytearray(b"\x02\0\0\0\xff\xfe"))
