"""Evaluates for one run: the core's batches, and what providers ask for during a call.

Whatever was asked goes to the sandbox in one frame when `work` is called, at the end of a turn of the loop; most frames
are answered before it returns. What is asked while the sandbox is busy goes into its next frame. A script that reads
memory goes alone, and not before the changes of the one before are in the state (semantics.md 15). Results come out as
plain JSON with secrets masked, ready for an event.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from gonogo.core.commands import Evaluate
from gonogo.core.events import Evaluated
from gonogo.core.plan import Expression
from gonogo.core.state import State
from gonogo.core.values import Names, names_for
from gonogo.expressions.analyse import ExpressionProblem, Reading, analyse
from gonogo.expressions.batch import Batch
from gonogo.expressions.request import Limits, Request
from gonogo.expressions.results import Failure, MemoryOp, Result, Value
from gonogo.expressions.sandbox import Sandbox
from gonogo.hosts.captured import Captured
from gonogo.hosts.templates import Templates
from gonogo.journal.normalise import NotStorable, normalise
from gonogo.journal.redact import Redactor

NOTHING: frozenset[str] = frozenset()
MEMORY = frozenset({"memory"})
UNMOVED_S = 0.05
"""How long a script that reads memory waits for the changes of one whose call was given up meanwhile."""


class Answer(asyncio.Future[Result]):
    """The result of one text a provider asked for. `then` is called as soon as it is there, without the event loop."""

    then: Callable[[], None] | None = None


class Asking:
    """Requests that belong together. `tell` gets their results or why there are none; None: nobody wants them."""

    __slots__ = ("alone", "requests", "tell")

    def __init__(
        self,
        requests: Sequence[Request],
        tell: Callable[[Sequence[Result] | BaseException], None] | None,
        alone: Captured | None = None,
    ) -> None:
        """`alone`: the names of a script that reads memory; it is held only once the script goes to the sandbox."""
        self.requests = requests
        self.tell = tell
        self.alone = alone


class Evaluations:
    """The expressions of one run. `open_sandbox` is called at the first one."""

    def __init__(
        self, open_sandbox: Callable[[], Sandbox], templates: Templates, redactor: Redactor, limits: Limits
    ) -> None:
        self.limits = limits
        self._open = open_sandbox
        self._sandbox: Sandbox | None = None
        self._templates = templates
        self._redactor = redactor
        self._waiting: list[Asking] = []
        self._frame: list[Asking] = []
        self._live: list[Captured] = []
        self._moves = 0
        self._moves_when_alone = -1
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Sequence[Result]] | None = None

    @property
    def in_use(self) -> bool:
        """Whether anything is being evaluated."""
        return bool(self._waiting or self._frame)

    def state_moves(self) -> None:
        """Called right before the state changes: what is still being evaluated keeps its values."""
        self._moves += 1
        for each in self._live:
            each.freeze()
        self._live.clear()

    def ask(
        self, state: State, command: Evaluate, now: Callable[[], float], tell: Callable[[Any], None]
    ) -> None:
        """Take hold of the names of a batch of the core; `tell` gets its event, or the error that prevents it."""
        started = time.perf_counter()
        expressions = state.graph.plan.expressions
        requests: list[Request] = []
        rendered: list[Result | None] = []
        names: Names | None = None
        for ask in command.asks:
            expression = expressions[ask.expression]
            if names is None or names.scope != ask.scope or names.step.name != ask.step:
                names = names_for(state, ask.step, ask.scope)
            if expression.kind == "template":
                rendered.append(self._templates.result(expression.source, names))
            else:
                rendered.append(None)
                requests.append(self._request(expression, names))

        def told(results: Sequence[Result] | BaseException) -> None:
            if isinstance(results, BaseException):
                tell(results)
                return
            found = iter(results)
            masked = tuple(self.masked(text or next(found)) for text in rendered)
            duration_ms = round((time.perf_counter() - started) * 1000, 3)
            tell(Evaluated(at=now(), batch=command.batch, results=masked, duration_ms=duration_ms))

        self._waiting.append(Asking(requests, told))

    def answer(
        self, source: str, kind: str, names: Mapping[str, Any], limit_s: float | None
    ) -> tuple[Answer, Asking]:
        """Ask for one text; `work` brings the answer, with secrets in it."""
        alone = kind == "script" and "memory" in source
        held = Captured(names, _reading(source), late=MEMORY if alone else NOTHING)
        self._live.append(held)
        default_s = self.limits.condition_s if kind == "condition" else self.limits.script_s
        request = Request(source, kind, held, limit_s or default_s)  # type: ignore[arg-type]
        answer = Answer()
        asking = Asking([request], lambda results: _settle(answer, results), held if alone else None)
        self._waiting.append(asking)
        return answer, asking

    async def evaluate(
        self, source: str, kind: str, names: Mapping[str, Any], limit_s: float | None
    ) -> Result:
        """Evaluate one text for a provider. Raises SandboxError."""
        answer, asking = self.answer(source, kind, names, limit_s)
        answer.get_loop().call_soon(self.work)
        try:
            return self.masked(await answer)
        except (asyncio.CancelledError, GeneratorExit):
            self.withdraw(asking)
            raise

    def work(self) -> None:
        """Evaluate what was asked. Most of it is told before this returns."""
        while not self._frame and self._next_frame():
            requests = [request for asking in self._frame for request in asking.requests]
            try:
                sandbox = self._ready()
                batch = sandbox.begin(requests)
            except Exception as error:  # noqa: BLE001 - those who asked are told
                self._refuse(error)
                return
            if batch is not None and batch.results is not None:
                self._tell(batch.results)
            else:
                rest = sandbox.evaluate_async(requests) if batch is None else batch.finish()
                self._task = asyncio.get_running_loop().create_task(rest)
                self._task.add_done_callback(lambda task, batch=batch: self._finished(task, batch))  # type: ignore[misc]

    def withdraw(self, asking: Asking) -> None:
        """Nobody wants its results any more. What the sandbox is at for nobody is ended."""
        asking.tell = None
        if asking in self._waiting:
            self._waiting.remove(asking)
        elif (
            self._task is not None
            and asking in self._frame
            and all(each.tell is None for each in self._frame)
        ):
            self._task.cancel()

    def masked(self, result: Result) -> Result:
        """A result as an event may hold it. A plain boolean can hold nothing."""
        if isinstance(result, Failure):
            text = self._redactor.text(normalise(result.message))
            return result if text is result.message else msgspec.structs.replace(result, message=text)
        if isinstance(result.value, bool) and not (result.memory or result.logs):
            return result
        try:
            return Value(
                value=self._redactor.value(normalise(result.value, "result")),
                undefined=result.undefined,
                memory=tuple(self._masked_operation(each) for each in result.memory),
                logs=tuple(self._redactor.text(normalise(line)) for line in result.logs),
            )
        except NotStorable as problem:
            return Failure("result", str(problem))

    async def close(self) -> None:
        """End the sandbox's process; nobody is told any more."""
        self._waiting.clear()
        for asking in self._frame:
            asking.tell = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=1.0)
        if self._sandbox is not None:
            self._sandbox.close()

    def _masked_operation(self, operation: MemoryOp) -> MemoryOp:
        value = self._redactor.value(normalise(operation.value, f"memory.{operation.key}"))
        return msgspec.structs.replace(operation, value=value)

    def _request(self, expression: Expression, live: Mapping[str, Any]) -> Request:
        names = Captured(live, expression.reading)
        self._live.append(names)
        limit_s = self.limits.condition_s if expression.kind == "condition" else self.limits.script_s
        return Request(expression.source, expression.kind, names, limit_s, expression.reading)  # type: ignore[arg-type]

    def _ready(self) -> Sandbox:
        if self._sandbox is None:
            self._sandbox = self._open()
        return self._sandbox

    def _next_frame(self) -> bool:
        """Take what goes to the sandbox next; False when that must wait, or there is nothing."""
        waiting = self._waiting
        if waiting and waiting[0].alone is not None:
            if self._moves == self._moves_when_alone:
                self._wait_for_moves()
                return False  # memory isn't yet what the one before made of it
            names = waiting[0].alone
            names.late = NOTHING
            self._live.append(names)
            self._frame = [waiting.pop(0)]
        elif any(each.alone is not None for each in waiting):
            self._frame = [each for each in waiting if each.alone is None]
            self._waiting = [each for each in waiting if each.alone is not None]
        else:
            self._frame, self._waiting = waiting, []
        return bool(self._frame)

    def _finished(self, task: asyncio.Task[Sequence[Result]], batch: Batch | None) -> None:
        """A frame that took longer came to an end, perhaps before it could begin to wait."""
        if batch is not None:
            batch.drop()
        if task.cancelled():
            self._refuse(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self._refuse(error)
        else:
            self._tell(task.result())
        self.work()

    def _tell(self, results: Sequence[Result]) -> None:
        """Give each of the frame its part."""
        frame, self._frame, self._task = self._frame, [], None
        if frame[0].alone is not None:
            self._moves_when_alone = self._moves
        if not self._waiting:
            self._live.clear()
        start = 0
        for asking in frame:
            end = start + len(asking.requests)
            if asking.tell is not None:
                asking.tell(results[start:end])
            start = end

    def _refuse(self, error: BaseException) -> None:
        """Tell all of the frame that there are no results, and why."""
        frame, self._frame, self._task = self._frame, [], None
        for asking in frame:
            if asking.tell is not None:
                asking.tell(error)

    def _wait_for_moves(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(UNMOVED_S, self._as_if_moved)

    def _as_if_moved(self) -> None:
        self._timer = None
        self._moves_when_alone = -1
        self.work()


def _settle(answer: Answer, results: Sequence[Result] | BaseException) -> None:
    if answer.done():
        return
    if not isinstance(results, BaseException):
        answer.set_result(results[0])
    elif isinstance(results, Exception):
        answer.set_exception(results)
    else:
        answer.cancel()
    if answer.then is not None:
        answer.then()


def _reading(source: str) -> Reading | None:
    try:
        return analyse(source)
    except ExpressionProblem:
        return None  # the sandbox says what is wrong with it
