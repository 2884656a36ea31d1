"""The report for a terminal: a row for each step, issues by file, the verdict. Reads well at 40 columns too."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from gonogo.journal.view import Items, ItemView, StepView
from gonogo.report import answers, stages, words
from gonogo.report.calls import call_lines
from gonogo.report.findings import Finding, without_faults
from gonogo.report.layout import Style, brief, cells, count, duration, padded, plain, wrapped
from gonogo.report.report import Report

FINDINGS_MAX = 200
FAILED_ITEMS_MAX = 5
NAME_CELLS_MAX = 32
NOTE_CELLS_MIN = 24
_COLOURS = MappingProxyType(
    {
        "excluded": "dim",
        "failed": "red",
        "skipped": "dim",
        "passed": "dim",
        "cancelled": "red",
        "running": "cyan",
        "cut_off": "red",
    }
)
_BAD = ("failed", "tolerated", "in_doubt", "cancelled")
_SEVERITY = {"critical": "red", "error": "red", "warning": "yellow", "info": "blue"}


def text(report: Report, style: Style) -> str:
    """The whole report, ending in a line end."""
    parts = [
        _steps(report, style),
        _left_out(report, style),
        _faults(report, style),
        _findings(report, style),
        _waits(report, style),
        _verdict(report, style),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _steps(report: Report, style: Style) -> list[str]:
    steps = report.view.steps
    lines: list[str] = []
    name_width = min(NAME_CELLS_MAX, max((cells(plain(name)) for name in steps), default=0))
    for step in steps.values():
        note = words.note(step, report.whys.get(step.name), report.view)
        lines += row(step, stages.stage(step, report.view), note, style, name_width)
        for told in call_lines(step):
            lines += beside("   ", 3, plain(told), "dim", style)
        if step.items is not None:
            lines += _items(step.items, report, style)
    return lines


def row(step: StepView, stage: str, note: str, style: Style, name_width: int) -> list[str]:
    """`✓ name   1.2 s  note`, the note on lines of its own where the row is too narrow for it."""
    name = padded(plain(step.name), name_width)
    time = duration(step.duration_ms) if step.outcome != "skipped" and step.attempts else ""
    symbol = _symbol(stage)
    start = f"{style.symbol(symbol)} {style.paint(name, 'bold')}  {style.paint(time.rjust(8), 'dim')}"
    if not note:
        return [start.rstrip()]
    head_width = 2 + cells(name) + 2 + 8
    return beside(start, head_width, plain(style.typography(note)), _COLOURS.get(symbol, "yellow"), style)


def beside(start: str, start_width: int, note: str, colour: str, style: Style) -> list[str]:
    """A note to the right of `start`, or below it where there is little room."""
    if not note:
        return [start.rstrip()]
    room = None if style.width is None else style.width - start_width - 2
    if room is not None and room < min(NOTE_CELLS_MIN, cells(note)):
        below = wrapped(note, max(1, (style.width or 0) - 4))
        return [start.rstrip(), *(f"    {style.paint(line, colour)}" for line in below)]
    first, *rest = wrapped(note, room)
    indent = " " * (start_width + 2)
    return [
        f"{start}  {style.paint(first, colour)}",
        *(f"{indent}{style.paint(line, colour)}" for line in rest),
    ]


def _items(items: Items, report: Report, style: Style) -> Iterator[str]:
    """All of them, where that is asked for; otherwise the first few that went wrong, each with its message."""
    if report.every_item:
        yield from _every_item(items, report, style)
        return
    bad = [item for item in items.not_passed() if item.outcome in _BAD]
    if len(bad) < 2:
        return  # the row has told of a single one
    for item in bad[:FAILED_ITEMS_MAX]:
        yield from _item(item, report, style)
    if len(bad) > FAILED_ITEMS_MAX:
        more = f"    … {len(bad) - FAILED_ITEMS_MAX:,} more: gonogo show {report.view.run_id} --all-items"
        yield style.paint(style.typography(more), "dim")


def _every_item(items: Items, report: Report, style: Style) -> Iterator[str]:
    for item in items:
        yield from _item(item, report, style)
    if items.total > len(items):
        to_come = f"{count(items.total - len(items), 'more item')} not started"
        yield f"    {style.symbol('excluded')} {style.paint(to_come, 'dim')}"


def _item(item: ItemView, report: Report, style: Style) -> Iterator[str]:
    symbol = _symbol(stages.stage(item, report.view))
    outcome = stages.told(item, report.view) if item.outcome == "waiting" else item.outcome.replace("_", " ")
    told = brief(item.fault.message, words.MESSAGE_MAX) if item.fault else outcome
    told = ", ".join(filter(None, (told, answers.told(item.node))))
    name = words.item_name(item)
    start = f"    {style.symbol(symbol)} {name}"
    yield from beside(start, 6 + cells(name), told, _COLOURS.get(symbol, "yellow"), style)


def _symbol(stage: str) -> str:
    return "excluded" if stage == "not_started" else stage


def _left_out(report: Report, style: Style) -> list[str]:
    """Steps that are no part of the run, those with the same cause on one line."""
    by_cause: dict[str, list[str]] = {}
    for name in report.view.excluded:
        by_cause.setdefault(report.whys[name].text, []).append(plain(name))
    lines = []
    for cause, names in by_cause.items():
        told = style.typography(f"{', '.join(names)}: {plain(cause)}")
        room = None if style.width is None else style.width - 2
        first, *rest = wrapped(told, room)
        lines.append(f"{style.symbol('excluded')} {style.paint(first, 'dim')}")
        lines += [f"  {style.paint(line, 'dim')}" for line in rest]
    return [style.paint("left out", "bold"), *lines] if lines else []


def _faults(report: Report, style: Style) -> list[str]:
    """What became of the faults, where there is more to say than the rows do."""
    lines = []
    for told in report.faults:
        room = None if style.width is None else style.width - 2
        first, *rest = wrapped(plain(told), room)
        lines += [f"  {first}", *(f"    {line}" for line in rest)]
    return [style.paint("faults", "bold"), *lines] if lines else []


def _waits(report: Report, style: Style) -> list[str]:
    """What is asked of people: what, if several are asked, since when, until when, how many have approved."""
    lines = []
    for told in words.waits(report.view):
        first, *rest = wrapped(plain(told), None if style.width is None else style.width - 2)
        lines += [f"  {first}", *(f"    {line}" for line in rest)]
    return [style.paint("waits for people", "bold"), *lines] if lines else []


def _findings(report: Report, style: Style) -> list[str]:
    lines: list[str] = []
    shown = 0
    for file, found in report.findings.located.items():
        if shown < FINDINGS_MAX:
            lines.append(style.paint(plain(file), "bold"))
        for finding in found[: max(0, FINDINGS_MAX - shown)]:
            lines += _finding(finding, style, f"{finding.issue.line or '':>5}")
        shown += len(found)
    own = without_faults(report.findings.engine, report.view.steps)
    if own and shown < FINDINGS_MAX:
        lines.append(style.paint("about the run", "bold"))
        for finding in own[: FINDINGS_MAX - shown]:
            lines += _finding(finding, style, f"    {plain(finding.step)}".rstrip())
    shown += len(own)
    if shown > FINDINGS_MAX:
        more = count(shown - FINDINGS_MAX, "more issue")
        lines.append(style.paint(style.typography(f"  … {more} (--format json has all)"), "dim"))
    if report.findings.hidden:
        hidden = count(report.findings.hidden, "issue")
        lines.append(style.paint(f"  {hidden} turned off by comments", "dim"))
    return lines


def _finding(finding: Finding, style: Style, place: str) -> list[str]:
    issue = finding.issue
    severity = padded(issue.severity, 8)
    start = f"{place}  {style.paint(severity, _SEVERITY[issue.severity])}"
    note = f"{brief(issue.message, 1000)} [{plain(issue.rule_id)}]"
    if issue.suggestion:
        note += f" suggestion: {brief(issue.suggestion, 300)}"
    return beside(start, cells(place) + 2 + cells(severity), note, "bold" if style.colour else "dim", style)


def _verdict(report: Report, style: Style) -> list[str]:
    view = report.view
    word = words.verdict_word(view)
    colours = [word] if word in ("GO", "NO-GO", "HOLD") else ["bold"]
    shown = style.paint(f" {word} ", *colours) if style.colour else word
    cause = plain(style.typography(words.cause(view, report.whys)))
    width = cells(word) + (2 if style.colour else 0)
    if style.width is None:
        lines = [f"{shown}{':' if word == 'HOLD' else ''} {style.paint(cause, 'bold')}".rstrip()]
    else:
        lines = beside(shown, width, cause, "bold", style)
    if move := words.next_move(view):
        lines += ["", "answer with:", f"  {move}"]
    lines += ["", *_footer(report, style)]
    return lines


def _footer(report: Report, style: Style) -> Iterator[str]:
    view = report.view
    wall = duration(view.wall_ms)
    for line in wrapped(style.typography(f"{words.summary(view)} · {wall}"), style.width):
        yield style.paint(line, "dim")
    yield style.paint(f"run {view.run_id}", "dim")
    for told in report.notes:
        yield from (style.paint(line, "yellow") for line in wrapped(f"note: {plain(told)}", style.width))
