"""What a model is told: the prompt, what was said before, how a schema is to be met, and what was wrong with an answer.

Pure. All texts are data here; none is read as anything else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from gonogo.gate.step import Attempt
from gonogo.models.conversation import Ask, Message, Schema, Tool, ToolCall
from gonogo.models.reply import Reply
from gonogo.provider import Call
from gonogo.providers.ai.config import Config
from gonogo.providers.ai.ways import Way

KEPT_BYTES_MAX = 256 * 1024
"""A longer conversation isn't kept, and no session can go on from it: records stay small."""
REJECTED_CHARACTERS_MAX = 20_000
SCHEMA_NAME = "final_answer"
"""The tool that stands for the answer where a schema is told as one; no other may be called so."""


class Given(Struct, frozen=True):
    """A reply, and who gave it: with a second attempt beside the first, both may come."""

    reply: Reply
    way: Way


class NoSession(Exception):  # noqa: N818 - the name says what happened
    """There is no conversation to go on from; the text says why."""


def opening(call: Call) -> tuple[Message, ...]:
    """The session's messages, if it goes on from one, and the prompt. Raises NoSession."""
    config: Config = call.config
    before = _session(call, config.session) if config.session is not None else ()
    if isinstance(config.prompt, str):
        return (*before, Message("user", config.prompt))
    return (*before, *(Message(turn.role, turn.text) for turn in config.prompt))


def _session(call: Call, step: str) -> tuple[Message, ...]:
    try:
        meta: Any = call.names["outputs_meta"][step]
        kept = meta["conversation"]
    except (KeyError, TypeError):
        kept = None
    if kept is None:
        raise NoSession(
            f"step '{step}' has no conversation to go on from; depend on it, and let it be an ai step that answers"
        )
    try:
        messages = msgspec.convert(kept, tuple[Message, ...])
    except msgspec.ValidationError as problem:
        raise NoSession(f"the conversation of step '{step}' can't be read: {problem}") from problem
    # Some vendors refuse calls of tools that aren't offered any more; what came of them is in the answers.
    return tuple(Message(each.role, each.text) for each in messages if each.role != "tool" and each.text)


def kept(messages: tuple[Message, ...]) -> list[Any] | None:
    """A conversation for the step's meta; None when it is too long."""
    data = msgspec.json.encode(messages)
    if len(data) > KEPT_BYTES_MAX:
        return None
    made: list[Any] = msgspec.json.decode(data)
    return made


def ask_of(
    way: Way,
    config: Config,
    schema: Mapping[str, Any] | None,
    messages: tuple[Message, ...],
    tools: tuple[Tool, ...],
    attempt: Attempt,
    *,
    tools_allowed: bool,
) -> Ask:
    """One request to one target."""
    wanted = None if schema is None else schema_for(schema, way)
    return Ask(
        way.model,
        (*messages, *_corrections(attempt)),
        _system(config.system or "", wanted),
        tools,
        "auto" if tools_allowed else "none",
        schema=wanted,
        tokens_max=way.tokens_max,
        temperature=way.temperature,
        stream=config.stream,
        extra=way.params,
    )


def schema_for(schema: Mapping[str, Any], way: Way) -> Schema:
    """The schema as this target is told of it; strict only where the vendor's rules for that are met."""
    return Schema(schema, SCHEMA_NAME, way.structured, _is_strict(schema, 0))


def _is_strict(schema: Any, depth: int) -> bool:
    """OpenAI's strict mode: every object is closed and needs all of its keys; else the request would be refused."""
    if depth > 20 or isinstance(schema, bool):
        return False
    if isinstance(schema, list):
        return all(_is_strict(part, depth + 1) for part in schema)
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties", {})
    if schema.get("type") == "object" or properties:
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", ())) != set(properties):
            return False
    below = [*properties.values(), schema.get("items", {}), schema.get("anyOf", [])]
    return all(_is_strict(part, depth + 1) for part in below)


def _system(system: str, wanted: Schema | None) -> str:
    """The step's own words; where no wire format says it, the schema in words, too."""
    if wanted is None or wanted.mode not in ("prompt", "json_object"):
        return system
    told = json.dumps(dict(wanted.schema), ensure_ascii=False)
    return f"{system}\n\nAnswer with JSON alone, no prose and no fence, that fits this JSON Schema:\n{told}".strip()


def _corrections(attempt: Attempt) -> tuple[Message, ...]:
    """The answer that wasn't valid and what was wrong, for this one attempt; never more than the last (B22)."""
    if attempt.feedback is None:
        return ()
    given = attempt.rejected
    said = text_of(given.reply) if isinstance(given, Given) else ""
    return (
        Message("assistant", said[:REJECTED_CHARACTERS_MAX] or "…"),
        Message("user", attempt.feedback),
    )


def text_of(reply: Reply) -> str:
    """What was said, as text: of an answer by a tool, its arguments."""
    answers: list[ToolCall] = [made for made in reply.tool_calls if made.name == SCHEMA_NAME]
    return reply.text if reply.text.strip() or not answers else answers[0].arguments
