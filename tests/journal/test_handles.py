"""Handles: texts that stand for secrets, found and replaced in any JSON."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.journal.handles import handle, may_hold, replaced, shortened
from gonogo.journal.redact import Redactor

TAG = "0f" * 16
ONE = handle("login.token", TAG)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def test_a_handle_alone_becomes_the_value_and_within_a_text_its_text() -> None:
    """So a secret of several parts can be handed on whole."""
    opened = {"a": 1}
    value = {"whole": ONE, "within": [f"Bearer {ONE}!"], ONE: 2}
    assert replaced(value, lambda name, tag: opened) == {
        "whole": opened,
        "within": ['Bearer {"a":1}!'],
        '{"a":1}': 2,
    }


@pytest.mark.parametrize(
    "text", ["[secret login.token]", f"[secret  {TAG}]", f"[secret a {TAG[:-1]}]", "[secret "]
)
def test_what_only_looks_like_one_is_left_alone(text: str) -> None:
    """A shortened one among them."""
    assert replaced(text, lambda name, tag: "opened") == text


def test_a_name_is_kept_readable_in_safe_characters() -> None:
    """Step and path may hold anything."""
    assert shortened(handle("a b]/ü.c-d", TAG)) == "[secret a_b__ü.c-d]"


@given(JSON)
def test_what_holds_none_is_the_same_object(value: object) -> None:
    """The usual case copies nothing."""
    assert replaced(value, lambda name, tag: "opened") is value


@given(JSON)
def test_one_is_found_wherever_it_is(value: object) -> None:
    """At any depth, beside anything."""
    assert may_hold([value, {"x": [f"…{ONE}"]}])
    assert TAG not in str(shortened([value, {"x": [f"…{ONE}"], ONE: ONE}]))


def test_masking_leaves_handles_whole() -> None:
    """Though a secret be a word that they are made of."""
    redactor = Redactor({"A": "secret", "B": "login.", "C": TAG[:8]})
    assert redactor.text(f"{ONE} secret login. {TAG}") == f"{ONE} *** *** ************"
    assert redactor.value({"x": [ONE]}) == {"x": [ONE]}
