"""What a reader of a stream tells, piece by piece. Every stream ends in exactly one `Done` or `Broken`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gonogo.models.reply import NoAnswer, Reply

Channel = Literal["text", "thinking", "refusal"]


class Delta(Struct, frozen=True, gc=False):
    """Some more text. Only the channel `text` is the answer."""

    text: str
    channel: Channel = "text"


class ToolCallBegan(Struct, frozen=True, gc=False):
    """The model began to call a tool; `index` counts the calls of this reply from 0."""

    index: int
    id: str
    name: str


class ToolCallDelta(Struct, frozen=True, gc=False):
    """Some more of the JSON text of a tool call's arguments."""

    index: int
    arguments: str


class Noted(Struct, frozen=True, gc=False):
    """Something in the stream could not be read and was passed over (F12a)."""

    note: str


class Done(Struct, frozen=True):
    """The stream came to its end, by a finish reason or the vendor's end event (F12)."""

    reply: Reply


class Broken(Struct, frozen=True):
    """The stream ended without an end, or in an error; what had come is in `no_answer.partial`."""

    no_answer: NoAnswer


StreamEvent = Delta | ToolCallBegan | ToolCallDelta | Noted | Done | Broken
