"""Texts of the far side, made fit to be shown: they are hostile input until then."""

from __future__ import annotations

MESSAGE_CHARACTERS_MAX = 500
NAME_CHARACTERS_MAX = 100
IDENTIFIER_CHARACTERS_MAX = 16 * 1024
"""Some gateways hide more than an id in an id, and want all of it back."""


def shown(text: object, characters_max: int = MESSAGE_CHARACTERS_MAX) -> str:
    """One line of what can be printed, cut to a length; nothing for what is no text.

    Gone are controls (escape sequences of terminals with them), marks that turn the writing direction and halves
    of surrogate pairs.
    """
    if not isinstance(text, str):
        return ""
    # Cut before the work as well: a text of megabytes isn't searched for the sake of a line.
    start = text[: 4 * characters_max]
    line = " ".join("".join(one if one.isprintable() else " " for one in start).split())
    return line if len(line) <= characters_max else line[:characters_max] + "…"


def named(value: object) -> str:
    """A vendor's short word (a code, a model's name, an id); a number as its digits, anything else as nothing."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**12:
        return str(value)
    return shown(value, NAME_CHARACTERS_MAX)


def identifier(value: object) -> str:
    """An id or name that goes back to the server as it came; nothing for one that nobody could show or keep."""
    if not isinstance(value, str) or len(value) > IDENTIFIER_CHARACTERS_MAX or not value.isprintable():
        return named(value)
    return value
