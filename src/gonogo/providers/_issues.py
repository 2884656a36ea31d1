"""Findings in what a step printed or received, as issues (spec E.2 rules 9 and 10)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, get_args

from gonogo.core.faults import Severity
from gonogo.provider import UNSET, Issue

ISSUES_MAX = 10_000

_MESSAGE_KEYS = ("message", "text", "description", "summary")
_FILE_KEYS = ("file", "path", "filename")
_LINE_KEYS = ("line", "startLine", "lineNumber")
_SEVERITY_KEYS = ("severity", "level", "priority")
_RULE_KEYS = ("ruleId", "rule")
_CATEGORY_KEYS = ("category", "type")
_SIGNS = frozenset(_FILE_KEYS + _LINE_KEYS + _SEVERITY_KEYS + _RULE_KEYS + _CATEGORY_KEYS)

_SEVERITIES: Mapping[str, Severity] = MappingProxyType(
    {
        **{severity: severity for severity in get_args(Severity)},
        "fatal": "error",
        "high": "error",
        "medium": "warning",
        "moderate": "warning",
        "low": "info",
        "minor": "info",
    }
)
_CATEGORIES = frozenset({"security", "performance", "style", "logic", "documentation"})


def taken_from(output: Any, *, parse_issues: bool) -> tuple[Any, tuple[Issue, ...]]:
    """Output without its issues (UNSET when nothing else is left), and the issues.

    Only a list under the key `issues`, each with a message, is taken. `parse_issues` adds a list of issues
    or of `{issues}` objects, and a single object that looks like an issue. An empty list stays an empty
    list.
    """
    if isinstance(output, dict) and are_issues(output.get("issues")):
        rest = {key: value for key, value in output.items() if key != "issues"}
        return rest, as_issues(output["issues"])
    found = _issues_in(output) if parse_issues and output else None
    return (output, ()) if found is None else (UNSET, as_issues(found))


def are_issues(value: Any) -> bool:
    """True for a list in which everything has a message."""
    return isinstance(value, list) and all(isinstance(item, dict) and _message(item) for item in value)


def as_issues(items: list[Mapping[str, Any]], rule_default: str = "command") -> tuple[Issue, ...]:
    """Issues from objects that `are_issues` took; severity words and other spellings are understood."""
    return tuple(_issue(item, rule_default) for item in items[:ISSUES_MAX])


def _issues_in(output: Any) -> list[Mapping[str, Any]] | None:
    if isinstance(output, dict) and _message(output) and _SIGNS & output.keys():
        return [output]
    if not isinstance(output, list):
        return None
    if are_issues(output):
        return output
    if all(isinstance(part, dict) and are_issues(part.get("issues")) for part in output):
        return [issue for part in output for issue in part["issues"]]
    return None


def _issue(item: Mapping[str, Any], rule_default: str) -> Issue:
    category = str(_first(item, _CATEGORY_KEYS)).lower()
    return Issue(
        rule_id=str(_first(item, _RULE_KEYS) or rule_default),
        message=str(_message(item)),
        severity=_SEVERITIES.get(str(_first(item, _SEVERITY_KEYS)).lower(), "warning"),
        file=str(_first(item, _FILE_KEYS) or "system"),
        line=_line(_first(item, _LINE_KEYS)) or 0,
        end_line=_line(item.get("endLine")),
        category=category if category in _CATEGORIES else "logic",
        suggestion=_text(item.get("suggestion")),
        replacement=_text(item.get("replacement")),
    )


def _first(item: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((item[key] for key in keys if item.get(key) not in (None, "")), None)


def _message(item: Mapping[str, Any]) -> str | None:
    return _text(_first(item, _MESSAGE_KEYS))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _line(value: Any) -> int | None:
    """A line number of 0 or more; text is understood, anything else isn't a line."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
