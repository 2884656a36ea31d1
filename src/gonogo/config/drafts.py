"""A step as it was read: its engine keys and its type's keys, each checked against their model, and where it stands.

Which step is meant, in what order and with what effect is settled later, when all steps are known.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gonogo.config.collect import Collector, shown
from gonogo.config.keys import STEP, unknown_key
from gonogo.config.nodes import Entry, Mapping, find, plain
from gonogo.config.schema.step import OUT_OF_SCOPE, Step
from gonogo.config.structs import keys_of
from gonogo.config.templates import is_template
from gonogo.config.validate import check, check_whole
from gonogo.errors import Bug
from gonogo.provider import Call, Context, Outcome, Provider

NAME_CHARS_MAX = 100
# A scope is text like `list#1[3]/inner#1[0]`, dependencies are joined by `|`, `@` marks a wave.
_NAME_FORBIDDEN = re.compile(r"[/#\[\]@|]")
_ENGINE_KEYS = frozenset(keys_of(Step))


class Providers(Protocol):
    """The table of step types (`gonogo.providers.table.Table`)."""

    def get(self, name: str) -> Provider:
        """The type's provider; raises a KeyError with `planned` and `nearest` when there is none."""
        ...

    def names(self) -> tuple[str, ...]:
        """All types that can be used."""
        ...


class Draft(Struct, frozen=True):
    """A step that could be read. `config` holds the type's own keys as written; `model` them checked, if they pass."""

    name: str
    line: int
    node: Mapping
    engine: Step
    provider: Provider
    config: dict[str, Any]
    model: msgspec.Struct | None

    @property
    def path(self) -> tuple[str | int, ...]:
        """The step's path in the document."""
        return ("steps", self.name)

    def written(self, key: str) -> bool:
        """True when the file says `key` for this step."""
        return key in self.node.entries


def read_drafts(steps: Mapping, providers: Providers, notes: Collector) -> dict[str, Draft]:
    """Every step that can be made sense of, in the file's order; what is wrong is reported."""
    drafts: dict[str, Draft] = {}
    for name, entry in steps.entries.items():
        _check_name(name, notes)
        if not isinstance(entry.node, Mapping):
            notes.error("value.type", "expected a mapping: the keys of a step", ("steps", name))
            continue
        draft = _read(entry, entry.node, providers, notes)
        if draft is not None:
            drafts[name] = draft
    return drafts


def _check_name(name: str, notes: Collector) -> None:
    path = ("steps", name)
    if not name.strip() or name != name.strip():
        notes.add_key("error", "step.name", "a step's name can't be blank or start or end with a space", path)
    elif len(name) > NAME_CHARS_MAX:
        notes.add_key("error", "step.name", f"a step's name has at most {NAME_CHARS_MAX} characters", path)
    elif wrong := [sign for sign in name if not sign.isprintable() or _NAME_FORBIDDEN.match(sign)]:
        better = "".join("-" if sign in wrong else sign for sign in name)
        notes.add_key("error", "step.name", f"a step's name can't hold {wrong[0]!r}", path, f"write {better}")


def _read(entry: Entry, node: Mapping, providers: Providers, notes: Collector) -> Draft | None:
    path = ("steps", entry.key)
    provider = _provider(node, path, providers, notes)
    engine, own = _split(node, path, provider, notes)
    if provider is not None:
        _check_installed(provider, own, path if node.entries.get("type") is None else (*path, "type"), notes)
    model = _own_model(provider, own, path, notes) if provider else None
    step = check(Step, engine, notes, path)
    if step is None:
        return None
    return Draft(entry.key, entry.line, node, step, provider or _UNUSABLE, own, model)


async def _never_run(call: Call, context: Context) -> Outcome:
    raise Bug("a plan with a step of no type was run")


# Stands in for a type that isn't there, so that the rest of the step is checked all the same.
_UNUSABLE = Provider(name="unusable", config=msgspec.Struct, run=_never_run)


