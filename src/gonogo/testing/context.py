"""A Context that does what the test says, for tests of step types. It starts nothing and waits for nothing.

    context = ScriptedContext(answers=["yes"])
    outcome = anyio.run(provider.run, call_for(provider, {"prompt": "go on?"}), context)

What the test doesn't script raises `AssertionError`, so that a provider can't use something unseen. A real
sandbox or renderer comes in as a function (`evaluate_with`, `render_with`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from gonogo.gate.gate import Gate
from gonogo.gate.policy import Bounds, Policy, Timers
from gonogo.provider import Call, ChildResult, Outcome, Provider, Result
from gonogo.testing.waits import SkippingClock

Evaluate = Callable[[str, str, Mapping[str, Any]], Result]
Render = Callable[[str, Mapping[str, Any]], str]


ONCE = Policy(
    bounds=Bounds(attempts_per_target=1, attempts_max=1, deadline_s=3600.0),
    timers=Timers(attempt_s=3600.0),
    breaker=None,
)
"""What a host gives a call that nobody says anything about."""


def _no_sandbox(source: str, kind: str, names: Mapping[str, Any]) -> Result:
    raise AssertionError(f"the test gives no `evaluate_with`, but {kind} {source!r} was asked for")


def _no_renderer(text: str, names: Mapping[str, Any]) -> str:
    if "{{" in text or "{%" in text:
        raise AssertionError(f"the test gives no `render_with`, but {text!r} is a template")
    return text


@dataclass(slots=True)
class ScriptedContext:
    """Answers as told and notes what was asked of it.

    `answers`, `children` and `steps` are handed out in order; an answer None means that nobody is there. `logged`
    holds (level, text), `shown` the lines of progress, `prompts`, `child_calls` and `step_calls` what was asked.
    `policy` is what the workflow says of the step's calls; `gates` are those handed out, whose `clock` skips waits and
    notes them; `paced` is what was to be paced.
    """

    answers: Iterable[str | None] = ()
    children: Iterable[ChildResult] = ()
    steps: Iterable[Outcome] = ()
    evaluate_with: Evaluate = _no_sandbox
    render_with: Render = _no_renderer
    working_directory: str = field(default_factory=os.getcwd)
    policy: Policy | None = None
    clock: SkippingClock = field(default_factory=SkippingClock)
    logged: list[tuple[str, str]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    child_calls: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = field(default_factory=list)
    step_calls: list[tuple[str, Mapping[str, Any], bool]] = field(default_factory=list)
    gates: list[Gate] = field(default_factory=list)
    paced: list[tuple[str, int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.answers = iter(self.answers)
        self.children = iter(self.children)
        self.steps = iter(self.steps)

    async def evaluate(self, source: str, kind: str, names: Mapping[str, Any]) -> Result:
        """What `evaluate_with` says."""
        return self.evaluate_with(source, kind, names)

    def render(self, text: str, names: Mapping[str, Any]) -> str:
        """What `render_with` says; text without tags stays as it is."""
        return self.render_with(text, names)

    def log(self, level: str, text: str) -> None:
        """Kept in `logged`."""
        self.logged.append((level, text))

    def progress(self, text: str) -> None:
        """Kept in `shown`."""
        self.shown.append(text)

    async def answer(self, prompt: str, *, multiline: bool, secret: bool) -> str | None:
        """The next of `answers`; None when they have run out."""
        self.prompts.append(prompt)
        return next(iter(self.answers), None)

    async def run_step(
        self, step: str, arguments: Mapping[str, Any], *, number: int, mutates: bool = False
    ) -> Outcome:
        """The next of `steps`, as the test gives it."""
        self.step_calls.append((step, arguments, mutates))
        outcome = next(iter(self.steps), None)
        assert outcome is not None, f"the test gives no outcome, but the step {step!r} was run"
        return outcome

    async def pace(self, key: str, requests: int, per_s: float) -> None:
        """Kept in `paced`."""
        self.paced.append((key, requests, per_s))

    def gate(self, default: Policy | None = None) -> Gate:
        """A gate of `policy`, else of `default`, else of one attempt; its ids, and so its jitter, repeat."""
        policy = self.policy or default or ONCE
        if self.policy is not None and self.policy.targets == Policy().targets and default is not None:
            policy = replace(policy, targets=default.targets)
        self.gates.append(Gate(policy, clock=self.clock, seed=f"gate-{len(self.gates)}"))
        return self.gates[-1]

    async def run_child(
        self,
        workflow: str,
        *,
        inputs: Mapping[str, Any],
        overrides: Mapping[str, Any],
        shares_memory: bool = False,
    ) -> ChildResult:
        """The next of `children`, as the test gives it."""
        self.child_calls.append((workflow, inputs, overrides))
        child = next(iter(self.children), None)
        assert child is not None, f"the test gives no child result, but {workflow!r} was started"
        return child


def call_for(
    provider: Provider,
    config: Mapping[str, Any],
    *,
    names: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    **changes: Any,
) -> Call:
    """A first attempt at a step called `step`, nothing of its config templated unless `changes` says so.

    Raises `msgspec.ValidationError` when the config isn't valid.
    """
    facts: dict[str, Any] = {
        "step": "step",
        "scope": "",
        "execution": 1,
        "attempt": 1,
        "intent": "run//step/1",
        "key": "key-1",
        "timeout_s": provider.default_timeout_s,
        "templated": frozenset(),
    }
    checked = provider.checked(config)
    facts = {"effects": provider.effects_of(checked), **facts, **changes}
    return Call(config=checked, env=env or {}, names=names or {}, **facts)
