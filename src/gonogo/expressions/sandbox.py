"""Evaluate JavaScript expressions in a child process: batches in, values or failures out.

A `Sandbox` belongs to one run. Its child is started at the first use and again whenever it was killed; a
hang, a crash or used-up memory costs only the evaluation it happened in. Evaluations are pure: data goes in,
a result and wished-for memory changes come out, so running one again is safe, and data is sent only when it
is read. What is evaluated when, and what results mean, is left to the callers.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gonogo.errors import Bug, SandboxError
from gonogo.expressions.batch import Batch, Conversation, Frame
from gonogo.expressions.compiled import Compiled, Functions
from gonogo.expressions.names import Kind
from gonogo.expressions.outcomes import ANSWERS, Needs, limit_failure, outcome, syntax_failure
from gonogo.expressions.process import ENGINE_IS_WRONG, Child, Died, Reply
from gonogo.expressions.request import Limits, Pending, Request, spec_of
from gonogo.expressions.results import Failure, MemoryOp, Result, Value
from gonogo.expressions.slots import Slots

if TYPE_CHECKING:
    import asyncio

__all__ = ["Failure", "Limits", "MemoryOp", "Request", "Result", "Sandbox", "Value"]

UNREADABLE = Failure("crash", "the expression engine gave an answer that can't be read")
RUNS_PER_FRAME_MAX = 1000
DEATHS_WHILE_STARTING_MAX = 3


def _checked(result: Result | Needs, kind: Kind) -> Result:
    """What the child's own code would never answer is refused: it may have been taken over."""
    if isinstance(result, Needs):
        return UNREADABLE
    if kind == "condition" and isinstance(result, Value) and not isinstance(result.value, bool):
        return UNREADABLE
    return result


