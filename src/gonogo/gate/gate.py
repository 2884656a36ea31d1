"""The gate: what a program puts its outbound calls through.

    from gonogo.gate import Gate

    gate = Gate("weather")
    answer = await gate.call(fetch, "Oslo")        # any async function

More targets, rules and bounds come with a Policy; more about a call with a Step. A gate holds no connection and may be
used by many tasks at once.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from itertools import count
from types import CoroutineType
from typing import Any

import anyio
from anyio import to_thread
from msgspec import structs

from gonogo.errors import UsageError
from gonogo.gate.breaker import BreakerPolicy
from gonogo.gate.breakers import Breakers
from gonogo.gate.budgets import Purse, RetryShare
from gonogo.gate.calling import answer
from gonogo.gate.calls import Call, Keep
from gonogo.gate.checking import checked
from gonogo.gate.clock import Clock, SystemClock
from gonogo.gate.failures import StepFailed
from gonogo.gate.judging import Evaluator, Predicates
from gonogo.gate.latencies import Latencies
from gonogo.gate.ledger import Opens
from gonogo.gate.nesting import Watch
from gonogo.gate.policy import Policy, Target
from gonogo.gate.step import Answer, Attempt, Step
from gonogo.gate.stores import MemoryStore, Store
from gonogo.gate.streaming import GateStream


class Gate:
    """A policy at work.

    `policy` may be a name, for a single target by that name. What several gates of a process should share is handed in:
    `store` (breakers' records), `retries` (the share of retries), `latencies` (what was seen of targets), `purse` (a
    run's budget). `evaluate` judges the texts
    of rules, `predicates` are their functions by `name@version`. `redact` takes secrets out of texts before anything
    keeps them. `watch` hears every decision as it is made. `keep` gets every event with its decisions before anything
    is done about them, and may raise to stop the call: what must outlive a crash is written there. `ledger` opens, for
    each call, what its attempts are written in before they go out, and may be refused by (`ledger.py`). `seed` makes
    call ids, and so jitter, repeatable.
    Raises ConfigError with every problem of the policy.
    """

    __slots__ = (
        "_count", "_last_good", "_seed", "_store", "breakers", "clock", "evaluate", "keep", "latencies",
        "ledger", "policy", "predicates", "purse", "redact", "retries", "watch",
    )  # fmt: skip

    def __init__(
        self,
        policy: Policy | str,
        *,
        store: Store | None = None,
        retries: RetryShare | None = None,
        latencies: Latencies | None = None,
        purse: Purse | None = None,
        clock: Clock | None = None,
        evaluate: Evaluator | None = None,
        predicates: Predicates | None = None,
        redact: Callable[[str], str] | None = None,
        watch: Watch | None = None,
        keep: Keep | None = None,
        ledger: Opens | None = None,
        seed: str | None = None,
    ) -> None:
        given = Policy(targets=(Target(policy),)) if isinstance(policy, str) else policy
        self.predicates: Predicates = predicates or {}
        self.policy = _owned(checked(given, self.predicates, evaluates=evaluate is not None))
        self.clock: Clock = clock or SystemClock()
        self.retries = retries or RetryShare()
        self.latencies = (latencies or Latencies()) if self.policy.order == "least-latency" else None
        self.purse = purse
        self.evaluate = evaluate
        self.redact = redact
        self.watch = watch
        self.keep = keep
        self.ledger = ledger
        self._store = store
        self.breakers = _breakers(self.policy.breaker, store, self.clock)
        self._seed = seed if seed is not None else secrets.token_hex(6)
        self._count = count(1)
        self._last_good: tuple[int, float] | None = None

    async def call(self, what: Step | Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        """The value of a step or of an async function called with these arguments. Raises GateError."""
        return (await answer(self._call(what, args, kwargs))).value

    async def answer(self, what: Step | Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Answer:
        """As `call`, with the target that served and the record. Raises GateError."""
        return await answer(self._call(what, args, kwargs))

    def _call(
        self, what: Step | Callable[..., Awaitable[Any]], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Call:
        step = what if isinstance(what, Step) else _step_of(what, args, kwargs)
        if step.invoke is None:
            raise UsageError(f"step {step.name!r} has no invoke; stream it")
        return Call(self, step, streaming=False)

    def stream(self, step: Step) -> GateStream:
        """The pieces of a step's stream: `async for piece in gate.stream(step)`, best inside `async with`."""
        if step.stream is None:
            raise UsageError(f"step {step.name!r} has no stream; call it")
        return GateStream(Call(self, step, streaming=True))

    def call_sync(self, what: Step | Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """As `call`, for code without an event loop. A plain function runs in a thread, which is left behind when its
        time is up. Raises GateError, and UsageError inside an event loop.
        """
        step = what if isinstance(what, Step) else _step_of(_in_thread(what), args, kwargs)
        if _loop_runs():
            raise UsageError(
                "call_sync would block the event loop it is called in", advice="await gate.call(…) instead"
            )
        return anyio.run(self.call, step)

    def isolate(self, target: str, reason: str, *, by: str, for_s: float = 3600.0, step: str = "") -> None:
        """Keep a target out of all calls for a time. Raises UsageError when there is no such target or no breaker."""
        breakers = self._has_breakers()
        breakers.isolate(breakers.key(step, self._target(target)), reason, by=by, for_s=for_s)

    def reset(self, target: str, *, step: str = "") -> None:
        """Let a target in again, whatever its breaker says. Raises UsageError as `isolate` does."""
        breakers = self._has_breakers()
        breakers.reset(breakers.key(step, self._target(target)))

    def beside(self, policy: Policy) -> Gate:
        """A gate of a policy of its own that shares all else with this one: store, budgets, ledger, watch, ids."""
        other = Gate(
            policy,
            store=self._store,
            retries=self.retries,
            latencies=self.latencies,
            purse=self.purse,
            clock=self.clock,
            evaluate=self.evaluate,
            predicates=self.predicates,
            redact=self.redact,
            watch=self.watch,
            keep=self.keep,
            ledger=self.ledger,
            seed=self._seed,
        )
        other._count = self._count  # no two calls have one id
        return other

    # --- what a call asks of its gate

    def next_id(self) -> str:
        """A call's id."""
        return f"{self._seed}-{next(self._count)}"

    def unfit(self, step: Step) -> dict[str, str]:
        """Targets that can't serve a step, and why (F7)."""
        found: dict[str, str] = {}
        for target in self.policy.targets:
            missing = sorted(step.needs - target.capabilities)
            reason = f"lacks {', '.join(missing)}" if missing else step.unfit(target) if step.unfit else None
            if reason is not None:
                found[target.name] = reason
        return found

    def first(self, now: float) -> int:
        """The target to begin with: the last good one for a while, if the policy is sticky, then the list's first."""
        if self.policy.sticky_s is None or self._last_good is None:
            return 0
        index, since = self._last_good
        return index if now - since < self.policy.sticky_s else 0

    def served(self, index: int, now: float) -> None:
        """A target gave a good answer."""
        if self._last_good is None or self._last_good[0] != index:
            self._last_good = (index, now)

    def _target(self, name: str) -> Target:
        found = next((target for target in self.policy.targets if target.name == name), None)
        if found is None:
            known = ", ".join(target.name for target in self.policy.targets)
            raise UsageError(f"there is no target {name!r}; there are: {known}")
        return found

    def _has_breakers(self) -> Breakers:
        if self.breakers is None:
            raise UsageError("this gate's policy has no breaker")
        return self.breakers


def _breakers(policy: BreakerPolicy | None, store: Store | None, clock: Clock) -> Breakers | None:
    return None if policy is None else Breakers(policy, store or MemoryStore(), clock.now)


def _step_of(
    function: Callable[..., Awaitable[Any]], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Step:
    name = getattr(function, "__name__", "call")

    def invoke(attempt: Attempt) -> Awaitable[Any]:
        found: Any = function(*args, **kwargs)
        if type(found) is not CoroutineType and not isinstance(
            found, Awaitable
        ):  # it has run, and must not run again
            told = f"{name} is no async function: call_sync takes plain ones"
            raise StepFailed("bad-request", told, effect="done")
        return found

    return Step(name, invoke)


def _in_thread(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        found = await to_thread.run_sync(lambda: function(*args, **kwargs), abandon_on_cancel=True)
        return await found if isinstance(found, Awaitable) else found

    call.__name__ = getattr(function, "__name__", "call")
    return call


def _loop_runs() -> bool:
    try:
        anyio.get_current_task()
    except Exception:  # noqa: BLE001 - what is raised depends on the installed libraries; all of it means no
        return False
    return True


def _owned(policy: Policy) -> Policy:
    """The policy with values of its own: whoever made it can't change it any more (F4)."""
    if not any(target.params for target in policy.targets):
        return policy
    return structs.replace(
        policy,
        targets=tuple(structs.replace(target, params=deepcopy(target.params)) for target in policy.targets),
    )
