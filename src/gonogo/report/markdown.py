"""The report as GitHub-flavoured Markdown: for a job's summary or a comment. Everything a run says is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gonogo.report import stages, words
from gonogo.report.findings import Finding, without_faults
from gonogo.report.layout import brief, duration, plain
from gonogo.report.report import Report

ROWS_MAX = 500
CHARACTERS_MAX = 60_000
"""A comment on GitHub takes 65,536; what doesn't fit is said to be missing."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|<>~@&$])")
_SIGNS = {
    "passed": "✅", "failed": "❌", "tolerated": "⚠️", "skipped": "⏭️", "cancelled": "🛑", "waiting": "⏸️",
    "in_doubt": "❓", "running": "▶️", "not_started": "▫️", "cut_off": "🛑",
}  # fmt: skip
_VERDICTS = {"GO": "✅", "NO-GO": "❌", "HOLD": "⏸️"}


def markdown(report: Report) -> str:
    """The whole report, ending in a line end."""
    lines: list[str] = []
    used = 0
    for line in _lines(report):
        used += len(line) + 1
        if used > CHARACTERS_MAX:
            lines += ["", "*The report is longer than fits here; `gonogo show` has all of it.*"]
            break
        lines.append(line)
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """`text` as one line of Markdown that shows just this text: no markup, no HTML, no mention, no link."""
    one_line = " ".join(plain(text).split())
    return _SPECIAL.sub(r"\\\1", one_line).replace("://", ":\u200b//").replace("\\@", "@\u200b")


def _lines(report: Report) -> Iterator[str]:
    view = report.view
    word = words.verdict_word(view)
    cause = words.cause(view, report.whys)
    yield f"## {_VERDICTS.get(word, '❔')} {word}"
    if cause:
        yield from ("", escaped(cause))
    for told in report.notes:
        yield from ("", f"> note: {escaped(told)}")
    if move := words.next_move(view):
        yield from ("", "Answer with:", "", "```sh", move.replace("`", ""), "```")
    yield from ("", "| | Step | Time | |", "|---|---|--:|---|")
    for step in list(view.steps.values())[:ROWS_MAX]:
        note = escaped(words.note(step, report.whys.get(step.name), view))
        time = duration(step.duration_ms) if step.attempts else ""
        yield f"| {_SIGNS[stages.stage(step, view)]} | {escaped(step.name)} | {time} | {note} |"
    if len(view.steps) > ROWS_MAX:
        yield f"| | … | | {len(view.steps) - ROWS_MAX:,} more steps |"
    yield from _left_out(report)
    if report.faults:
        yield from ("", "### Faults", "", *(f"- {escaped(told)}" for told in report.faults))
    yield from _findings(report)
    wall = duration(view.wall_ms)
    yield from ("", f"{words.summary(view)} · {wall} · run `{view.run_id}`")


def _left_out(report: Report) -> Iterator[str]:
    if not report.view.excluded:
        return
    yield from ("", "<details><summary>Left out</summary>", "")
    for name in list(report.view.excluded)[:ROWS_MAX]:
        yield f"- {escaped(name)}: {escaped(report.whys[name].text)}"
    yield from ("", "</details>")


def _findings(report: Report) -> Iterator[str]:
    for file, found in report.findings.located.items():
        yield from ("", f"### {escaped(file)}", "")
        yield from (f"- {_finding(finding, f'line {finding.issue.line}: ')}" for finding in found[:ROWS_MAX])
    own = without_faults(report.findings.engine, report.view.steps)
    if own:
        yield from ("", "### About the run", "")
        for finding in own[:ROWS_MAX]:
            yield f"- {_finding(finding, f'{escaped(finding.step)}: ' if finding.step else '')}"
    if report.findings.hidden:
        yield from ("", f"{report.findings.hidden} turned off by comments")


def _finding(finding: Finding, place: str) -> str:
    issue = finding.issue
    advice = f" — {escaped(brief(issue.suggestion, 300))}" if issue.suggestion else ""
    place = place if issue.line or not finding.located else ""
    return f"{place}**{issue.severity}** {escaped(brief(issue.message, 1000))} ({escaped(issue.rule_id)}){advice}"
