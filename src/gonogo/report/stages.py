"""How far a step is that hasn't ended: what is under way, what waits for a person, what hasn't begun."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType

from gonogo.core import lifecycle as life
from gonogo.journal.view import ItemView, RunView, StepView
from gonogo.report.layout import count

_WAITS = MappingProxyType(
    {
        life.BACKING_OFF: "waits to try again",
        life.REMEDIATING: "waits for what it sent the run to",
        life.INITIALISING: "waits for its on_init",
        life.PAUSED: "waits for its target",
    }
)


def stage(step: StepView | ItemView, view: RunView) -> str:
    """Its outcome; instead of `waiting`, unless that is for a person, `running`, `not_started`, or `cut_off` for what
    was under way in a run that nobody has.
    """
    if step.outcome != "waiting" or step.reason == "person":
        return step.outcome
    if step.reason == "not_started" or (step.reason in life.NOT_BEGUN and not step.attempts):
        return "not_started"
    return "cut_off" if view.standing in ("INTERRUPTED", "SET ASIDE") else "running"


def told(step: StepView | ItemView, view: RunView) -> str:
    """The same in words, and what it waits for."""
    now = stage(step, view)
    if now == "waiting":
        return "waits for a person"
    if now == "cut_off":
        return "was under way when the run was cut off"
    if now == "not_started":
        return "not started"
    return _for_workers(step, view) or _WAITS.get(step.reason or "", "running")


def _for_workers(step: StepView | ItemView, view: RunView) -> str:
    """What no worker has taken yet: those with the label that the step asks for may."""
    if not view.unclaimed:
        return ""
    nodes = step.nodes if isinstance(step, StepView) else [step.node]
    calls = (node.call for node in nodes if node.call is not None)
    labels = Counter(view.unclaimed[call] for call in calls if call in view.unclaimed)
    of_list = isinstance(step, StepView) and step.items is not None
    return ", ".join(_waits_for(label, number, of_list=of_list) for label, number in labels.items())


def _waits_for(label: str, number: int, *, of_list: bool) -> str:
    which = f"a worker with --label {label}" if label else "a worker that is free"
    who = f"{count(number, 'item')} " if of_list else ""
    return f"{who}{'wait' if of_list and number > 1 else 'waits'} for {which}"
