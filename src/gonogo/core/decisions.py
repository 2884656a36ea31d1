"""Why: everything the core decides, as complete deltas. State is the fold of these over the records of a run.

Here is what is decided about a step's life and about the run; what is decided about faults, budgets, people and undoing
is in `fault_decisions.py`, and known here, too. Commands aren't recorded: they follow from decisions.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from gonogo.core.attempt_decisions import AttemptRefused, AttemptStarted, Paused
from gonogo.core.commands import Ask
from gonogo.core.decision import About, Decision
from gonogo.core.fault_decisions import (
    Answered,
    Chosen,
    Doubted,
    FaultEvent,
    Flagged,
    HandedOver,
    Held,
    NotTaken,
    OneShotSkip,
    Refused,
    Reminded,
    TimeLimited,
    Undone,
    Voted,
    WaitsOn,
)
from gonogo.core.faults import Fault, Issue
from gonogo.core.plan import Target
from gonogo.core.rerun_decisions import Given, Rerun


class Planned(Decision, frozen=True, tag="planned"):
    """Which steps this run is about; `excluded` gives a reason for each left out; `held_back` wait for a route."""

    included: tuple[str, ...]
    excluded: dict[str, str] = {}
    held_back: tuple[str, ...] = ()

    def sentence(self) -> str:
        return f"planned {len(self.included)} steps, left out {len(self.excluded)}"


class Refusal(Decision, frozen=True, tag="refusal"):
    """The plan itself can't run (cycle, unknown step): nothing starts."""

    issue: Issue

    def sentence(self) -> str:
        return f"the plan can't run: {self.issue.message}"


class Asked(Decision, frozen=True, tag="asked"):
    """Expressions sent to be evaluated, one batch."""

    batch: int
    asks: tuple[Ask, ...]

    def sentence(self) -> str:
        return f"asked {len(self.asks)} expressions (batch {self.batch})"


class Judged(About, frozen=True, tag="judged"):
    """What one expression meant: `result` after truth rules, the `evidence` it read, `error` when it failed."""

    construct: str = ""
    expression: int = 0
    result: Any = None
    error: str | None = None
    evidence: dict[str, Any] = {}

    def sentence(self) -> str:
        if self.error:
            return f"{self.construct} could not be evaluated: {self.error}"
        if self.result == "not_applicable":
            return f"{self.construct} isn't applicable in safe mode"
        return f"{self.construct} gave {self.result!r}"


class Cleared(About, frozen=True, tag="cleared"):
    """`if` and dependencies allow the step; it starts when it gets a slot. `again` repeats a lost call."""

    again: bool = False

    def sentence(self) -> str:
        return "may start" + (" again" if self.again else "")


class Skipped(About, frozen=True, tag="skipped"):
    """Not run, for a stable reason; `because` names the step at the root of it."""

    reason: str = ""
    because: str | None = None
    issues: tuple[Issue, ...] = ()
    rest: str = "settled"

    def sentence(self) -> str:
        return f"skipped: {self.reason}" + (f", because of {self.because}" if self.because else "")


class Initialising(About, frozen=True, tag="initialising"):
    """on_init begins, for the execution and attempt to come; `targets` run in order, None: still to be found out."""

    execution: int = 1
    attempt: int = 1
    wave: int = 0
    targets: tuple[Target, ...] | None = None

    def sentence(self) -> str:
        if self.targets is None:
            return "finds out what on_init runs"
        return "on_init runs " + (", ".join(target.step for target in self.targets) or "nothing")


class Initialised(About, frozen=True, tag="initialised"):
    """All that on_init runs has run; the step itself may start when it gets a slot."""

    def sentence(self) -> str:
        return "on_init is done"


class Assuming(About, frozen=True, tag="assuming"):
    """The step has its slot and its preconditions are being judged."""

    def sentence(self) -> str:
        return "checks its assumptions"


class Started(About, frozen=True, tag="started"):
    """A call goes out. Execution, attempt and run name the intent; `again` marks a repeat of a lost call."""

    call: int = 0
    execution: int = 1
    attempt: int = 1
    wave: int = 0
    again: bool = False

    def sentence(self) -> str:
        text = "started" if self.attempt == 1 else f"started attempt {self.attempt}"
        return text + (" again, the earlier call was lost" if self.again else "")


class Ended(About, frozen=True, tag="ended"):
    """The outcome of one execution, or of a whole fan-out.

    `rest`: "open" while routing is still to be decided, "complete" when only a fan-out around it may still decide to
    run it again, "settled" when dependents may look at it.
    """

    outcome: str = "passed"
    reason: str | None = None
    fault: Fault | None = None
    issues: tuple[Issue, ...] = ()
    rest: str = "settled"

    def sentence(self) -> str:
        text = self.outcome + (f" ({self.reason})" if self.reason else "")
        return f"{text}: {self.fault.message}" if self.fault else text


class Completed(About, frozen=True, tag="completed"):
    """Outcome and own routing are final; a fan-out around it may still decide to run it again."""

    def sentence(self) -> str:
        return "is complete"


class Settled(About, frozen=True, tag="settled"):
    """Nothing can change it any more but a new route; dependents may look at it."""

    def sentence(self) -> str:
        return "is settled"


class Expanded(About, frozen=True, tag="expanded"):
    """A fan-out over the items of `parent` begins."""

    parent: str = ""
    execution: int = 1
    total: int = 0

    def sentence(self) -> str:
        return f"fans out over {self.total} items of {self.parent}"


