"""The two streams: results to stdout, everything else to stderr. Printing never fails and never ends the run:
a closed pipe is no error, and what the terminal can't show is shown as an escape.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from gonogo.errors import UsageError
from gonogo.report.layout import Style

PORTION_CHARACTERS = 65536


class Output:
    """Prints for one command. `quiet` silences all but results and errors; `no_color` turns colours off."""

    def __init__(
        self, environment: Mapping[str, str], stdout: TextIO | None = None, stderr: TextIO | None = None
    ) -> None:
        self._environment = environment
        self._stdout = _tolerant(stdout if stdout is not None else sys.stdout)
        self._stderr = _tolerant(stderr if stderr is not None else sys.stderr)
        self.quiet = False
        self.verbose = False
        self.no_color = False

    def result(self, text: str) -> None:
        """Text for stdout, with its own line ends."""
        _write(self._stdout, text)

    def results(self, pieces: Iterable[str]) -> None:
        """A result in pieces."""
        for text in _portions(pieces):
            _write(self._stdout, text)

    def say(self, text: str) -> None:
        """A line for stderr, unless quiet."""
        if not self.quiet:
            _write(self._stderr, f"{text}\n")

    def complain(self, text: str) -> None:
        """A line for stderr that even `-q` doesn't silence."""
        _write(self._stderr, f"{text}\n")

    @property
    def stderr(self) -> TextIO | None:
        """The stream for progress; None when it is closed."""
        return self._stderr

    def style(self) -> Style:
        """How results may look."""
        return self._style(self._stdout)

    def side_style(self) -> Style:
        """How what goes to stderr may look."""
        return self._style(self._stderr)

    def watched(self) -> bool:
        """True when a person sees stderr and a display can move there."""
        return _is_terminal(self._stderr) and self._environment.get("TERM") != "dumb"

    def _style(self, stream: TextIO | None) -> Style:
        terminal = _is_terminal(stream)
        colour = (
            terminal
            and not self.no_color
            and not self._environment.get("NO_COLOR")
            and self._environment.get("TERM") != "dumb"
        )
        # In a pipe or file lines are as long as they are.
        width = max(1, _columns()) if terminal else None
        return Style(width, colour, _shows_unicode(stream))


def _columns() -> int:
    from shutil import (
        get_terminal_size,  # brings archives and compression with it, which a pipe needs none of
    )

    return get_terminal_size().columns


def write_file(path: Path, pieces: Iterable[str]) -> None:
    """A result, in pieces, into a file, whole or not at all. Raises UsageError."""
    try:
        if path.exists() and not path.is_file():  # /dev/stdout, a pipe: nothing to replace
            _write_bytes(path, pieces)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            _write_bytes(part, pieces)
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror or error}") from None


def _write_bytes(path: Path, pieces: Iterable[str]) -> None:
    with path.open("wb") as file:
        for text in pieces:
            file.write(text.encode("utf-8", "backslashreplace"))


def _portions(pieces: Iterable[str]) -> Iterator[str]:
    """The same text in fewer pieces, since each is written and flushed by itself."""
    gathered: list[str] = []
    length = 0
    for text in pieces:
        gathered.append(text)
        length += len(text)
        if length >= PORTION_CHARACTERS:
            yield "".join(gathered)
            gathered, length = [], 0
    yield "".join(gathered)


def _tolerant(stream: TextIO | None) -> TextIO | None:
    """A stream that shows what its encoding lacks as escapes instead of failing."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return stream


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _silence(stream)
    except OSError as error:
        _silence(stream)
        if stream is sys.stdout:
            _write(sys.stderr, f"gonogo: the output can't be written: {error.strerror}\n")
    except ValueError:
        pass  # closed within this process


def _silence(stream: TextIO) -> None:
    """Nobody reads on: what is still to come goes nowhere, so that the verdict's exit code stays what it is."""
    try:
        hole = os.open(os.devnull, os.O_WRONLY)
        os.dup2(hole, stream.fileno())
        os.close(hole)
    except (OSError, ValueError):
        pass  # no file behind it


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def _shows_unicode(stream: TextIO | None) -> bool:
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "").replace("_", "")
    return encoding in ("utf8", "utf16", "utf32")
