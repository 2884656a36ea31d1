"""What people said where a step asked them: who, and in which words. Secrets are masked where an answer is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gonogo.core.state import Node
from gonogo.report.layout import brief

WORDS_MAX = 60
NAME_MAX = 60
SHOWN_MAX = 5
_DEFAULT = "default"
"""Whose answer it is when the time for one was over."""


def told(node: Node | None) -> str:
    """`ana said yes, ben said no`; `answered by ana` where only that is known; empty where nobody answered."""
    if node is None:
        return ""
    meta = node.result.meta if node.result is not None else node.meta
    by = (meta or {}).get("answered_by")
    if not isinstance(by, str):
        return ""
    said = [_said(*each) for each in _answers(node.output, by)]
    more = f" and {len(said) - SHOWN_MAX} more" if len(said) > SHOWN_MAX else ""
    return ", ".join(said[:SHOWN_MAX]) + more if said else f"answered by {_name(by)}"


def _answers(output: Any, by: str) -> Iterator[tuple[str, str]]:
    """Name and words of each. The output is that of a hold where it names who answered; of a call in doubt it isn't."""
    if not isinstance(output, Mapping) or output.get("by") != by or not isinstance(output.get("text"), str):
        return
    votes = output.get("answers")
    for each in votes if isinstance(votes, list | tuple) else (output,):
        if isinstance(each, Mapping):
            yield str(each.get("by", "")), str(each.get("text", ""))


def _said(by: str, text: str) -> str:
    words = brief(text, WORDS_MAX)
    return f"no answer came in time, so {words}" if by == _DEFAULT else f"{_name(by)} said {words}"


def _name(by: str) -> str:
    return brief(by, NAME_MAX) or "a person"
