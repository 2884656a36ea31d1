"""Values become JSON by documented rules or are refused with their place: RES-3, UNI-1."""

from __future__ import annotations

import datetime
import enum
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.core.events import UNSET, CallDone, CallFailed
from gonogo.core.faults import Fault, Issue
from gonogo.journal.codec import decode_line, encode_line
from gonogo.journal.normalise import DEPTH_MAX, NotStorable, normalise, normalise_event, to_json
from gonogo.journal.records import Record


class Hostile:
    """Whatever is asked of it raises."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


class Loud(str):
    """Text that says something else when asked for its text."""

    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


class Color(enum.StrEnum):
    RED = "red"


def nested(levels: int) -> list[Any]:
    """Lists in lists, so many deep."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def containing_itself() -> list[Any]:
    """A list whose last item is the list."""
    value: list[Any] = [1]
    value.append(value)
    return value


REFUSED = {
    "a set": ({1, 2}, "output is a set"),
    "a set inside": ({"tags": [1, {2}]}, r"output\.tags\[1\] is a set"),
    "bytes": ({"raw": b"x"}, r"output\.raw is bytes"),
    "NaN": ([0.5, float("nan")], r"output\[1\] is nan"),
    "Infinity": ({"a": {"b": float("-inf")}}, r"output\.a\.b is -inf"),
    "a datetime": ({"at": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)}, "output.at .* datetime"),
    "a decimal": (Decimal("1.5"), "type Decimal"),
    "a list that contains itself": (containing_itself(), r"output\[1\] is a value that contains itself"),
    "int keys": ({"a": {1: "x"}}, "output.a is an object with a key of type int"),
    "an object whose repr and eq raise": ([Hostile()], r"output\[0\] is a Python object of type Hostile"),
    "a function": (len, "type builtin_function_or_method"),
    "an int of 5,000 digits": ({"n": 10**5000}, "output.n is an integer of more than 4300 digits"),
    "201 levels": (nested(DEPTH_MAX + 1), "nested deeper than 200"),
    "keys that become equal": ({"\ud800": 1} | {"\ud801": 2}, "keys differ only in bytes"),
    "UNSET inside": ([UNSET], r"output\[0\] .* UnsetType"),
}


@pytest.mark.parametrize(("value", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_RES_3_what_would_not_come_back_equal_is_refused_with_its_place(value: object, message: str) -> None:
    """RES-3: the message names the path inside the value and what it is."""
    with pytest.raises(NotStorable, match=message):
        normalise(value)


def test_RES_3_an_open_file_is_refused() -> None:
    """RES-3: an open file is no data."""
    with open("/dev/null") as file, pytest.raises(NotStorable, match="type TextIOWrapper"):
        normalise({"file": file})


STORED = {
    "400 digits": (10**399, 10**399),
    "4,300 digits": (10**4299, 10**4299),
    "tuples as lists": ((1, ("a",)), [1, ["a"]]),
    "text enums as text": ({"c": Color.RED}, {"c": "red"}),
    "subclasses of text by their own content": (Loud("x"), "x"),
    "a surrogate escape as U+FFFD": ("caf\udce9 mid", "caf\ufffd mid"),
    "two halves as one character": ("\ud83d\ude42", "🙂"),
    "odd keys": ({"\udce9": 1}, {"\ufffd": 1}),
    "200 levels": (nested(DEPTH_MAX), nested(DEPTH_MAX)),
    "many brackets, few levels": ([[[]]] * 300, [[[]]] * 300),
    "nothing": (None, None),
    "control characters": ("\x00\x1b\r\n\u2028", "\x00\x1b\r\n\u2028"),
}


@pytest.mark.parametrize(("value", "stored"), STORED.values(), ids=STORED.keys())
def test_RES_3_what_is_stored_follows_the_documented_rules(value: object, stored: object) -> None:
    """RES-3, UNI-1: the module's rules, one by one."""
    again = normalise(value)
    assert again == stored
    assert type(again) is type(stored)


def test_a_value_without_output_stays_without() -> None:
    """UNSET (JavaScript's undefined) is no value and needs no rule."""
    assert normalise(UNSET) is UNSET


def test_a_stored_value_shares_nothing_with_what_the_provider_keeps() -> None:
    """Law 1: nobody can change an output after it was recorded."""
    mine = {"list": [1]}
    stored = normalise(mine)
    mine["list"].append(2)
    assert stored == {"list": [1]}


def test_a_value_above_the_limit_is_refused_with_both_sizes() -> None:
    """Law 2: every size has a limit; the message says what to do."""
    with pytest.raises(
        NotStorable, match="102 bytes as JSON, more than the limit of 100; write it to a file"
    ):
        normalise("x" * 100, size_bytes_max=100)


def test_an_event_above_the_limit_is_refused() -> None:
    """Law 2: a step that gives 16 MiB fails with a message instead of filling the disk."""
    with pytest.raises(NotStorable, match="the event is .* bytes as JSON, more than the limit of 100"):
        normalise_event(CallDone(call=1, output="x" * 100), size_bytes_max=100)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_plain_json_data_comes_back_equal(value: object) -> None:
    """Every JSON value is stored as it is, and a second round changes nothing."""
    again = normalise(value)
    assert again == value
    assert to_json(again) == to_json(value)


ODD = st.recursive(
    st.floats() | st.binary() | st.text(st.characters()) | st.text(st.characters(categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.integers() | st.text(), inner) | st.tuples(inner),
    max_leaves=8,
)


@given(ODD)
def test_RES_3_any_value_is_refused_or_is_strict_json(value: object) -> None:
    """RES-3: the journal stays valid for parsers that know no NaN."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    try:
        data = to_json(value)
    except NotStorable:
        return
    assert normalise(json.loads(data.decode(), parse_constant=refuse)) == normalise(value)


def test_an_event_comes_out_as_a_reader_of_the_journal_sees_it() -> None:
    """core-notes, trap 2: what the run saw and what a replay reads are equal, in every field."""
    issue = Issue(rule_id="a/b", message="caf\udce9", end_line=3)
    event = normalise_event(CallDone(call=1, output=({"a": (1,)},), content="\ud800", issues=(issue,)))
    assert event.output == [{"a": [1]}]
    assert (event.content, event.issues[0].message) == ("\ufffd", "caf\ufffd")
    assert decode_line(encode_line(Record(1, 0.0, event))).event == event


def test_an_event_keeps_what_is_not_set() -> None:
    """No output and a null output are two things."""
    assert normalise_event(CallDone(call=1, content="\ud800")).output is UNSET
    assert normalise_event(CallDone(call=1, output=None)).output is None


def test_an_event_that_cannot_be_stored_names_the_field() -> None:
    """RES-3: the path starts at the event's field."""
    fault = Fault(kind="x", fault_class="bug", rule_id="x", message="m")
    with pytest.raises(NotStorable, match=r"meta\.headers is a set"):
        normalise_event(CallFailed(call=1, fault=fault, meta={"headers": {"a"}}))
