"""A reply out of the bytes of a stream, whatever the wire format: what both readers do alike.

Feed it what the connection gives, and say when that ended. It knows no time: a driver that sees `state` turn to
`ending` needs to wait for the rest (usage, the end event) but a moment, and may then call `end()` (S11).
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from gonogo.models.assembly import Assembly, TooMuch
from gonogo.models.events import Broken, Delta, Done, StreamEvent, ToolCallBegan, ToolCallDelta
from gonogo.models.reply import NoAnswer, Reply
from gonogo.models.sse import SseEvent, SseParser

State = Literal["open", "ending", "closed"]
STREAM_BYTES_MAX = 128 * 1024 * 1024
_HEAD_BYTES_MAX = 1024 * 1024


class Failed(Exception):  # noqa: N818 - the name says what happened
    """The stream itself says that it failed."""

    def __init__(self, no_answer: NoAnswer) -> None:
        super().__init__(no_answer.message)
        self.no_answer = no_answer


class Wire(Protocol):
    """What differs between the formats."""

    ended: bool
    """Whether the vendor's own end event has come."""

    def new_assembly(self) -> Assembly:
        """An empty reply that counts tokens as this format does."""

    def take(self, event: SseEvent, assembly: Assembly) -> list[StreamEvent]:
        """What one event says. Raises Failed, TooMuch."""

    def whole(self, body: bytes) -> Reply | NoAnswer:
        """An answer that came in one piece although a stream was asked for."""


class StreamReader:
    """Reads one stream. `feed` and `end` give events; exactly one of all is `Done` or `Broken`, and it is the last."""

    __slots__ = ("_assembly", "_head", "_parser", "_seen", "_size", "_wire", "state")

    def __init__(self, wire: Wire) -> None:
        self.state: State = "open"
        self._wire = wire
        self._assembly = wire.new_assembly()
        self._parser = SseParser()
        self._head = bytearray()
        self._seen = False
        self._size = 0

    @property
    def begun(self) -> bool:
        """Whether anything that the model wrote has come: the first token."""
        return self._assembly.begun

    def partial(self) -> Reply:
        """What has come so far, for a driver that stops for reasons of its own (a timer, a cancel)."""
        return self._assembly.reply(ended=False)

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """What these bytes bring. After the last event, nothing."""
        if self.state == "closed":
            return []
        self._size += len(chunk)
        if not self._seen and len(self._head) < _HEAD_BYTES_MAX:
            self._head += chunk
        told: list[StreamEvent] = []
        try:
            for event in self._parser.feed(chunk):
                self._seen = True
                told += self._wire.take(event, self._assembly)
                if self._wire.ended:
                    return [*told, self._done()]
            self._within_limits()
        except TooMuch as problem:
            return [*told, self._broken(NoAnswer("malformed-stream", str(problem), "a limit on the stream"))]
        except Failed as problem:
            return [*told, self._broken(problem.no_answer)]
        if self._assembly.finish_raw:
            self.state = "ending"
        return told

    def end(self, cause: str = "the connection ended") -> list[StreamEvent]:
        """What the end of the connection means; `cause` says how it ended, for the message."""
        if self.state == "closed":
            return []
        if self.state == "ending":
            return [self._done()]
        return self._in_one_piece() if not self._seen else [self._broken(self._truncated(cause))]

    def _within_limits(self) -> None:
        if self._parser.overflow:
            raise TooMuch(self._parser.overflow)
        if self._size > STREAM_BYTES_MAX:
            raise TooMuch(f"a stream of more than {STREAM_BYTES_MAX:,} bytes")

    def _in_one_piece(self) -> list[StreamEvent]:
        """No event came: an error page, an answer of a server that doesn't stream, or nothing."""
        body = bytes(self._head).strip()
        if body[:1] not in (b"{", b"[", b"<", b""):
            return [self._broken(self._truncated("the connection ended before the first event"))]
        answer = self._wire.whole(body)
        if isinstance(answer, NoAnswer):
            return [self._broken(answer)]
        self.state = "closed"
        return [*_pieces(answer), Done(answer)]

    def _truncated(self, cause: str) -> NoAnswer:
        where = "in the middle of an event" if self._parser.pending else "between two events"
        message = f"{cause}, {where}, with neither a finish reason nor an end event"
        return NoAnswer("truncated-stream", message, "the end of the stream")

    def _done(self) -> Done:
        self.state = "closed"
        if not self._assembly.finish_raw:
            self._assembly.note("the stream gave no finish reason")
        return Done(self._assembly.reply(ended=True))

    def _broken(self, no_answer: NoAnswer) -> Broken:
        self.state = "closed"
        return Broken(msgspec.structs.replace(no_answer, partial=self.partial()))


def _pieces(reply: Reply) -> list[StreamEvent]:
    """A whole reply as a stream would have told it."""
    told: list[StreamEvent] = []
    for text, channel in ((reply.thinking, "thinking"), (reply.text, "text"), (reply.refusal, "refusal")):
        if text:
            told.append(Delta(text, channel))  # type: ignore[arg-type]
    for index, made in enumerate(reply.tool_calls):
        told.append(ToolCallBegan(index, made.id, made.name))
        if made.arguments:
            told.append(ToolCallDelta(index, made.arguments))
    return told
