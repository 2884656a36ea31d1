"""Write the pages of docs/reference that the code itself knows best: YAML keys, step types, the command line, metrics.

    reference.py            write them
    reference.py --check    say which are not what the code says

What the keys mean is told by their descriptions in gonogo.config.schema and the providers' `Config`; a key
without a description is shown without one.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTE = "<!-- Written by tools/reference.py: change the descriptions in the code, then run make reference. -->"
# Order of the nouns in which a reader meets them; the rest follows by name.
FIRST_NOUNS = (
    "Document",
    "Step",
    "Dependency",
    "Success",
    "Fail",
    "Retry",
    "Backoff",
    "Transition",
    "RunItem",
)
HELP_WIDTH = 100


def nouns() -> list[type[Any]]:
    """Every Struct of gonogo.config.schema that has keys."""
    from msgspec import Struct

    package = importlib.import_module("gonogo.config.schema")
    found: dict[str, type[Any]] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"gonogo.config.schema.{info.name}")
        for name, thing in inspect.getmembers(module, inspect.isclass):
            if issubclass(thing, Struct) and thing.__module__ == module.__name__ and thing.__struct_fields__:
                found[name] = thing
    first = [name for name in FIRST_NOUNS if name in found]
    return [found[name] for name in [*first, *sorted(found.keys() - set(first))]]


def fields_of(model: type[Any]) -> tuple[Any, ...]:
    """The fields of a Struct, each with its keys, its default and its description."""
    fields: tuple[Any, ...] = importlib.import_module("gonogo.config.structs").fields_of(model)
    return fields


def keys_of(model: type[Any]) -> dict[str, str]:
    """The keys of a model as YAML spells them: each spelling with the field's name."""
    return {key: field.name for field in fields_of(model) for key in field.keys}


def type_text(schema: Mapping[str, Any]) -> str:
    """A JSON Schema in a few words."""
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "$ref" in schema:
        noun = schema["$ref"].rsplit("/", 1)[1]
        return f"[{noun}](#{noun.lower()})"
    for word in ("anyOf", "oneOf"):
        if word in schema:
            parts = dict.fromkeys(type_text(part) for part in schema[word])
            return " or ".join(part for part in parts if part != "null") or "null"
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(type_text({"type": part}) for part in kind)
    if kind == "array":
        return f"list of {type_text(schema.get('items', {}))}"
    inner = schema.get("additionalProperties")
    if kind == "object" and isinstance(inner, Mapping):
        return f"map of {type_text(inner)}"
    return {"object": "map", "string": "text"}.get(kind, str(kind))


def default_text(schema: Mapping[str, Any], *, required: bool) -> str:
    """What stands when the key is left out."""
    import json

    if required:
        return "required"
    value = schema.get("default")
    return "" if value in (None, [], {}, "") else f"`{json.dumps(value)}`"


def cell(text: str) -> str:
    """Text that stays within one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def rows(model: type[Any]) -> Iterator[str]:
    """One row for each field; other spellings of its key stand beside it."""
    properties = importlib.import_module("gonogo.config.jsonschema").Definitions().noun(model)["properties"]
    for field in fields_of(model):
        part = properties[field.keys[0]]
        named = ", ".join(f"`{key}`" for key in field.keys)
        default = default_text(part, required=field.required)
        yield f"| {named} | {cell(type_text(part))} | {cell(default)} | {cell(field.description)} |"


def table(model: type[Any]) -> str:
    """The keys of a model as a table; nothing for a model without any."""
    if not model.__struct_fields__:
        return "It has no keys of its own."
    return "\n".join(["| Key | Value | Default | Meaning |", "|---|---|---|---|", *rows(model)])


def own_doc(thing: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def yaml_page() -> str:
    """Every key of a workflow file but those of the step types."""
    lead = (
        "Keys that start with `x-` are yours. Durations are milliseconds as a number, or text with a unit: "
        "`500ms`, `30s`, `5m`, `4h`, `3d`. Where a value is text or a list of text, one item alone will do. "
        "The keys of a step's type "
        "are in [step types](step-types.md). `gonogo schema` prints all of it as a JSON Schema."
    )
    parts = [f"## {model.__name__}\n\n{own_doc(model)}\n\n{table(model)}" for model in nouns()]
    return "\n\n".join(["# YAML keys", NOTE, lead, *parts]) + "\n"


def providers() -> list[Any]:
    """The built-in step types, in the order of their table."""
    built_in = importlib.import_module("gonogo.providers.table").built_in()
    return [built_in.get(name) for name in built_in.names()]


def provider_part(provider: Any) -> str:
    """One step type: what it does, what its calls do outside, its keys and those that are templates."""
    module = inspect.getmodule(provider.run)
    effects = provider.effects if isinstance(provider.effects, str) else "depends on its keys"
    facts = [f"Effects: {effects}."]
    if provider.default_timeout_s is not None:
        facts.append(f"Timeout: {provider.default_timeout_s:g} s unless the step says otherwise.")
    templates = sorted(provider.templates | provider.late_templates)
    if templates:
        facts.append("Templates: " + ", ".join(f"`{name}`" for name in templates) + ".")
    if provider.expressions:
        facts.append("JavaScript: " + ", ".join(f"`{name}`" for name in sorted(provider.expressions)) + ".")
    if provider.aliases:
        facts.append("Also written: " + ", ".join(f"`{name}`" for name in provider.aliases) + ".")
    doc = cell(provider.summary or own_doc(module))
    lead = f"{doc[:1].upper()}{doc[1:].rstrip('.')}."
    parts = [f"## {provider.name}", lead, " ".join(facts), table(provider.config)]
    parts += [
        f"### {model.__name__}\n\n{own_doc(model)}\n\n{table(model)}" for model in within(provider.config)
    ]
    return "\n\n".join(parts)


def within(model: type[Any]) -> tuple[type[Any], ...]:
    """The Structs that a Struct's keys hold, at any depth."""
    definitions = importlib.import_module("gonogo.config.jsonschema").Definitions()
    definitions.noun(model)
    found: tuple[type[Any], ...] = definitions.models
    return found


