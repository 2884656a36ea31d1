"""What each decision is: a complete delta of the state that can say itself in one plain sentence."""

from __future__ import annotations

from msgspec import Struct


class Decision(Struct, frozen=True, omit_defaults=True, tag_field="type", gc=False):
    """Base of all decisions. Plain data without cycles, so the garbage collector needn't look."""

    def sentence(self) -> str:
        """The decision in words, without its step's name where it has one."""
        return type(self).__name__.lower()


class About(Decision, frozen=True):
    """A decision about one step in one scope."""

    step: str
    scope: str = ""
