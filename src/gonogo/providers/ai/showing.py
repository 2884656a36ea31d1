"""Shows an answer as it comes, to the person who watches: one line, now and then."""

from __future__ import annotations

from collections.abc import Callable

from gonogo.models.cleaning import shown

EACH_CHARACTERS = 16
LINE_CHARACTERS_MAX = 160


class Preview:
    """The end of one attempt's text, without anything that a terminal would obey."""

    __slots__ = ("_end", "_new", "_tell")

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._end = ""
        self._new = 0

    def see(self, text: str) -> None:
        """A new piece of text."""
        first = not self._end
        self._end = (self._end + text)[-4 * LINE_CHARACTERS_MAX :]
        self._new += len(text)
        if not first and self._new < EACH_CHARACTERS:
            return
        self._new = 0
        line = shown(self._end, len(self._end))[-LINE_CHARACTERS_MAX:]
        if line:
            self._tell(line)
