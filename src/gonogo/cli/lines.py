"""What a worker says while it runs: one line for each thing that happened, with its time, secrets masked.

Of libraries only warnings are shown, each as one line; what is said over and over is said once in a while.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from gonogo.cli.output import Output
from gonogo.journal.redact import Redactor, secrets_in
from gonogo.report.layout import plain

OWN = "gonogo"
TAKEN = "gonogo.worker.taken"
"""As in `app/worker.py` and `hosts/errands.py`: a line for each run and call."""
TEXT_MAX = 500
"""Characters of a library's line."""
ONCE_S = 10.0
"""The same line isn't repeated so soon: several connections lose the same store."""


def speak(output: Output, environment: Mapping[str, str], secrets: Mapping[str, str]) -> logging.Handler:
    """Have all loggers of this process write to `output`, ours at INFO, those of libraries, and of each run and call
    that is taken, at WARNING (with -v at INFO, with -q at ERROR all); the handler that does it.
    """
    handler = Lines(output.complain, Redactor({**secrets_in(environment), **secrets}))
    own, others = _levels(output)
    # A library that is imported later may give its loggers a level of their own.
    handler.setLevel(min(own, others))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(others)
    logging.getLogger(OWN).setLevel(own)
    logging.getLogger(TAKEN).setLevel(others)
    logging.getLogger("dbos").addHandler(
        logging.NullHandler()
    )  # it gives itself a handler, unless it has one
    return handler


def _levels(output: Output) -> tuple[int, int]:
    if output.quiet:
        return logging.ERROR, logging.ERROR
    return logging.INFO, logging.INFO if output.verbose else logging.WARNING


class Lines(logging.Handler):
    """Writes each record as a line."""

    def __init__(
        self,
        write: Callable[[str], object],
        redactor: Redactor,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._write = write
        self._redactor = redactor
        self._now = now
        self._said: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Raises nothing: of a line that can't be made, that is said."""
        try:
            text = self._text(record)
        except Exception as problem:  # noqa: BLE001 - whoever logs isn't to fail for it
            text = f"{record.name}: what it says can't be shown ({type(problem).__name__})"
        if not self._is_repeated(text):
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
            shown = "\n  ".join(plain(line) for line in text.splitlines())
            self._write(f"{at} {record.levelname} {shown}")

    def _is_repeated(self, text: str) -> bool:
        now_s = self._now()
        self._said = {known: at_s for known, at_s in self._said.items() if now_s - at_s < ONCE_S}
        return self._said.setdefault(text, now_s) != now_s

    def _text(self, record: logging.LogRecord) -> str:
        """Ours as it is, with where it broke; of others the first line, with whose it is. Masked before it is cut."""
        text = self._redactor.text(record.getMessage())
        if record.name.partition(".")[0] == OWN:
            trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
            return "\n".join(filter(None, (text, self._redactor.text(trace))))
        return f"{record.name}: {text.strip().partition(chr(10))[0][:TEXT_MAX]}"
