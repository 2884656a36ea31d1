"""Where the `gonogo` command starts: the table of verbs, and the way in and out of the process.

Nothing slow is imported here, so that `gonogo --help` costs little more than Python itself. What a verb does is
in `verbs/`; what becomes of errors is in `entry.py`.
"""

from __future__ import annotations

import os
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

from gonogo.cli import process

if TYPE_CHECKING:
    import click

INTERRUPTED = 130
FAILED = 70
VERBS = MappingProxyType(
    {
        "init": "Write a working gonogo.yaml to start from.",
        "run": "Run the workflow and print the verdict.",
        "validate": "Find every mistake in a workflow file; run nothing.",
        "plan": "Show what would run for this event, and why; run nothing.",
        "runs": "List the runs, newest first.",
        "show": "Show one run: steps, reasons, issues, what it waits for.",
        "resume": "Go on with a run after a crash, a failure or a hold.",
        "answer": "Answer what a run waits for, and go on.",
        "cancel": "Ask a run to stop.",
        "schema": "Print the JSON schema of workflow files, for editors.",
        "providers": "List the step types and their keys.",
        "doctor": "Check that everything a run needs is there.",
    }
)
"""Every verb with what it does, in the order of `--help`."""

_HELP = """\
Usage: gonogo [OPTIONS] COMMAND [ARGS]...

  Runs workflows of YAML under fault management: GO, NO-GO or HOLD.

Options:
  --version  Show the version and end.
  --help     Show this message and end.

Commands:
{verbs}

Exit codes: 0 GO, 1 NO-GO, 2 wrong command line or workflow file, 3 HOLD,
70 a bug in gonogo, 130 interrupted. More on each verb: gonogo VERB --help
"""


def help_text() -> str:
    """What `gonogo --help` prints."""
    width = max(map(len, VERBS))
    return _HELP.format(verbs="\n".join(f"  {name:<{width}}  {does}" for name, does in VERBS.items()))


def group() -> click.Group:
    """The click group behind the command, for documentation and tests."""
    from gonogo.cli.group import Verbs

    return Verbs()


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
