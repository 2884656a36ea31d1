"""Plan: what a workflow file compiles to. Frozen, complete, and written whole into the first record of a run.

Steps refer to expressions by their position in `Plan.expressions`, so records stay small and sources are
stored once. What follows from a plan (order, dependents, fan-out paths) is computed in `graph.py`.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from gonogo.errors import Bug
from gonogo.expressions.analyse import Reading

Effects = Literal["reads", "idempotent", "mutates"]
Criticality = Literal["external", "internal", "policy", "info"]
Severity = Literal["info", "warning", "error", "critical"]


class Expression(Struct, frozen=True, omit_defaults=True):
    """JavaScript or template text. `kind`: condition, value, script or template; `reading` is what it reads."""

    source: str
    kind: str
    reading: Reading | None = None


class Edge(Struct, frozen=True, omit_defaults=True):
    """One dependency. `on_failure: continue` lets a failure of `step` pass this edge (spec C.5 R1)."""

    step: str
    on_failure: Literal["block", "continue"] = "block"


class Need(Struct, frozen=True):
    """An entry of `depends_on`: satisfied when any of its edges is (an OR group has several)."""

    any_of: tuple[Edge, ...]


class FailureCondition(Struct, frozen=True, omit_defaults=True):
    """A named detector: true means an issue, a failure when `severity` is error, a halt when `halt`."""

    name: str
    expression: int
    message: str | None = None
    severity: Severity = "error"
    halt: bool = False


class Transition(Struct, frozen=True, omit_defaults=True):
    """`when` true: go `to` a step, or stop looking when `to` is None."""

    when: int
    to: str | None = None
    event: str | None = None


class Target(Struct, frozen=True, omit_defaults=True):
    """A step to run. `arguments` holds plain values, `templates` the argument names rendered by expression index.

    `alias`: for an item of on_init, the name its output has for the step (None: its own).
    """

    step: str
    arguments: dict[str, Any] = {}
    templates: dict[str, int] = {}
    alias: str | None = None


class Retry(Struct, frozen=True, omit_defaults=True):
    """At most `max` further attempts on faults whose class is in `on`. Delays in seconds (spec C.9).

    `exhausted`: what comes after the last one: the failure stands (fail) or is tolerated (continue), the run goes to
    the step `exhausted_goto` (route), or a person decides (hold). Attempts within a call count against `max`, unless
    they are counted `separately` (semantics.md 24).
    """

    max: int
    on: tuple[str, ...] = ("transient",)
    mode: Literal["fixed", "exponential"] = "fixed"
    delay_s: float = 0.0
    max_delay_s: float = 60.0
    jitter: float = 0.1
    exhausted: Literal["fail", "continue", "route", "hold"] = "fail"
    exhausted_goto: str | None = None
    separately: bool = False


class Block(Struct, frozen=True, omit_defaults=True):
    """What an on_success, on_fail or on_finish says, in the order it acts (spec C.10 R1).

    `escalate` of an on_fail names a step that runs when nothing else is left to be tried.
    """

    run: tuple[Target, ...] = ()
    run_js: int | None = None
    retry: Retry | None = None
    transitions: tuple[Transition, ...] = ()
    goto_js: int | None = None
    goto: str | None = None
    goto_event: str | None = None
    escalate: str | None = None

    @property
    def decides_a_goto(self) -> bool:
        """True when the block may send the run elsewhere after its runs."""
        return bool(self.transitions or self.goto_js is not None or self.goto)

    @property
    def says_more(self) -> bool:
        """True when the block has something to say after its runs, retries aside."""
        return self.decides_a_goto or self.escalate is not None


class Reminder(Struct, frozen=True):
    """While nobody has answered, `step` runs every `every_s` seconds, at most `max` times in one wait."""

    step: str
    every_s: float
    max: int = 5


class Handover(Struct, frozen=True, omit_defaults=True):
    """What changes when nobody has answered after `after_s` seconds: `step` runs once, `approvers` may answer, too, and
    from then on `quorum` of them are enough (None: as before).
    """

    after_s: float
    step: str | None = None
    approvers: tuple[str, ...] = ()
    quorum: int | None = None


class Hold(Struct, frozen=True, omit_defaults=True):
    """How a step waits for people. `approvers`: names or patterns (`*` and `?`) of who may answer, none: anybody.

    `quorum`: it is an approval, for which so many people must say yes, and one no is enough. None: any text answers.
    """

    approvers: tuple[str, ...] = ()
    quorum: int | None = None
    remind: Reminder | None = None
    escalate: Handover | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The steps that it runs while it waits."""
        named = (self.remind and self.remind.step, self.escalate and self.escalate.step)
        return tuple(step for step in named if step)

    @property
    def is_personal(self) -> bool:
        """True when it matters who answers."""
        return bool(self.approvers) or self.quorum is not None


