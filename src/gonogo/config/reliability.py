"""`reliability:` of a workflow and of its steps: read as the gate's policies, every problem told at its place.

What a policy may say is the gate's own knowledge (`gate/reading.py`, `gate/checking.py`); its modules are imported
when a file has such a key. Rules in JavaScript are checked like every expression, with the names that rules see.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gonogo.config.collect import Collector, nearest, shown
from gonogo.config.drafts import Draft
from gonogo.config.expressions import Expressions, Use
from gonogo.config.nodes import Path
from gonogo.errors import ConfigError, Problem

if TYPE_CHECKING:
    from gonogo.gate.policy import Policy

KEY = "reliability"
DEFAULT = "default"
"""The named policy for steps that name none."""
_PLACE = re.compile(r"[^.\[\]]+")


class Policies:
    """The named policies of a file, and how each of its steps goes by one."""

    def __init__(self, named: dict[str, dict[str, Any]], expressions: Expressions, notes: Collector) -> None:
        """Reads and checks the named ones."""
        self._expressions = expressions
        self._notes = notes
        self._named = named
        self._deadlines = {
            name: self._deadline_s(data, (KEY, name), None, {"targets", "mode"})
            for name, data in named.items()
        }
        self._used: set[str] = set()

    def of_step(self, draft: Draft) -> float | None:
        """Check what a step says; how long its calls may take by its policy, None when it has none."""
        said, path = draft.engine.reliability, (*draft.path, KEY)
        if said is not None and not draft.provider.gated:
            message = f"steps of the type {draft.provider.name} call nothing through the gate"
            self._notes.warn("key.idle", message, path, "remove it; on_fail: {retry: …} tries the step again")
        self._doubt_weights(draft, said if isinstance(said, dict) else self._named.get(said or DEFAULT, {}))
        if isinstance(said, dict):
            # A type with targets of its own brings them where the policy has none.
            own = {"targets"} & set(draft.provider.config.__struct_fields__)
            return self._deadline_s(said, path, draft.name, {"mode", *own})
        name = said or DEFAULT
        if name in self._named:
            self._used |= {name} if said or draft.provider.gated else set()
            return self._deadlines[name]
        if said is not None:
            near = nearest(said, self._named)
            hint = f"did you mean {near}?" if near else f"add it at the top, under {KEY}:"
            self._notes.error("policy.unknown", f"there is no policy {shown(said)}", path, hint)
        return None

    def _doubt_weights(self, draft: Draft, policy: dict[str, Any]) -> None:
        """Weights are of a step's targets, the order that reads them of its policy: one without the other is idle."""
        targets = getattr(draft.model, "targets", ())
        weighs = [place for place, each in enumerate(targets) if getattr(each, "weight", None) is not None]
        if policy.get("order") != "weighted":
            for place in weighs:
                message = f"a weight counts with {KEY}: {{order: weighted}} alone"
                self._notes.warn("policy.doubt", message, (*draft.path, "targets", place, "weight"))
        elif len(targets) > 1 and not weighs and "targets" not in policy:
            message = "the order is weighted, but no target has a weight: all come first alike"
            self._notes.warn("policy.doubt", message, (*draft.path, "targets"))

    def check_used(self) -> None:
        """A policy that no step goes by is said so: its name may be misspelt where it was meant."""
        for name in self._named:
            if name not in self._used:
                self._notes.note("policy.unused", f"no step goes by the policy {shown(name)}", (KEY, name))

    def _deadline_s(
        self, data: dict[str, Any], path: Path, step: str | None, others: set[str]
    ) -> float | None:
        from gonogo.gate.checking import problems
        from gonogo.gate.doubting import doubts
        from gonogo.gate.reading import policy_of

        try:
            policy = policy_of(data)
        except ConfigError as wrong:
            self._tell(wrong.problems, path)
            return None
        self._tell((*problems(policy), *doubts(policy, others - data.keys())), path)
        self._check_rules(policy, path, step)
        return policy.bounds.deadline_s

    def _tell(self, found: tuple[Problem, ...], path: Path) -> None:
        for problem in found:
            tell = self._notes.error if problem.severity == "error" else self._notes.warn
            tell(problem.code, problem.message, (*path, *_steps(problem.path)), problem.suggestion)

    def _check_rules(self, policy: Policy, path: Path, step: str | None) -> None:
        from gonogo.gate.policy import Expression
        from gonogo.gate.scopes import NAMES

        for phase, rules in (("before", policy.before), ("after", policy.after)):
            for index, rule in enumerate(rules):
                if isinstance(rule.when, Expression):
                    use = Use((*path, phase, index, "when"), step, KEY)
                    self._expressions.check(rule.when.text, "condition", use, also=NAMES)


def _steps(place: str) -> Iterator[str | int]:
    """`after[0].then` as the steps of a path."""
    for part in _PLACE.findall(place):
        yield int(part) if part.isdecimal() else part
