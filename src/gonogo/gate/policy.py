"""What a gate may do: targets, rules, bounds, timers. Frozen, serialisable, hashed. Pure.

A policy is checked when a gate is built (`checked`): every problem is told with the rule's index and field. What
a policy means is decided in `machine.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from gonogo.gate.breaker import BreakerPolicy

Verb = Literal["continue", "ok", "retry", "retry-other", "fallback", "fail-fast", "skip-target", "wait"]
BEFORE_VERBS = frozenset({"continue", "fail-fast", "skip-target", "wait"})
AFTER_VERBS = frozenset({"ok", "retry", "retry-other", "fallback", "fail-fast"})
StreamMode = Literal[
    "pass-through", "restart", "continue", "hold-until-first-token", "hold-until-valid", "sentence-hold"
]
Order = Literal["configured", "weighted", "least-latency"]
LIST_MAX = 1000
"""Most values in the list of one `in` (E5)."""


class Target(Struct, frozen=True, omit_defaults=True):
    """One entry of a failover list. Rules and records call it by `name`.

    `client` names what the step calls it through; `model` and `params` replace those of the request (each target its
    own: X9). `window_tokens` matters after context-too-long. `tier`: lower ones come first, and
    within one `weight` says how often it does, where the policy's order is by weight. `key_honoured`: repeats
    under one idempotency key are one act there. `endpoint`, `credential`: what the breaker may tell apart. Only a
    target that names its credential is kept out for a refused one, and only one that names its model for a missing
    one: else nobody could tell when that is mended, or whether a 404 is about more than one address.
    """

    name: str
    model: str = ""
    client: str = ""
    params: dict[str, Any] = {}
    capabilities: frozenset[str] = frozenset()
    window_tokens: int | None = None
    tier: int = 0
    input_usd_per_million: float = 0.0
    output_usd_per_million: float = 0.0
    key_honoured: bool = False
    endpoint: str = ""
    credential: str = ""
    weight: float | None = None


class Condition(Struct, frozen=True):
    """One comparison of a filter: a dotted path into the scope, an operator, a threshold."""

    path: str
    op: str
    threshold: Any


class Filter(Struct, frozen=True, tag="filter"):
    """Data that says when: all conditions hold. An empty one never matches (E5)."""

    conditions: tuple[Condition, ...]


class Expression(Struct, frozen=True, tag="expression"):
    """Text that says when, for the evaluator that the gate was given (JavaScript in workflows)."""

    text: str


class Predicate(Struct, frozen=True, tag="predicate"):
    """A Python function that says when, by its name in the gate's `predicates`; a changed one has a new version."""

    name: str
    version: str = "1"


When = Filter | Expression | Predicate


class Rule(Struct, frozen=True, omit_defaults=True):
    """When this holds, then do that.

    `kind` is a stable id, copied to records and errors; `label` a sentence for people; `feedback` is told to the model
    with its rejected answer (retry and retry-other); `wait_s` is for the verb wait, or overrides the backoff of retry.
    """

    when: When
    then: str
    kind: str = ""
    label: str = ""
    feedback: str | None = None
    wait_s: float | None = None

    @property
    def named(self) -> str:
        """What records call it."""
        return self.label or self.kind or self.then


def rule(then: str, when: Mapping[str, Any] | str | When, **more: Any) -> Rule:
    """A rule in short: `when` is a filter (`{"error_kind": "auth"}`, `{"attempt": {"lt": 3}}`), a text, a Predicate."""
    if isinstance(when, str):
        return Rule(Expression(when), then, **more)
    return Rule(_filter(when) if isinstance(when, Mapping) else when, then, **more)


def _filter(given: Mapping[str, Any]) -> Filter:
    return Filter(
        tuple(
            Condition(path, op, tuple(threshold) if isinstance(threshold, list) else threshold)
            for path, test in given.items()
            for op, threshold in (test.items() if isinstance(test, Mapping) else (("eq", test),))
        )
    )


class Bounds(Struct, frozen=True, omit_defaults=True):
    """How much one call may take; all finite (B19). `deadline_s` counts from the call's start.

    `waits_max` and `wait_s_max` bound the waiting; `fallbacks_max` is 1 or 0 unless rules need more; `cycles` says how
    often the list of targets may be gone through.
    """

    attempts_per_target: int = 3
    attempts_max: int = 6
    deadline_s: float = 60.0
    tokens_max: int | None = None
    cost_usd_max: float | None = None
    fallbacks_max: int = 1
    waits_max: int = 20
    wait_s_max: float = 60.0
    cycles: int = 1


class Timers(Struct, frozen=True, omit_defaults=True):
    """Limits of one attempt, seconds. `tail_s`: how long a stream that has said why it ends may still bring usage."""

    connect_s: float = 10.0
    first_token_s: float = 20.0
    idle_s: float = 20.0
    attempt_s: float = 30.0
    tail_s: float = 1.0


class Backoff(Struct, frozen=True, omit_defaults=True):
    """Waits between attempts: full jitter below `base_s`·2ⁿ, at most `cap_s` (F23).

    A wait up to `patience_s` is spent on the same target; before a longer one another target is asked (F24).
    """

    base_s: float = 0.5
    cap_s: float = 20.0
    patience_s: float = 5.0


class Hedge(Struct, frozen=True):
    """A second copy to the next target when the first hasn't answered after `delay_s`; never for calls that mutate."""

    delay_s: float


class Policy(Struct, frozen=True, omit_defaults=True):
    """All that a gate goes by. Left as it is, it calls a target three times if that is worth it, within a minute.

    `targets` is the failover list, tiers first, else in this order; or by `order`: `weighted` (a hash of the call draws
    by the targets' weights), `least-latency` (by what the gate has seen of each, unknown ones first).
    `before` rules are looked at before each attempt, `after` rules when it ended; what no rule speaks for goes by the
    taxonomy.
    `reroute` names kinds that may go to another target by opting in (content-filter, refusal, length-stop).
    `when_all_open`: wait for the first breaker to let a call through, probe it at once, or fail.
    `sticky_s`: for so long calls begin with the target that served last, then with the list's first again.
    `strict`: a rule that can't be evaluated fails the call; else it counts as no match, with a record (B14).
    """

    targets: tuple[Target, ...] = (Target("target"),)
    before: tuple[Rule, ...] = ()
    after: tuple[Rule, ...] = ()
    bounds: Bounds = field(default_factory=Bounds)
    timers: Timers = field(default_factory=Timers)
    backoff: Backoff = field(default_factory=Backoff)
    breaker: BreakerPolicy | None = field(default_factory=BreakerPolicy)
    mode: StreamMode = "hold-until-first-token"
    hold_characters: int = 200
    reroute: frozenset[str] = frozenset()
    when_all_open: Literal["wait", "probe", "fail"] = "wait"
    sticky_s: float | None = None
    hedge: Hedge | None = None
    strict: bool = False
    order: Order = "configured"

    def digest(self) -> str:
        """Names this very policy in records."""
        data = msgspec.json.encode(self, order="deterministic")
        return hashlib.blake2b(data, digest_size=8).hexdigest()