class Retrying(About, frozen=True, tag="retrying"):
    """Another attempt after `delay_s`, by `timer`, due at `due_s` on the run's clock."""

    retry: int = 1
    delay_s: float = 0.0
    timer: int = 0
    due_s: float = 0.0

    def sentence(self) -> str:
        return (
            f"retry {self.retry} in {round(self.delay_s, 3):g} s"
            if self.delay_s
            else f"retry {self.retry} at once"
        )


class TimedOut(About, frozen=True, tag="timer_done"):
    """A wait is over; the step may go on."""

    def sentence(self) -> str:
        return "waited long enough"


class Routed(About, frozen=True, tag="routed"):
    """A route: `members` (step and scope pairs) run (again) in wave `wave`, `target` first among them.

    `action`: run or goto; if: the members, whom their `if` had skipped, are judged again; lift: a failure of the step
    had kept them from running. With these two nobody is the target. escalate and compensate: the target is told of what
    failed, or undoes what was done. init: the target is the next item of the step's on_init.
    """

    trigger: str = ""
    action: str = "run"
    target: str = ""
    target_scope: str = ""
    wave: int = 0
    members: tuple[tuple[str, str], ...] = ()
    arguments: dict[str, Any] = {}
    event: str | None = None
    reentry: bool = False

    def sentence(self) -> str:
        if self.action == "if":
            return f"{self.trigger} has the if of {', '.join(step for step, _ in self.members)} judged again"
        if self.action == "lift":
            return f"has passed, so {', '.join(step for step, _ in self.members)} may run after all"
        return f"{self.trigger} sends the run to {self.target} ({self.action})"


class Remediating(About, frozen=True, tag="remediating"):
    """What was routed runs first; then the step's block goes on."""

    waits_for: tuple[tuple[str, str], ...] = ()

    def sentence(self) -> str:
        return "waits for " + ", ".join(step for step, _ in self.waits_for)


class Routing(About, frozen=True, tag="routing"):
    """The step's block decides what comes next."""

    trigger: str = ""

    def sentence(self) -> str:
        return f"{self.trigger} decides what comes next"


class Superseded(About, frozen=True, tag="superseded"):
    """This execution doesn't count: the step was asked to run again meanwhile."""

    def sentence(self) -> str:
        return "superseded by a newer request"


class TimerCleared(Decision, frozen=True, tag="timer_cleared"):
    """A wait is no longer wanted."""

    timer: int

    def sentence(self) -> str:
        return f"timer {self.timer} cleared"


class CallStopping(About, frozen=True, tag="call_stopping"):
    """A call in flight is told to stop."""

    call: int = 0

    def sentence(self) -> str:
        return "is told to stop"


class Stopping(Decision, frozen=True, tag="stopping"):
    """Nothing new starts. `reason`: fail_fast, halted, cancelled or cancelled_hard; `step` is the cause, if one."""

    reason: str
    step: str | None = None
    timer: int | None = None
    due_s: float | None = None

    def sentence(self) -> str:
        return f"the run stops: {self.reason}" + (f" by {self.step}" if self.step else "")


class Reopened(Decision, frozen=True, tag="reopened"):
    """The run goes on after a cancel. `members`: what was cancelled, skipped because of that, or undone may run."""

    members: tuple[tuple[str, str], ...] = ()

    def sentence(self) -> str:
        return "goes on after a stop"


class Wait(Struct, frozen=True, omit_defaults=True, gc=False):
    """A question in short, for lists of what waits: `since_s` and `until_s` on the run's clock, where they are known.

    `approved` of `quorum` people have said yes; `quorum` 0: any answer will do. The prompt is cut.
    """

    place: str
    prompt: str = ""
    since_s: float | None = None
    until_s: float | None = None
    approved: int = 0
    quorum: int = 0


class Finished(Decision, frozen=True, tag="finished"):
    """The verdict, with what made it: steps that failed untolerated, or what is waited for when `parked`.

    Of a parked run `waits` says more of each, and `wake_s` when the next timer is due, so that a list of many runs
    need read no more than their last records.
    """

    verdict: str
    because: tuple[str, ...] = ()
    parked: bool = False
    waits: tuple[Wait, ...] = ()
    wake_s: float | None = None

    def sentence(self) -> str:
        return f"verdict {self.verdict}" + (f": {', '.join(self.because)}" if self.because else "")


AnyDecision = (
    Planned | Refusal | Asked | Judged | Cleared | Skipped | Initialising | Initialised | Assuming | Started | Ended
    | Completed | Settled | Expanded | Retrying | TimedOut | Routed | Refused | OneShotSkip | FaultEvent | Flagged
    | Remediating | Routing | Superseded | Held | Doubted | Answered | Chosen | TimeLimited | Undone | TimerCleared
    | AttemptStarted | AttemptRefused | Paused | CallStopping | Stopping | Reopened | Finished | Voted | NotTaken
    | Reminded | HandedOver | WaitsOn | Rerun | Given
)  # fmt: skip
__all__ = [
    "About", "Answered", "AnyDecision", "Asked", "Assuming", "AttemptRefused", "AttemptStarted", "CallStopping",
    "Chosen", "Cleared", "Completed", "Decision", "Doubted", "Ended", "Expanded", "FaultEvent", "Finished", "Flagged",
    "Given", "HandedOver", "Held", "Initialised", "Initialising", "Judged", "NotTaken", "OneShotSkip", "Paused",
    "Planned", "Refusal", "Refused", "Remediating", "Reminded", "Reopened", "Rerun", "Retrying", "Routed", "Routing",
    "Settled", "Skipped", "Started", "Stopping", "Superseded", "TimeLimited", "TimedOut", "TimerCleared", "Undone",
    "Voted", "Wait", "WaitsOn",
]  # fmt: skip
