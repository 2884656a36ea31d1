"""Environment variables: which of them expressions may see, and which a step's texts name (spec B.11 and
E.1).

Secrets are names in plans and records. Their values are put in here, right before a call, and nowhere else.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from gonogo.journal.redact import secrets_in

_REFERENCE = re.compile(
    r"\$\{\{\s*env\.(?P<tag>[A-Za-z_]\w*)\s*\}\}|\$\{(?P<braced>[A-Z_][A-Z0-9_]*)\}|\$(?P<bare>[A-Z_][A-Z0-9_]*)"
)
_MARK = re.compile("\ue000[0-9a-f]{16}:[0-9]+\ue001")


def visible(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without secrets, as expressions, templates and the journal see it."""
    hidden = secrets_in(environment)
    return {name: value for name, value in environment.items() if name not in hidden}


def as_text(value: Any) -> str:
    """A value as it stands in an environment: true and false in lower case, null as empty text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def as_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Values as they stand in an environment."""
    return {name: as_text(value) for name, value in values.items()}


def refers(text: str) -> bool:
    """Whether a text may name a variable at all."""
    return "$" in text


def without_references(text: str) -> str:
    """The text as a template engine should judge it: `${{ env.X }}` is a reference, no tag that reads data."""
    return _REFERENCE.sub("", text)


def fill_in(
    text: str, environment: Mapping[str, str], render: Callable[[str], str] | None = None
) -> tuple[str, tuple[str, ...]]:
    """The text with `${{ env.X }}`, `${X}` and `$X` replaced; names that aren't set stay as written and are returned.

    `render` sees the text with marks in place of the references, so that neither a variable's value is taken for a
    template nor what a template gave for a reference (case SEC-1).
    """
    references = list(_REFERENCE.finditer(text))
    missing = tuple(dict.fromkeys(_name(found) for found in references if _name(found) not in environment))
    if render is None:
        return _REFERENCE.sub(lambda found: _value(found, environment), text), missing
    secret = secrets.token_hex(8)
    values = {f"\ue000{secret}:{n}\ue001": _value(found, environment) for n, found in enumerate(references)}
    marks = iter(values)
    rendered = render(_REFERENCE.sub(lambda _: next(marks), text))
    return _MARK.sub(lambda found: values.get(found[0], found[0]), rendered), missing


def _name(found: re.Match[str]) -> str:
    return found["tag"] or found["braced"] or found["bare"]


def _value(found: re.Match[str], environment: Mapping[str, str]) -> str:
    return environment.get(_name(found), found[0])
