"""Structs as shapes: what the annotations, defaults and names of a msgspec Struct say about a mapping in YAML.

Understood are the types a file can hold, msgspec's `Meta`, and a mark of our own, `Written`. Any other
type is left to msgspec itself. Reading the shapes is `shapes.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import lru_cache
from inspect import get_annotations
from types import MappingProxyType, NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from gonogo.config.shapes import (
    NO_LIMITS,
    NOTHING,
    Choice,
    Foreign,
    Limits,
    Listing,
    Number,
    Path,
    Shape,
    Spelled,
    Table,
    Text,
    Truth,
    Whole,
    Words,
    Wrong,
)


class Written(NamedTuple):
    """In an annotation: the value may be written as `type`; `spell_out` makes the annotated type of it.

    `spell_out` raises ValueError, whose text is the whole message.
    """

    spell_out: Callable[[Any], Any]
    type: Any


class Field(NamedTuple):
    """One field of a Struct. `keys`: how YAML spells it, the usual spelling first."""

    model: type[msgspec.Struct]
    name: str
    keys: tuple[str, ...]
    required: bool
    default: Any

    @property
    def shape(self) -> Shape:
        """What its value looks like. Annotations are looked at when they are needed: a file uses few of the keys."""
        return _shape(self.model, self.name)

    @property
    def description(self) -> str:
        """What `Meta` says it means."""
        hint = _hint(self.model, self.name)
        marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        described = (mark.description for mark in marks if isinstance(mark, msgspec.Meta))
        return next((text for text in described if text), "")


class Noun(Shape, frozen=True):
    """A mapping whose keys are a Struct's fields. `x-` keys are the user's own where the Struct says so."""

    expected: str = "a mapping"
    model: Any = None

    def fits(self, value: Any) -> bool:
        """Whatever is in it."""
        return isinstance(value, dict)

    def read(self, value: Any, at: Path, wrong: list[Wrong]) -> Any:
        """See Shape. NOTHING too when a key that must be there is missing or wrong."""
        if not isinstance(value, dict):
            return Shape.read(self, value, at, wrong)
        before = len(wrong)
        given = self._given(value, at, wrong)
        complete = True
        for field in required(self.model):
            if field.name not in given:
                complete = False
                if field.keys[0] not in value:
                    wrong.append(Wrong((*at, field.keys[0]), "missing", ""))
        if not complete:
            return NOTHING
        try:
            return self.model(**given)
        except ValueError as error:
            if len(wrong) == before:  # else it may miss what was left out
                key = getattr(error, "key", None)
                wrong.append(Wrong(at if key is None else (*at, key), "value", str(error)))
            return NOTHING

    def _given(self, value: dict[str, Any], at: Path, wrong: list[Wrong]) -> dict[str, Any]:
        by_key = fields_by_key(self.model)
        given: dict[str, Any] = {}
        first: dict[str, str] = {}
        for key, item in value.items():
            field = by_key.get(key)
            if field is None:
                self._unknown(key, at, wrong)
            elif first.setdefault(field.name, key) != key:
                wrong.append(Wrong((*at, key), "twice", first[field.name]))
            else:
                read = field.shape.read(item, (*at, key), wrong)
                if read is not NOTHING:
                    given[field.name] = read
        return given

    def _unknown(self, key: str, at: Path, wrong: list[Wrong]) -> None:
        free = key.startswith("x-") and getattr(self.model, "takes_free_keys", False)
        if not free and self.model.__struct_config__.forbid_unknown_fields:
            wrong.append(Wrong((*at, key), "unknown", "", None, keys_of(self.model)))


@lru_cache(maxsize=256)
def fields_of(model: type[msgspec.Struct]) -> tuple[Field, ...]:
    """The fields of a Struct, in order. Other spellings are in its `spellings`: other key → usual key."""
    spellings: Mapping[str, str] = getattr(model, "spellings", {})
    made: list[Field] = []
    names = zip(model.__struct_fields__, model.__struct_encode_fields__, _defaults(model), strict=True)
    for name, key, default in names:
        others = [other for other, usual in spellings.items() if usual == key]
        made.append(Field(model, name, (key, *others), default is msgspec.NODEFAULT, default))
    return tuple(made)


def _defaults(model: type[msgspec.Struct]) -> tuple[Any, ...]:
    """Its defaults, NODEFAULT where there is none; msgspec keeps those of the last fields only."""
    missing = len(model.__struct_fields__) - len(model.__struct_defaults__)
    known = (
        default.factory() if hasattr(default, "factory") else default for default in model.__struct_defaults__
    )
    return (*([msgspec.NODEFAULT] * missing), *known)


def _hint(model: type[msgspec.Struct], name: str) -> Any:
    """The annotation of one field, read as `get_type_hints` reads all."""
    owner = next(one for one in model.__mro__ if name in get_annotations(one))
    only = SimpleNamespace(__annotations__={name: get_annotations(owner)[name]})
    # Names of the module win over those of the class, as in get_type_hints.
    module = vars(sys.modules[owner.__module__])
    return get_type_hints(only, dict(vars(owner)), module, include_extras=True)[name]


@lru_cache(maxsize=1024)
def _shape(model: type[msgspec.Struct], name: str) -> Shape:
    return shape_of(_hint(model, name))


def unchecked(model: type[msgspec.Struct], given: Mapping[str, Any]) -> SimpleNamespace:
    """What stands for a Struct whose values can't be checked yet; what must be given may be missing."""
    by_key = fields_by_key(model)
    values = {field.name: field.default for field in fields_of(model) if not field.required}
    values.update((by_key[key].name, value) for key, value in given.items() if key in by_key)
    return SimpleNamespace(**values)