def _provider(
    node: Mapping, path: tuple[str, str], providers: Providers, notes: Collector
) -> Provider | None:
    given = node.get("type")
    kind = plain(given) if given is not None else "ai"
    if not isinstance(kind, str):
        return None  # the model reports the type
    at = (*path, "type")
    guess = _type_by_keys(node)
    if given is None and guess is not None and "prompt" not in node.entries:
        message = "a step without a type is of type ai, and that has a prompt"
        advice = "write exec: in place of run:, and " if "run" in node.entries else ""
        notes.add_key("error", "type.missing", message, path, f"{advice}add type: {guess}")
        return None
    try:
        return providers.get(kind)
    except KeyError as unknown:
        near = getattr(unknown, "nearest", None)
        if given is None:
            suggestion = f"add type: {guess}" if guess else None
            message = "a step without a type is of type ai, which isn't available in this version"
            notes.add_key("error", "type.missing", message, path, suggestion)
        elif getattr(unknown, "planned", False):
            notes.error("type.unavailable", f"step type {shown(kind)} isn't available in this version", at)
        else:
            reason = getattr(unknown, "reason", None)
            message = f"unknown step type {shown(kind)}" + (f": {reason}" if reason else "")
            known = ", ".join(providers.names())
            notes.error("type.unknown", message, at, f"did you mean {near}?" if near else f"known: {known}")
    return None


def _check_installed(
    provider: Provider, own: dict[str, Any], path: tuple[str, ...], notes: Collector
) -> None:
    """What the type, and those of its keys that the step has, need beside gonogo is there; nothing is imported."""
    of_type = f"a step of type {provider.name}"
    wanted = [(of_type, path, provider.needs)]
    for key, needs in provider.needs_for.items():
        if own.get(key):
            wanted.append((f"{of_type} with {key}", ("steps", path[1], key), needs))
    for what, place, needs in wanted:
        for module, installs in needs.items():
            if find_spec(module) is None:
                message = f"{what} needs the package '{module}', which isn't installed"
                notes.error("type.not_installed", message, place, installs)


def _type_by_keys(node: Mapping) -> str | None:
    by_key = {
        "exec": "command",
        "run": "command",
        "content": "script",
        "operation": "memory",
        "url": "http_client",
        "message": "log",
    }
    return next((kind for key, kind in by_key.items() if key in node.entries), None)


def _split(
    node: Mapping, path: tuple[str, str], provider: Provider | None, notes: Collector
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The engine's keys and the type's own; a key of both goes to both. Unknown ones are reported."""
    own_keys = frozenset(keys_of(provider.config)) if provider else None
    engine: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for key, entry in node.entries.items():
        mine = own_keys is not None and key in own_keys
        if key in _ENGINE_KEYS:
            engine[key] = plain(entry.node)
        if mine:
            own[key] = plain(entry.node)
        elif key not in _ENGINE_KEYS and not key.startswith("x-"):
            _unknown(key, path, own_keys, provider, notes)
    return engine, own


def _unknown(
    key: str,
    path: tuple[str, str],
    own_keys: frozenset[str] | None,
    provider: Provider | None,
    notes: Collector,
) -> None:
    at = (*path, key)
    if key in OUT_OF_SCOPE:
        notes.add_key("info", "key.out_of_scope", f"{key} is accepted and does nothing here", at)
    elif own_keys is not None and provider is not None and not notes.only_counted():
        known = (*sorted(own_keys), *sorted(_ENGINE_KEYS))
        message, suggestion = unknown_key(key, STEP, known)
        notes.add_key("error", "key.unknown", f"{message} for a step of type {provider.name}", at, suggestion)


def _own_model(
    provider: Provider, own: dict[str, Any], path: tuple[str, str], notes: Collector
) -> msgspec.Struct | None:
    """The type's Config. Errors at template texts are left for the time when they are rendered."""

    def still_template(found: Any) -> bool:
        at = found[:3]
        if len(at) < 3 or at[2] not in provider.templates | provider.late_templates:
            return False
        node = find(notes.root, found)
        return node is not None and _holds_template(plain(node))

    return check_whole(provider.config, own, notes, path, still_template)


def _holds_template(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_template(item) for item in value.values())
    if isinstance(value, list):
        return any(_holds_template(item) for item in value)
    return is_template(value)


def with_routing_defaults(root: Mapping) -> Mapping:
    """`routing.defaults.on_fail` laid under every on_fail block that a step has, key by key (C.10 R2)."""
    base = find(root, ("routing", "defaults", "on_fail"))
    steps = root.get("steps")
    if not isinstance(base, Mapping) or not isinstance(steps, Mapping):
        return root
    entries = dict(steps.entries)
    for name, entry in entries.items():
        block = entry.node.get("on_fail") if isinstance(entry.node, Mapping) else None
        if isinstance(block, Mapping) and isinstance(entry.node, Mapping):
            joined = replace(block, entries={**base.entries, **block.entries})
            keys = dict(entry.node.entries)
            keys["on_fail"] = replace(keys["on_fail"], node=joined)
            entries[name] = replace(entry, node=replace(entry.node, entries=keys))
    top = dict(root.entries)
    top["steps"] = replace(top["steps"], node=replace(steps, entries=entries))
    return replace(root, entries=top)
