"""Chat completions as OpenAI defined them and most servers speak them. Streams are read in `openai_stream.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from gonogo.models.assembly import Assembly, TooMuch
from gonogo.models.cleaning import named
from gonogo.models.conversation import Ask, Message, Schema, Tool
from gonogo.models.counting import Counts
from gonogo.models.refusing import Row, body_of
from gonogo.models.reply import Finish, NoAnswer, Reply
from gonogo.models.writing import HttpCall, call, checked, forced_tool, json_bytes, tools_of

FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


class Dialect(Struct, frozen=True, omit_defaults=True):
    """Where servers that speak this format differ. Old ones know `max_tokens` only, and no `stream_options`."""

    tokens_max_key: str = "max_completion_tokens"
    system_role: str = "system"
    stream_usage: bool = True


OLDER = Dialect("max_tokens", stream_usage=False)


def key_headers(key: str) -> dict[str, str]:
    """The header that carries the key."""
    return {"authorization": f"Bearer {key}"}


def request(base_url: str, ask: Ask, dialect: Dialect = Dialect()) -> HttpCall:  # noqa: B008 - frozen
    """The request for a base URL such as `https://api.example.com/v1`. Raises ValueError (see `writing.py`)."""
    checked(ask)
    payload: dict[str, Any] = {"model": ask.model, "messages": _messages(ask, dialect)}
    payload |= _tools(ask) | _format(ask.schema)
    if ask.tokens_max is not None:
        payload[dialect.tokens_max_key] = ask.tokens_max
    if ask.temperature is not None:
        payload["temperature"] = ask.temperature
    if ask.stop:
        payload["stop"] = list(ask.stop)
    if ask.stream:
        payload["stream"] = True
        if dialect.stream_usage:
            payload["stream_options"] = {"include_usage": True}
    return call(f"{base_url.rstrip('/')}/chat/completions", ask, payload, {})


def _messages(ask: Ask, dialect: Dialect) -> list[dict[str, Any]]:
    system = [{"role": dialect.system_role, "content": ask.system}] if ask.system else []
    return system + [_message(message) for message in ask.messages]


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
    written: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        written["content"] = message.text or None
        written["tool_calls"] = [
            {
                "id": made.id,
                "type": "function",
                "function": {"name": made.name, "arguments": made.arguments or "{}"},
            }
            for made in message.tool_calls
        ]
    return written


def _tools(ask: Ask) -> dict[str, Any]:
    tools = tools_of(ask)
    if not tools:
        return {}
    forced = forced_tool(ask)
    choice = ask.tool_choice if forced is None else {"type": "function", "function": {"name": forced}}
    return {"tools": [_tool(tool) for tool in tools], "tool_choice": choice}


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _format(schema: Schema | None) -> dict[str, Any]:
    if schema is not None and schema.mode == "native":
        wanted = {"name": schema.name, "schema": schema.schema, "strict": schema.strict}
        return {"response_format": {"type": "json_schema", "json_schema": wanted}}
    if schema is not None and schema.mode == "json_object":
        return {"response_format": {"type": "json_object"}}
    return {}


def read(
    status: int, headers: Mapping[str, str], body: bytes, now_s: float, rows: tuple[Row, ...] = ()
) -> Reply | NoAnswer:
    """A whole answer (LLM-2). `headers` have lower-case names; `now_s` is seconds since 1970; `rows` are one's own."""
    decoded = body_of(status, headers, body, now_s, rows)
    if isinstance(decoded, NoAnswer):
        return decoded
    choices = decoded.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return NoAnswer("empty-response", "the answer holds no choice", "choices", status=status)
    return _reply(decoded, choices[0])


def _reply(body: Mapping[str, Any], choice: Mapping[str, Any]) -> Reply | NoAnswer:
    assembly = Assembly()
    assembly.model, assembly.id = named(body.get("model")), named(body.get("id"))
    message = choice.get("message")
    try:
        take_message(assembly, message if isinstance(message, dict) else {})
    except TooMuch as problem:
        return NoAnswer("malformed-stream", str(problem), "the size", partial=assembly.reply(ended=False))
    take_finish(assembly, choice.get("finish_reason"))
    take_usage(assembly.counts, body.get("usage"))
    return assembly.reply(ended=True)


def take_message(assembly: Assembly, message: Mapping[str, Any]) -> None:
    """The parts of a whole message. Raises TooMuch."""
    assembly.add(text_of(message.get("content")))
    assembly.add(text_of(message.get("refusal")), "refusal")
    assembly.add(text_of(message.get("reasoning_content") or message.get("reasoning")), "thinking")
    calls = message.get("tool_calls")
    for index, made in enumerate(calls if isinstance(calls, list) else ()):
        function = made.get("function") if isinstance(made, dict) else None
        if not isinstance(function, dict):
            assembly.pass_over("a tool call without a function")
            continue
        assembly.begin_call(index, made.get("id"), function.get("name"))
        assembly.add_arguments(index, arguments_text(function.get("arguments")))


def text_of(content: object) -> str:
    """Text, or the texts of a list of parts; anything else is no text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def arguments_text(arguments: object) -> str:
    """Arguments as JSON text; some servers send them as an object."""
    if isinstance(arguments, str):
        return arguments
    return json_bytes(arguments).decode() if isinstance(arguments, dict) else ""


def take_finish(assembly: Assembly, reason: object) -> None:
    """The finish reason, if it is one."""
    if isinstance(reason, str) and reason:
        assembly.finish_raw = named(reason)
        assembly.finish = FINISHES.get(reason.lower(), "unknown")


def take_usage(counts: Counts, usage: object) -> None:
    """The counts of a `usage` object."""
    if not isinstance(usage, dict):
        return
    counts.take("input_tokens", usage.get("prompt_tokens"))
    counts.take("output_tokens", usage.get("completion_tokens"))
    counts.take("total_tokens", usage.get("total_tokens"))
    prompt, completion = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    if isinstance(prompt, dict):
        counts.take("cached_tokens", prompt.get("cached_tokens"))
    if isinstance(completion, dict):
        counts.take("reasoning_tokens", completion.get("reasoning_tokens"))
