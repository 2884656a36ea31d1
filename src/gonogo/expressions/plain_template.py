"""Templates whose tags only name a value, `{{ outputs.build.version }}`, perhaps quoted or as JSON.

They are read and rendered here, because most templates are like that and loading Liquid for them would cost more
than all else a short run does. The result is Liquid's to the letter; whatever might differ (keywords, `history`,
computed segments, other filters, whitespace control, results near a limit) is left to `template.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from gonogo.expressions.filters import FILTERS, as_text

OUTPUT_CHARACTERS_MAX = 1 << 18
"""Surely below the limit of bytes that Liquid's own rendering has."""

_TAG = re.compile(
    r"\{\{[ \t\n]*([A-Za-z_]\w*(?:-\w+)*(?:\.[A-Za-z_]\w*(?:-\w+)*)*)[ \t\n]*"
    r"(?:\|[ \t\n]*(shell_escape|shell_escape_double|json|to_json)[ \t\n]*)?\}\}",
    re.ASCII,
)
_FILTERS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {name: FILTERS[name] for name in ("shell_escape", "shell_escape_double", "json", "to_json")}
)
_LIQUIDS_OWN = frozenset(
    """
    true false nil null empty blank and or contains not in offset limit reversed cols continue with for as if else
    required history forloop tablerowloop
    """.split()
)
COMPUTED = ("size", "first", "last")
"""Segments that Liquid computes where there is no such key."""


class NotPlain(Exception):  # noqa: N818 - the name says what happened
    """Only Liquid can say what a tag stands for, or what is wrong with it."""


class Tag(Struct, frozen=True):
    """One `{{ path | filter }}`."""

    path: tuple[str, ...]
    filter: str | None

    def value(self, names: Mapping[str, object]) -> Any:
        """What it stands for; None for what isn't there. Raises NotPlain."""
        found: Any = names
        for segment in self.path:
            if isinstance(found, Mapping) and segment in found:
                found = found[segment]
            elif segment in COMPUTED:
                raise NotPlain
            else:
                found = None
                break
        try:
            return found if self.filter is None else _FILTERS[self.filter](found)
        except (TypeError, ValueError, RecursionError) as error:
            raise NotPlain from error


class PlainTemplate(Struct, frozen=True):
    """Texts with a tag between each two."""

    texts: tuple[str, ...]
    tags: tuple[Tag, ...]

    def render(self, names: Mapping[str, object]) -> str:
        """The text with its tags replaced. Raises NotPlain."""
        parts = [self.texts[0]]
        try:
            for tag, text in zip(self.tags, self.texts[1:], strict=True):
                parts += (as_text(tag.value(names)), text)
        except (TypeError, ValueError, RecursionError) as error:
            raise NotPlain from error
        rendered = "".join(parts)
        if len(rendered) > OUTPUT_CHARACTERS_MAX:
            raise NotPlain
        return rendered

    @property
    def alone(self) -> Tag | None:
        """The tag, if there is nothing else."""
        return self.tags[0] if self.texts == ("", "") else None


def read_plain(text: str) -> PlainTemplate | None:
    """The template, when all its tags are plain ones."""
    texts, tags, end = [], [], 0
    for match in _TAG.finditer(text):
        path = tuple(match[1].split("."))
        if path[0] in COMPUTED or not _LIQUIDS_OWN.isdisjoint(path):
            return None
        texts.append(text[end : match.start()])
        tags.append(Tag(path, match[2]))
        end = match.end()
    texts.append(text[end:])
    # A brace right before a tag is Liquid's to read: `{{{ a }}` is no text with a tag.
    if any("{{" in part or "{%" in part or part.endswith("{") for part in texts):
        return None
    return PlainTemplate(tuple(texts), tuple(tags))
