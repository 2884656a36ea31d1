"""A reply put together piece by piece, by both wire formats, within limits."""

from __future__ import annotations

from dataclasses import dataclass, field

from gonogo.models.cleaning import identifier
from gonogo.models.conversation import ToolCall
from gonogo.models.counting import Counts
from gonogo.models.events import Channel, Delta, Noted, StreamEvent, ToolCallBegan, ToolCallDelta
from gonogo.models.reply import Finish, Integrity, Reply

REPLY_CHARACTERS_MAX = 16 * 1024 * 1024
TOOL_CALLS_MAX = 128
NOTES_MAX = 20


class TooMuch(Exception):  # noqa: N818 - the name says what happened
    """The reply passes a limit; the text says which."""


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    parts: list[str] = field(default_factory=list)


class Assembly:
    """What has come of a reply. A wire format's reader puts pieces in; `reply` is what they make."""

    __slots__ = (
        "_calls",
        "_notes",
        "_pieces",
        "_size",
        "_slots",
        "counts",
        "deltas",
        "finish",
        "finish_raw",
        "id",
        "input_without_cache",
        "model",
        "passed_over",
    )

    def __init__(self, *, input_without_cache: bool = False) -> None:
        self.counts = Counts()
        self.input_without_cache = input_without_cache
        self.finish: Finish = "unknown"
        self.finish_raw = ""
        self.model = ""
        self.id = ""
        self.deltas = 0
        self.passed_over = 0
        self._pieces: dict[Channel, list[str]] = {"text": [], "thinking": [], "refusal": []}
        self._calls: list[_Call] = []
        self._slots: dict[int, int] = {}
        self._notes: list[str] = []
        self._size = 0

    @property
    def begun(self) -> bool:
        """Whether anything that a model wrote has come."""
        return self._size > 0 or bool(self._calls)

    def add(self, text: str, channel: Channel = "text") -> list[StreamEvent]:
        """More text. Raises TooMuch."""
        if not text:
            return []
        self._grow(text)
        self.deltas += 1
        self._pieces[channel].append(text)
        return [Delta(text, channel)]

    def begin_call(self, slot: int, call_id: object, name: object) -> list[StreamEvent]:
        """A tool call at the server's own index. Raises TooMuch."""
        if len(self._calls) >= TOOL_CALLS_MAX:
            raise TooMuch(f"more than {TOOL_CALLS_MAX} tool calls in one reply")
        index = len(self._calls)
        self._slots[slot] = index
        # Some servers give no id; ours is the same each time the same stream is read.
        call = _Call(identifier(call_id) or f"call_{index}", identifier(name))
        self._calls.append(call)
        return [ToolCallBegan(index, call.id, call.name)]

    def add_arguments(self, slot: int, arguments: str) -> list[StreamEvent]:
        """More of a tool call's arguments; for an index that began no call they are passed over. Raises TooMuch."""
        if not arguments:
            return []
        index = self._slots.get(slot)
        if index is None:
            return self.pass_over("arguments of a tool call that never began")
        self._grow(arguments)
        self.deltas += 1
        self._calls[index].parts.append(arguments)
        return [ToolCallDelta(index, arguments)]

    def call_at(self, slot: int) -> tuple[str, str] | None:
        """Id and name of the call at the server's index."""
        index = self._slots.get(slot)
        return None if index is None else (self._calls[index].id, self._calls[index].name)

    def forget_slot(self, slot: int) -> None:
        """Free an index that a server uses again for another call."""
        self._slots.pop(slot, None)

    @property
    def last_slot(self) -> int | None:
        """The index of the call that began last."""
        return next(reversed(self._slots), None)

    def pass_over(self, what: str) -> list[StreamEvent]:
        """Note a part of the answer that can't be read."""
        self.passed_over += 1
        note = f"passed over: {what}"
        self.note(note)
        return [Noted(note)]

    def note(self, note: str) -> None:
        """Keep a note, once, as far as there is room."""
        if note not in self._notes and len(self._notes) < NOTES_MAX:
            self._notes.append(note)

    def reply(self, *, ended: bool) -> Reply:
        """All that has come. `ended` says that it came to its end."""
        usage = self.counts.usage(input_without_cache=self.input_without_cache)
        finish = self.finish
        refusal = "".join(self._pieces["refusal"])
        if finish in ("stop", "unknown") and refusal:
            finish = "refusal"
        elif finish == "stop" and self._calls:
            finish = "tool_calls"  # some servers say "stop" after tool calls
        return Reply(
            text="".join(self._pieces["text"]),
            thinking="".join(self._pieces["thinking"]),
            refusal=refusal,
            tool_calls=tuple(ToolCall(call.id, call.name, "".join(call.parts)) for call in self._calls),
            finish=finish,
            finish_raw=self.finish_raw,
            usage=usage,
            model=self.model,
            id=self.id,
            integrity=self._integrity(usage.output_tokens) if ended else "partial",
            notes=(*self._notes, *self.counts.notes(usage)),
        )

    def _integrity(self, output_tokens: int | None) -> Integrity:
        """F12a: what was passed over held no token if as many pieces came as the server counted tokens."""
        return "whole" if not self.passed_over or self.deltas == output_tokens else "unverified"

    def _grow(self, text: str) -> None:
        self._size += len(text)
        if self._size > REPLY_CHARACTERS_MAX:
            raise TooMuch(f"a reply of more than {REPLY_CHARACTERS_MAX:,} characters")
