"""What is asked of a model, in no vendor's words. How it is written down is each wire format's own matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

Role = Literal["user", "assistant", "tool"]
SchemaMode = Literal["native", "json_object", "tool", "prompt"]
"""How a schema reaches the model: the vendor's structured output, its plain JSON mode (OpenAI's only), a tool
that must be called, or not at all because the prompt says it.
"""


class ToolCall(Struct, frozen=True):
    """A model's wish to call a tool. `arguments` is the JSON text as the model wrote it: it may not parse."""

    id: str
    name: str
    arguments: str


class Message(Struct, frozen=True, omit_defaults=True):
    """One turn. A `tool` turn answers the call named by `tool_call_id`; `failed` says that the tool failed."""

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    failed: bool = False


class Tool(Struct, frozen=True):
    """A tool that the model may call; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class Schema(Struct, frozen=True, omit_defaults=True):
    """The form that the answer is to have. Whether it has it is for the caller to validate."""

    schema: Mapping[str, Any]
    name: str = "answer"
    mode: SchemaMode = "native"
    strict: bool = True


class Ask(Struct, frozen=True, omit_defaults=True):
    """One request. `tool_named` makes the model call that tool and outranks `tool_choice`.

    `extra` holds keys of one vendor's own (`top_p`, `seed`, `reasoning_effort`); they are sent as they are and may
    not name what this request says already.
    """

    model: str
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    tool_choice: Literal["auto", "none", "required"] = "auto"
    tool_named: str | None = None
    schema: Schema | None = None
    tokens_max: int | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    stream: bool = False
    extra: Mapping[str, Any] = {}
