"""The face that gives pieces: hands them on as the mode says; when a stream ends badly, starts again, or doesn't.

A piece counts as delivered when the consumer has it (F11). Timers run only while the far side is waited for, never
while the consumer thinks (F13). What one attempt has given is in `pieces.py`.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any

import anyio

from gonogo.gate import commands as c
from gonogo.gate import events as e
from gonogo.gate.calling import broken_in, fallback
from gonogo.gate.calls import CLOSE_S_MAX, Call
from gonogo.gate.clock import Alarm
from gonogo.gate.nesting import AROUND
from gonogo.gate.pieces import Pieces
from gonogo.gate.record import CallRecord
from gonogo.gate.signals import Classification, Signal
from gonogo.gate.step import Answer, Chunk, StreamReset, plain_chunk
from gonogo.gate.telling import priced

_SHOWN_AT_ONCE = frozenset({"pass-through", "restart", "continue"})
_NOTHING = object()


class GateStream(AsyncIterator[Any]):
    """The pieces of one call, in order; in mode restart a StreamReset among them voids those before it.

    Leave it through `async with`, or `aclose`, when you stop before its end: that closes the far side at once.
    `answer` is there when it has ended well, `record` always.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._ready: deque[tuple[Any, bool]] = deque()
        self._commands: list[c.Command] = []
        self._source: AsyncIterator[Any] | None = None
        self._alarm: Alarm | None = None
        self._command: c.StartAttempt | None = None
        self._pieces = Pieces()
        self._plain = call.step.chunk is plain_chunk
        self._shows = False
        self._begun = False
        self._last = False
        self._over = False
        self._spent_s = 0.0
        self._started_at = 0.0
        self._earlier = ""
        self.answer: Answer | None = None

    @property
    def record(self) -> CallRecord:
        """The call's record, growing."""
        return self._call.record

    def __aiter__(self) -> GateStream:
        return self

    async def __aenter__(self) -> GateStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def __anext__(self) -> Any:
        """The next piece. Raises GateError, or whatever cancelled it, unchanged."""
        if self._over:
            raise StopAsyncIteration
        try:
            while not self._ready:
                if self._source is not None:
                    await self._pull()
                elif self._last:
                    self._over = True
                    raise StopAsyncIteration
                else:
                    await self._go_on()
        except StopAsyncIteration:
            raise
        except BaseException as error:
            self._over = True
            await self._abandon(broken_in(error))
            raise
        piece, content = self._ready.popleft()
        if content:
            self._pieces.delivered = True
        return piece

    async def aclose(self) -> None:
        """Stop: the far side is closed at once, and what was used is billed (F16)."""
        if self._over and self._source is None and self.record.outcome is not None:
            return
        self._over = True
        try:
            if self._source is not None and self._pieces.complete:
                await self._ended_early()
        finally:
            await self._abandon()

    def __del__(self) -> None:
        if self._begun and not self._over and self.record.outcome is None:
            warnings.warn(
                f"a stream of {self.record.step} was left open; use async with", ResourceWarning, stacklevel=2
            )

    # --- one turn

    async def _go_on(self) -> None:
        """Do what the core says next."""
        if not self._begun:
            self._begun = True
            self._commands = self._call.begin()
        command = self._commands.pop(0)
        if isinstance(command, c.ResetStream):
            self._reset(command)
        elif isinstance(command, c.StartAttempt):
            await self._open(command)
        elif isinstance(command, c.StartFallback):
            await self._fall_back(command)
        elif isinstance(command, c.Return):
            self._let_out(command)
        elif isinstance(command, c.Raise):
            self._call.partial = self._earlier or self._pieces.text() or None
            raise self._call.raised(command)
        else:
            self._commands = self._call.feed(await self._call.answer(command))

    def _reset(self, command: c.ResetStream) -> None:
        self._ready.append((StreamReset(command.attempt, command.discarded_chars, command.reason), False))
        self._earlier = ""

    async def _open(self, command: c.StartAttempt) -> None:
        call = self._call
        call.partial = self._earlier if command.resume else None
        attempt = call.attempt(command)
        self._command = command
        self._pieces = Pieces(self._earlier if command.resume else "")
        self._shows = call.policy.mode in _SHOWN_AT_ONCE
        self._alarm = self._alarm or call.gate.clock.alarm()
        self._spent_s = 0.0
        self._started_at = call.gate.clock.now()
        stream = call.step.stream
        assert stream is not None
        token = AROUND.set(call.flights[-1])
        try:
            self._source = stream(attempt).__aiter__()
        except Exception as error:  # noqa: BLE001 - whatever a step raises is classified; the record has it
            await self._failed(call.failed(error))
        finally:
            AROUND.reset(token)

    async def _pull(self) -> None:
        """One piece from the far side, within the timer that is due first. Every piece comes this way: it is lean."""
        call, source, pieces, alarm = self._call, self._source, self._pieces, self._alarm
        assert source is not None
        assert alarm is not None
        timers, now = call.policy.timers, call.gate.clock.now
        before = now()
        left_s = min(timers.attempt_s - self._spent_s, call.state.deadline_at - before)
        if pieces.complete:
            gap_s = timers.tail_s
        elif pieces.content:
            gap_s = timers.idle_s
        else:
            gap_s = timers.first_token_s - self._spent_s
        raw: Any = _NOTHING
        token = AROUND.set(call.flights[-1])
        try:
            with alarm.limit(gap_s if gap_s < left_s else max(left_s, 0.0)):
                raw = await source.__anext__()
        except StopAsyncIteration:
            await self._exhausted()
            return
        except Exception as error:  # noqa: BLE001 - as above
            await self._failed(call.failed(error))
            return
        finally:
            AROUND.reset(token)
            self._spent_s += now() - before
        if raw is _NOTHING:
            await self._late(in_the_gap=gap_s < left_s)
            return
        chunk = raw if self._plain and type(raw) is Chunk else call.asked("chunk", call.step.chunk, raw)
        if chunk.error is not None:
            await self._told_of(chunk.error)
            return
        content = pieces.add(chunk)
        if self._shows:
            if not chunk.bad:
                self._ready.append((raw, content))
        else:
            self._hold(raw, content, bad=chunk.bad)
        if chunk.end:
            await self._complete()

    async def _late(self, *, in_the_gap: bool) -> None:
        """Time was up: of the gap between pieces, or of the whole attempt."""
        pieces, command = self._pieces, self._command
        assert command is not None
        if pieces.complete:
            await self._complete()
        elif not in_the_gap:
            await self._failed(self._call.timed_out(command, "timeout-total"))
        else:
            kind = "timeout-idle" if pieces.content else "timeout-first-token"
            await self._failed(self._call.timed_out(command, kind))

    async def _told_of(self, signal: Signal) -> None:
        """The far side told of an error inside the stream; without a known word it is malformed."""
        call = self._call
        call.error = None
        if signal.kind not in (None, "malformed-stream") or signal.status is not None or signal.codes:
            await self._failed(call.classified(signal))
            return
        told = call.clean(signal.message) or "the far side told of an error"
        await self._failed(call.of_kind("malformed-stream", told))

    def _hold(self, raw: Any, content: bool, *, bad: bool) -> None:
        """Keep a piece back as long as the mode says (F.4)."""
        mode, pieces = self._call.policy.mode, self._pieces
        if not bad:
            pieces.held.append((raw, content))
        if mode == "sentence-hold":
            self._shows = pieces.characters >= self._call.policy.hold_characters
        else:
            self._shows = mode == "hold-until-first-token" and pieces.content
        if self._shows:
            self._ready.extend(pieces.held)
            pieces.held.clear()

    # --- how an attempt ends

    async def _exhausted(self) -> None:
        """Nothing more comes; that is an end only if the far side said so, or never says so (F12)."""
        pieces, step = self._pieces, self._call.step
        if pieces.complete or (step.ends == "exhaustion" and not pieces.bad):
            await self._complete()
        elif pieces.bad:
            await self._failed(
                self._call.of_kind("malformed-stream", "pieces were unreadable and no end came")
            )
        else:
            await self._failed(self._call.of_kind("truncated-stream", "the stream ended without an end"))

    async def _complete(self) -> None:
        await self._close()
        failure, wrong = self._judged()
        await self._answered(failure, wrong)

    def _judged(self) -> tuple[Classification | None, str | None]:
        """A clean end is a good answer if there is content, the finish is a good one, and the validator agrees."""
        call, pieces = self._call, self._pieces
        found = pieces.finish_failure(call.step.tests)
        if found is not None:
            call.error = None
            return found, None
        if not pieces.content:
            return call.of_kind("empty-response", "no content came"), None
        call.value = pieces.text()
        return call.judged(call.value)

    async def _failed(self, failure: Classification) -> None:
        await self._close()
        await self._answered(failure, None)

    async def _answered(self, failure: Classification | None, wrong: str | None) -> None:
        call, pieces = self._call, self._pieces
        now = call.gate.clock.now()
        text = pieces.text()
        goes_on = call.step.continuable
        event = e.Answered(
            now, failure, priced(pieces.usage, call.state.target), "done",
            pieces.delivered or any(content for _, content in self._ready), pieces.characters, pieces.count,
            pieces.digest(), wrong, call.view(text) if failure is None else None, pieces.integrity(),
            bool(goes_on and failure is not None and not pieces.tool and call.asked("continuable", goes_on, text)),
        )  # fmt: skip
        if failure is not None:
            self._earlier = text if event.delivered else ""
            if not event.delivered:
                call.partial = text or None
        self._commands = await call.ended(event, now - self._started_at, call.flights[-1])

    def _let_out(self, command: c.Return) -> None:
        """The core lets the answer out: what is still held goes too."""
        call, pieces = self._call, self._pieces
        if command.partial:
            call.value = pieces.text()
        self._ready.extend(pieces.held)
        pieces.held.clear()
        self.answer = call.returned(command)
        self._last = True

    async def _fall_back(self, command: c.StartFallback) -> None:
        """The fallback's answer is one piece."""
        event, value = await fallback(self._call, command)
        self._pieces = Pieces()
        self._call.value = value
        if event.failure is None:
            self._pieces.held.append((value, True))
        self._commands = await self._call.ended(event, 0.0, None)

    async def _ended_early(self) -> None:
        """The consumer stopped after the far side had said its last word: that is a success (B32)."""
        await self._close()
        await self._answered(None, None)
        self._commands = []

    async def _abandon(self, broken: str | None = None) -> None:
        """Nobody wants the rest."""
        await self._close()
        call, pieces = self._call, self._pieces
        if not call.flights:  # the last attempt is billed already
            await call.cancelled(broken=broken)
            return
        usage = priced(pieces.usage, call.state.target)
        await call.cancelled(usage, delivered=pieces.delivered, held=pieces.characters, broken=broken)

    async def _close(self) -> None:
        """Close the far side, whatever is cancelled around us, and don't wait long for it."""
        if self._alarm is not None:
            self._alarm.close()
        source, self._source = self._source, None
        close = getattr(source, "aclose", None)
        if close is None:
            return
        with anyio.CancelScope(shield=True), self._call.gate.clock.limit(CLOSE_S_MAX):
            try:
                await close()
            except Exception as error:  # noqa: BLE001 - what a step's clean-up raises can't change what it gave
                self._call.note(f"closing the stream failed: {type(error).__name__}: {error}")
