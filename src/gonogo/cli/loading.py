"""Finds and loads the workflow file a verb is about, and tells its warnings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gonogo.cli.session import Session
from gonogo.errors import Problem, UsageError

if TYPE_CHECKING:
    from gonogo.app import Ahead
    from gonogo.config import Loaded
    from gonogo.config.schema.base import Safety

WARNINGS_SHOWN_MAX = 5


def config_path(session: Session, config: Path | None) -> Path:
    """The file that was named, or the one that is found. Raises UsageError."""
    from gonogo.config import find_config

    if config is None:
        found = find_config(_here())
        if found.note:
            session.output.say(f"note: {found.note}")
        return _short(found.path)
    if config.is_dir():
        return config_path_in(config)
    if not config.exists():
        advice = "without a name, gonogo.yaml is looked for here and above"
        raise UsageError(f"there is no file {str(config)!r}", advice=advice)
    return config


def config_path_in(folder: Path) -> Path:
    """The workflow file of a folder. Raises UsageError."""
    from gonogo.config import find_config

    return _short(find_config(folder).path)


def load(session: Session, config: Path | None, safety: Safety | None, ahead: Ahead | None = None) -> Loaded:
    """The plan. Raises ConfigError and UsageError. `safety` from the command line wins over the file's.

    `ahead` is a sandbox that was started before.
    """
    from gonogo.app import load as load_file

    return load_file(config_path(session, config), safety=safety, ahead=ahead)


def tell_warnings(session: Session, problems: Sequence[Problem]) -> None:
    """The first few warnings, for verbs that go on nevertheless."""
    doubts = _doubts(problems)
    for problem in doubts[:WARNINGS_SHOWN_MAX]:
        place = f"{problem.place.file}:{problem.place.line}: " if problem.place else ""
        session.output.say(f"{place}warning: {problem.message}")
    if len(doubts) > WARNINGS_SHOWN_MAX:
        session.output.say(f"{len(doubts) - WARNINGS_SHOWN_MAX} more warnings: gonogo validate")


def checked_steps(names: Sequence[str], loaded: Loaded) -> tuple[str, ...]:
    """The steps that were asked for. Raises UsageError for one that isn't there."""
    from difflib import get_close_matches

    for name in names:
        if name not in loaded.plan.steps:
            near = get_close_matches(name, loaded.plan.steps, n=1)
            advice = f"did you mean {near[0]}?" if near else "`gonogo plan` lists the steps"
            raise UsageError(f"there is no step {name!r}", advice=advice)
    return tuple(dict.fromkeys(names))


def _doubts(problems: Sequence[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity == "warning"]


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("the working directory is gone", advice="change to one that exists") from None


def _short(path: Path) -> Path:
    """Relative where that is shorter, for messages."""
    try:
        return path.relative_to(_here())
    except ValueError:
        return path
