"""Gathers problems while a file is read and compiled, so that a person sees all of them at once.

Codes are stable and dotted; messages are for people. How problems are printed is left to `problems.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from msgspec.structs import replace

from gonogo.config.nodes import Entry, Node, Path, Source, key_at, place_of, walk
from gonogo.core.secrecy import may_have_form, with_form_masked
from gonogo.errors import ConfigError, Place, Problem

_ORDER = {"error": 0, "warning": 1, "info": 2}
PROBLEMS_MAX = 200
"""More than anyone reads; a hostile file must not make a gigabyte of messages."""
_SHOWN_MAX = 80


def dotted(path: Path) -> str:
    """`steps.lint.assume[1]` for a path."""
    out = ""
    for step in path:
        out += f"[{step}]" if isinstance(step, int) else (f".{step}" if out else str(step))
    return out[:500]


def shown(value: Any) -> str:
    """A user's value, short enough for one line of a message."""
    text = str(value)
    text = text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 1] + "…"
    return repr(text)


def nearest(word: str, words: Any) -> str | None:
    """The one of `words` that `word` was most likely meant to be."""
    if len(word) > _SHOWN_MAX:
        return None
    folded = {str(known).lower().replace("-", "_"): str(known) for known in words}
    found = get_close_matches(word.lower().replace("-", "_"), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


HIDE_LINE = frozenset({"secret.literal", "key.secret"})
"""Problems about a text that nobody should see."""


class Collector:
    """Problems found so far for one file and the files it takes in. `strict` turns warnings into errors, `relaxed`
    leaves out those about what a careful workflow says.
    """

    def __init__(self, root: Node, *, strict: bool = False, relaxed: bool = False) -> None:
        self.root = root
        self.strict = strict
        self.relaxed = relaxed
        self.found: list[Problem] = []
        self._left_out = 0
        self._first_file = root.source.file

    def add(self, severity: str, code: str, message: str, path: Path, suggestion: str | None = None) -> None:
        """A problem at the value under `path`, or at the nearest place above it."""
        self.add_at(severity, code, message, walk(self.root, path), path, suggestion)

    def add_key(
        self, severity: str, code: str, message: str, path: Path, suggestion: str | None = None
    ) -> None:
        """A problem with the key that `path` ends in."""
        at = key_at(self.root, path) or walk(self.root, path)
        self.add_at(severity, code, message, at, path, suggestion)

    def add_at(
        self,
        severity: str,
        code: str,
        message: str,
        at: Node | Entry,
        path: Path,
        suggestion: str | None = None,
    ) -> None:
        """A problem at a node or key."""
        self.add_place(severity, code, message, place_of(at), at.source, path, suggestion)

    def add_place(
        self,
        severity: str,
        code: str,
        message: str,
        place: Place,
        source: Source,
        path: Path,
        suggestion: str | None = None,
    ) -> None:
        """A problem at a place within a text."""
        if self.only_counted():
            return
        line = None if code in HIDE_LINE else _shown_line(source.line(place.line))
        self.found.append(Problem(code, message, dotted(path), place, line, suggestion, severity))

    def error(self, code: str, message: str, path: Path, suggestion: str | None = None) -> None:
        """The file can't be used."""
        self.add("error", code, message, path, suggestion)

    def warn(self, code: str, message: str, path: Path, suggestion: str | None = None) -> None:
        """The file can be used, but probably doesn't say what is meant; an error under strict."""
        self.add("error" if self.strict else "warning", code, message, path, suggestion)

    def care(self, code: str, message: str, path: Path, suggestion: str | None = None) -> None:
        """A warning about what a careful workflow says; `safety: off` doesn't want to hear it (G4)."""
        if not self.relaxed:
            self.warn(code, message, path, suggestion)

    def note(self, code: str, message: str, path: Path, suggestion: str | None = None) -> None:
        """Something worth knowing."""
        self.add("info", code, message, path, suggestion)

    def take(self, problems: Iterable[Problem]) -> None:
        """Problems that were found elsewhere."""
        for problem in problems:
            if not self.only_counted():
                self.found.append(problem)

    def only_counted(self) -> bool:
        """True, and one more is counted, when no more problems are kept: don't think about place or advice."""
        if len(self.found) < PROBLEMS_MAX:
            return False
        self._left_out += 1
        return True

    @property
    def failed(self) -> bool:
        """True once there is an error."""
        return any(problem.severity == "error" for problem in self.found)

    def sorted(self) -> tuple[Problem, ...]:
        """Everything found, without repeats, by file (the one that was asked for first) and line."""
        unique = list(dict.fromkeys(self.found))
        if self._left_out:
            last = unique[-1]
            unique[-1] = replace(last, message=f"{last.message} (and {self._left_out} more problems)")
        files = [self._first_file, *(problem.place.file for problem in unique if problem.place)]
        rank = {file: index for index, file in enumerate(dict.fromkeys(files))}

        def order(problem: Problem) -> tuple[int, int, int, int]:
            place = problem.place
            if place is None:
                return (0, 0, 0, _ORDER[problem.severity])
            return (rank[place.file], place.line, place.column, _ORDER[problem.severity])

        return tuple(sorted(unique, key=order))

    def refuse_if_failed(self) -> None:
        """Raise ConfigError with everything found if any of it is an error."""
        if self.failed:
            raise ConfigError(self.sorted())


def _shown_line(line: str | None) -> str | None:
    """A line of the file for the reader of a problem, who may be the reader of a log."""
    return with_form_masked(line, lambda found: "***") if line and may_have_form(line) else line
