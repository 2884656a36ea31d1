"""Every error a person can meet, with its exit code and the next step.

    GonogoError                 base; never raised itself
    ├── UsageError       2      the command line asks for something that is not there
    ├── ConfigError      2      the workflow file is wrong; carries every problem found
    ├── JournalError     2      a journal can't be read, written or trusted
    ├── RunLocked        2      another process writes this run
    ├── EngineError      2      the engine that carries runs can't be reached or used
    │   └── SetAside     3      its workers gave a run up until somebody asks for it
    ├── SandboxError    70      the expression sandbox can't be started at all
    ├── Interrupted    130      a person stopped the run; it can be resumed
    └── Bug             70      gonogo broke one of its own rules

Faults of steps are not here: they are data (`core/faults.py`), never exceptions.
"""

from __future__ import annotations

from msgspec import Struct


class GonogoError(Exception):
    """Base of all errors shown to a person: a short message and, if it isn't plain, what to do next."""

    exit_code = 70

    def __init__(self, message: str, *, advice: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class UsageError(GonogoError):
    """The command line names a file, run, step or option that doesn't exist or doesn't fit."""

    exit_code = 2


class Place(Struct, frozen=True):
    """Where in a text something is: `file` as the user gave it, `line` and `column` from 1."""

    file: str
    line: int
    column: int


class Problem(Struct, frozen=True):
    """One thing wrong (or doubtful) in a workflow file.

    `code` is stable and dotted (`key.unknown`, `expression.syntax`); `path` is dotted (`steps.lint.if`);
    `source` is the line of text at `place`, for the caret; `suggestion` is what to write instead.
    `severity` is `error`, `warning` or `info`; only errors refuse the file.
    """

    code: str
    message: str
    path: str = ""
    place: Place | None = None
    source: str | None = None
    suggestion: str | None = None
    severity: str = "error"


class ConfigError(GonogoError):
    """The workflow file can't be used; `problems` holds every one found, in file order."""

    exit_code = 2

    def __init__(self, problems: tuple[Problem, ...], *, advice: str | None = None) -> None:
        count = len(problems)
        super().__init__(f"{count} problem{'s' if count != 1 else ''} in the configuration", advice=advice)
        self.problems = problems

    def __str__(self) -> str:
        """The count and every problem: who embeds gonogo sees a traceback and nothing else."""
        return "\n".join((self.message, *(f"  {_told(problem)}" for problem in self.problems)))


def _told(problem: Problem) -> str:
    place = problem.place
    where = f"{place.file}:{place.line}:{place.column}: " if place else ""
    return f"{where}{problem.message}" + (f" ({problem.suggestion})" if problem.suggestion else "")


class JournalError(GonogoError):
    """A journal is missing, damaged before its last line, from a newer version, or can't be written."""

    exit_code = 2


class RunLocked(GonogoError):
    """Another process is writing this run; the message names it."""

    exit_code = 2


class EngineError(GonogoError):
    """The engine that carries runs over several machines can't be reached, or lacks what it needs."""

    exit_code = 2


class SetAside(EngineError):
    """The workers of an engine gave a run up, which has begun, until a person has it tried again."""

    exit_code = 3


class SandboxError(GonogoError):
    """The expression sandbox can't be started: the wrong package or no child processes."""

    exit_code = 70


class Interrupted(GonogoError):
    """A person stopped the run; what is on disk is enough to resume it."""

    exit_code = 130


class Bug(GonogoError):
    """A rule of gonogo itself was broken; the message says which and names the journal to attach."""

    exit_code = 70
