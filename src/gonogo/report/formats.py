"""The formats by name. Each module is imported when its format is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MappingProxyType

from gonogo.report.json_text import json_pieces, json_text
from gonogo.report.layout import Style
from gonogo.report.report import Report

__all__ = ["NAMES", "json_text", "render", "rendered"]

NAMES = ("table", "json", "markdown", "sarif", "junit", "github")


def render(report: Report, name: str, style: Style, version: str = "") -> str:
    """The report in a format, ending in a line end. `style` matters to `table`, and to JSON when the stream can't
    show more than ASCII. `version` is gonogo's, for SARIF.
    """
    return "".join(rendered(report, name, style, version))


def rendered(report: Report, name: str, style: Style, version: str = "") -> Iterable[str]:
    """As `render`, in pieces where the whole may be large."""
    told = _RENDER[name](report, style, version)
    return (told,) if isinstance(told, str) else told


def _table(report: Report, style: Style, _: str) -> str:
    from gonogo.report.text import text

    return text(report, style)


def _json(report: Report, style: Style, _: str) -> Iterable[str]:
    return json_pieces(report.told(), unicode=style.unicode)


def _markdown(report: Report, _: Style, __: str) -> str:
    from gonogo.report.markdown import markdown

    return markdown(report)


def _sarif(report: Report, style: Style, version: str) -> str:
    from gonogo.report.sarif import sarif

    return json_text(sarif(report, version), unicode=style.unicode)


def _junit(report: Report, _: Style, __: str) -> str:
    from gonogo.report.junit import junit

    return junit(report)


def _github(report: Report, _: Style, __: str) -> str:
    from gonogo.report.github import github

    return github(report)


_RENDER: MappingProxyType[str, Callable[[Report, Style, str], str | Iterable[str]]] = MappingProxyType(
    {
        "table": _table,
        "json": _json,
        "markdown": _markdown,
        "sarif": _sarif,
        "junit": _junit,
        "github": _github,
    }
)