class Step(Struct, frozen=True, omit_defaults=True):
    """One step, engine side; `config` belongs to its provider and is rendered right before a call.

    `reliability`: how its outbound calls are tried: a policy as data, or a name in `Plan.reliability`.
    `runs_on`: the label of the workers that may perform it, where there are workers.
    Units: `timeout_s` in seconds. `if_condition`, `assume`… are positions in `Plan.expressions`.
    `hold`: who may answer when it waits for people, and what happens meanwhile.
    `runs_mutators`: it runs a workflow in which a step mutates; its own call may be repeated all the same.
    `always` is true when `if` calls always(), failure() or success(): it replaces the gate (semantics.md 5).
    """

    name: str
    type: str
    config: dict[str, Any] = {}
    on: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    if_condition: int | None = None
    always: bool = False
    assume: tuple[int, ...] = ()
    guarantee: tuple[int, ...] = ()
    fail_if: int | None = None
    failure_conditions: tuple[FailureCondition, ...] = ()
    depends_on: tuple[Need, ...] = ()
    continue_on_failure: bool = False
    criticality: Criticality = "info"
    criticality_source: Literal["explicit", "tag", "inferred"] = "inferred"
    effects: Effects = "reads"
    runs_mutators: bool = False
    schema: Any = None
    renderer: str | None = None
    for_each: bool = False
    fanout: Literal["map", "reduce"] = "reduce"
    fanout_explicit: bool = False
    concurrency: int = 1
    on_init: tuple[Target, ...] = ()
    on_init_js: int | None = None
    on_success: Block | None = None
    on_fail: Block | None = None
    on_finish: Block | None = None
    max_runs: int | None = None
    timeout_s: float | None = None
    start: Literal["auto", "routed"] = "auto"
    assume_mode: Literal["skip", "fail"] = "skip"
    guarantee_mode: Literal["fail", "issue"] = "fail"
    schema_mode: Literal["fail", "issue"] = "fail"
    idempotency_key: int | None = None
    loop_budget: int | None = None
    compensate: str | None = None
    secret_outputs: tuple[str, ...] = ()
    env: dict[str, Any] = {}
    reliability: Any = None
    runs_on: str = ""
    hold: Hold | None = None
    line: int = 0

    def block(self, trigger: str | None) -> Block:
        """The block of a trigger (on_success, on_fail, on_finish), which must be there. Raises Bug when it isn't."""
        found = self.on_success if trigger == "on_success" else self.on_finish
        if trigger == "on_fail":
            found = self.on_fail
        if found is None:
            raise Bug(f"step {self.name} has no block {trigger}")
        return found

    @property
    def mutates(self) -> bool:
        """True when running it may change the outside, by its own call or by what it runs."""
        return self.effects == "mutates" or self.runs_mutators


class Budget(Struct, frozen=True, omit_defaults=True):
    """What a run may spend in all; None: no limit. `money` is in whatever unit the step types report."""

    time_s: float | None = None
    calls: int | None = None
    retries: int | None = None
    tokens: int | None = None
    money: float | None = None


class Limits(Struct, frozen=True, omit_defaults=True):
    """Finite defaults of a run (law 2). Sizes in bytes, times in seconds."""

    max_parallelism: int = 3
    max_loops: int = 10
    max_runs: int = 50
    max_workflow_depth: int = 3
    max_items: int = 200_000
    history_max: int = 1000
    output_bytes_max: int = 16 * 1024 * 1024
    cleanup_grace_s: float = 10.0


class Plan(Struct, frozen=True, omit_defaults=True):
    """A whole workflow. `steps` keeps configuration order, which is the order among ready steps."""

    name: str
    steps: dict[str, Step]
    expressions: tuple[Expression, ...] = ()
    limits: Limits = Limits()
    fail_fast: bool = False
    fail_if: int | None = None
    failure_conditions: tuple[FailureCondition, ...] = ()
    include_tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()
    safety: Literal["off", "standard", "strict"] = "standard"
    budget: Budget = Budget()
    compensate_on: tuple[str, ...] = ("no_go", "halted")
    env: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    outputs: tuple[dict[str, Any], ...] = ()
    workflows: dict[str, Plan] = {}
    memory: dict[str, Any] = {}
    reliability: dict[str, Any] = {}
    digest: str = ""
