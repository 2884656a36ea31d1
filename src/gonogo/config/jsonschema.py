"""The JSON Schema of workflow files, for editors: the nouns' Structs and, by step type, the providers' Configs.

An editor's checks are a subset of ours: the schema accepts everything that loads, and says nothing about
expressions, targets and order.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gonogo.config import shapes
from gonogo.config.drafts import NAME_CHARS_MAX, Providers
from gonogo.config.schema import step, top
from gonogo.config.structs import Field, Noun, fields_of
from gonogo.provider import Provider

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ANY = True  # the schema that everything fits
_TYPES = (
    (shapes.Text, "string"),
    (shapes.Truth, "boolean"),
    (shapes.Whole, "integer"),
    (shapes.Number, "number"),
)


def workflow_schema(providers: Providers) -> dict[str, Any]:
    """The schema of a workflow file with all step types of `providers`."""
    types = [providers.get(name) for name in providers.names()]
    definitions = Definitions()
    document = definitions.noun(top.Document)
    _fill_in_steps(document)
    engine = definitions.noun(step.Step)
    step_schema = _step_schema(engine, [(one, definitions.noun(one.config)) for one in types])
    made = {"Step": step_schema, **dict(sorted(definitions.made.items()))}
    return {"$schema": DIALECT, **document, "title": "gonogo workflow", "$defs": made}


class Definitions:
    """Schemas of Structs; those within others are kept in `made` by name and referred to."""

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}
        self._names: dict[Any, str] = {}

    @property
    def models(self) -> tuple[type[msgspec.Struct], ...]:
        """The Structs whose schemas are in `made`, in the order they were met."""
        return tuple(self._names)

    def noun(self, model: type[msgspec.Struct]) -> dict[str, Any]:
        """The schema of a Struct."""
        fields = fields_of(model)
        schema: dict[str, Any] = {"type": "object"}
        if model.__doc__:
            schema["description"] = model.__doc__
        schema["properties"] = {key: self._field(field) for field in fields for key in field.keys}
        required = [field.keys[0] for field in fields if field.required]
        if required:
            schema["required"] = required
        if model.__struct_config__.forbid_unknown_fields:
            schema["additionalProperties"] = False
        if getattr(model, "takes_free_keys", False):
            schema["patternProperties"] = {"^x-": _ANY}
        return schema

    def _field(self, field: Field) -> dict[str, Any]:
        schema = dict(self.schema(field.shape))
        if field.description:
            schema["description"] = field.description
        if isinstance(field.default, str | int | float) and not field.required:
            schema["default"] = field.default
        return schema

    def schema(self, shape: shapes.Shape) -> dict[str, Any]:
        """The schema of a value, as it may be written."""
        if isinstance(shape, Noun):
            return {"$ref": f"#/$defs/{self._name(shape.model)}"}
        if isinstance(shape, shapes.Spelled):
            return self.schema(shape.written)
        if isinstance(shape, shapes.Choice):
            options = [self.schema(option) for option in shape.options]
            return {"anyOf": [*options, {"type": "null"}] if shape.nullable else options}
        if isinstance(shape, shapes.Words):
            return {"const": shape.words[0]} if len(shape.words) == 1 else {"enum": list(shape.words)}
        if isinstance(shape, shapes.Listing):
            return {"type": "array", "items": self.schema(shape.item), **_lengths(shape.length, "Items")}
        if isinstance(shape, shapes.Table):
            inner = {"additionalProperties": self.schema(shape.item) or _ANY}
            return {"type": "object", **inner, **_lengths(shape.length, "Properties")}
        return _scalar(shape)

    def _name(self, model: type[msgspec.Struct]) -> str:
        """The name its schema is kept under; it is made when first asked for."""
        if model not in self._names:
            name = model.__name__
            name = name if name not in self.made else f"{model.__module__}.{name}".replace(".", "_")
            self._names[model] = name
            self.made[name] = {}  # it may hold itself
            self.made[name] = self.noun(model)
        return self._names[model]


def _scalar(shape: shapes.Shape) -> dict[str, Any]:
    kind = next((name for known, name in _TYPES if isinstance(shape, known)), None)
    schema: dict[str, Any] = {"type": kind} if kind else {}
    if isinstance(shape, shapes.Text):
        schema |= _lengths(shape.length, "Length")
        if shape.pattern is not None:
            schema["pattern"] = shape.pattern
    if isinstance(shape, shapes.Whole | shapes.Number):
        limits = shape.limits
        named = {"minimum": limits.ge, "exclusiveMinimum": limits.gt, "maximum": limits.le}
        named["exclusiveMaximum"] = limits.lt
        schema |= {name: limit for name, limit in named.items() if limit is not None}
    return schema


def _lengths(length: shapes.Limits, of: str) -> dict[str, Any]:
    named = {f"min{of}": length.ge, f"max{of}": length.le}
    return {name: limit for name, limit in named.items() if limit is not None}


def _fill_in_steps(document: dict[str, Any]) -> None:
    """The steps, their other name, and the keys that are accepted and do nothing."""
    properties = document["properties"]
    steps = {
        "type": "object",
        "description": "The steps by name.",
        "propertyNames": {"maxLength": NAME_CHARS_MAX, "pattern": r"^[^/#\[\]@|\x00-\x1f]+$"},
        "additionalProperties": {"anyOf": [{"$ref": "#/$defs/Step"}, {"type": "null"}]},
    }
    properties["steps"] = steps
    properties["checks"] = {**steps, "description": "Older name of steps."}
    for key in sorted(top.OUT_OF_SCOPE):
        properties.setdefault(key, {"description": "Accepted; does nothing here."})
    document["patternProperties"] = {"^x-": _ANY, f"^{top.OUT_OF_SCOPE_PREFIX}": _ANY}
    # A file that extends another may leave both to it.
    document["anyOf"] = [{"required": [key]} for key in ("steps", "checks", "extends", "include")]
    document["if"] = {"anyOf": [{"required": ["extends"]}, {"required": ["include"]}]}
    document["else"] = {"required": ["version"]}
    document.pop("required", None)


def _step_schema(engine: dict[str, Any], types: list[tuple[Provider, dict[str, Any]]]) -> dict[str, Any]:
    """Engine keys for all, and by `type` the keys of the type; what neither knows is refused."""
    properties = dict(engine["properties"])
    for key in sorted(step.OUT_OF_SCOPE):
        properties.setdefault(key, {"description": "Accepted; does nothing here."})
    properties["type"] = {"description": "What the step does.", "enum": _type_names(types)}
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": {"^x-": _ANY},
        "allOf": [_branch(provider, own, properties) for provider, own in types],
        "unevaluatedProperties": False,
    }


def _type_names(types: list[tuple[Provider, dict[str, Any]]]) -> list[str]:
    return [name for provider, _ in types for name in (provider.name, *provider.aliases)]


def _branch(provider: Provider, own: dict[str, Any], engine: dict[str, Any]) -> dict[str, Any]:
    """What holds when `type` is this provider's. Templates may stand where a number or boolean is due."""
    described = {}
    for key, schema in own.get("properties", {}).items():
        if key in engine:
            continue  # a key of both is described once
        template = key in provider.templates or key in provider.late_templates
        described[key] = {"anyOf": [schema, _TEMPLATE]} if template else schema
    names = [provider.name, *provider.aliases]
    of_type: dict[str, Any] = {"properties": {"type": {"enum": names}}}
    if _DEFAULT_TYPE not in names:  # else a step without a type is of this one
        of_type["required"] = ["type"]
    # What a step must have may also come from the file it extends, so `required` is left to loading.
    return {
        "if": of_type,
        "then": {"properties": described},
    }


_DEFAULT_TYPE = next(field.default for field in fields_of(step.Step) if field.name == "type")
_TEMPLATE = {"type": "string", "pattern": r"\{\{|\{%"}
