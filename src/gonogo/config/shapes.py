"""What a value of a file must look like, and reading it: every shape notes all that is wrong, not the first thing only.

Nothing is coerced: text is no number and 1 is not true; a whole number is a number, and a list is a tuple where
one is meant. What was wrong is left out and the rest is used, so that later checks find theirs. Shapes are made
of annotations by `structs.py`; how problems are told is left to `validate.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec

Path = tuple[str | int, ...]


class Wrong(NamedTuple):
    """One thing that is wrong, at `path` below what is read.

    `said`: for `type` what was expected, for `value` the whole message. `words`: those that would do, for `word`;
    the keys of the mapping, for `unknown`.
    """

    path: Path
    kind: Literal["type", "value", "word", "unknown", "missing", "twice"]
    said: str
    value: Any = None
    words: tuple[str, ...] = ()


class _Nothing:
    """Read in place of a value that was wrong."""


NOTHING = _Nothing()


class Shape(msgspec.Struct, frozen=True):
    """Any value. `expected` says it in a message."""

    expected: str = "anything"

    def fits(self, value: Any) -> bool:
        """Whether a value is of this kind, whatever is wrong within it."""
        return True

    def read(self, value: Any, at: Path, wrong: list[Wrong]) -> Any:
        """The value as a Struct's field has it, or NOTHING and at least one `wrong`."""
        if self.fits(value):
            return value
        wrong.append(Wrong(at, "type", self.expected, value))
        return NOTHING


class Limits(msgspec.Struct, frozen=True):
    """Limits of a number, or of a length."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    def broken(self, number: float) -> str | None:
        """What was expected instead of `number`; nan keeps no limit."""
        if self.ge is not None and self.le is not None:
            return None if self.ge <= number <= self.le else f"{self.ge} to {self.le}"
        if self.ge is not None and not number >= self.ge:
            return f"at least {self.ge}"
        if self.gt is not None and not number > self.gt:
            return f"more than {self.gt}"
        if self.le is not None and not number <= self.le:
            return f"at most {self.le}"
        if self.lt is not None and not number < self.lt:
            return f"less than {self.lt}"
        return None


NO_LIMITS = Limits()


def _within(limits: Limits, size: float, unit: str, value: Any, at: Path, wrong: list[Wrong]) -> Any:
    broken = None if limits is NO_LIMITS else limits.broken(size)
    if broken is None:
        return value
    wrong.append(Wrong(at, "value", f"expected {unit}{broken}, found ", value))
    return NOTHING


class Text(Shape, frozen=True):
    """Text, with limits of its length and a pattern somewhere in it."""

    expected: str = "text"
    length: Limits = NO_LIMITS
    pattern: str | None = None

    def fits(self, value: Any) -> bool:
        """Only text."""
        return type(value) is str

    def read(self, value: Any, at: Path, wrong: list[Wrong]) -> Any:
        """See Shape."""
        if type(value) is not str:
            return Shape.read(self, value, at, wrong)
        if self.pattern is not None and not _compiled(self.pattern).search(value):
            wrong.append(Wrong(at, "value", f"expected text of the form {self.pattern}, found ", value))
            return NOTHING
        return _within(self.length, len(value), "a length of ", value, at, wrong)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    """With `$` as the very end, as JSON Schema has it; Python's also stands before a last line end."""
    return re.compile(pattern[:-1] + r"\Z" if re.search(r"(?<!\\)\$\Z", pattern) else pattern)


class Truth(Shape, frozen=True):
    """true or false."""

    expected: str = "true or false"

    def fits(self, value: Any) -> bool:
        """Neither 1 nor yes."""
        return type(value) is bool


class Whole(Shape, frozen=True):
    """A whole number."""

    expected: str = "a whole number"
    limits: Limits = NO_LIMITS

    def fits(self, value: Any) -> bool:
        """No boolean, and no 1.0."""
        return type(value) is int

    def read(self, value: Any, at: Path, wrong: list[Wrong]) -> Any:
        """See Shape."""
        if type(value) is not int:
            return Shape.read(self, value, at, wrong)
        return _within(self.limits, value, "", value, at, wrong)


class Number(Shape, frozen=True):
    """A number; a whole one becomes a float."""

    expected: str = "a number"
    limits: Limits = NO_LIMITS

    def fits(self, value: Any) -> bool:
        """No boolean."""
        return type(value) is int or type(value) is float

    def read(self, value: Any, at: Path, wrong: list[Wrong]) -> Any:
        """See Shape."""
        if not self.fits(value):
            return Shape.read(self, value, at, wrong)
        try:
            number = float(value)
        except OverflowError:
            wrong.append(Wrong(at, "value", "expected a smaller number, found ", value))
            return NOTHING
        return _within(self.limits, number, "", number, at, wrong)


