"""Doubts about conditions that compile but may not say what is meant: warnings, errors under strict."""

from __future__ import annotations

import re

from gonogo.config.collect import Collector, nearest, shown
from gonogo.config.drafts import Draft
from gonogo.config.expressions import Expressions, Use, env_read_alone, looks_false
from gonogo.config.nodes import Scalar, walk
from gonogo.config.schema.top import Document
from gonogo.core.plan import Plan
from gonogo.expressions.analyse import Reading

_ROUTING = frozenset(("when", "goto_js", "run_js"))
_LIST_HELPERS = frozenset(("any", "all", "none", "count"))
_EXEC_CHARACTERS_READ = 64 * 1024
_MUTATING = (
    r"\b(?:git\s+push|kubectl\s+(?:apply|create|delete|patch|scale|rollout)|terraform\s+(?:apply|destroy)"
    r"|helm\s+(?:install|upgrade|uninstall|rollback)|(?:docker|podman)\s+push|(?:npm|cargo|poetry|uv)\s+publish"
    r"|twine\s+upload|gh\s+(?:pr|issue|release)\s+(?:create|comment|merge|close|edit|delete)"
    r"|curl\b[^\n|;&]{0,1000}?\s(?:(?:-X\s{0,9}|--request[ =])(?:POST|PUT|PATCH|DELETE)|(?:-d|--data)\b))"
)
_CONDITIONS = frozenset(("if", "assume", "guarantee", "fail_if", "failure_conditions", "when"))


def give(
    plan: Plan, drafts: dict[str, Draft], expressions: Expressions, document: Document, notes: Collector
) -> None:
    """Look at every condition once, and at what the file leaves out."""
    inputs = frozenset(noun.name for noun in document.inputs)
    for use, reading in expressions.uses:
        if inputs:
            _unknown_inputs(use, reading, inputs, notes)
        if use.construct in _CONDITIONS:
            _env_alone(use, drafts, document, notes)
        if use.construct == "assume":
            _own_output(use, reading, notes)
        if use.construct in _ROUTING:
            _cumulative(use, reading, notes)
        if ("output", "exitCode") in reading.paths:
            message = "output.exitCode is never there; a command's exit code is output_meta.exit_code"
            notes.warn("expression.exit_code", message, use.path, "write output_meta.exit_code")
    for draft in drafts.values():
        _looks_mutating(draft, plan.steps[draft.name].effects, notes)
    _fallible_without_block(drafts, document, notes)


def _unknown_inputs(use: Use, reading: Reading, inputs: frozenset[str], notes: Collector) -> None:
    """What a file that declares inputs doesn't declare is refused from outside, so it is never there."""
    read = (str(path[1]) for path in reading.paths if len(path) > 1 and path[0] == "inputs")
    for name in dict.fromkeys(read):
        if name in inputs or notes.only_counted():
            continue
        near = nearest(name, sorted(inputs))
        advice = f"did you mean {near}?" if near else "add it to inputs:"
        notes.warn("reference.unknown_input", f"there is no input {shown(name)}", use.path, advice)


def _cumulative(use: Use, reading: Reading, notes: Collector) -> None:
    """any(outputs_history.x, …) stays true for ever once one item was bad (H42)."""
    if "outputs_history" in reading.names and _LIST_HELPERS.intersection(reading.calls):
        message = "outputs_history keeps every run: once true, this stays true in a loop"
        notes.warn("expression.cumulative", message, use.path, "ask the latest wave: outputs_wave")


def _looks_mutating(draft: Draft, effects: str, notes: Collector) -> None:
    """What declares nothing counts as repeatable; say so where it looks otherwise (semantics.md 18)."""
    text = draft.config.get("exec")
    if effects == "mutates" or draft.engine.mutates is not None or not isinstance(text, str):
        return
    found = re.search(_MUTATING, text[:_EXEC_CHARACTERS_READ])
    if found is not None:
        message = f"{found.group().strip()!r} looks as if it changes the outside; it counts as repeatable"
        notes.warn(
            "effects.undeclared", message, (*draft.path, "exec"), "write mutates: true, or mutates: false"
        )


def _env_alone(use: Use, drafts: dict[str, Draft], document: Document, notes: Collector) -> None:
    node = walk(notes.root, use.path)
    name = env_read_alone(node.text) if isinstance(node, Scalar) else None
    if name is None:
        return
    draft = drafts.get(use.step) if use.step else None
    env = {**document.env, **(draft.engine.env if draft else {})}
    if name in env and env[name] != "" and not looks_false(env[name]):
        return
    message = f"every text but the empty one is true, 'false', '0' and 'no' too; env.{name} is text"
    notes.warn("expression.env_text", message, use.path, f"compare explicitly: env.{name} === 'true'")


def _own_output(use: Use, reading: Reading, notes: Collector) -> None:
    if "output" in reading.names or any(path[:2] == ("outputs", use.step) for path in reading.paths):
        message = "assume is asked before the step runs: there is no output of its own yet"
        notes.warn("expression.own_output", message, use.path, "write it under guarantee:")


def _fallible_without_block(drafts: dict[str, Draft], document: Document, notes: Collector) -> None:
    """routing.defaults reach only steps that have an on_fail block (A.3 D)."""
    if document.routing.defaults.on_fail is None:
        return
    bare = [
        name
        for name, draft in drafts.items()
        if draft.engine.on_fail is None and draft.provider.name != "noop"
    ]
    if bare:
        names = ", ".join(bare[:5])
        message = f"these defaults don't reach {len(bare)} steps, which have no on_fail block: {names}"
        notes.note(
            "routing.defaults", message, ("routing", "defaults", "on_fail"), "add on_fail: {} to a step"
        )
