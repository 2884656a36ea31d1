"""JSON out of what a model wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gonogo.models.conversation import Schema, ToolCall
from gonogo.models.reply import NoAnswer, Reply
from gonogo.models.structured import Extracted, answer_json, arguments_of, extract_json


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ('{"n": 1}', {"n": 1}, "text"),
        (' \n{"n": 1}\n', {"n": 1}, "text"),
        ('```json\n{"n": 1}\n```', {"n": 1}, "fence"),
        ('Here you are:\n```\n{"n": 1}\n```\nBye.', {"n": 1}, "fence"),
        ('```python\nx = {}\n```\n```json\n{"n": 1}\n```', {"n": 1}, "fence"),
        ('The answer is {"n": {"m": [1]}}, as asked.', {"n": {"m": [1]}}, "prose"),
        ('Use {name} as in [1]: {"n": 1}', {"n": 1}, "prose"),
        ('{"n": 1} or, again, {"n":1}', {"n": 1}, "prose"),
        ('```json\n{"n": 1}', {"n": 1}, "prose"),
        ('{"n": "```"}', {"n": "```"}, "text"),
    ],
)
def test_the_one_object_in_a_text_is_found(text: str, value: Any, found: str) -> None:
    """As all of it, in a fence, or within prose."""
    assert extract_json(text, "object") == Extracted(value, found)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("I can't.", "no JSON object"),
        ("", "no JSON object"),
        ('{"n": 1} or {"n": 2}', "2 different JSON values"),
        ('```json\n{"n": 1}\n```\n```json\n{"n": 2}\n```', "2 different JSON values"),
        ('{"n": {"m": 1}, "o": ', "broken or cut off"),
        ('{"n": 1} and {"n": ', "broken or cut off"),
        ('Well: {"n": {"m": 1}, oops}', "broken or cut off"),
        ('{"n": 1, "n": 2}', "the same name twice"),
        ('{"n": NaN}', "NaN, which is no JSON"),
        ('x {"n": "\\ud800", "o": {"n": 1}}', "broken or cut off"),
        ("{'n': 1}", "no JSON object"),
        ('[{"n": 1}]', "no object"),
        ("7", "no object"),
        ("{" * 100_000, "no JSON object"),
        ('{"a":' * 100_000, "broken or cut off"),
        ("[" * 100_000, "no JSON object"),
    ],
)
def test_what_is_not_clearly_one_object_is_refused(text: str, message: str) -> None:
    """Nothing is mended, and a part of a broken value isn't the answer."""
    told = extract_json(text, "object")
    assert isinstance(told, NoAnswer)
    assert told.kind == "schema-fail"
    assert message in told.message


def test_an_array_is_found_when_one_is_wanted() -> None:
    """A list of one stays a list."""
    assert extract_json('Sure: [{"n": 1}]', "array") == Extracted([{"n": 1}], "prose")


def test_any_value_may_be_all_of_a_text() -> None:
    """A schema may ask for a number."""
    assert extract_json(" 7 ") == Extracted(7, "text")


def test_the_answer_to_a_schema_asked_for_by_tool_is_the_call() -> None:
    """Or the text, for models that answer there all the same."""
    schema = Schema({"type": "object"}, mode="tool")
    call = ToolCall("t", "answer", '{"n": 1}')
    assert answer_json(Reply(tool_calls=(call,)), schema) == Extracted({"n": 1}, "tool")
    assert answer_json(Reply('{"n": 1}'), schema) == Extracted({"n": 1}, "text")
    twice = answer_json(Reply(tool_calls=(call, call)), schema)
    assert isinstance(twice, NoAnswer)


@pytest.mark.parametrize(
    ("text", "value"),
    [("", {}), (" ", {}), ("{}", {}), ('{"a": 1}', {"a": 1}), ('{"a": 1', None), ("[]", None), ("1 2", None)],
)
def test_arguments_are_an_object_or_a_fault(text: str, value: Any) -> None:
    """A tool is never called with what the model didn't say."""
    told = arguments_of(ToolCall("t", "weather", text))
    assert told == value if value is not None else isinstance(told, NoAnswer)


WHOLE = st.characters(blacklist_categories=["Cs"])
PROSE = st.text(st.characters(blacklist_characters="{}[]`", blacklist_categories=["Cs"]), max_size=20)
LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(WHOLE, max_size=8)
NESTED = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(WHOLE, max_size=3), inner, max_size=3)
    ),
)
VALUES = st.dictionaries(st.text(WHOLE, max_size=5), NESTED, max_size=4)


@example("NaN", {}, "")
@example("Infinity of ", {"a": 1}, "")
@given(PROSE, VALUES, PROSE)
def test_an_object_in_prose_comes_out_as_it_went_in(before: str, value: dict[str, Any], after: str) -> None:
    """Whatever stands around it."""
    told = extract_json(f"{before}{json.dumps(value)}{after}", "object")
    assert isinstance(told, Extracted)
    assert told.value == value


@given(VALUES.filter(bool), st.integers(0, 200))
def test_an_object_that_is_cut_off_is_never_an_answer(value: dict[str, Any], keep: int) -> None:
    """Not even its inner parts."""
    text = json.dumps(value)
    assert isinstance(extract_json(text[: min(keep, len(text) - 1)], "object"), NoAnswer)


@given(st.text(st.sampled_from('{}[]",:`\n 1aNjson\\'), max_size=60))
def test_any_text_holds_an_object_or_none(text: str) -> None:
    """No text makes the search fail."""
    assert isinstance(extract_json(text, "object"), Extracted | NoAnswer)
