"""What may undo a step: another one that isn't undone itself and runs once (spec G12).

How and when it is undone is the core's (`core/compensation.py`).
"""

from __future__ import annotations

from gonogo.config.collect import Collector
from gonogo.core.graph import Graph
from gonogo.core.plan import Plan, Step


def check_compensation(plan: Plan, notes: Collector) -> None:
    """Report steps that can't undo the step that names them. For plans without a cycle."""
    undone = [step for step in plan.steps.values() if step.compensate is not None]
    if not undone:
        return
    fans = Graph(plan).fans
    for step in undone:
        undoer = plan.steps.get(step.compensate or "")
        if undoer is not None:
            _check(step, undoer, bool(fans[undoer.name]), notes)


def _check(step: Step, undoer: Step, behind_a_list: bool, notes: Collector) -> None:
    path = ("steps", step.name, "compensate")
    if undoer is step:
        notes.error("compensate.own", "a step can't undo itself", path, "name another step")
    elif undoer.compensate is not None:
        message = f"{undoer.name} undoes this step and has a compensate of its own: an undoing isn't undone"
        notes.error("compensate.nested", message, path, f"remove compensate from {undoer.name}")
    elif undoer.for_each or behind_a_list or (undoer.fanout_explicit and undoer.fanout == "map"):
        message = f"{undoer.name} fans out; what undoes a step runs once, where the step ran"
        advice = f"remove forEach and fanout from {undoer.name}, and its dependencies on lists"
        notes.error("compensate.fanout", message, path, advice)
