"""Asks the person at hand: on a terminal, or from piped input. None when there is nobody, so that the run holds.

A question is read in a thread, because reading blocks; a run that ends meanwhile doesn't wait for it.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from gonogo.report.layout import plain

if TYPE_CHECKING:
    from gonogo.cli.output import Output
    from gonogo.cli.progress import Progress
    from gonogo.hosts.base import Question

ANSWER_BYTES_MAX = 1_000_000
PIPE_WAIT_S = 2.0
"""An answer in a pipe is there beforehand. A pipe that stays open and silent, as CI may give one, is nobody."""


class Person:
    """Answers questions from `stdin`: a terminal is asked as often as needed, a pipe answers one question a line
    (the whole of it when the question takes several lines).
    """

    def __init__(self, output: Output, progress: Progress, stdin: TextIO | None = None) -> None:
        self._output = output
        self._progress = progress
        self._stdin = stdin if stdin is not None else sys.stdin
        self._turn = asyncio.Lock()
        self._rest = b""
        self._ended = False

    async def __call__(self, question: Question) -> str | None:
        """The answer; None at the end of the input or without one. One question at a time."""
        if self._stdin is None or self._stdin.closed:
            return None
        async with self._turn:
            if not self._stdin.isatty():
                return await _in_thread(lambda: self._piped(question))
            if not _in_foreground(self._stdin):
                return None
            with self._progress.paused(), _settings_kept(self._stdin):
                return await _in_thread(lambda: self._typed(question))

    def _piped(self, question: Question) -> str | None:
        """The next line, or all there is for a question that takes several."""
        while not self._ended and (question.multiline or b"\n" not in self._rest):
            if not self._read_more():
                return None
        text, line_end, rest = (self._rest, b"", b"") if question.multiline else self._rest.partition(b"\n")
        self._rest = rest
        return text.decode("utf-8", "replace").rstrip("\r\n") if text or line_end else None

    def _read_more(self) -> bool:
        """False when the pipe is silent, or gives more than an answer can be."""
        assert self._stdin is not None
        handle = self._stdin.fileno()
        if len(self._rest) > ANSWER_BYTES_MAX or not select.select([handle], [], [], PIPE_WAIT_S)[0]:
            return False
        data = os.read(handle, 65536)
        self._ended = not data
        self._rest += data
        return True

    def _typed(self, question: Question) -> str | None:
        assert self._stdin is not None
        style = self._output.side_style()
        prompt = "\n  ".join(plain(line) for line in question.prompt.splitlines())
        self._output.complain(f"{style.paint(plain(question.step), 'bold')} asks: {prompt}")
        if question.secret:
            import getpass

            return getpass.getpass("> ", stream=self._output.stderr)
        if question.multiline:
            self._output.complain(style.paint("(several lines; end with Ctrl-D)", "dim"))
            return self._stdin.read(ANSWER_BYTES_MAX) or None
        self._output.complain(style.paint("(Enter sends it; Ctrl-D leaves it open)", "dim"))
        line = self._stdin.readline(ANSWER_BYTES_MAX)
        return line.rstrip("\r\n") if line else None


def _in_foreground(stdin: TextIO) -> bool:
    """False for a job in the background, which a shell would stop when it reads."""
    try:
        return os.tcgetpgrp(stdin.fileno()) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def _settings_kept(stdin: TextIO) -> Iterator[None]:
    """Put the terminal back as it was: a secret's question turns its echo off, and may never be answered."""
    import termios

    before = termios.tcgetattr(stdin.fileno())
    try:
        yield
    finally:
        termios.tcsetattr(stdin.fileno(), termios.TCSADRAIN, before)


async def _in_thread(read: Callable[[], str | None]) -> str | None:
    """A daemon thread, which the process needn't wait for when the run ends before an answer comes."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[str | None] = loop.create_future()

    def give(answer: str | None) -> None:
        if not answered.done():
            answered.set_result(answer)

    def work() -> None:
        try:
            answer = read()
        except (OSError, ValueError, EOFError, KeyboardInterrupt):
            answer = None  # the input went away: nobody is there
        try:
            loop.call_soon_threadsafe(give, answer)
        except RuntimeError:
            pass  # the run is over

    threading.Thread(target=work, name="gonogo-answer", daemon=True).start()
    return await answered
