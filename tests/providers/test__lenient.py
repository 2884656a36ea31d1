"""Objects as people print them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.providers._lenient import NotLenient, read_lenient


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        ("{ok: yes}", {"ok": "yes"}),
        ("{ok: True, none: None}", {"ok": True, "none": None}),
        ("{'it\\'s': \"a\\nb\"}", {"it's": "a\nb"}),
        ("{a: [1, -2.5, two], b: {c: d.e-f}}", {"a": [1, -2.5, "two"], "b": {"c": "d.e-f"}}),
        ("[{a: 1}, {a: 2,},]", [{"a": 1}, {"a": 2}]),
        ("{1: x}", {"1": "x"}),
    ],
)
def test_a_plain_object_is_read(text: str, value: Any) -> None:
    """Single quotes, bare keys and words, trailing commas."""
    assert read_lenient(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "[words]",
        "[1, 2]",
        "[]",
        "{a}",
        "{a: }",
        "{a: 1} b",
        "{a: 1 b: 2}",
        "{a: b c}",
        "{",
        "",
        "{a: f(x)}",
        "5",
        "{a: 01}",
    ],
)
def test_what_is_not_sure_is_refused(text: str) -> None:
    """Prose isn't data."""
    with pytest.raises(NotLenient):
        read_lenient(text)


def test_depth_and_length_have_limits() -> None:
    """Hostile input costs an exception of ours, not a recursion error."""
    for text in ("{a:" * 100 + "1" + "}" * 100, "{a: '" + "x" * 70_000 + "'}"):
        with pytest.raises(NotLenient):
            read_lenient(text)


@given(st.text(alphabet="{}[]:,'\"ab1 .\\\n", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No other exception."""
    try:
        read_lenient(text)
    except NotLenient:
        pass
