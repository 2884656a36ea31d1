"""`gonogo show RUN`: one run as it stands: running, waiting, over, or cut off by a crash."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gonogo.cli import options
from gonogo.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gonogo.journal.story import Line
    from gonogo.report.layout import Style

VALUE_CHARACTERS_MAX = 200


@click.command("show")
@options.run_argument
@options.runs_dir
@click.option("--records", is_flag=True, help="Every decision as a sentence, with the values it was made on.")
@options.reports
@options.quiet
@options.no_color
@click.pass_obj
def COMMAND(session: Session, /, run: str, runs_dir: Path, records: bool) -> int:  # noqa: N802
    """Show one run: steps, reasons, issues, what it waits for.

    RUN is an id, the beginning of one, or last. Ends with 0: the run's verdict is in the text.
    """
    from gonogo.app import Options, open_run
    from gonogo.cli.running import find, print_report

    run_id = find(session, runs_dir, run)
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
