"""Fills in the texts of a step right before a call: templates from the run's names, references from the environment.

Two results each: what the call gets, and what its record shows, in which references stay names (architecture.md 2.11).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gonogo.core.secrecy import SECRET_HEADERS
from gonogo.expressions.results import TemplateProblem
from gonogo.hosts.environment import fill_in, refers, without_references
from gonogo.hosts.templates import Templates, has_tags
from gonogo.journal.redact import MASK


def texts_in(value: Any) -> list[str]:
    """Every text in a value, at any depth."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts_in(part)]
    return [text for part in value for text in texts_in(part)] if isinstance(value, list | tuple) else []


def secrets_among(value: Any, names: frozenset[str], path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """The texts of a value that stand under a key of these names, or under two keys one in the other that a name joins
    with a dot, at any depth; with their paths.
    """
    if isinstance(value, str):
        if value and names & {path[-1] if path else "", ".".join(path[-2:])}:
            yield ".".join(path), value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from secrets_among(part, names, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from secrets_among(part, names, path)


def secret_headers_in(value: Any) -> Iterator[str]:
    """The texts of headers that let somebody in, under `headers` at any depth."""
    for key, part in value.items() if isinstance(value, dict) else ():
        if key == "headers" and isinstance(part, dict):
            yield from (str(text) for name, text in part.items() if name.lower() in SECRET_HEADERS)
        else:
            yield from secret_headers_in(part)
    for part in value if isinstance(value, list | tuple) else ():
        yield from secret_headers_in(part)


def reads_data(value: Any) -> bool:
    """Whether a template in the value reads data of the run; a reference to the environment doesn't."""
    return any(has_tags(without_references(text)) for text in texts_in(value))


def has_references(value: Any) -> bool:
    """Whether a text in the value may name a variable."""
    return any(refers(text) for text in texts_in(value))


class Filling:
    """Fills in texts under some names. `unset` gathers variables that were named but aren't set."""

    def __init__(
        self,
        templates: Templates,
        environment: Mapping[str, str],
        names: Mapping[str, Any],
        recorded: Mapping[str, Any] | None = None,
    ) -> None:
        """`recorded`: the names for what the record shows, where they are others: secrets as handles."""
        self._templates = templates
        self._environment = environment
        self._names = names
        self._recorded = recorded
        self.unset: dict[str, None] = {}

    def text(self, text: str) -> str:
        """A text with references and templates. Raises TemplateProblem."""
        filled, missing = fill_in(text, self._environment, self._renderer(text))
        self.unset.update(dict.fromkeys(missing))
        return filled

    def value(self, value: Any, *, references: bool, templates: bool = True) -> tuple[Any, Any]:
        """A value for the call and for the record, at any depth; without `templates` tags are plain text.

        Raises TemplateProblem.
        """
        what = {"references": references, "templates": templates}
        if isinstance(value, str):
            return self._both(value, **what)
        if isinstance(value, dict):
            pairs = {key: self.value(part, **what) for key, part in value.items()}
            return {k: pair[0] for k, pair in pairs.items()}, {k: pair[1] for k, pair in pairs.items()}
        if isinstance(value, list | tuple):
            both = [self.value(part, **what) for part in value]
            return [pair[0] for pair in both], [pair[1] for pair in both]
        return value, value

    def _both(self, text: str, *, references: bool, templates: bool) -> tuple[str, str]:
        if not templates:
            filled, missing = fill_in(text, self._environment) if references else (text, ())
            self.unset.update(dict.fromkeys(missing))
            return filled, text
        if not (references and refers(text)):
            rendered = self._templates.text(text, self._names)
            return rendered, rendered if self._recorded is None else self._shown(text)
        renderer = self._renderer(text)
        return self.text(text), fill_in(text, {}, renderer and self._shown)[0]

    def _shown(self, text: str) -> str:
        """A text as the record has it. A handle may not be what a template expects of the secret itself."""
        if self._recorded is None:
            return self._templates.text(text, self._names)
        try:
            return self._templates.text(text, self._recorded)
        except TemplateProblem:
            return MASK

    def _renderer(self, text: str) -> Any:
        if not has_tags(without_references(text)):
            return None
        return lambda marked: self._templates.text(marked, self._names)
