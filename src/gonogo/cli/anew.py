"""A worker that lost its session to the store begins anew, in the same process under the same id of the system.

Others may have its work by then, so nothing that it did may go on: the program is replaced, which ends all its threads
and connections at once, and the commands that it had started (`hosts/warden.py`). A supervisor sees one long-lived
process; when the store stays away, the process ends with EX_TEMPFAIL, as a worker does that nobody starts again.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Mapping
from typing import NoReturn

from gonogo.errors import EngineError, JournalError

EXIT_FENCED = 75
TRIES = "GONOGO_WORKER_TRIES"
"""Environment variable: how often in a row the worker has begun anew."""
TRIES_MAX = 60
PAUSE_S = 5.0
"""Before a further try, when the store couldn't be had; so it may be away for five minutes at least."""
STEADY_S = 60.0
"""Who took work for so long begins to count anew."""


class Anew:
    """One program's part. `environment`: as it was when the program began. `tell` hears what becomes of the worker."""

    def __init__(
        self,
        environment: Mapping[str, str],
        tell: Callable[[str], object],
        *,
        replace: Callable[[str, list[str], dict[str, str]], object] = os.execve,
        end: Callable[[int], object] = os._exit,
        now: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = lambda seconds: select.select([], [], [], seconds),
    ) -> None:
        self._environment = dict(environment)
        self._tell = tell
        self._tries = _number(environment.get(TRIES, ""))
        self._replace = replace
        self._end = end
        self._now = now
        self._pause = pause
        self._ready_s: float | None = None

    def carry(self, work: Callable[[], None]) -> None:
        """Do the work. When it can't begin in the place of one that could, it is tried again for a time.

        Raises EngineError, JournalError.
        """
        try:
            work()
        except (EngineError, JournalError) as problem:
            if not 0 < self._tries < TRIES_MAX:
                raise
            self._tell(f"the worker can't begin again yet: {problem.message}")
            self._pause(PAUSE_S)
            self._replaced()

    def ready(self) -> None:
        """Work is taken."""
        self._ready_s = self._now()

    def begin(self) -> NoReturn:
        """From any thread. Ends the process when it was tried often enough."""
        if self._ready_s is not None and self._now() - self._ready_s >= STEADY_S:
            self._tries = 0
        if self._tries >= TRIES_MAX:
            self._tell(f"the worker began anew {TRIES_MAX} times and never lasted: it ends ({EXIT_FENCED})")
            self._end(EXIT_FENCED)
        self._tell("the worker begins anew in the same process, under a new name")
        self._replaced()

    def _replaced(self) -> NoReturn:
        told = {**self._environment, TRIES: str(self._tries + 1)}
        self._replace(sys.executable, sys.orig_argv, told)
        raise AssertionError("the program goes on after it was replaced")


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < len("10000") else 0
