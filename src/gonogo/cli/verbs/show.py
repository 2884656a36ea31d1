"""`gonogo show RUN`: one run as it stands: running, waiting, over, or cut off by a crash."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gonogo.cli import options
from gonogo.cli.session import Session, destinations
from gonogo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gonogo.journal.story import Line
    from gonogo.journal.view import RunView
    from gonogo.report.layout import Style

VALUE_CHARACTERS_MAX = 200


@click.command("show")
@options.run_argument
@options.runs_dir
@click.option("--records", is_flag=True, help="Every decision as a sentence, with the values it was made on.")
@click.option("--metrics", is_flag=True, help="Counters and sums for Prometheus; with --format json as data.")
@options.reports
@options.quiet
@options.no_color
@click.pass_obj
def COMMAND(session: Session, /, run: str, runs_dir: Path, records: bool, metrics: bool) -> int:  # noqa: N802
    """Show one run: steps, reasons, issues, what it waits for.

    RUN is an id, the beginning of one, or last. Ends with 0: the run's verdict is in the text.
    """
    from gonogo.app import Options, open_run
    from gonogo.cli.running import find, print_report

    if records and metrics:
        raise UsageError("--records and --metrics exclude each other", advice="ask for one after the other")
    run_id = find(session, runs_dir, run)
    if metrics:
        _print_metrics(session, runs_dir, run_id)
        return 0
    if not records:
        print_report(session, runs_dir, run_id)
        return 0
    from gonogo.journal.story import story

    lines = story(open_run(run_id, Options(runs=runs_dir)))
    if session.wants_json:
        import msgspec

        from gonogo.report.formats import json_text

        told = [msgspec.to_builtins(line) for line in lines]
        session.output.result(json_text(told, unicode=session.output.style().unicode))
    else:
        style = session.output.style()
        session.output.result("".join(f"{text}\n" for line in lines for text in _told(line, style)))
    return 0


def _print_metrics(session: Session, runs_dir: Path, run_id: str) -> None:
    from gonogo.app import Options, view_run
    from gonogo.cli.output import write_file

    view, _ = view_run(run_id, Options(runs=runs_dir))
    for name, file in destinations(session.arguments) or [("table", None)]:
        text = _metrics_text(view, name, unicode=file is not None or session.output.style().unicode)
        if file is None:
            session.output.result(text)
        else:
            write_file(Path(file), [text])
            session.output.say(f"wrote {file} (metrics)")


def _metrics_text(view: RunView, name: str, *, unicode: bool) -> str:
    """In Prometheus's text format, or as the JSON that reports have. Raises UsageError for another format."""
    from gonogo.journal.metrics import as_json
    from gonogo.report.exposition import exposition
    from gonogo.report.formats import json_text

    if name == "table":
        return exposition(view.metrics)
    if name == "json":
        return json_text(as_json(view.metrics), unicode=unicode)
    raise UsageError(
        f"there are no metrics as {name}", advice="leave --format out for Prometheus, or use json"
    )


def _told(line: Line, style: Style) -> Iterator[str]:
    from gonogo.report.layout import brief, cells, plain
    from gonogo.report.text import beside

    place = f"{line.step}@{line.scope}" if line.scope else line.step or "run"
    start = f"{style.paint(f'{line.at_s:9.3f}', 'dim')}  {style.paint(plain(place), 'bold')}"
    width = 11 + cells(plain(place))
    yield from beside(start, width, brief(line.text, 1000), "dim" if line.kind == "judged" else "bold", style)
    if line.expression is not None:
        yield from beside(" " * 11, 11, brief(line.expression, VALUE_CHARACTERS_MAX), "cyan", style)
    for path, value in line.evidence.items():
        yield from beside(" " * 13, 13, f"{plain(path)} = {_value(value)}", "dim", style)


def _value(value: object) -> str:
    import json

    from gonogo.report.layout import brief

    return brief(json.dumps(value, ensure_ascii=False, default=str), VALUE_CHARACTERS_MAX)
