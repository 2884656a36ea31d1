"""Where the `gonogo` command starts: the way in and out of the process.

Nothing slow is imported here, so that `gonogo --help` costs little more than Python itself. The verbs are in
`verbs/`; what becomes of errors is in `entry.py`.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from gonogo.cli import process
from gonogo.cli.verbs import help_text

INTERRUPTED = 130
FAILED = 70


def main() -> NoReturn:
    """The console script: runs the command line of this process and ends it."""
    code = INTERRUPTED
    try:
        process.prepare()
        code = _run(sys.argv[1:])
        process.be_deaf()
    except KeyboardInterrupt:
        process.be_deaf()
    # Everything is written and closed here; taking Python's world apart would only cost time.
    _flush()
    os._exit(code)


def _run(arguments: list[str]) -> int:
    try:
        if arguments in ([], ["--help"]):
            return _print_help()
        from gonogo.cli.entry import run

        return run(arguments)
    except Exception as error:  # noqa: BLE001 - even telling an error failed: no memory, no descriptor left
        _last_words(type(error).__name__)
        return FAILED


def _last_words(kind: str) -> None:
    """The least that can be said, with as little as possible."""
    try:
        os.write(
            2, f"gonogo: {kind}, and the details can't be told; a run that began can be resumed\n".encode()
        )
    except OSError:
        pass  # nobody listens


def _print_help() -> int:
    try:
        if sys.stdout is not None:
            sys.stdout.write(help_text())
            sys.stdout.flush()
    except BrokenPipeError:
        pass  # nobody reads on; that is no failure
    return 0


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            pass  # closed by its reader
