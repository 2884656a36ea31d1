"""The gates of a run's calls: which policy a step goes by, and what its calls share with those beside and above them.

A step's `reliability` is a policy or the name of one; without it the workflow's `default` holds; without that, what
the step type wants; without that, one attempt and no breaker. The gate's modules are imported when a call asks for one.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from gonogo.core.commands import StartCall
from gonogo.core.plan import Plan, Step
from gonogo.core.state import State
from gonogo.core.values import names_for
from gonogo.expressions.results import Failure

if TYPE_CHECKING:
    from gonogo.gate.gate import Gate
    from gonogo.gate.ledger import Ended, Opens, Told, Wanted
    from gonogo.gate.policy import Policy
    from gonogo.gate.rules import Answer
    from gonogo.hosts.above import Above
    from gonogo.hosts.attempts import Attempts
    from gonogo.hosts.base import Surroundings
    from gonogo.hosts.evaluation import Evaluations
    from gonogo.hosts.sure import Sure

DEFAULT = "default"
"""The named policy for steps that name none."""
DEADLINE_S_MAX = 7 * 86_400.0
"""A call without any limit of its own ends then (law 2)."""
REACH_S = 86_400.0
"""No record of a breaker asks for a longer wait, isolation by a person aside."""


class Gates:
    """Makes the gates of one run."""

    __slots__ = ("_around", "_attempts", "_evaluations", "_policies", "_state", "_sure")

    def __init__(
        self,
        state: State,
        around: Surroundings,
        evaluations: Evaluations,
        attempts: Attempts | None,
        sure: Sure | None = None,
    ) -> None:
        """`attempts` is where calls write theirs; without it they are told of with the call's end, and those that
        mutate are only `sure` before each.
        """
        self._state = state
        self._attempts = attempts
        self._sure = sure
        self._around = around
        self._evaluations = evaluations
        self._policies: dict[str, tuple[Mapping[str, Any], Policy]] = {}

    def of(
        self,
        command: StartCall,
        timeout_s: float | None,
        default: Policy | None,
        tell: Callable[[str], None],
        requests: Iterator[int],
    ) -> Gate:
        """The gate of a call, which may take `timeout_s`; `tell` hears of waits and switches. Raises ConfigError.

        `requests` numbers what goes through it.
        """
        from gonogo.gate.gate import Gate

        step = self._state.graph.steps[command.step]
        outbound = self._around.outbound
        policy, attempts = within(self._policy(step, default), timeout_s), self._attempts
        gate = Gate(
            policy,
            store=outbound.store(),
            retries=outbound.retries(),
            latencies=outbound.latencies() if policy.order == "least-latency" else None,
            evaluate=self._evaluator(command),
            redact=self._around.redactor.text,
            watch=_watch(tell),
            clock=outbound.clock,
            ledger=self._fence(command)
            if attempts is None
            else attempts.opener(command, self._names(policy), requests),
            seed=f"{command.intent}/{command.attempt}",
        )
        if outbound.trouble is not None:
            tell(f"breakers aren't kept: {outbound.trouble}")
            outbound.trouble = None
        return gate

    def _fence(self, command: StartCall) -> Opens | None:
        sure = self._sure
        return None if sure is None else lambda step: _Fence(lambda: sure(command))

    def above(self, command: StartCall) -> Above | None:
        """Where the run beneath a call asks before it spends; None where nobody has a budget."""
        return None if self._attempts is None else self._attempts.beneath(command.call)

    def _names(self, policy: Policy) -> dict[str, str]:
        """The targets' names by what records hold of them: without secrets."""
        return {self._around.redactor.text(target.name): target.name for target in policy.targets}

    def _policy(self, step: Step, default: Policy | None) -> Policy:
        data = policy_data(self._state.graph.plan, step)
        policy = default if default is not None else once()
        if data is not None:
            said = self._said(step.name, data)
            # What is called is known to the step type, unless the policy names it.
            policy = said if "targets" in data else replace(said, targets=policy.targets)
        if step.idempotency_key is not None:
            # A key of the author's own is there because the far side honours it (semantics.md 16).
            policy = replace(
                policy, targets=tuple(replace(each, key_honoured=True) for each in policy.targets)
            )
        return policy

    def _said(self, step: str, data: Mapping[str, Any]) -> Policy:
        known = self._policies.get(step)
        if known is None or known[0] is not data:  # a run may go on under another plan
            from gonogo.gate.reading import policy_of

            known = self._policies[step] = (data, policy_of(data))
        return known[1]

    def _evaluator(self, command: StartCall) -> Callable[[str, Mapping[str, Any]], Awaitable[Answer]]:
        """Judges a rule's text in the run's sandbox: it sees the call, then what the step's own expressions see."""
        from gonogo.expressions.analyse import analyse
        from gonogo.gate.rules import Answer
        from gonogo.gate.scopes import read_along

        async def evaluate(text: str, scope: Mapping[str, Any]) -> Answer:
            names = ChainMap(dict(scope), names_for(self._state, command.step, command.scope))  # type: ignore[arg-type]
            result = await self._evaluations.evaluate(text, "condition", names, None)
            if isinstance(result, Failure):
                return Answer(error=result.message)
            paths = (".".join(map(str, path)) for path in analyse(text).paths)
            seen = tuple(sorted({path for path in paths if path.partition(".")[0] in scope}))
            return Answer(bool(result.value), read_along(scope, seen))

        return evaluate


class _Fence:
    """A ledger that writes nothing, and lets attempts go that are still ours to make. A gate may wait for long between
    two.
    """

    carried = None

    def __init__(self, sure: Callable[[], Awaitable[None]]) -> None:
        self._sure = sure

    async def ask(self, wanted: Wanted, told: Told) -> str | None:
        if wanted.effects == "mutates":
            await self._sure()
        return None

    def ended(self, ended: Ended, told: Told) -> None:
        """Nobody is told before the end of the call."""

    def waits(self, wait_s: float, target: str, elapsed_s: float, told: Told) -> None:
        """As above."""

    def over(self, told: Told) -> None:
        """As above."""


def once() -> Policy:
    """One attempt, no breaker: what a call does that nobody says anything about."""
    from gonogo.gate.policy import Bounds, Policy, Timers

    return Policy(
        bounds=Bounds(attempts_per_target=1, attempts_max=1, deadline_s=DEADLINE_S_MAX),
        timers=Timers(attempt_s=DEADLINE_S_MAX),
        breaker=None,
    )


def within(policy: Policy, timeout_s: float | None) -> Policy:
    """The policy under a step's limit of time."""
    if timeout_s is None or timeout_s >= policy.bounds.deadline_s:
        return policy
    return replace(policy, bounds=replace(policy.bounds, deadline_s=timeout_s))


def policy_data(plan: Plan, step: Step) -> Mapping[str, Any] | None:
    """What the workflow says about a step's calls; None when it says nothing."""
    chosen = step.reliability
    if isinstance(chosen, str):
        found: Mapping[str, Any] = plan.reliability[chosen]
        return found
    if chosen is not None:
        given: Mapping[str, Any] = chosen
        return given
    return plan.reliability.get(DEFAULT)


def _watch(tell: Callable[[str], None]) -> Callable[[str, Any], None]:
    """Says live what a call waits for and where it goes."""
    from gonogo.gate.decisions import TargetSwitched, WaitStarted

    def watch(call_id: str, decision: Any) -> None:
        if isinstance(decision, WaitStarted | TargetSwitched):
            tell(decision.sentence())

    return watch
