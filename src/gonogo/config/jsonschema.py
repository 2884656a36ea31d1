"""The JSON Schema of workflow files, for editors: the nouns' models and, by step type, the providers' Configs.

An editor's checks are a subset of ours: the schema accepts everything that loads, and says nothing about
expressions, targets and order.
"""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, BaseModel
from pydantic.json_schema import models_json_schema

from gonogo.config.drafts import NAME_CHARS_MAX, Providers
from gonogo.config.schema import blocks, step, top
from gonogo.config.schema.base import keys_of
from gonogo.provider import Provider

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REF = "#/$defs/{model}"
_ANY = True  # the schema that everything fits


def workflow_schema(providers: Providers) -> dict[str, Any]:
    """The schema of a workflow file with all step types of `providers`."""
    types = [providers.get(name) for name in providers.names()]
    models: list[type[BaseModel]] = [top.Document, step.Step, *(provider.config for provider in types)]
    refs, shared = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models)], ref_template=_REF, by_alias=True
    )
    definitions = {name: _open_to_free_keys(noun) for name, noun in shared["$defs"].items()}
    names = {model: refs[(model, "validation")]["$ref"].rsplit("/", 1)[-1] for model in dict.fromkeys(models)}
    for model in (blocks.Backoff, step.Step):
        _add_other_names(definitions[model.__name__], model)
    document = definitions.pop(names[top.Document])
    _fill_in_steps(document)
    engine = definitions.pop(names[step.Step])
    definitions["Step"] = _step_schema(engine, [(one, definitions[names[one.config]]) for one in types])
    return {"$schema": DIALECT, **document, "title": "gonogo workflow", "$defs": definitions}


def _open_to_free_keys(noun: dict[str, Any]) -> dict[str, Any]:
    """Closed models take `x-` keys."""
    if noun.get("additionalProperties") is False:
        return {**noun, "patternProperties": {"^x-": _ANY}}
    return noun


def _add_other_names(noun: dict[str, Any], model: type[BaseModel]) -> None:
    """Keys with two names: pydantic describes the first only."""
    for field in model.model_fields.values():
        if isinstance(field.validation_alias, AliasChoices):
            first, *others = (str(choice) for choice in field.validation_alias.choices)
            for other in others:
                noun["properties"][other] = noun["properties"][first]


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
    for alias in keys_of(provider.config):
        if alias not in engine:
            described.setdefault(alias, _ANY)
    names = [provider.name, *provider.aliases]
    # What a step must have may also come from the file it extends, so `required` is left to loading.
    return {
        "if": {"properties": {"type": {"enum": names}}, "required": ["type"]},
        "then": {"properties": described},
    }


_TEMPLATE = {"type": "string", "pattern": r"\{\{|\{%"}
