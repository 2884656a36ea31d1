"""What safe mode kept a run from doing: each call that was prepared and not made, with the inputs it would have had."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from gonogo.core.scope import order_key
from gonogo.core.state import Node
from gonogo.journal.view import RunView
from gonogo.report.layout import brief

NOTES_MAX = 50
INPUTS_MAX = 500


class Withheld(NamedTuple):
    """One call that wasn't made."""

    step: str
    scope: str
    type: str
    inputs: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """For `--format json`."""
        return {"step": self.step, "scope": self.scope, "type": self.type, "inputs": self.inputs}

    def sentence(self) -> str:
        """What would have been done, on one line."""
        place = f"{self.step} in {self.scope}" if self.scope else self.step
        given = {name: value for name, value in self.inputs.items() if value not in (None, [], {}, False)}
        told = brief(json.dumps(given, ensure_ascii=False), INPUTS_MAX)
        return f"safe mode: {place} was not called; it would have run {self.type} with {told}"


def withheld_calls(view: RunView) -> Iterator[Withheld]:
    """The calls a run in safe mode held back, in the order of steps and items."""
    if not view.state.safe_mode:
        return
    for name, step in view.plan.steps.items():
        if step.effects == "mutates":
            nodes = view.state.nodes[name].values()
            for node in sorted(nodes, key=lambda node: order_key(node.scope)):
                yield from _withheld(node)


def _withheld(node: Node) -> Iterator[Withheld]:
    output = node.output
    if node.fan is None and isinstance(output, dict) and output.get("safe_mode") is True:
        inputs = output.get("inputs")
        yield Withheld(
            node.step, node.scope, str(output.get("type")), inputs if isinstance(inputs, dict) else {}
        )


def notes_of(view: RunView) -> tuple[str, ...]:
    """A sentence a call, and how many more there are."""
    calls = list(withheld_calls(view))
    told = [call.sentence() for call in calls[:NOTES_MAX]]
    if len(calls) > NOTES_MAX:
        told.append(f"safe mode: {len(calls) - NOTES_MAX:,} more calls were not made (--format json has all)")
    if view.state.safe_mode and not calls:
        told.append("safe mode: there was no call to withhold")
    return tuple(told)
