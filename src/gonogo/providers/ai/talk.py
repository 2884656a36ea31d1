"""The course of one call: ask through the gate, use the tools that are wanted, ask again, until there is an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gonogo.gate.budgets import Amounts
from gonogo.gate.events import Usage
from gonogo.gate.failures import GateError
from gonogo.gate.gate import Gate
from gonogo.gate.policy import Target
from gonogo.gate.record import CallRecord
from gonogo.gate.signals import Signal
from gonogo.gate.step import Attempt, Step
from gonogo.models.conversation import Message, ToolCall
from gonogo.models.reply import NoAnswer, shortcoming
from gonogo.models.structured import answer_json
from gonogo.provider import Call, Context
from gonogo.providers.ai.asking import Wire, ask_server
from gonogo.providers.ai.config import Config
from gonogo.providers.ai.conversation import SCHEMA_NAME, Given, ask_of, opening, schema_for, text_of
from gonogo.providers.ai.lent import Lent
from gonogo.providers.ai.mock import Scripts
from gonogo.providers.ai.pricing import Pricing
from gonogo.providers.ai.schemas import Checker
from gonogo.providers.ai.showing import Preview
from gonogo.providers.ai.tools import Toolbox
from gonogo.providers.ai.ways import Way, policy_of, way_to, ways_of

BYTES_A_TOKEN = 3
"""For what is set aside before an attempt; what was really used is settled after it."""
TOKENS_EXPECTED = 1000
"""What an answer without a limit is expected to have, for the same."""


class TooManyRounds(Exception):  # noqa: N818 - the name says what happened
    """The model goes on calling tools although it may not any more."""


class Talk:
    """One call's conversation. `records` are those of the gate, one a request."""

    __slots__ = (
        "_call", "_checker", "_config", "_context", "_gate", "_mock", "_schema", "_tools_allowed", "_ways",
        "_wire", "messages", "pricing", "records", "tools",
    )  # fmt: skip

    def __init__(self, call: Call, context: Context, pricing: Pricing) -> None:
        """Raises NoSession; ConfigError for a policy that can't be."""
        config: Config = call.config
        self._call, self._context, self._config = call, context, config
        self._schema: Mapping[str, Any] | None = call.schema if isinstance(call.schema, dict) else None
        self._checker = None if self._schema is None else Checker(self._schema)
        self.messages = opening(call)
        self._ways = ways_of(config)
        self.pricing = pricing
        self._gate: Gate = context.gate(
            policy_of(self._ways, map(pricing.expected, self._ways), call.timeout_s)
        )
        self._wire = self._new_wire()
        self._mock = Scripts()
        self._tools_allowed = True
        self.tools = Toolbox(call, context, Lent(call, context, self._gate, config.mcp_servers))
        self.records: list[CallRecord] = []

    async def answer(self) -> Given:
        """The model's answer, in the end. Raises GateError, InDoubt, NoServer, TooManyRounds."""
        await self.tools.prepare()
        rounds = self._config.tool_rounds
        for round_ in range(1, rounds + 2):
            self._tools_allowed = round_ <= rounds
            given = await self._ask()
            wanted = self._wanted(given)
            if not wanted:
                self.messages = (*self.messages, Message("assistant", text_of(given.reply)))
                return given
            if not self._tools_allowed:
                raise TooManyRounds(
                    f"the model still calls tools after {rounds} rounds; it has to answer by then"
                )
            answers = [await self.tools.use(made, round_) for made in wanted]
            self.messages = (*self.messages, Message("assistant", given.reply.text, tuple(wanted)), *answers)
        raise AssertionError("the last round returns or raises")

    def value(self, given: Given) -> Any:
        """The output: JSON that fits the schema, or the text."""
        if self._schema is None:
            return given.reply.text
        found = answer_json(given.reply, schema_for(self._schema, given.way))
        assert not isinstance(found, NoAnswer)  # the gate lets out only what `_validate` has passed
        return found.value

    def _wanted(self, given: Given) -> list[ToolCall]:
        """The tools that a reply asks for, if there are any to be had."""
        calls = given.reply.tool_calls if self.tools.offered else ()
        return [made for made in calls if not self._is_answer(made.name, given.way)]

    async def _ask(self) -> Given:
        try:
            answer = await self._gate.answer(self._step())
        except GateError as error:
            if error.record is not None:
                self.records.append(error.record)
            raise
        self.records.append(answer.record)
        given: Given = answer.value
        return given

    def _step(self) -> Step:
        return Step(
            self._call.step,
            self._invoke,
            effects="reads",
            key=self._call.key,
            inspect=self._inspect,
            validate=self._validate,
            usage=self._usage,
            view=_view,
            estimate=self._estimate,
        )

    async def _invoke(self, attempt: Attempt) -> Given:
        way = way_to(self._ways, attempt.target)
        ask = ask_of(
            way, self._config, self._schema, self.messages, self.tools.offered, attempt,
            tools_allowed=self._tools_allowed,
        )  # fmt: skip
        if way.vendor == "mock":
            return Given(await self._mock.answer(way, ask), way)
        see = Preview(self._context.progress).see if self._config.stream else None
        return Given(await ask_server(way, ask, attempt, self._wire, see), way)

    def _new_wire(self) -> Wire:
        config = self._config
        return Wire(
            self.pricing,
            self._gate.policy.timers,
            self._call.from_data("url", "targets"),
            config.allow_private,
            config.max_response_bytes,
        )

    def _is_answer(self, tool: str, way: Way) -> bool:
        """Whether a tool's name stands for the answer itself (schemas by tool)."""
        return self._schema is not None and way.structured == "tool" and tool == SCHEMA_NAME

    def _inspect(self, given: Given) -> Signal | None:
        """A reply in order that is no answer all the same (LLM-2)."""
        reply = given.reply
        found = shortcoming(reply)
        if found is not None:
            return Signal(kind=found.kind, message=found.message, finish=reply.finish_raw or None)
        known = self.tools.offered or any(self._is_answer(made.name, given.way) for made in reply.tool_calls)
        if not reply.text.strip() and not known:
            return Signal(kind="empty-response", message="the model called a tool, and none was offered")
        return None

    def _validate(self, given: Given) -> str | None:
        """What is wrong with an answer; wishes for tools aren't answers yet."""
        if self._schema is None or self._checker is None or self._wanted(given):
            return None
        found = answer_json(given.reply, schema_for(self._schema, given.way))
        return found.message if isinstance(found, NoAnswer) else self._checker.wrong(found.value)

    def _usage(self, given: Given) -> Usage:
        return self._wire.usage(given.reply, given.way)

    def _estimate(self, target: Target) -> Amounts:
        way = way_to(self._ways, target)
        texts = (self._config.system or "", *(message.text for message in self.messages))
        asked = sum(len(text.encode("utf-8", "replace")) for text in texts) // BYTES_A_TOKEN
        answered = way.tokens_max or TOKENS_EXPECTED
        cost = asked * target.input_usd_per_million + answered * target.output_usd_per_million
        return Amounts(tokens=asked + answered, cost_usd=cost / 1e6)


def _view(given: Given) -> dict[str, Any]:
    """What rules see of an answer."""
    reply = given.reply
    return {
        "text": reply.text[:2000],
        "finish": reply.finish,
        "model": reply.model,
        "tool_calls": len(reply.tool_calls),
    }