class Sandbox:
    """The expression engine of one run. `now_ms` is what `now` and `Date` show, in ms since 1970.

    Blocking calls may come from any thread; `evaluate_async` belongs to one asyncio loop. Raises SandboxError
    when the engine isn't installed or no child process can be started.
    """

    def __init__(self, now_ms: float, limits: Limits | None = None) -> None:
        self._now_ms = now_ms
        self._limits = limits or Limits()
        self._batch_s = repr(self._limits.batch_s)
        self._lock = threading.Lock()
        self._async_lock: asyncio.Lock | None = None
        self._loop_thread: int | None = None
        self._batch: Batch | None = None
        self._child: Child | None = None
        self._functions = Functions()
        self._slots = Slots()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prepare(self, sources: Sequence[tuple[str, Kind]]) -> list[Failure | None]:
        """Compile all `sources` in one frame; returns for each what is wrong with it."""
        with self._alone():
            compiled = [self._functions.compiled(source) for source, _ in sources]
            self._drive(self._compilation(compiled))
            return [each.failure for each in compiled]

    def evaluate(self, requests: Sequence[Request]) -> list[Result]:
        """Evaluate all `requests`, in order; blocks."""
        with self._alone():
            return self._drive(self._evaluation(requests))

    async def evaluate_async(self, requests: Sequence[Request]) -> Sequence[Result]:
        """As `evaluate`, without blocking the event loop; one batch at a time. Cancelling it is safe at any point."""
        import asyncio

        if self._async_lock is None:
            self._async_lock = asyncio.Lock()
        async with self._async_lock:
            while (batch := self.begin(requests)) is None:  # noqa: ASYNC110 - a thread is evaluating; it ends in time
                await asyncio.sleep(0.001)
            return await batch.finish()

    def begin(self, requests: Sequence[Request]) -> Batch | None:
        """Evaluate as much of `requests` as takes a moment, which is mostly all of it.

        The rest is for `Batch.finish`, which must be awaited, or `Batch.drop` called. None, and nothing is done, while
        something else is evaluated.
        """
        if not self._lock.acquire(blocking=False):
            return None
        self._loop_thread = threading.get_ident()
        self._batch = batch = Batch(self._evaluation(requests), self._running, self._batch_over)
        batch.go()
        return batch

    def start(self) -> None:
        """Start the child now, so that it gets ready beside other work; it isn't waited for."""
        with self._alone():
            self._fresh()
            self._running()

    def close(self) -> None:
        """End the child; the next call would start another."""
        if self._batch is not None and self._loop_thread == threading.get_ident():
            self._batch.drop()
        with self._alone():
            self._stop()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """The lock for blocking calls; raises Bug where waiting would never end."""
        if self._loop_thread == threading.get_ident():
            raise Bug("a blocking call to the sandbox while its event loop evaluates; use evaluate_async")
        with self._lock:
            yield

    def _drive(self, conversation: Conversation) -> list[Result]:
        try:
            frame = next(conversation)
            while True:
                frame = conversation.send(self._running().exchange(*frame))
        except StopIteration as ended:
            results: list[Result] = ended.value
            return results
        except BaseException:
            self._stop()
            raise

    def _batch_over(self, batch: Batch, dropped: bool) -> None:
        if self._batch is not batch:
            return  # it was before
        if dropped:
            self._stop()
        self._batch = None
        self._loop_thread = None
        self._lock.release()

    def _running(self) -> Child:
        """The child, started if need be; only ever called right after `_fresh` has looked at it."""
        if self._child is None:
            limits = self._limits
            self._child = Child(self._now_ms, limits.memory_bytes, limits.result_bytes, limits.grace_s)
        return self._child

    def _fresh(self) -> None:
        """Before a frame is built: a child of the process this one was forked from isn't ours."""
        if self._child is not None and self._child.pid_of_parent != os.getpid():
            self._child.abandon()
            self._forget_child()

    def _stop(self) -> None:
        if self._child is not None:
            if self._child.pid_of_parent == os.getpid():
                self._child.kill()
            self._forget_child()

    def _forget_child(self) -> None:
        self._child = None
        self._slots = Slots()
        self._functions.forget_all()

    def _compilation(self, compiled: Sequence[Compiled]) -> Conversation:
        self._fresh()
        waiting = self._unsent(compiled)
        deaths = 0
        while waiting:
            part = waiting[:1] if deaths else waiting
            reply = self._understood((yield self._frame(part, [])), len(part))
            if isinstance(reply, Died):
                deaths = self._bury(reply, deaths)
                if deaths and len(part) == 1:
                    part[0].failure = Failure("crash", "the expression can't be compiled: the engine stopped")
            else:
                self._settle_compiled(part, reply)
                self._retire(reply)
            waiting = [each for each in self._unsent(waiting) if each.failure is None]
        return []

    def _evaluation(self, requests: Sequence[Request]) -> Conversation:
        results: list[Result | None] = [None] * len(requests)
        pending = [Pending(index, request) for index, request in enumerate(requests)]
        deaths, alone = 0, False
        while pending:
            self._fresh()
            batch, unsent = self._ready(pending[: 1 if alone else RUNS_PER_FRAME_MAX], results)
            if batch:
                reply = self._understood((yield self._frame(unsent, batch)), len(unsent) + len(batch))
                if isinstance(reply, Died):
                    deaths = self._bury(reply, deaths)
                    alone = alone or reply.run is None
                    self._blame(reply, batch, results, deaths)
                else:
                    deaths = 0
                    self._settle_compiled(unsent, reply)
                    self._settle(batch, reply[1 + len(unsent) :], results)
                    self._retire(reply)
            pending = [each for each in pending if results[each.index] is None]
        return results  # type: ignore[return-value]  # none is None: nothing is pending

    def _ready(
        self, pending: Sequence[Pending], results: list[Result | None]
    ) -> tuple[list[Pending], list[Compiled]]:
        """Those that can run, and what has to be compiled for them. What is no expression is settled here."""
        batch: list[Pending] = []
        unsent: dict[int, Compiled] = {}
        for each in pending:
            request = each.request
            compiled = each.compiled = self._functions.compiled(request.source, request.hints)
            if compiled.failure is not None:
                results[each.index] = compiled.failure
                continue
            batch.append(each)
            if not compiled.sent:
                unsent[compiled.number] = compiled
        return batch, list(unsent.values())

    def _unsent(self, compiled: Sequence[Compiled]) -> list[Compiled]:
        return list(
            {each.number: each for each in compiled if not each.sent and each.failure is None}.values()
        )

    def _frame(self, unsent: Sequence[Compiled], batch: Sequence[Pending]) -> Frame:
        slots = self._slots
        slots.make_room()
        runs: list[str] = []
        limits_s: list[float] = []
        for each in batch:
            request = each.request
            limit_s = request.limit_s
            runs += ("r", each.compiled.name, request.kind, repr(limit_s), spec_of(each, slots))
            limits_s.append(limit_s)
        parts = [self._batch_s, *self._functions.take_parts(), *slots.take_parts()]
        for compiled in unsent:
            parts += ("c", compiled.name, ",".join(compiled.parameters), compiled.source, compiled.shape.body)
        parts += runs
        return parts, limits_s

    def _understood(self, reply: Reply, expected: int) -> Reply:
        """A child that doesn't give one answer for each question isn't ours any more: it counts as dead."""
        if isinstance(reply, Died) or len(reply) == 1 + expected:
            return reply
        return Died(run=None, hung=False, exit_code=self._running().kill())

    def _settle_compiled(self, unsent: Sequence[Compiled], reply: Sequence[str]) -> None:
        for each, complaint in zip(unsent, reply[1:], strict=False):
            each.sent = True
            if complaint:
                each.failure = syntax_failure(complaint, each.source, each.shape)
                if each.failure.kind == "memory":
                    self._functions.forget(each.source)

    def _settle(self, batch: Sequence[Pending], said: Sequence[str], results: list[Result | None]) -> None:
        for each, text in zip(batch, said, strict=True):
            compiled = each.compiled
            if compiled.failure is not None:
                results[each.index] = compiled.failure
            elif text in ANSWERS:
                results[each.index] = ANSWERS[text]
            elif text:
                try:
                    result = outcome(text, compiled.source, compiled.shape, each.request.limit_s)
                except (ValueError, KeyError, TypeError, AttributeError):
                    result = UNREADABLE
                if isinstance(result, Needs) and each.want(result.wanted):
                    continue
                results[each.index] = _checked(result, each.request.kind)
            elif each is batch[0]:  # others may be put off when a frame takes long; the first is always run
                results[each.index] = UNREADABLE

    def _blame(self, died: Died, batch: Sequence[Pending], results: list[Result | None], deaths: int) -> None:
        """Settle the run the child was at. All others run again, also what met a child that was dead already."""
        if died.run is not None and died.run < len(batch):
            culprit = batch[died.run]
        elif len(batch) == 1 and (died.hung or deaths > 1):
            culprit = batch[0]
        else:
            return
        if died.hung:
            results[culprit.index] = limit_failure(culprit.request.limit_s)
        else:
            results[culprit.index] = Failure(
                "crash", f"the expression engine stopped with code {died.exit_code}"
            )

    def _bury(self, died: Died, deaths: int) -> int:
        """Forget a dead child; returns how often one died while starting or loading, in a row."""
        self._forget_child()
        if died.exit_code == ENGINE_IS_WRONG:
            raise SandboxError(
                "the JavaScript engine is not the expected one",
                advice="pip install --force-reinstall quickjs-ng",
            )
        deaths = deaths + 1 if died.run is None else 0
        if deaths > DEATHS_WHILE_STARTING_MAX:
            raise SandboxError(f"the expression sandbox stops while starting, with code {died.exit_code}")
        return deaths

    def _retire(self, reply: list[str]) -> None:
        if reply[0] == "retire":
            self._stop()
