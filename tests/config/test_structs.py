"""config/structs.py and shapes.py: what annotations say of a mapping, and everything wrong with one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct, ValidationError, convert

from gonogo.config.shapes import NOTHING, Wrong
from gonogo.config.structs import Noun, Written, fields_of, keys_of, unchecked
from gonogo.provider import ConfigProblem


class Inner(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mapping within."""

    n: int
    deeper: Inner | None = None


class Outer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One field of each kind."""

    spellings: ClassVar[Mapping[str, str]] = {"spelt": "spelled"}

    text: Annotated[str, Meta(pattern="^[a-z]*$", max_length=5)] = ""
    share: Annotated[float, Meta(ge=0, le=1)] = 0.5
    on: bool = False
    count: Annotated[int, Meta(gt=0, lt=10)] = 1
    word: Literal["a", "b"] = "a"
    names: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    some: Sequence[int] = ()
    table: Mapping[str, int] = {}
    either: str | int | list[str] | None = None
    inner: Inner | None = None
    inners: Annotated[list[Inner], Meta(min_length=1)] = []
    day: date | None = None
    anything: Any = None
    spelled: Annotated[list[str], Written(lambda value: value.split(), str)] = []


def read(data: dict[str, Any], model: Any = Outer) -> tuple[Any, list[Wrong]]:
    """What is made of the data, and what is wrong with it."""
    wrong: list[Wrong] = []
    return Noun(model=model).read(data, (), wrong), wrong


def test_values_of_the_right_kind_are_taken_as_they_are() -> None:
    """A list is a tuple or a set where one is meant, and a whole number is a number."""
    made, wrong = read(
        {"names": ["x"], "kinds": ["x", "x"], "share": 1, "either": ["x"], "inner": {"n": 1, "deeper": {"n": 2}},
         "day": "2026-01-02", "spelled": "a b", "table": {"k": 1}}
    )  # fmt: skip
    assert wrong == []
    assert (made.names, made.kinds, made.share, made.either) == (("x",), {"x"}, 1.0, ["x"])
    assert type(made.share) is float
    assert (made.inner.deeper.n, made.day, made.spelled) == (2, date(2026, 1, 2), ["a", "b"])


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("text", 1, "text"),
        ("text", "abcdef", "expected a length of at most 5, found "),
        ("text", "abc\n", "expected text of the form ^[a-z]*$, found "),
        ("on", 1, "true or false"),
        ("on", "true", "true or false"),
        ("count", True, "a whole number"),
        ("count", 1.0, "a whole number"),
        ("count", 10, "expected less than 10, found "),
        ("count", 0, "expected more than 0, found "),
        ("share", True, "a number"),
        ("share", float("nan"), "expected 0 to 1, found "),
        ("share", 10**400, "expected a smaller number, found "),
        ("word", "c", "one of a or b"),
        ("word", ["a"], "one of a or b"),
        ("names", "x", "a list"),
        ("kinds", [1], "text"),
        ("table", {"k": "1"}, "a whole number"),
        ("table", [], "a mapping"),
        ("either", {}, "text or a whole number or a list"),
        ("either", True, "text or a whole number or a list"),
        ("inner", [], "a mapping"),
        ("inners", [], "expected a length of at least 1, found "),
        ("day", "tomorrow", "invalid RFC3339"),
    ],
)
def test_nothing_is_coerced_and_every_limit_holds(key: str, value: Any, said: str) -> None:
    """What was expected is told, and the rest of the mapping is used."""
    made, [wrong] = read({key: value, "anything": 1})
    assert wrong.said.startswith(said)
    assert wrong.path[0] == key
    assert made == Outer(anything=1)


def test_all_that_is_wrong_is_found_at_once() -> None:
    """In lists, tables and mappings within; a list keeps its other items."""
    made, wrong = read(
        {"names": [1, "x", 2], "table": {"a": "", "b": 1}, "inners": [{"n": ""}, {"m": 1}, {"n": 3}]}
    )
    assert [(one.path, one.kind) for one in wrong] == [
        (("names", 0), "type"),
        (("names", 2), "type"),
        (("table", "a"), "type"),
        (("inners", 0, "n"), "type"),
        (("inners", 1, "m"), "unknown"),
        (("inners", 1, "n"), "missing"),
    ]
    assert (made.names, made.table, made.inners) == (("x",), {"b": 1}, [Inner(n=3)])


def test_two_spellings_of_one_key_clash() -> None:
    """Neither wins silently."""
    _, [wrong] = read({"spelt": "a", "spelled": "b"})
    assert (wrong.path, wrong.kind, wrong.said) == (("spelled",), "twice", "spelt")
    assert keys_of(Outer)[-2:] == ("spelled", "spelt")


class Checked(Struct, frozen=True, kw_only=True):
    """Keys that are checked together."""

    a: int
    b: int = 0

    def __post_init__(self) -> None:
        if self.b < 0:
            raise ConfigProblem("b", "b is below nought")
        if self.a == self.b:
            raise ValueError("a is b")


@pytest.mark.parametrize(
    ("data", "path", "said"), [({"a": 1, "b": -1}, ("b",), "b is below nought"), ({"a": 0}, (), "a is b")]
)
def test_what_a_struct_says_itself_stands_at_its_key(data: dict[str, Any], path: Any, said: str) -> None:
    """A ConfigProblem is about a key, a ValueError about the whole."""
    made, [wrong] = read(data, Checked)
    assert made is NOTHING
    assert (wrong.path, wrong.said) == (path, said)


def test_a_struct_is_not_blamed_for_what_was_left_out() -> None:
    """`b` is wrong; that `a` is b without it is no news."""
    made, [wrong] = read({"a": 0, "b": "x"}, Checked)
    assert made is NOTHING
    assert wrong.path == ("b",)


def test_unknown_keys_pass_where_a_struct_is_open() -> None:
    """As msgspec has it."""
    assert read({"a": 1, "z": 1}, Checked)[1] == []


def test_a_struct_that_cannot_be_made_yet_can_be_looked_at() -> None:
    """Values as written, defaults for what isn't, nothing for what must be."""
    assert unchecked(Checked, {"b": "{{ x }}"}).b == "{{ x }}"
    assert not hasattr(unchecked(Checked, {}), "a")
    assert unchecked(Outer, {}).table == {}
    assert {field.name for field in fields_of(Checked) if field.required} == {"a"}


SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 12) | st.floats(allow_nan=False) | st.text("ab\n", max_size=7)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["n", "deeper", "z"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from(sorted(set(Outer.__struct_fields__) - {"spelled"})), VALUES, max_size=4)
)
def test_what_is_read_here_is_what_msgspec_reads(data: dict[str, Any]) -> None:
    """Never more lenient than msgspec itself, which the host asks before a call; and the same value."""
    made, wrong = read(data)
    if wrong:
        return
    try:
        assert made == convert(data, Outer)
    except ValidationError as error:  # pragma: no cover - the message of a failure
        raise AssertionError(f"{data} was taken") from error
