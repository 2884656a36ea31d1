"""A run as its readers see it: reports, the web page, the command line and tests all read this, and nothing else.

`view_of` looks at a state; what only the records know (faults of earlier attempts, counts) is read when it is asked
for. `as_json` is the object that `--format json` prints; the attributes beside it (`plan`, `waiting`) are for
people's formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from gonogo.core import lifecycle as life
from gonogo.core.decisions import Undone
from gonogo.core.faults import Issue
from gonogo.core.plan import Plan
from gonogo.core.state import Node, State
from gonogo.journal.counts import Counts
from gonogo.journal.durations import milliseconds
from gonogo.journal.lazily import Elements, Members, plain_data
from gonogo.journal.records import Record
from gonogo.journal.restoring import state_of
from gonogo.journal.standing import standing
from gonogo.journal.steps import Items, ItemView, StepView, step_view

if TYPE_CHECKING:
    from gonogo.journal.fault_log import FaultStory
    from gonogo.journal.glimpse import Glimpse
    from gonogo.journal.metrics import Metric
    from gonogo.journal.tally import Tally

__all__ = [
    "ItemView",
    "Items",
    "RunView",
    "StepView",
    "Waiting",
    "exit_code",
    "run_view",
    "view_of",
    "waiting_in",
]

GO, NO_GO, HOLD, INTERRUPTED = 0, 1, 3, 130
_CODES = {"GO": GO, "NO-GO": NO_GO, "HOLD": HOLD}


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a person is asked: a hold with its prompt, or a call `in_doubt`. `since_s`, and `due_s` if it ends, on its
    run's clock, whose zero was at `started_at_ms`.

    `by` performed a call in doubt: a worker, or `process 17 on here`; empty where that isn't known.
    `approvers` may answer, all if there are none; of an approval's `quorum` so many have `approved`. `run_id` is that
    of the run to name in an answer, where that isn't the run that is looked at (`questions.py`).
    """

    step: str
    scope: str
    prompt: str
    in_doubt: bool = False
    details: Any = None
    due_s: float | None = None
    default: str | None = None
    run_id: str = ""
    since_s: float | None = None
    approvers: tuple[str, ...] = ()
    quorum: int | None = None
    approved: tuple[str, ...] = ()
    reminders: int = 0
    started_at_ms: int = 0
    by: str = ""

    def as_json(self) -> dict[str, Any]:
        """The question in the object of `--format json`; times are Unix times."""
        return {
            "step": self.step,
            "scope": self.scope,
            "run_id": self.run_id or None,
            "prompt": self.prompt,
            "in_doubt": self.in_doubt,
            "since": self.at(self.since_s),
            "until": self.at(self.due_s),
            "default": self.default,
            "approvers": list(self.approvers),
            "quorum": self.quorum,
            "approved": list(self.approved),
            "reminders": self.reminders,
            "by": self.by or None,
        }

    def at(self, run_s: float | None) -> float | None:
        """A time of its run's clock as Unix time in seconds."""
        return None if run_s is None else round(self.started_at_ms / 1000 + run_s, 3)


