"""Answers that a workflow brings itself, for tests and examples: they go through the same gate as real ones."""

from __future__ import annotations

import json
from collections.abc import Mapping

from gonogo.gate.failures import StepFailed
from gonogo.models.conversation import Ask, ToolCall
from gonogo.models.reply import Reply, Usage
from gonogo.providers.ai.config import Answer
from gonogo.providers.ai.ways import Way


class Scripts:
    """Hands out the answers of each target in order, the last one again and again; a new call starts anew."""

    __slots__ = ("_given",)

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    async def answer(self, way: Way, ask: Ask) -> Reply:
        """The next answer of a target. Raises StepFailed where the script wants a failure."""
        assert way.mock is not None
        number = self._given.get(way.name, 0)
        self._given[way.name] = number + 1
        answers = way.mock.answers
        given = answers[min(number, len(answers) - 1)]
        return _reply(Answer(text=given) if isinstance(given, str) else given, ask, number)


def _reply(answer: Answer, ask: Ask, number: int) -> Reply:
    if answer.fail is not None:
        raise StepFailed(answer.fail, "the script says so", retry_after_s=answer.retry_after_s)
    calls = tuple(
        ToolCall(f"call_{number}_{index}", wish.tool, _text(wish.arguments))
        for index, wish in enumerate(answer.calls)
    )
    tokens = answer.tokens
    return Reply(
        text=answer.text if answer.json is None else _text(answer.json),
        tool_calls=calls,
        finish="tool_calls" if calls else answer.finish,
        finish_raw="tool_calls" if calls else answer.finish,
        usage=Usage() if tokens is None else Usage(tokens.input, tokens.output),
        model=ask.model,
    )


def _text(value: object) -> str:
    """JSON text; a mapping of any kind is an object."""
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, ensure_ascii=False)
