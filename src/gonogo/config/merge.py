"""Lays a file over the files it extends (spec A.2, column D): no key of either is ever dropped silently.

scalars and lists: the child's replaces the parent's · maps: merged key by key · `null`: removes the parent's
key · `imports`: joined, without repeats · a child's step with `on: []`: removed · `appendPrompt`: added to
the parent's prompt after a blank line · `steps` and `checks` are one map. Every node keeps the place it was
written at.
"""

from __future__ import annotations

from msgspec.structs import replace

from gonogo.config.collect import Collector
from gonogo.config.nodes import Entry, Listing, Mapping, Node, Scalar, place_of, plain

_TAKEN_BY_THE_LOADER = frozenset(("extends", "include"))


def unify_steps(document: Mapping, notes: Collector) -> Mapping:
    """`steps` and `checks` as one map named `steps`; a name in both must say the same (A.1 rule 5 D)."""
    checks = document.entries.get("checks")
    if checks is None:
        return document
    steps = document.entries.get("steps")
    entries = {key: entry for key, entry in document.entries.items() if key != "checks"}
    if steps is None or not isinstance(steps.node, Mapping) or not isinstance(checks.node, Mapping):
        entries["steps"] = replace(steps or checks, key="steps")
        return replace(document, entries=entries)
    joined = dict(steps.node.entries)
    for name, entry in checks.node.entries.items():
        first = joined.setdefault(name, entry)
        if first is not entry and plain(first.node) != plain(entry.node):
            message = f"step {name[:80]!r} is in steps (line {first.line}) and, different, in checks"
            notes.add_at("error", "step.twice", message, entry, ("checks", name), "keep one of them")
    entries["steps"] = replace(steps, node=replace(steps.node, entries=joined))
    return replace(document, entries=entries)


def merge(parent: Mapping, child: Mapping, notes: Collector) -> Mapping:
    """`child` over `parent`; both with `steps` only (see `unify_steps`). Overridden steps are noted."""
    entries = {key: entry for key, entry in parent.entries.items() if key not in _TAKEN_BY_THE_LOADER}
    for key, entry in child.entries.items():
        below = entries.get(key)
        if key in _TAKEN_BY_THE_LOADER:
            continue
        if _is_null(entry.node):
            entries.pop(key, None)
        elif below is None:
            entries[key] = entry
        elif key == "steps":
            entries[key] = replace(entry, node=_steps(below.node, entry.node, notes))
        elif key == "imports":
            entries[key] = replace(entry, node=_joined(below.node, entry.node))
        else:
            entries[key] = replace(entry, node=over(below.node, entry.node))
    return replace(child, entries=entries)


def over(parent: Node, child: Node) -> Node:
    """Maps merge key by key, null removes; anything else of the child replaces the parent's."""
    if not isinstance(parent, Mapping) or not isinstance(child, Mapping):
        return child
    entries = dict(parent.entries)
    for key, entry in child.entries.items():
        below = entries.get(key)
        if _is_null(entry.node):
            entries.pop(key, None)
        else:
            entries[key] = replace(entry, node=over(below.node, entry.node)) if below else entry
    return replace(child, entries=entries)


def finish(document: Mapping) -> Mapping:
    """What is left to do when the last file is laid on: `appendPrompt` becomes prompt."""
    steps = document.get("steps")
    if not isinstance(steps, Mapping):
        return document
    kept = dict(steps.entries)
    for name, entry in kept.items():
        if isinstance(entry.node, Mapping) and "appendPrompt" in entry.node.entries:
            kept[name] = replace(entry, node=_prompted(entry.node))
    entries = dict(document.entries)
    entries["steps"] = replace(entries["steps"], node=replace(steps, entries=kept))
    return replace(document, entries=entries)


def _steps(parent: Node, child: Node, notes: Collector) -> Node:
    if not isinstance(parent, Mapping) or not isinstance(child, Mapping):
        return child
    entries = dict(parent.entries)
    for name, entry in child.entries.items():
        below = entries.get(name)
        if _is_null(entry.node) or (below is not None and _disabled(entry.node)):
            entries.pop(name, None)
            continue
        if below is None:
            entries[name] = entry
            continue
        at = place_of(below)
        message = f"step {name[:80]!r} overrides the one in {at.file}:{at.line}"
        notes.add_at("info", "step.overrides", message, entry, ("steps", name))
        entries[name] = replace(entry, node=over(_prompted(below.node), entry.node))
    return replace(child, entries=entries)


def _joined(parent: Node, child: Node) -> Node:
    if not isinstance(parent, Listing) or not isinstance(child, Listing):
        return child
    seen = {item.text for item in parent.items if isinstance(item, Scalar)}
    new = (item for item in child.items if not isinstance(item, Scalar) or item.text not in seen)
    return replace(child, items=[*parent.items, *new])


def _prompted(step: Node) -> Node:
    """`appendPrompt` folded into `prompt`, so that a child's can be added after it."""
    if not isinstance(step, Mapping):
        return step
    more, prompt = step.entries.get("appendPrompt"), step.entries.get("prompt")
    if more is None or not _is_text(more.node) or (prompt is not None and not _is_text(prompt.node)):
        return step
    assert isinstance(more.node, Scalar)
    text = more.node.text
    if prompt is not None and isinstance(prompt.node, Scalar):
        text = f"{prompt.node.text}\n\n{text}"
    entries = {key: entry for key, entry in step.entries.items() if key != "appendPrompt"}
    entries["prompt"] = _text_entry("prompt", text, more)
    return replace(step, entries=entries)


def _text_entry(key: str, text: str, like: Entry) -> Entry:
    assert isinstance(like.node, Scalar)
    return replace(like, key=key, node=replace(like.node, value=text, text=text))


def _disabled(step: Node) -> bool:
    on = step.get("on") if isinstance(step, Mapping) else None
    return isinstance(on, Listing) and not on.items


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None


def _is_text(node: Node) -> bool:
    return isinstance(node, Scalar) and isinstance(node.value, str)
