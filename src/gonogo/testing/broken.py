"""A law that a simulated run broke."""

from __future__ import annotations


class Broken(Exception):  # noqa: N818 - the name says what happened to a law
    """A law doesn't hold: its name, and what was seen."""

    def __init__(self, law: str, text: str) -> None:
        super().__init__(f"{law}: {text}")
        self.law = law
