"""Secrets that stand in a file as they are: it is read by many, and goes into the first record of each run."""

from __future__ import annotations

from gonogo.config.collect import Collector
from gonogo.config.nodes import Mapping, Scalar, texts
from gonogo.core.secrecy import SECRET_HEADERS, is_secret_name, with_form

_LENGTH_MIN = 6
"""Characters; no text that is shorter is taken for a secret."""


def check_literals(root: Mapping, notes: Collector) -> None:
    """A warning for each text that looks like a secret, with what to write instead. None of them is shown."""
    for path, scalar in texts(root):
        if _has_form(scalar.text):
            advice = _advice("NAME")
            notes.warn("secret.literal", "this text holds what looks like a secret", path, advice)
        elif _is_named(path) and _is_literal(scalar):
            name = str(path[-1])
            message = f"{name} holds a text; a file is no place for a secret"
            notes.warn("secret.literal", message, path, _advice(name if path[-2] == "env" else "NAME"))


def _advice(name: str) -> str:
    return f"set it in the environment, and write ${{{{ env.{name} }}}} here"


def _has_form(text: str) -> bool:
    """A reference or a template in its place has none of these forms."""
    return any("$" not in each and "{" not in each for each in with_form(text))


def _is_named(path: tuple[str | int, ...]) -> bool:
    """A variable or a header whose name says that it holds a secret."""
    if len(path) < 2 or not isinstance(path[-1], str):
        return False
    return (path[-2] == "env" and is_secret_name(path[-1])) or (
        path[-2] == "headers" and path[-1].lower() in SECRET_HEADERS
    )


def _is_literal(scalar: Scalar) -> bool:
    text = scalar.text
    return len(text) >= _LENGTH_MIN and "$" not in text and "{{" not in text
