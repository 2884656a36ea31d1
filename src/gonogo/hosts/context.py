"""What a host offers to a call (`gonogo.provider.Context`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from gonogo.core.commands import StartCall
from gonogo.core.plan import Step
from gonogo.expressions.results import Failure, Result
from gonogo.hosts.base import LogLine, Question, Surroundings
from gonogo.hosts.evaluation import Evaluations
from gonogo.hosts.gates import Gates
from gonogo.hosts.templates import Templates
from gonogo.hosts.tools import StepTools
from gonogo.journal.handles import shortened
from gonogo.provider import ChildResult, Outcome

if TYPE_CHECKING:
    from gonogo.gate import Gate, Policy
    from gonogo.hosts.above import Above

_OWN_WORDS = frozenset({"syntax", "limit", "memory", "crash"})
"""Failures of an evaluation that tell nothing of the data."""


class RunChild(Protocol):
    """Runs, or goes on with, the child run of a call."""

    async def __call__(
        self,
        command: StartCall,
        workflow: str,
        inputs: Mapping[str, Any],
        overrides: Mapping[str, Any],
        *,
        shares_memory: bool,
        above: Above | None = None,
    ) -> ChildResult: ...


class CallContext:
    """The context of one call. Everything that leaves it for a person is masked."""

    __slots__ = (
        "_around", "_child", "_command", "_evaluations", "_gates", "_requests", "_run_id", "_step", "_templates",
        "_timeout_s", "_tools",
    )  # fmt: skip

    def __init__(
        self,
        run_id: str,
        command: StartCall,
        step: Step,
        around: Surroundings,
        evaluations: Evaluations,
        templates: Templates,
        child: RunChild,
        gates: Gates,
        tools: StepTools,
        timeout_s: float | None,
    ) -> None:
        self._run_id = run_id
        self._command = command
        self._step = step
        self._around = around
        self._evaluations = evaluations
        self._templates = templates
        self._child = child
        self._gates = gates
        self._tools = tools
        self._timeout_s = timeout_s
        self._requests: Iterator[int] | None = None

    async def evaluate(self, source: str, kind: str, names: Mapping[str, Any]) -> Result:
        """Evaluate in the run's sandbox. A script may take as long as its step, anything else its kind's limit."""
        limit_s = self._step.timeout_s if kind == "script" else None
        result = await self._evaluations.evaluate(source, kind, names, limit_s)
        return _untold(result) if self._step.secret_outputs and isinstance(result, Failure) else result

    def render(self, text: str, names: Mapping[str, Any]) -> str:
        """Render a template. Raises TemplateProblem."""
        return self._templates.text(text, names)

    def log(self, level: str, text: str) -> None:
        """Tell the person who watches. What a step says before its secret outputs are known may be these."""
        if self._step.secret_outputs and level != "warn":
            return
        line = LogLine(
            self._run_id,
            self._command.step,
            self._command.scope,
            level,
            shortened(self._around.redactor.text(text)),
        )
        try:
            self._around.log(line)
        except Exception:  # noqa: BLE001, S110 - watching never changes a run
            pass

    def progress(self, text: str) -> None:
        """Tell what the call is doing now."""
        self.log("progress", text)

    async def answer(self, prompt: str, *, multiline: bool, secret: bool) -> str | None:
        """Ask the person at hand. Nobody knows who that is, so where it matters who answers nobody is asked."""
        if self._step.hold is not None and self._step.hold.is_personal:
            return None
        question = Question(
            self._run_id,
            self._command.step,
            self._command.scope,
            self._around.redactor.text(prompt),
            multiline,
            secret,
        )
        answer = await self._around.ask(question)
        return answer if answer is None else str(shortened(answer))

    async def run_child(
        self,
        workflow: str,
        *,
        inputs: Mapping[str, Any],
        overrides: Mapping[str, Any],
        shares_memory: bool = False,
    ) -> ChildResult:
        """Run the child of this call, or go on with it."""
        return await self._child(
            self._command,
            workflow,
            inputs,
            overrides,
            shares_memory=shares_memory,
            above=self._gates.above(self._command),
        )

    async def run_step(
        self, step: str, arguments: Mapping[str, Any], *, number: int, mutates: bool = False
    ) -> Outcome:
        """Run a step within this call."""
        return await self._tools.run(self._command, step, arguments, number=number, mutates=mutates)

    async def pace(self, key: str, requests: int, per_s: float) -> None:
        """Wait for this call's turn under a key."""
        await self._around.outbound.pace.turn(self._run_id, key, requests, per_s, self.progress)

    def gate(self, default: Policy | None = None) -> Gate:
        """The gate of this call. Its requests are numbered through all the gates that the call asks for."""
        if self._requests is None:
            self._requests = count(1)
        return self._gates.of(self._command, self._timeout_s, default, self.progress, self._requests)

    @property
    def working_directory(self) -> str:
        """Where relative paths start."""
        return self._around.working_directory


def _untold(failure: Failure) -> Failure:
    """What is thrown over an output may quote it, and what of it is secret isn't known yet."""
    if failure.kind in _OWN_WORDS:
        return failure
    return replace(failure, message="an error, whose text isn't shown: the step has secret outputs")
