"""Templates in a config: syntax, unknown filters, what they read, and text from outside that would reach a shell.

The template engine is slow to import, so it is asked only about texts that hold a tag at all.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from gonogo.config.collect import Collector, nearest, shown
from gonogo.config.nodes import Node, Scalar, texts
from gonogo.config.position import place_within
from gonogo.expressions.analyse import KNOWN_NAMES, Reading

TEMPLATE = "template"
TEMPLATE_CHARS_MAX = 256 * 1024

# Fields whose text a shell reads. Everything else is passed on as data.
SHELL_FIELDS = {"command": frozenset(("exec",))}


# Contexts of other systems, and where the same is here.
_ELSEWHERE = MappingProxyType(
    {
        "secrets": "write ${{ env.NAME }}, which names a variable of the environment",
        "steps": "outputs of steps are read as outputs.NAME",
        "needs": "outputs of steps are read as outputs.NAME",
        "github": "what happened is in event, pr, branch and env",
        "vars": "variables are read as env.NAME",
    }
)

Where = tuple[str | int, ...]


def is_template(text: Any) -> bool:
    """True for text with a template tag."""
    return isinstance(text, str) and ("{{" in text or "{%" in text)


def check_field(node: Node, path: Where, notes: Collector) -> list[tuple[Where, Reading]]:
    """Report what is wrong with the templates in a field, at any depth; gives what the others read."""
    found: list[tuple[Where, Reading]] = []
    for below, scalar in texts(node):
        if is_template(scalar.text):
            at = (*path, *below)
            reading = check_text(scalar, at, notes)
            found += [(at, reading)] if reading is not None else []
    return found


def check_text(scalar: Scalar, path: tuple[str | int, ...], notes: Collector) -> Reading | None:
    """Report what is wrong with one template; returns what it reads, None when it can't be read."""
    from gonogo.expressions import template

    if len(scalar.text) > TEMPLATE_CHARS_MAX:
        message = f"a template of {len(scalar.text)} characters; at most {TEMPLATE_CHARS_MAX}"
        notes.add_at("error", "template.size", message, scalar, path)
        return None
    problems = template.check(scalar.text)
    for problem in problems:
        if notes.only_counted():
            continue
        place = place_within(scalar, problem.line, problem.column)
        notes.add_place("error", "template.syntax", problem.message, place, scalar.source, path)
    if problems:
        return None
    reading = template.names(scalar.text)
    _warn_of_unknown(reading, scalar, path, notes)
    return reading


def _warn_of_unknown(reading: Reading, scalar: Scalar, path: Where, notes: Collector) -> None:
    """A template may read a name that nothing has: it renders as nothing (B.3), which is seldom meant."""
    for name in reading.names:
        if name in KNOWN_NAMES or notes.only_counted():
            continue
        near = nearest(name, sorted(KNOWN_NAMES))
        advice = _ELSEWHERE.get(name) or (
            f"did you mean {near}?" if near else "outputs of steps are read as outputs.NAME"
        )
        offset = max(scalar.text.find(name), 0)
        before = scalar.text[:offset]
        place = place_within(scalar, before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)
        message = f"unknown name {shown(name)}: it renders as nothing"
        severity = "error" if notes.strict else "warning"
        notes.add_place(severity, "template.name", message, place, scalar.source, path, advice)


def refuse_unescaped(node: Node, path: tuple[str | int, ...], notes: Collector) -> None:
    """Report template tags that paste data into a shell's text (SEC-1, architecture.md law 6)."""
    if not isinstance(node, Scalar) or not is_template(node.text) or len(node.text) > TEMPLATE_CHARS_MAX:
        return
    from gonogo.config import shell
    from gonogo.expressions import template
    from gonogo.expressions.results import TemplateProblem

    try:
        written = template.unescaped(node.text)
    except TemplateProblem:
        return  # reported by `check_field`
    for name in dict.fromkeys(written):
        message = f"{shown(name)} would reach the shell as code"
        advice = f'write {{{{ {name} | shell_escape }}}}, or pass it by env and use "$NAME"'
        notes.error("template.unescaped", message, path, advice)
    for value in shell.misplaced(node.text):
        if notes.only_counted():
            continue
        line = node.text.count("\n", 0, value.offset) + 1
        column = value.offset - (node.text.rfind("\n", 0, value.offset) + 1) + 1
        place = place_within(node, line, column)
        message = f"{shown(value.tag)}: {value.message}"
        notes.add_place("error", "template.unescaped", message, place, node.source, path, value.advice)
