"""What this process is given at its start: standard streams that may be closed, signals that ask it to end, and
folders to look for modules in. Loaded by every command, so it imports nothing slow.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from gonogo.journal.records import Record

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that ask for an end. SIGHUP comes when the terminal closes, SIGQUIT by Ctrl-\\."""

GARBAGE = (50_000, 20, 20)
"""As in hosts/local.py, but for a process that mostly loads modules and reads files, and then ends: to look for garbage
among what it has just made took a fifth of its time.
"""


def prepare() -> None:
    """Once, before anything else is loaded."""
    gc.set_threshold(*GARBAGE)
    _fill_closed_streams()
    _look_for_no_modules_here()
    for number in ENDING:
        # What was ignored before, as `nohup` and a shell's background jobs have it, stays ignored.
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _interrupt)


class Heard:
    """Around a run: once it has been interrupted, no further signal disturbs its report. `see` is told of records.

    While the run is under way its host hears the signals; before and after, this does.
    """

    def __init__(self) -> None:
        self._interrupted = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Heard:
        """Hear all signals that aren't ignored. Only the main thread gets any."""
        if threading.current_thread() is threading.main_thread():
            kept = {number: signal.getsignal(number) for number in ENDING}
            self._before = {number: handler for number, handler in kept.items() if handler != signal.SIG_IGN}
        for number in self._before:
            signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        """The report of an interrupted run is still to come, so its signals stay unheard."""
        if not self._interrupted:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def see(self, record: Record) -> None:
        """A record of the run."""
        self._interrupted = self._interrupted or getattr(record.event, "interrupted", False)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self._interrupted:
            raise KeyboardInterrupt


def be_deaf() -> None:
    """From here on the end can't be disturbed: everything is said, only the exit code is left to give."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """As Ctrl-C. A run under way has its own way to stop (hosts/local.py)."""
    raise KeyboardInterrupt


def _fill_closed_streams() -> None:
    """A closed stream's number would be given to the next file: a journal, say, that others then print into."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one


def _look_for_no_modules_here() -> None:
    """The working directory may be a stranger's pull request; a `msgspec.py` in it is not ours to run.

    `python -m gonogo` and an empty part of PYTHONPATH put it before all else. What stands behind the standard
    library was put there by an installation, and stays.
    """
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        return  # there is no such folder any more
    library = os.path.dirname(os.__file__)
    before = sys.path.index(library) if library in sys.path else 0
    kept = [path for path in sys.path[:before] if os.path.realpath(path) != here]
    sys.path[:before] = kept
