"""Vendors with a format of their own, asked by way of Pydantic AI: its words for ours, and nothing else of it.

One attempt is one exchange of `_http.py` (`_lent.py`): the libraries' own retries are off, and a second request would
be refused. Refusals are read from the bytes, as with the other vendors; of the library come the request and what an
answer in order says. Written against pydantic-ai-slim 2.68. Imported when such a vendor is asked: it takes seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from gonogo.models.conversation import Ask, Message, Schema, ToolCall
from gonogo.models.refusing import body_of
from gonogo.models.reply import Finish, NoAnswer, Reply, Usage
from gonogo.providers import _http
from gonogo.providers._lent import Exchange, client
from gonogo.providers.ai.config import Vendor, strange_params
from gonogo.providers.ai.ways import Way

_FINISHES: Mapping[str | None, Finish] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "tool_call": "tool_calls",
}


async def answered(way: Way, ask: Ask, exchange: Exchange) -> Reply | NoAnswer | _http.Problem:
    """What one exchange gave. Raises ValueError for a question that the library can't put."""
    if not way.api_key:  # the library would take one of the environment
        return NoAnswer("auth", "there is no api_key", "the request")
    asked = messages(ask), settings(ask, way.vendor), parameters(ask)
    async with client(exchange) as lent:
        try:
            response = await model_of(way, ask.model, lent).request(*asked)
        except Exception as problem:  # noqa: BLE001 - whatever a library makes of hostile bytes, it is no answer
            return no_answer(exchange, problem)
    return _refusal(exchange) or reply_of(response)


def model_of(way: Way, model: str, lent: Any) -> Model[Any]:
    """The vendor's, over a client of ours."""
    key = way.api_key
    if way.vendor == "google":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel(model, provider=GoogleProvider(api_key=key, base_url=way.url, http_client=lent))
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    return MistralModel(model, provider=MistralProvider(api_key=key, base_url=way.url, http_client=lent))


def no_answer(exchange: Exchange, problem: Exception | None) -> NoAnswer | _http.Problem:
    """What went wrong, from the bytes where there are any; the library's own words may repeat anything."""
    if isinstance(exchange.outcome, _http.Problem):
        return exchange.outcome
    if exchange.outcome is None:
        raise ValueError(f"the library can't ask this: {type(problem).__name__}") from problem
    return _refusal(exchange) or malformed(problem, exchange.outcome.status)


def malformed(problem: Exception | None, status: int) -> NoAnswer:
    """The library makes nothing of what came; its own words may repeat anything, so they aren't repeated."""
    message = f"the answer isn't what this vendor's are like ({type(problem).__name__})"
    return NoAnswer("malformed-stream", message, "the body", status=status)


def _refusal(exchange: Exchange) -> NoAnswer | None:
    """A status that says no, an error inside a 200, and what is no JSON."""
    came = exchange.outcome
    assert isinstance(came, _http.Response)  # a library that answers without asking would be broken
    found = body_of(came.status, came.headers, came.body, time.time(), ())
    return found if isinstance(found, NoAnswer) else None


def settings(ask: Ask, vendor: Vendor) -> ModelSettings:
    """What is asked beside the question. Raises ValueError for `params` that would be dropped without a word."""
    strange = strange_params(vendor, ask.extra)  # a gate's policy may bring some
    if strange is not None:
        raise ValueError(strange)
    made: dict[str, Any] = {**ask.extra, "max_retries": 0}
    made |= {} if ask.tokens_max is None else {"max_tokens": ask.tokens_max}
    made |= {} if ask.temperature is None else {"temperature": ask.temperature}
    made |= {"tool_choice": "none"} if ask.tools and ask.tool_choice == "none" else {}
    given: ModelSettings = {**made}  # type: ignore[typeddict-item]
    return given


def parameters(ask: Ask) -> ModelRequestParameters:
    """The tools, and how a schema is told."""
    tools = [
        ToolDefinition(
            name=tool.name, description=tool.description, parameters_json_schema=_object(tool.parameters)
        )
        for tool in ask.tools
    ]
    schema = ask.schema
    if schema is None or schema.mode not in ("native", "tool"):
        return ModelRequestParameters(function_tools=tools)
    if schema.mode == "native":
        form = OutputObjectDefinition(json_schema=dict(schema.schema), name=schema.name)
        return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=form)
    return ModelRequestParameters(
        function_tools=tools, output_mode="tool", output_tools=[_as_tool(schema)], allow_text_output=False
    )


def _as_tool(schema: Schema) -> ToolDefinition:
    told = "Give the answer by calling this."
    return ToolDefinition(name=schema.name, description=told, parameters_json_schema=dict(schema.schema))


def _object(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {}, **parameters}


def messages(ask: Ask) -> list[ModelMessage]:
    """Neighbours of one side are one message: these vendors want the sides in turn."""
    names = {call.id: call.name for message in ask.messages for call in message.tool_calls}
    made: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart(ask.system)])] if ask.system else []
    for message in ask.messages:
        if message.role == "assistant":
            made.append(ModelResponse(parts=list(_said(message))))
            continue
        part = UserPromptPart(message.text) if message.role == "user" else _returned(message, names)
        last = made[-1] if made else None
        if isinstance(last, ModelRequest):
            made[-1] = ModelRequest(parts=[*last.parts, part])
        else:
            made.append(ModelRequest(parts=[part]))
    return made


def _said(message: Message) -> Iterator[TextPart | ToolCallPart]:
    if message.text:
        yield TextPart(message.text)
    for call in message.tool_calls:
        yield ToolCallPart(call.name, call.arguments or "{}", call.id)


def _returned(message: Message, names: Mapping[str, str]) -> ToolReturnPart:
    return ToolReturnPart(
        names.get(message.tool_call_id, "tool"),
        message.text,
        message.tool_call_id,
        outcome="failed" if message.failed else "success",
    )


def reply_of(response: ModelResponse) -> Reply:
    """The library's words in ours."""
    parts, details = response.parts, response.provider_details or {}
    calls = tuple(
        ToolCall(part.tool_call_id, part.tool_name, _arguments(part.args))
        for part in parts
        if isinstance(part, ToolCallPart)
    )
    raw = details.get("finish_reason") or details.get("block_reason") or response.finish_reason or ""
    finish = _FINISHES.get(response.finish_reason, "unknown")
    return Reply(
        text="".join(part.content for part in parts if isinstance(part, TextPart)),
        thinking="".join(part.content for part in parts if isinstance(part, ThinkingPart)),
        tool_calls=calls,
        finish="tool_calls" if calls and finish in ("stop", "unknown") else finish,
        finish_raw=str(raw)[:200],
        usage=_usage(response),
        model=(response.model_name or "")[:200],
        id=(response.provider_response_id or "")[:200],
    )


def _arguments(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)


def _usage(response: ModelResponse) -> Usage:
    """The library says zero for what wasn't counted; no real question has no tokens."""
    used = response.usage
    if not used.input_tokens:
        return Usage()
    return Usage(
        used.input_tokens,
        used.output_tokens,
        used.cache_read_tokens or None,
        used.cache_write_tokens or None,
        used.details.get("thoughts_tokens") or None,
    )
