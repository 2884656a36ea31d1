"""What `run`, `resume`, `answer` and `cancel` share: hosting a run with progress, then printing its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gonogo.cli.output import write_file
from gonogo.cli.session import Place, Session, destinations
from gonogo.journal.postgres.address import Address

if TYPE_CHECKING:
    from gonogo.app import Options, RunResult
    from gonogo.journal.records import Record
    from gonogo.journal.view import RunView
    from gonogo.report.layout import Style
    from gonogo.report.report import Report

SOURCE_BYTES_MAX = 2 * 1024 * 1024
"""A larger file isn't searched for comments that turn issues off."""


def find(session: Session, runs_dir: Place, run: str) -> str:
    """The id of the run that was named on the command line. Raises UsageError."""
    from gonogo.app import Options, find_run

    run_id = find_run(run, Options(runs=runs_dir))
    session.journal = journal_file(runs_dir, run_id)
    return run_id


def journal_file(runs_dir: Place, run_id: str) -> Path | str:
    """Where the journal of a run is."""
    if isinstance(runs_dir, Address):
        return f"of run {run_id} in {runs_dir}"
    from gonogo.journal.jsonl import JOURNAL

    return runs_dir / run_id / JOURNAL


def hosted(
    session: Session,
    runs_dir: Place,
    work: Callable[[Options], RunResult | None],
    **options: Any,
) -> RunResult | None:
    """Do `work` with progress on stderr, a person to ask, and signals that cancel the run.

    `options` are fields of `gonogo.app.Options`.
    """
    from gonogo.app import Options
    from gonogo.cli.asking import Person
    from gonogo.cli.process import Heard
    from gonogo.cli.progress import progress_for

    progress = progress_for(session.output)
    with Heard() as heard, progress:
        return work(
            Options(
                runs=runs_dir,
                ask=Person(session.output, progress),
                sinks=(heard.see, progress.see, _Journal(session, runs_dir)),
                log=progress.log,
                signals=True,
                **options,
            )
        )


class _Journal:
    """Remembers which journal to name, should gonogo itself break."""

    def __init__(self, session: Session, runs_dir: Place) -> None:
        self._session = session
        self._runs_dir = runs_dir

    def __call__(self, record: Record) -> None:
        if self._session.journal is None and (run_id := getattr(record.event, "run_id", None)):
            self._session.journal = journal_file(self._runs_dir, run_id)


def print_report(
    session: Session,
    runs_dir: Place,
    run_id: str,
    notes: Sequence[str] = (),
    result: RunResult | None = None,
    *,
    every_item: bool = False,
) -> int:
    """The report in every format that was asked for; the run's exit code. `result`: of a run that just ended here."""
    from gonogo.app import Options, view_run
    from gonogo.app.collecting import seldom_collected

    with seldom_collected():
        view, read = view_run(run_id, Options(runs=runs_dir), result.state if result is not None else None)
        _print(session, view, (*notes, *read), every_item=every_item)
    return int(view.exit_code)


def over_already(
    session: Session, runs_dir: Place, run_id: str, *, unless_cancelled: bool = False
) -> RunView | None:
    """The run, after saying so and printing its report, if it was over before this command.

    None for a run that is under way, waits, or was cut off; `unless_cancelled`: for one that was cancelled, too. Raises
    JournalError.
    """
    from gonogo.app import Options, view_run
    from gonogo.app.looking import has_ended

    options = Options(runs=runs_dir)
    if not has_ended(run_id, options):
        return None
    view, notes = view_run(run_id, options)
    if view.cancelled and unless_cancelled:
        return None
    how = "was cancelled" if view.cancelled else "is over"
    session.output.say(f"run {run_id} {how} already ({view.verdict}); nothing was changed")
    _print(session, view, notes)
    return view


def _print(session: Session, view: RunView, notes: tuple[str, ...], *, every_item: bool = False) -> None:
    from gonogo.report.formats import rendered
    from gonogo.report.report import report_of

    report = report_of(view, read_lines=SourceLines(Path.cwd()), notes=notes, every_item=every_item)
    wanted = destinations(session.arguments) or [("table", None)]
    for name, file in wanted:
        version = _version() if name == "sarif" else ""
        if file is None:
            style = session.output.style()
            session.output.results(rendered(report, name, style, version))
        else:
            write_file(Path(file), rendered(report, name, _plain(), version))
            session.output.say(f"wrote {file} ({name})")
    if all(file is not None or name in ("json", "sarif", "junit") for name, file in wanted):
        _say_verdict(session, report)


def _say_verdict(session: Session, report: Report) -> None:
    """A line for the person, where the results are for a program."""
    from gonogo.report import words
    from gonogo.report.layout import plain

    cause = words.cause(report.view, report.whys)
    session.output.say(f"{words.verdict_word(report.view)} {plain(cause)}".rstrip())
    if move := words.next_move(report.view):
        session.output.say(f"answer with: {move}")


def _plain() -> Style:
    from gonogo.report.layout import Style

    return Style()


def _version() -> str:
    from gonogo import __version__

    return __version__


class SourceLines:
    """The lines of the project's files, for comments that turn issues off. Nothing outside of the folder is read."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def __call__(self, file: str) -> list[str] | None:
        """None for what isn't a readable file inside of the folder."""
        try:
            path = (self._root / file).resolve()
            if not path.is_relative_to(self._root) or not path.is_file():
                return None
            if path.stat().st_size > SOURCE_BYTES_MAX:
                return None
            return path.read_text("utf-8", "replace").splitlines()
        except (OSError, ValueError):
            return None