@dataclass(frozen=True, slots=True)
class RunView:
    """A run. `verdict` is None while it is under way or after a crash; `because` names the steps that made it.

    `steps` holds the included steps in configuration order, `excluded` why each other one was left out.
    `issues` are the run's own (a refused route, a plan that can't run); those about a step stand with it, too.
    `standing` is how it stands in one word (`standing.WORDS`), `aside` why no worker goes on with it, `carried` the
    engine whose workers do otherwise; `unclaimed` are calls that no worker has taken yet, each with the label that one
    must have.
    """

    run_id: str
    verdict: str | None
    because: tuple[str, ...]
    exit_code: int
    event: dict[str, Any] | None
    steps: dict[str, StepView]
    issues: tuple[Issue, ...]
    excluded: dict[str, str]
    waiting: tuple[Waiting, ...]
    parked: bool
    interrupted: bool
    started_at_ms: int
    wall_ms: int
    plan: Plan
    state: State = field(repr=False)
    counts: Counts = field(repr=False)
    standing: str = "RUNNING"
    aside: str | None = None
    carried: str = ""
    unclaimed: Mapping[int, str] = field(default_factory=dict, repr=False)

    @property
    def cancelled(self) -> bool:
        """Whether somebody stopped it and nobody went on with it since."""
        return self.state.stopping in ("cancelled", "cancelled_hard")

    def ran(self, step: StepView) -> int:
        """How often a step ran: an output that a person gave is no run. Raises as `statistics`."""
        return step.runs - self.counts.tally.given[step.name]

    @property
    def statistics(self) -> dict[str, Any]:
        """Counts with the report's names (spec D.3). Raises JournalError, as all that reads the records."""
        told: dict[str, Any] = plain_data(Members(self._statistics().items))
        return told

    @property
    def faults(self) -> tuple[dict[str, Any], ...]:
        """What the run itself says, then every fault of every attempt: steps in order, each step's as they happened."""
        return tuple(_faults(self.state, self.counts.tally))

    @property
    def fault_stories(self) -> tuple[FaultStory, ...]:
        """What became of each fault, in the order they were detected. Without a fault the records aren't read."""
        return tuple(self.counts.fault_log.stories.values()) if self.state.last_fault else ()

    @property
    def undone(self) -> tuple[Undone, ...]:
        """What was undone at the end, the first first, or wasn't. Where nothing can be, the records aren't read."""
        if self.verdict != "NO-GO" or all(step.compensate is None for step in self.plan.steps.values()):
            return ()
        return tuple(self.counts.fault_log.undone)

    @property
    def budgets(self) -> dict[str, Any]:
        """What of each limit was used, and every refusal."""
        return _budgets(self.state, self.counts.tally)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Counters and sums with labels, every family in turn (metrics.py)."""
        from gonogo.journal.metrics import About

        event = str((self.event or {}).get("name") or "")
        about = About(self.run_id, self.plan.name, event, self.verdict or "none", self.state.at)
        return self.counts.tally.meter.metrics(about)

    def told(self, step: Callable[[StepView], Any] = StepView.told) -> Iterator[tuple[str, Any]]:
        """The members of the object of `--format json`, each made when it is due; `step` tells of one step.

        Raises JournalError before the first of them.
        """
        from gonogo.journal.metrics import as_json

        statistics = self._statistics()
        yield "run_id", self.run_id
        yield "verdict", self.verdict
        yield "standing", self.standing
        yield "aside", self.aside
        yield "exit_code", self.exit_code
        yield "event", self.event
        yield "waiting", [one.as_json() for one in self.waiting]
        yield "steps", Members(lambda: ((name, step(one)) for name, one in self.steps.items()))
        yield "statistics", Members(statistics.items)
        yield "faults", Elements(lambda: _faults(self.state, self.counts.tally))
        yield "fault_events", self.counts.fault_log.as_json(self.run_id, self.started_at_ms)
        yield "undone", [_undone(one) for one in self.undone]
        yield "budgets", self.budgets
        yield "metrics", as_json(self.metrics)

    def as_json(self) -> dict[str, Any]:
        """As `told`, as plain JSON data."""
        return {name: plain_data(value) for name, value in self.told()}

    def _statistics(self) -> dict[str, Any]:
        from gonogo.journal.statistics import statistics_of

        return statistics_of(self.state, self.steps, self.counts.tally)


def run_view(records: Sequence[Record]) -> RunView:
    """The run that these records tell of.

    Raises:
        JournalError: the records don't follow from each other, or the first isn't the start of a run.
    """
    from gonogo.journal.glimpse import glimpses_of

    return view_of(state_of(records), lambda: glimpses_of(records))


def view_of(
    state: State,
    glimpses: Callable[[], Iterable[Glimpse]],
    fault_glimpses: Callable[[], Iterable[Glimpse]] | None = None,
) -> RunView:
    """The run of a state, which must stay as it is while the view is in use. `glimpses` gives its records again,
    `fault_glimpses` quicker what they tell of faults. Somebody is taken to have a run without a verdict.
    """
    finished = state.finished
    # A run that was interrupted and went on since isn't any more.
    interrupted = state.interrupted and state.stopping in ("cancelled", "cancelled_hard")
    verdict = finished.verdict if finished else None
    return RunView(
        run_id=state.run_id,
        verdict=verdict,
        because=finished.because if finished else (),
        exit_code=exit_code(verdict, interrupted=interrupted),
        event={"name": state.trigger.get("name")} if state.trigger else None,
        steps=_steps(state),
        issues=tuple(state.run_issues),
        excluded=state.excluded,
        waiting=waiting_in(state),
        parked=finished is not None and finished.parked,
        interrupted=interrupted,
        started_at_ms=state.started_at_ms,
        wall_ms=milliseconds(state.at),
        plan=state.graph.plan,
        state=state,
        counts=Counts(glimpses, fault_glimpses),
        standing=standing(verdict, interrupted=interrupted, running=True),
    )


def exit_code(verdict: str | None, *, interrupted: bool = False) -> int:
    """What the process says (cli.md): an interrupted run, and one without a verdict, can be resumed."""
    return INTERRUPTED if verdict is None or interrupted else _CODES[verdict]


def _steps(state: State) -> dict[str, StepView]:
    said: dict[str, list[Issue]] = {}
    for issue in state.run_issues:
        said.setdefault(issue.check_name or "", []).append(issue)
    included = state.included
    return {
        name: step_view(state, step, said.get(name, ()))
        for name, step in state.graph.steps.items()
        if name in included
    }


def _faults(state: State, tally: Tally) -> Iterator[dict[str, Any]]:
    for issue in state.run_issues:
        place = {"step": issue.check_name, "scope": issue.scope or "", "attempt": 0, "outcome": None}
        told = {"kind": "run", "class": "logical", "rule_id": issue.rule_id, "message": issue.message}
        yield {**place, **told}
    for ended, fault, attempt in sorted(tally.faults, key=lambda found: state.graph.order[found[0].step]):
        place = {"step": ended.step, "scope": ended.scope, "attempt": attempt, "outcome": ended.outcome}
        yield {**place, **msgspec.to_builtins(fault)}


def _budgets(state: State, tally: Tally) -> dict[str, Any]:
    limits = state.graph.plan.limits
    return {
        "max_loops": {"allowed": limits.max_loops, "used": dict(state.loops)},
        "max_runs": {"allowed": limits.max_runs},
        "max_parallelism": {"allowed": limits.max_parallelism},
        "run": _run_budget(state),
        "refused": [
            {
                "step": refusal.step,
                "scope": refusal.scope,
                "target": refusal.target,
                "limit": refusal.limit,
                "used": refusal.used,
                "allowed": refusal.allowed,
            }
            for refusal in tally.refusals
        ],
    }


def _run_budget(state: State) -> dict[str, Any]:
    """What of the run's own budget was used, of what has a limit."""
    spent = state.spent
    since = state.at - state.active_since if state.budget_timer is not None else 0.0
    used = {
        "time_s": round(spent.time_s + since, 6),
        "calls": spent.calls,
        "retries": spent.retries,
        "tokens": spent.tokens,
        "money": spent.money,
    }
    allowed = msgspec.structs.asdict(state.graph.plan.budget)
    return {
        name: {"allowed": allowed[name], "used": used[name]} for name in used if allowed[name] is not None
    }


def _undone(one: Undone) -> dict[str, Any]:
    return {"step": one.step, "scope": one.scope, "by": one.by, "outcome": one.outcome}


def waiting_in(state: State) -> tuple[Waiting, ...]:
    """What a run waits for."""
    over = state.finished is not None and not state.finished.parked
    return () if over else tuple(_waiting(state.all_nodes(), state.started_at_ms))


def _waiting(nodes: Iterable[Node], started_at_ms: int) -> Iterator[Waiting]:
    for node in nodes:
        hold = node.hold
        if node.status == life.IN_DOUBT:
            yield Waiting(
                node.step,
                node.scope,
                node.reason or "",
                in_doubt=True,
                since_s=node.ended_at,
                started_at_ms=started_at_ms,
            )
        elif node.status == life.HOLDING and hold is not None:
            yield Waiting(
                node.step,
                node.scope,
                hold.prompt,
                False,
                hold.details,
                hold.due_s,
                hold.default,
                since_s=hold.since_s,
                approvers=hold.approvers,
                quorum=hold.quorum,
                approved=tuple(vote.by for vote in hold.votes if vote.text == "yes"),
                reminders=hold.reminders,
                started_at_ms=started_at_ms,
            )
