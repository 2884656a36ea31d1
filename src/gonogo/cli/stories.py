"""What `gonogo show` prints besides reports: records as sentences, the story of a fault, metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gonogo.cli.session import Place, Session, destinations
from gonogo.errors import UsageError

if TYPE_CHECKING:
    from gonogo.journal.fault_log import FaultStory
    from gonogo.journal.story import Line
    from gonogo.journal.view import RunView
    from gonogo.report.layout import Style

VALUE_CHARACTERS_MAX = 200


def print_records(session: Session, runs_dir: Place, run_id: str) -> None:
    """Every decision as a sentence, with the values it was made on."""
    from gonogo.app import Options, open_run
    from gonogo.journal.story import story

    lines = story(open_run(run_id, Options(runs=runs_dir)))
    if session.wants_json:
        _print_json(session, [_plain(line) for line in lines])
    else:
        _print(session, (text for line in lines for text in _told(line, session.output.style())))


def print_fault(session: Session, runs_dir: Place, run_id: str, name: str) -> None:
    """The story of each fault that the name means: its number, its step, step@scope, or all. Raises UsageError."""
    from gonogo.app import Options, open_run
    from gonogo.journal.fault_log import lines_of
    from gonogo.journal.view import run_view

    records = open_run(run_id, Options(runs=runs_dir))
    stories = _meant(run_view(records).fault_stories, name)
    if not stories and not session.wants_json:
        _print(session, ["nothing failed in this run"])
    if session.wants_json:
        told = [
            {**story.as_json(), "lines": [_plain(line) for line in lines_of(story, records)]}
            for story in stories
        ]
        _print_json(session, told)
        return
    style = session.output.style()
    for number, story in enumerate(stories):
        _print(session, ["", *_headed(story, style)] if number else _headed(story, style))
        _print(session, (text for line in lines_of(story, records) for text in _told(line, style)))


def _meant(stories: Sequence[FaultStory], name: str) -> list[FaultStory]:
    found = [story for story in stories if name in ("all", str(story.number), story.step, story.place)]
    if not found and (stories or name != "all"):
        known = ", ".join(f"{story.number} ({story.place})" for story in stories[:10])
        raise UsageError(
            f"no fault {name!r} in this run",
            advice=f"there are: {known}" if known else "nothing failed in it",
        )
    return found


def _headed(story: FaultStory, style: Style) -> Iterator[str]:
    from gonogo.report.faults import sentence
    from gonogo.report.layout import plain

    yield style.paint(f"fault {story.number}: {story.kind} ({story.fault_class})", "bold")
    yield f"  {plain(sentence(story))}"


def print_metrics(session: Session, runs_dir: Place, run_id: str) -> None:
    """Counters and sums, to stdout or into files."""
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


def _print(session: Session, lines: Iterable[str]) -> None:
    session.output.result("".join(f"{line}\n" for line in lines))


def _print_json(session: Session, told: Any) -> None:
    from gonogo.report.formats import json_text

    session.output.result(json_text(told, unicode=session.output.style().unicode))


def _plain(line: Line) -> Any:
    import msgspec

    return msgspec.to_builtins(line)


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
