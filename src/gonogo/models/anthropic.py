"""Anthropic's messages, version 2023-06-01. Streams are read in `anthropic_stream.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from gonogo.models.assembly import Assembly, TooMuch
from gonogo.models.cleaning import named
from gonogo.models.conversation import Ask, Message, Schema, ToolCall
from gonogo.models.counting import Counts
from gonogo.models.events import StreamEvent
from gonogo.models.refusing import Row, body_of
from gonogo.models.reply import Finish, NoAnswer, Reply
from gonogo.models.structured import arguments_of
from gonogo.models.writing import HttpCall, call, checked, forced_tool, json_bytes, tools_of

VERSION = "2023-06-01"
TOKENS_MAX_DEFAULT = 4096
"""The format has no default of its own."""
FINISHES: Mapping[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "pause",
}
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


def key_headers(key: str) -> dict[str, str]:
    """The header that carries the key."""
    return {"x-api-key": key}


def request(base_url: str, ask: Ask) -> HttpCall:
    """The request for a base URL with or without its `/v1`. Raises ValueError (see `writing.py`)."""
    checked(ask)
    payload: dict[str, Any] = {
        "model": ask.model,
        "max_tokens": ask.tokens_max or TOKENS_MAX_DEFAULT,
        "messages": _turns(ask.messages),
    }
    if ask.system:
        payload["system"] = ask.system
    payload |= _tools(ask) | _format(ask.schema)
    if ask.temperature is not None:
        payload["temperature"] = ask.temperature
    if ask.stop:
        payload["stop_sequences"] = list(ask.stop)
    if ask.stream:
        payload["stream"] = True
    return call(_url(base_url), ask, payload, {"anthropic-version": VERSION})


def _url(base_url: str) -> str:
    base = base_url.rstrip("/")
    return f"{base}/messages" if base.endswith("/v1") else f"{base}/v1/messages"


def _turns(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Turns of the two sides in alternation: results of tools are the user's, all of one turn together and first."""
    turns: list[dict[str, Any]] = []
    for assistant, group in groupby(messages, key=lambda message: message.role == "assistant"):
        blocks = [block for message in group for block in _blocks(message)]
        blocks.sort(key=lambda block: not assistant and block["type"] != "tool_result")
        turns.append({"role": "assistant" if assistant else "user", "content": blocks})
    if turns[-1]["role"] == "assistant" and turns[-1]["content"][-1]["type"] == "text":
        # A beginning of the answer may not end in white space.
        last = turns[-1]["content"][-1]
        turns[-1]["content"][-1] = {**last, "text": last["text"].rstrip() or "…"}
    return turns


def _blocks(message: Message) -> Iterator[dict[str, Any]]:
    """The blocks of a message; an empty text, which is refused, gets a mark of its own."""
    if message.role == "tool":
        result = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.text}
        yield {**result, "is_error": True} if message.failed else result
        return
    if message.text.strip() or not message.tool_calls:
        yield {"type": "text", "text": message.text if message.text.strip() else "…"}
    for made in message.tool_calls:
        yield {"type": "tool_use", "id": made.id, "name": made.name, "input": _input(made)}


def _input(made: ToolCall) -> dict[str, Any]:
    """Arguments as an object; the format has no way to tell a model what it wrote when that was no JSON."""
    arguments = arguments_of(made)
    return {"unreadable": made.arguments} if isinstance(arguments, NoAnswer) else arguments


def _tools(ask: Ask) -> dict[str, Any]:
    tools = tools_of(ask)
    if not tools:
        return {}
    forced = forced_tool(ask)
    choice = {"type": _CHOICES[ask.tool_choice]} if forced is None else {"type": "tool", "name": forced}
    written = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in tools
    ]
    return {"tools": written, "tool_choice": choice}


def _format(schema: Schema | None) -> dict[str, Any]:
    if schema is None or schema.mode in ("tool", "prompt"):
        return {}
    if schema.mode == "json_object":
        raise ValueError("this wire format has no json_object mode; take native, tool or prompt")
    return {"output_config": {"format": {"type": "json_schema", "schema": schema.schema}}}


def read(
    status: int, headers: Mapping[str, str], body: bytes, now_s: float, rows: tuple[Row, ...] = ()
) -> Reply | NoAnswer:
    """A whole answer (LLM-2). `headers` have lower-case names; `now_s` is seconds since 1970; `rows` are one's own."""
    decoded = body_of(status, headers, body, now_s, rows)
    if isinstance(decoded, NoAnswer):
        return decoded
    if not isinstance(decoded.get("content"), list):
        return NoAnswer("empty-response", "the answer holds no content", "content", status=status)
    return _reply(decoded)


def _reply(body: Mapping[str, Any]) -> Reply | NoAnswer:
    assembly = Assembly(input_without_cache=True)
    assembly.model, assembly.id = named(body.get("model")), named(body.get("id"))
    try:
        for slot, block in enumerate(body["content"]):
            take_block(assembly, slot, block if isinstance(block, dict) else {})
    except TooMuch as problem:
        return NoAnswer("malformed-stream", str(problem), "the size", partial=assembly.reply(ended=False))
    take_finish(assembly, body.get("stop_reason"))
    take_usage(assembly.counts, body.get("usage"))
    return assembly.reply(ended=True)


def take_block(assembly: Assembly, slot: int, block: Mapping[str, Any]) -> list[StreamEvent]:
    """One block of a message; kinds that we didn't ask for are left out. Raises TooMuch."""
    kind = block.get("type")
    if kind == "text":
        return assembly.add(_text(block.get("text")))
    if kind == "thinking":
        return assembly.add(_text(block.get("thinking")), "thinking")
    if kind != "tool_use":
        return []
    given = block.get("input")
    arguments = json_bytes(given).decode() if isinstance(given, dict) and given else ""
    return assembly.begin_call(slot, block.get("id"), block.get("name")) + assembly.add_arguments(
        slot, arguments
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def take_finish(assembly: Assembly, reason: object) -> None:
    """The stop reason, if it is one."""
    if isinstance(reason, str) and reason:
        assembly.finish_raw = named(reason)
        assembly.finish = FINISHES.get(reason, "unknown")


def take_usage(counts: Counts, usage: object) -> None:
    """The counts of a `usage` object; in a stream the last ones are running totals."""
    if not isinstance(usage, dict):
        return
    counts.take("input_tokens", usage.get("input_tokens"))
    counts.take("output_tokens", usage.get("output_tokens"))
    counts.take("cached_tokens", usage.get("cache_read_input_tokens"))
    counts.take("cache_write_tokens", usage.get("cache_creation_input_tokens"))
