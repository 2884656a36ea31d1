"""What is decided about faults, budgets, people and undoing. All else is in `decisions.py`, which knows these, too."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from gonogo.core.decision import About, Decision
from gonogo.core.faults import Effect, Fault, Issue

UNTAKEN: Mapping[str, str] = MappingProxyType(
    {
        "answered": "it was answered already",
        "timeout": "its time for an answer was over",
        "nothing": "it waits for nothing",
        "earlier": "it was about an earlier call of the step",
        "unnamed": "it needs the name of who answers, of 200 characters at most",
        "not_listed": "its giver is not among the approvers",
        "counted": "its giver has answered already",
        "words": "it takes other words",
        "child": "it waits for a run of its own, a step of which takes the answer",
    }
)
"""Why an answer was not taken."""


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


class Vote(Struct, frozen=True, gc=False):
    """One person's word on an approval: yes or no."""

    by: str
    text: str


class Held(About, frozen=True, tag="held"):
    """Waits for a person, with nothing running, from `since_s` on the run's clock.

    `timer` fires at `wake_s`: at the next reminder (`remind_s`), at the handover (`escalate_s`) or at the end of the
    wait (`due_s`), whatever comes first; without `wake_s` at its end. `approvers`, `quorum`: see `plan.Hold`.
    `reminders` and `votes` are those so far; what comes later is decided later.
    """

    prompt: str = ""
    details: dict[str, Any] = {}
    timer: int | None = None
    due_s: float | None = None
    default: str | None = None
    since_s: float | None = None
    wake_s: float | None = None
    remind_s: float | None = None
    escalate_s: float | None = None
    approvers: tuple[str, ...] = ()
    quorum: int | None = None
    reminders: int = 0
    votes: tuple[Vote, ...] = ()

    def sentence(self) -> str:
        return f"waits for a person: {self.prompt}"


class Voted(About, frozen=True, tag="voted"):
    """A person said yes or no to an approval, which may need more of them."""

    text: str = ""
    by: str = ""

    def sentence(self) -> str:
        return f"{self.by} said {self.text}"


class NotTaken(About, frozen=True, tag="not_taken"):
    """An answer that changes nothing, and why: a key of UNTAKEN."""

    by: str = ""
    reason: str = ""

    def sentence(self) -> str:
        return f"the answer of {self.by or 'a person'} was not taken: {UNTAKEN.get(self.reason, self.reason)}"


class Reminded(About, frozen=True, tag="reminded"):
    """Nobody has answered: reminder `number` is due, the next one at `next_s`. `unsent`: why no step ran for it."""

    number: int = 1
    next_s: float | None = None
    unsent: str = ""

    def sentence(self) -> str:
        return f"reminder {self.number}" + (f" not sent: {self.unsent}" if self.unsent else "")


class HandedOver(About, frozen=True, tag="handed_over"):
    """Nobody has answered for long: from now on these `approvers` and this `quorum` count. `unsent` as of Reminded."""

    approvers: tuple[str, ...] = ()
    quorum: int | None = None
    unsent: str = ""

    def sentence(self) -> str:
        who = f"may be answered by {', '.join(self.approvers)}" if self.approvers else "is escalated"
        return who + (f"; nobody was told: {self.unsent}" if self.unsent else "")


class WaitsOn(About, frozen=True, tag="waits_on"):
    """A wait goes on, until `timer` fires at `wake_s` if there is still something to come."""

    timer: int | None = None
    wake_s: float | None = None

    def sentence(self) -> str:
        return "waits on"


class Doubted(About, frozen=True, tag="doubted"):
    """A mutating call whose effect nobody knows: a person must say what became of it."""

    message: str = ""

    def sentence(self) -> str:
        return f"in doubt: {self.message}"


class Answered(About, frozen=True, tag="answered"):
    """A person's word (or a default) ended a hold or a doubt; `output` or `fault` is what the call came to.

    `effect`: what it did outside. Without it (as older records are): nothing with a fault, else all that it does.
    """

    text: str = ""
    by: str = ""
    output: Any = None
    fault: Fault | None = None
    effect: Effect | None = None

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