def types_page() -> str:
    """Every built-in step type."""
    lead = (
        "What a step does is told by its `type`. These keys stand beside the "
        "[keys of every step](yaml.md#step). *Effects* say what a call does outside: `reads` and "
        "`idempotent` may be repeated, `mutates` may not; the step's `mutates` overrides it."
    )
    return "\n\n".join(["# Step types", NOTE, lead, *map(provider_part, providers())]) + "\n"


def verbs() -> dict[str, Any]:
    """Every verb with its click command, in the order of `--help`."""
    import click

    group = importlib.import_module("gonogo.cli.group").Verbs()
    context = click.Context(group, info_name="gonogo")
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None and not command.hidden}


def help_text(name: str, command: Any) -> str:
    """What `gonogo VERB --help` prints on a terminal of fixed width."""
    import click

    context = click.Context(
        command, info_name=f"gonogo {name}", terminal_width=HELP_WIDTH, max_content_width=HELP_WIDTH
    )
    return str(command.get_help(context)).rstrip()


def command_page() -> str:
    """Every verb with its options."""
    lead = (
        "Results go to stdout; progress and logs go to stderr. "
        "What a verb ends with is in [exit codes](exit-codes.md)."
    )
    parts = [
        f"## gonogo {name}\n\n```text\n{help_text(name, command)}\n```" for name, command in verbs().items()
    ]
    return "\n\n".join(["# Command line", NOTE, lead, *parts]) + "\n"


def metrics_page() -> str:
    """Every metric of a run."""
    families = importlib.import_module("gonogo.journal.metrics").FAMILIES
    lead = (
        "`gonogo show RUN --metrics` tells these of one run, as Prometheus reads them; the JSON report has the same "
        "under `metrics`. [Collect metrics](../how-to/metrics.md) shows how to bring them to a server. A child "
        "workflow's run has metrics of its own."
    )
    lines = [
        f"| `{family.name}` | {family.kind} | {', '.join(f'`{label}`' for label in family.labels)} "
        f"| {cell(family.help)} |"
        for family in families
    ]
    return "\n".join(
        [
            "# Metrics",
            "",
            NOTE,
            "",
            lead,
            "",
            "| Name | Kind | Labels | Meaning |",
            "|---|---|---|---|",
            *lines,
            "",
        ]
    )


PAGES: Mapping[str, Callable[[], str]] = {
    "yaml.md": yaml_page,
    "step-types.md": types_page,
    "command-line.md": command_page,
    "metrics.md": metrics_page,
}


def main() -> int:
    """Write the pages, or compare them."""
    parser = argparse.ArgumentParser(description="Write the generated pages of docs/reference.")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 when a page is not up to date")
    check = parser.parse_args().check
    stale = 0
    for page, write in PAGES.items():
        text, path = write(), FOLDER / page
        if path.exists() and path.read_text() == text:
            continue
        stale += 1
        print(f"docs/reference/{page} {'is not up to date: run make reference' if check else 'written'}")
        if not check:
            path.write_text(text)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