class Words(Shape, frozen=True):
    """One of some words (or numbers)."""

    words: tuple[Any, ...] = ()

    def fits(self, value: Any) -> bool:
        """Of the kind of one of them."""
        return any(type(value) is type(word) for word in self.words)

    def read(self, value: Any, at: Path, wrong: list[Wrong]) -> Any:
        """See Shape."""
        if any(value == word and type(value) is type(word) for word in self.words):
            return value
        wrong.append(Wrong(at, "word", self.expected, value, tuple(map(str, self.words))))
        return NOTHING


class Listing(Shape, frozen=True):
    """A list whose items have one shape; `make` gives the field's own kind of it."""

    expected: str = "a list"
    item: Shape = Shape()
    make: Callable[[list[Any]], Any] = list
    length: Limits = NO_LIMITS

    def fits(self, value: Any) -> bool:
        """Whatever is in it."""
        return isinstance(value, list)

    def read(self, value: Any, at: Path, wrong: list[Wrong]) -> Any:
        """See Shape. Items that are wrong are left out."""
        if not self.fits(value):
            return Shape.read(self, value, at, wrong)
        read = [self.item.read(item, (*at, index), wrong) for index, item in enumerate(value)]
        try:
            made = self.make([item for item in read if item is not NOTHING])
        except TypeError:  # a set of lists
            wrong.append(Wrong(at, "value", "expected a list of texts or numbers, found ", value))
            return NOTHING
        return _within(self.length, len(value), "a length of ", made, at, wrong)


class Table(Shape, frozen=True):
    """A mapping with free keys, whose values have one shape."""

    expected: str = "a mapping"
    item: Shape = Shape()
    length: Limits = NO_LIMITS

    def fits(self, value: Any) -> bool:
        """Whatever is in it."""
        return isinstance(value, dict)

    def read(self, value: Any, at: Path, wrong: list[Wrong]) -> Any:
        """See Shape. Keys whose value is wrong are left out."""
        if not self.fits(value):
            return Shape.read(self, value, at, wrong)
        read = {key: self.item.read(item, (*at, key), wrong) for key, item in value.items()}
        made = {key: item for key, item in read.items() if item is not NOTHING}
        return _within(self.length, len(value), "a length of ", made, at, wrong)


class Choice(Shape, frozen=True):
    """A value of the first of several shapes whose kind it is."""

    options: tuple[Shape, ...] = ()
    nullable: bool = False

    def fits(self, value: Any) -> bool:
        """Of one of the kinds."""
        return (value is None and self.nullable) or any(option.fits(value) for option in self.options)

    def read(self, value: Any, at: Path, wrong: list[Wrong]) -> Any:
        """See Shape."""
        if value is None and self.nullable:
            return None
        if len(self.options) == 1:
            return self.options[0].read(value, at, wrong)
        for option in self.options:
            if option.fits(value):
                return option.read(value, at, wrong)
        return Shape.read(self, value, at, wrong)


class Spelled(Shape, frozen=True):
    """What may be written shorter: `spell_out` gives the `inner` value of it or raises ValueError."""

    spell_out: Callable[[Any], Any] = lambda value: value
    written: Shape = Shape()
    inner: Shape = Shape()

    def fits(self, value: Any) -> bool:
        """As it may be written."""
        return self.written.fits(value)

    def read(self, value: Any, at: Path, wrong: list[Wrong]) -> Any:
        """See Shape."""
        try:
            spelled = self.spell_out(value)
        except ValueError as error:
            wrong.append(Wrong(at, "value", str(error)))
            return NOTHING
        if self.inner.fits(spelled):
            return self.inner.read(spelled, at, wrong)
        wrong.append(Wrong(at, "type", self.written.expected, value))
        return NOTHING


class Foreign(Shape, frozen=True):
    """A type that isn't looked into here; msgspec reads it and says what is wrong first."""

    type: Any = None

    def read(self, value: Any, at: Path, wrong: list[Wrong]) -> Any:
        """See Shape."""
        try:
            return msgspec.convert(value, self.type)
        except msgspec.ValidationError as error:
            text = str(error)
            wrong.append(Wrong(at, "value", f"{text[:1].lower()}{text[1:]}"))
            return NOTHING
