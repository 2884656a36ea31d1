"""What is decided about faults, budgets, people and undoing. All else is in `decisions.py`, which knows these, too."""

from __future__ import annotations

from typing import Any

from gonogo.core.decision import About, Decision
from gonogo.core.faults import Fault, Issue


class Refused(About, frozen=True, tag="refused"):
    """A budget said no. `limit` names it, `used` of `allowed` were spent; `fatal` unless the step tolerates failure.

    A limit `budget.…` is the whole run's; then a step is named only where one met it.
    """

    target: str = ""
    limit: str = ""
    used: int | float = 0
    allowed: int | float = 0
    issue: Issue | None = None
    fatal: bool = True

    def sentence(self) -> str:
        if self.limit.startswith("budget."):
            return self.issue.message if self.issue else f"{self.limit} is used up"
        return f"refused to run {self.target}: {self.limit} allows {self.allowed}"


class OneShotSkip(About, frozen=True, tag="one_shot_skip"):
    """A step tagged one_shot has run and isn't run again for `asked_by` (spec C.15 R3)."""

    asked_by: str = ""

    def sentence(self) -> str:
        return f"not run again for {self.asked_by}: it is one_shot and has run"


class FaultEvent(About, frozen=True, tag="fault"):
    """What becomes of fault number `fault` of the run; it began with `kind`, `class` and `rule_id` at an attempt.

    `event`: detected, isolated, recovery.attempted, recovery.succeeded, recovery.failed, compensated or escalated.
    """

    event: str = ""
    fault: int = 0
    attempt: int = 0
    kind: str = ""
    fault_class: str = ""
    rule_id: str = ""
    detail: dict[str, Any] = {}

    def sentence(self) -> str:
        told = ", ".join(f"{name}: {_listed(value)}" for name, value in self.detail.items())
        which = f" ({self.rule_id or self.kind})" if self.event == "detected" else ""
        return f"fault {self.fault} {self.event}{which}" + (f", {told}" if told else "")


def _listed(value: Any) -> str:
    return ", ".join(str(item) for item in value) if isinstance(value, list | tuple) else str(value)


class Flagged(About, frozen=True, tag="flagged"):
    """Something that makes the run NO-GO without failing the step (`fatal`), or is just worth saying."""

    issue: Issue | None = None
    fatal: bool = True

    def sentence(self) -> str:
        return self.issue.message if self.issue else "flagged"


class Held(About, frozen=True, tag="held"):
    """Waits for a person, with nothing running. `timer` ends the wait when there is one."""

    prompt: str = ""
    details: dict[str, Any] = {}
    timer: int | None = None
    due_s: float | None = None
    default: str | None = None

    def sentence(self) -> str:
        return f"waits for a person: {self.prompt}"


class Doubted(About, frozen=True, tag="doubted"):
    """A mutating call whose effect nobody knows: a person must say what became of it."""

    message: str = ""

    def sentence(self) -> str:
        return f"in doubt: {self.message}"


class Answered(About, frozen=True, tag="answered"):
    """A person's word (or a default) ended a hold or a doubt; `output` or `fault` is what the call came to."""

    text: str = ""
    by: str = ""
    output: Any = None
    fault: Fault | None = None

    def sentence(self) -> str:
        return f"answered by {self.by or 'a person'}"


class Chosen(About, frozen=True, tag="chosen"):
    """A person chose what comes after the last retry: retry, accept or fail."""

    choice: str = ""
    by: str = ""

    def sentence(self) -> str:
        return f"{self.by or 'a person'} chose: {self.choice}"


class TimeLimited(Decision, frozen=True, tag="time_limited"):
    """The run has until `due_s`, by `timer`, if it isn't parked before."""

    timer: int
    due_s: float

    def sentence(self) -> str:
        return f"has until {self.due_s:g} s"


class Undone(About, frozen=True, tag="undone"):
    """What a step did in an execution was undone by another, or wasn't: see `outcome`."""

    execution: int = 0
    by: str = ""
    outcome: str = "passed"

    def sentence(self) -> str:
        return f"undone by {self.by}" if self.outcome == "passed" else f"not undone: {self.by} {self.outcome}"
