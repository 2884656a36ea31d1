"""What became of the faults of a run, in a line each: what was tried, what was kept from harm, who was told, the end.
Then what was undone because of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gonogo.core.decisions import Undone
from gonogo.core.scope import step_at
from gonogo.journal.fault_log import FaultStory
from gonogo.journal.view import RunView
from gonogo.report.layout import brief, count

LINES_MAX = 20
MESSAGE_MAX = 160
NAMES_MAX = 5


def fault_lines(view: RunView) -> tuple[str, ...]:
    """A line for each fault with a story (one that was only detected and kept from its dependents is told by its step's
    row already), then a line for each success that was to be undone.
    """
    told = [sentence(story) for story in view.fault_stories if _has_a_story(story)]
    undone = [_undone(one, view) for one in view.undone]
    return (*_first(told, "fault"), *_first(undone, "undoing"))


def _first(lines: list[str], noun: str) -> list[str]:
    more = len(lines) - LINES_MAX
    return (
        [*lines[:LINES_MAX], f"{count(more, f'more {noun}')} (--format json has all)"] if more > 0 else lines
    )


def _undone(one: Undone, view: RunView) -> str:
    """`switch: undone by switch-back`, or that it wasn't."""
    place = step_at(one.step, one.scope)
    if one.outcome == "passed":
        return f"{place}: undone by {one.by}"
    step = view.steps.get(one.by)
    why = f": {brief(step.fault.message, MESSAGE_MAX)}" if step is not None and step.fault is not None else ""
    return f"{place}: not undone, {one.by} {one.outcome.replace('_', ' ')}{why}"


def sentence(story: FaultStory) -> str:
    """`fetch: exit code 1; 2 retries; recovered`."""
    parts = [
        f"{story.place}: {brief(story.message or story.rule_id, MESSAGE_MAX)}",
        *_attempts(story),
        *_kept_back(story),
        *_afterwards(story),
        end_word(story),
    ]
    return "; ".join(parts)


def end_word(story: FaultStory) -> str:
    """How it ended."""
    words = {"recovery.succeeded": "recovered", "recovery.failed": "not recovered"}
    return words.get(story.end or "", "still open")


def _has_a_story(story: FaultStory) -> bool:
    events = {turn.event for turn in story.turns} - {"detected", "isolated", "recovery.failed"}
    return bool(events) or any("suppressed" in detail for detail in story.details("isolated"))


def _attempts(story: FaultStory) -> Iterator[str]:
    """`ran fix, went to other`, then `2 retries`."""
    attempts = list(story.details("recovery.attempted"))
    routes = {"run": "ran", "goto": "went to"}
    routed = [f"{routes[one['action']]} {one['step']}" for one in attempts if one.get("action") in routes]
    if routed:
        yield _listed(list(dict.fromkeys(routed)))
    retries = sum(one.get("action") == "retry" for one in attempts)
    if retries:
        yield f"{retries} {'retry' if retries == 1 else 'retries'}"


def _kept_back(story: FaultStory) -> Iterator[str]:
    names = [name for detail in story.details("isolated") for name in _names(detail, "suppressed")]
    if names:
        yield f"suppressed {_listed(names)}"


def _afterwards(story: FaultStory) -> Iterator[str]:
    for detail in story.details("escalated"):
        yield f"escalated to {detail.get('step', '')}".rstrip()


def _names(detail: Mapping[str, Any], key: str) -> list[str]:
    names = detail.get(key)
    return [str(name) for name in names] if isinstance(names, list | tuple) else []


def _listed(names: list[str]) -> str:
    more = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
