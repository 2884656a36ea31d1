"""Evaluates for one run: the core's batches, and what providers ask for during a call.

What is asked while the sandbox is busy goes into its next frame together. A script that reads memory is never joined
with others (semantics.md 15). Results come out as plain JSON with secrets masked, ready for an event.
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
from gonogo.core.values import names_for
from gonogo.expressions.analyse import ExpressionProblem, Reading, analyse
from gonogo.expressions.request import Limits, Request
from gonogo.expressions.results import Failure, MemoryOp, Result, Value
from gonogo.expressions.sandbox import Sandbox
from gonogo.hosts.captured import Captured
from gonogo.hosts.templates import Templates
from gonogo.journal.normalise import NotStorable, normalise
from gonogo.journal.redact import Redactor

Waiting = tuple[Sequence[Request], "asyncio.Future[list[Result]]"]


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
        self._outstanding: dict[int, list[Captured]] = {}
        self._held: dict[int, Captured] = {}
        self._waiting: list[Waiting] = []
        self._task: asyncio.Task[None] | None = None
        self._busy = False

    @property
    def in_use(self) -> bool:
        """Whether anything is being evaluated."""
        return bool(self._outstanding or self._held)

    def capture(self, state: State, command: Evaluate) -> None:
        """Take hold of the names of a batch at the moment it is handed out."""
        expressions = state.graph.plan.expressions
        self._outstanding[command.batch] = [
            Captured(names_for(state, ask.step, ask.scope), expressions[ask.expression].reading)
            for ask in command.asks
        ]

    def state_moves(self) -> None:
        """Called right before the state changes: what is still being evaluated keeps its values."""
        for held in self._outstanding.values():
            for each in held:
                each.freeze()
        for each in self._held.values():
            each.freeze()

    def settled(self, batch: int) -> None:
        """The answers of a batch are in."""
        self._outstanding.pop(batch, None)

    async def answer(self, state: State, command: Evaluate, now: Callable[[], float]) -> Evaluated:
        """Evaluate one batch of the core. Raises SandboxError."""
        started = time.perf_counter()
        expressions = state.graph.plan.expressions
        results: list[Result | None] = [None] * len(command.asks)
        requests: list[Request] = []
        places: list[int] = []
        for place, (ask, names) in enumerate(
            zip(command.asks, self._outstanding[command.batch], strict=True)
        ):
            expression = expressions[ask.expression]
            if expression.kind == "template":
                results[place] = self._rendered(expression, names)
            else:
                requests.append(self._request(expression, names))
                places.append(place)
        for place, result in zip(places, await self._send(requests), strict=True):
            results[place] = result
        masked = tuple(self.masked(result) for result in results if result is not None)
        duration_ms = round((time.perf_counter() - started) * 1000, 3)
        return Evaluated(at=now(), batch=command.batch, results=masked, duration_ms=duration_ms)

    async def evaluate(
        self, source: str, kind: str, names: Mapping[str, Any], limit_s: float | None
    ) -> Result:
        """Evaluate one text for a provider. Raises SandboxError."""
        default_s = self.limits.condition_s if kind == "condition" else self.limits.script_s
        held = Captured(names, _reading(source))
        request = Request(source, kind, held, limit_s or default_s)  # type: ignore[arg-type]
        self._held[id(held)] = held
        try:
            return self.masked((await self._send([request]))[0])
        finally:
            del self._held[id(held)]

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
        """End the sandbox's process."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=1.0)
        if self._sandbox is not None:
            self._sandbox.close()

    def _masked_operation(self, operation: MemoryOp) -> MemoryOp:
        value = self._redactor.value(normalise(operation.value, f"memory.{operation.key}"))
        return msgspec.structs.replace(operation, value=value)

    def _request(self, expression: Expression, names: Captured) -> Request:
        limit_s = self.limits.condition_s if expression.kind == "condition" else self.limits.script_s
        return Request(expression.source, expression.kind, names, limit_s, expression.reading)  # type: ignore[arg-type]

    def _rendered(self, expression: Expression, names: Captured) -> Result:
        """The argument of a run target: text that is one output tag keeps the value's type (spec C.10 R3)."""
        return self._templates.result(expression.source, names)

    async def _send(self, requests: Sequence[Request]) -> list[Result]:
        """Results of requests, in order. What comes while the sandbox is busy waits, and shares its next frame."""
        if not requests:
            return []
        if self._busy:
            future: asyncio.Future[list[Result]] = asyncio.get_running_loop().create_future()
            self._waiting.append((requests, future))
            return await future
        self._busy = True
        try:
            return await self._evaluated(requests)
        finally:
            self._busy = bool(self._waiting)
            if self._waiting:
                self._task = asyncio.create_task(self._work_off())

    async def _evaluated(self, requests: Sequence[Request]) -> list[Result]:
        if self._sandbox is None:
            self._sandbox = self._open()
        return await self._sandbox.evaluate_async(requests)

    async def _work_off(self) -> None:
        frame: list[Waiting] = []
        try:
            while self._waiting:
                frame = self._next_frame()
                results = iter(await self._evaluated([one for asked, _ in frame for one in asked]))
                for asked, future in frame:
                    part = [next(results) for _ in asked]
                    if not future.done():
                        future.set_result(part)
        except BaseException as error:
            _refuse([*frame, *self._waiting], error)
            self._waiting = []
            if not isinstance(error, Exception):
                raise  # those who asked raise any other
        finally:
            self._busy = False

    def _next_frame(self) -> list[Waiting]:
        alone = [each for each in self._waiting if _wants_memory(each[0])]
        if alone and self._waiting[0] is alone[0]:
            return [self._waiting.pop(0)]
        frame = [each for each in self._waiting if each not in alone]
        self._waiting = alone
        return frame


def _reading(source: str) -> Reading:
    try:
        return analyse(source)
    except ExpressionProblem:
        return Reading()  # the sandbox says what is wrong with it


def _wants_memory(requests: Sequence[Request]) -> bool:
    return any(request.kind == "script" and "memory" in request.source for request in requests)


def _refuse(waiting: Sequence[Waiting], error: BaseException) -> None:
    for _, future in waiting:
        if future.done():
            continue
        if isinstance(error, Exception):
            future.set_exception(error)
        else:
            future.cancel()
