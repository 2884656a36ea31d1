"""From text to data."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.providers._output import guess, json_or_text, read_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", ""),
        ("5", 5),
        ("true", True),
        ("null", None),
        ("[]", []),
        ('[{"a": 1}]', [{"a": 1}]),
        ('["5"]', ["5"]),
        ('{"message": "m", "type": "logic"}', {"message": "m", "type": "logic"}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('building...\n{"a": [1, {"b": "}"}]}', {"a": [1, {"b": "}"}]}),
        ('first {"a": 1} then {"a": 2} end', {"a": 2}),
        ('odd } and [ then {"a": 1}', {"a": 1}),
        ('a lone " and {\\"a\\": [1]} behind it', 'a lone " and {\\"a\\": [1]} behind it'),
        ('a 5" pipe: {a: 1}', {"a": 1}),
        ("done {ok: true, name: 'x y', n: 1.5}", {"ok": True, "name": "x y", "n": 1.5}),
        ("check failed, error=true", {"error": True}),
        ("Error: False alarm", {"error": False}),
        ("no terror=true here", "no terror=true here"),
        ("just [words] in {prose}", "just [words] in {prose}"),
        ("NaN", "NaN"),
    ],
)
def test_E2_R4_the_first_reading_that_fits_is_taken(text: str, value: Any) -> None:
    """E.2 R4 with D of R8 and R9: nothing collapses, nothing is lost."""
    assert guess(text) == value


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{" * 300_000, '"' * 300_001, "[1," * 200_000 + "]" * 3, "x" + '\\"' * 300_000]
)
def test_a_hostile_text_costs_little(text: str) -> None:
    """Linear, bounded in what is searched, and no recursion error; the text is what's left."""
    begun = time.process_time()
    assert guess(text) == text
    assert time.process_time() - begun < 5  # a quadratic search takes minutes


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{'a': 1}", "", "1 2", "[" * 100_000])
def test_strict_json_is_strict(text: str) -> None:
    """`parse: json` guesses nothing."""
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


def test_a_template_gives_json_or_trimmed_text() -> None:
    """E.2 R6."""
    assert json_or_text(' {"a": 1}\n') == {"a": 1}
    assert json_or_text(" a b\n") == "a b"


@given(st.text())
def test_any_text_has_a_reading(text: str) -> None:
    """Guessing never fails."""
    guess(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_whole_json_comes_back_as_it_was(value: Any) -> None:
    """Whatever a command prints as JSON is its output, exactly."""
    import json

    assert guess(json.dumps(value)) == value