@lru_cache(maxsize=256)
def fields_by_key(model: type[msgspec.Struct]) -> Mapping[str, Field]:
    """The fields of a Struct by every spelling of their keys."""
    return {key: field for field in fields_of(model) for key in field.keys}


@lru_cache(maxsize=256)
def required(model: type[msgspec.Struct]) -> tuple[Field, ...]:
    """The fields that must be given."""
    return tuple(field for field in fields_of(model) if field.required)


@lru_cache(maxsize=256)
def keys_of(model: type[msgspec.Struct]) -> tuple[str, ...]:
    """The keys a Struct takes, as written in YAML."""
    return tuple(fields_by_key(model))


def shape_of(hint: Any) -> Shape:
    """The shape that an annotation means."""
    if isinstance(hint, type) and hint in _PLAIN:
        return _PLAIN[hint]
    if hint is Any:
        return _ANYTHING
    origin = get_origin(hint)
    if origin is Annotated:
        return _marked(hint)
    if origin is Union or origin is UnionType:
        return _choice(hint)
    if origin is Literal:
        return _words(hint)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        config = hint.__struct_config__
        return Foreign(hint.__name__, hint) if config.array_like or config.tag else Noun(model=hint)
    return _collection(hint, origin or hint, get_args(hint))


_ANYTHING = Shape()
_PLAIN: Mapping[Any, Shape] = MappingProxyType({str: Text(), bool: Truth(), int: Whole(), float: Number()})


def _marked(hint: Any) -> Shape:
    """The annotated type, limited by what Meta says and spelled out by what Written says."""
    base, *marks = get_args(hint)
    shape = shape_of(base)
    for mark in marks:
        if isinstance(mark, msgspec.Meta):
            shape = _limited(shape, mark, hint)
        elif isinstance(mark, Written):
            shape = Spelled(shape.expected, mark.spell_out, shape_of(mark.type), shape)
    return shape


def _limited(shape: Shape, meta: msgspec.Meta, hint: Any) -> Shape:
    replace = msgspec.structs.replace
    limits = Limits(meta.ge, meta.gt, meta.le, meta.lt)
    length = Limits(ge=meta.min_length, le=meta.max_length)
    if meta.multiple_of is not None:
        return Foreign("a number", hint)
    if isinstance(shape, Whole | Number):
        return shape if limits == NO_LIMITS else replace(shape, limits=limits)
    if isinstance(shape, Text) and (meta.pattern is not None or length != NO_LIMITS):
        return replace(shape, pattern=meta.pattern, length=length)
    if isinstance(shape, Listing | Table) and length != NO_LIMITS:
        return replace(shape, length=length)
    return shape


def _choice(hint: Any) -> Shape:
    parts = get_args(hint)
    nullable = NoneType in parts
    options = tuple(shape_of(part) for part in parts if part not in (NoneType, msgspec.UnsetType))
    if len(options) == 1 and not nullable:
        return options[0]
    if sum(isinstance(option, Noun | Table) for option in options) > 1:
        return Foreign("one of several mappings", hint)
    return Choice(" or ".join(dict.fromkeys(option.expected for option in options)), options, nullable)


def _words(hint: Any) -> Shape:
    words = get_args(hint)
    *others, last = map(str, words)
    return Words(f"one of {', '.join(others)} or {last}" if others else last, words)


def _collection(hint: Any, origin: Any, parts: tuple[Any, ...]) -> Shape:
    item = parts[0] if parts else Any
    if origin in (list, Sequence):
        return Listing(item=shape_of(item))
    if origin is tuple and (not parts or parts[1:] == (...,)):
        return Listing(item=shape_of(item), make=tuple)
    if origin in (set, frozenset):
        return Listing(item=shape_of(item), make=origin)
    if origin in (dict, Mapping, MutableMapping) and (not parts or parts[0] is str):
        return Table(item=shape_of(parts[1]) if parts else _ANYTHING)
    return Foreign(getattr(hint, "__name__", str(hint)), hint)
