"""What every verb is given: the streams, the environment, the folder, and what was on the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from gonogo.cli.output import Output
from gonogo.journal.postgres.address import Address

DEFAULT_RUNS_DIR = Path(".gonogo") / "runs"
Place = Path | Address
"""Where runs are: a folder or a Postgres."""


class Session(Struct):
    """One command. `journal` is set once a run is known, so that a bug report can name it."""

    output: Output
    environment: Mapping[str, str]
    arguments: Sequence[str] = ()
    journal: Path | str | None = None
    secrets: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of_process(arguments: Sequence[str]) -> Session:
        """The session of this process."""
        return Session(Output(os.environ), dict(os.environ), tuple(arguments))

    @property
    def wants_json(self) -> bool:
        """True when stdout must hold exactly one JSON document, whatever happens."""
        return any(name == "json" and file is None for name, file in destinations(self.arguments))


def who(environment: Mapping[str, str] | None = None) -> str:
    """Who gives this command, for the journal: in GitHub Actions the actor, else the user that the process runs as.

    Nothing proves it: whoever can start the command can say what they like. Empty when the system knows no name.
    """
    import getpass
    import pwd

    if environment is not None and environment.get("GITHUB_ACTIONS") == "true":
        actor = environment.get("GITHUB_ACTOR", "").strip()
        if actor:
            return actor
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except (OSError, KeyError, ImportError):
        pass  # a user without an entry, as containers have
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def asker(environment: Mapping[str, str]) -> str:
    """Who asks for a change of a run: on GitHub the person whose doing the workflow is, else user@host."""
    if environment.get("GITHUB_ACTIONS") == "true" and environment.get("GITHUB_ACTOR"):
        return environment["GITHUB_ACTOR"]

    return f"{who()}@{os.uname().nodename}"


def destinations(arguments: Sequence[str]) -> list[tuple[str, str | None]]:
    """Each `--format` with the `--out` that belongs to it: the next one before another `--format`.

    An `--out` before any format is for the first. Click loses this order, so the arguments are read themselves;
    whether the values are allowed is click's business.
    """
    formats: list[list[str | None]] = []
    early: str | None = None
    for name, value in _options(arguments):
        if name == "format":
            formats.append([value, early])
            early = None
        elif formats and formats[-1][1] is None:
            formats[-1][1] = value
        else:
            early = value
    if not formats and early is not None:
        formats.append(["table", early])
    return [(str(name), None if file == "-" else file) for name, file in formats]


def _options(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """(`format` or `out`, value) in the order they were given."""
    found: list[tuple[str, str]] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            break
        name, equals, value = argument.partition("=")
        if argument.startswith("-o") and not argument.startswith("--"):
            value = argument[2:] or next(rest, "")
            found.append(("out", value))
        elif name in ("--format", "--out"):
            found.append((name[2:], value if equals else next(rest, "")))
    return found
