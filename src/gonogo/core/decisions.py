"""Why: everything the core decides, as complete deltas. State is the fold of these over the records of a run.

Each decision can say itself in one plain sentence (`sentence`). Commands aren't recorded: they follow from decisions.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from gonogo.core.commands import Ask
from gonogo.core.faults import Fault, Issue
from gonogo.core.plan import Target


class Decision(Struct, frozen=True, omit_defaults=True, tag_field="type", gc=False):
    """Base of all decisions. Plain data without cycles, so the garbage collector needn't look."""

    def sentence(self) -> str:
        """The decision in words, without its step's name where it has one."""
        return type(self).__name__.lower()


class About(Decision, frozen=True):
    """A decision about one step in one scope."""

    step: str
    scope: str = ""


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
        return f"retry {self.retry} in {self.delay_s:g} s"


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


class Finished(Decision, frozen=True, tag="finished"):
    """The verdict, with what made it: steps that failed untolerated, or what is waited for when `parked`."""

    verdict: str
    because: tuple[str, ...] = ()
    parked: bool = False

    def sentence(self) -> str:
        return f"verdict {self.verdict}" + (f": {', '.join(self.because)}" if self.because else "")


AnyDecision = (
    Planned | Refusal | Asked | Judged | Cleared | Skipped | Initialising | Initialised | Assuming | Started | Ended
    | Completed | Settled | Expanded | Retrying | TimedOut | Routed | Refused | OneShotSkip | FaultEvent | Flagged
    | Remediating | Routing | Superseded | Held | Doubted | Answered | Chosen | TimeLimited | Undone | TimerCleared
    | CallStopping | Stopping | Reopened | Finished
)  # fmt: skip
