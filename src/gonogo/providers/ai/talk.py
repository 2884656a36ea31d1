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
from gonogo.models.cleaning import shown
from gonogo.models.conversation import Message
from gonogo.models.counting import Price as ModelPrice
from gonogo.models.reply import NoAnswer, Reply, shortcoming
from gonogo.models.structured import answer_json
from gonogo.provider import Call, Context
from gonogo.providers.ai.asking import Wire, ask_server
from gonogo.providers.ai.config import Config
from gonogo.providers.ai.conversation import SCHEMA_NAME, ask_of, opening, schema_for
from gonogo.providers.ai.mock import Scripts
from gonogo.providers.ai.schemas import Checker
from gonogo.providers.ai.tools import Toolbox
from gonogo.providers.ai.ways import Way, policy_of, way_to, ways_of

SHOWN_EACH_CHARACTERS = 16
SHOWN_CHARACTERS_MAX = 160
BYTES_A_TOKEN = 3
"""For what is set aside before an attempt; what was really used is settled after it."""
TOKENS_EXPECTED = 1000
"""What an answer without a limit is expected to have, for the same."""


class TooManyRounds(Exception):  # noqa: N818 - the name says what happened
    """The model goes on calling tools although it may not any more."""


class Talk:
    """One call's conversation. `records` are those of the gate, one a request; `served` is who answered last."""

    __slots__ = (
        "_call", "_checker", "_config", "_context", "_gate", "_mock", "_schema", "_text", "_tools_allowed", "_ways",
        "_wire", "messages", "records", "served", "tools",
    )  # fmt: skip

    def __init__(self, call: Call, context: Context) -> None:
        """Raises NoSession; ConfigError for a policy that can't be."""
        config: Config = call.config
        self._call, self._context, self._config = call, context, config
        self._schema: Mapping[str, Any] | None = call.schema if isinstance(call.schema, dict) else None
        self._checker = None if self._schema is None else Checker(self._schema)
        self.messages = opening(call)
        self._ways = ways_of(config)
        self._gate: Gate = context.gate(policy_of(self._ways, config.prices, call.timeout_s))
        self._wire = self._new_wire()
        self._mock = Scripts()
        self._text: list[str] = []
        self._tools_allowed = True
        self.tools = Toolbox(call, context)
        self.records: list[CallRecord] = []
        self.served: Way = self._ways[0]

    async def reply(self) -> Reply:
        """The model's answer, in the end. Raises GateError, InDoubt, TooManyRounds."""
        rounds = self._config.tool_rounds
        for round_ in range(1, rounds + 2):
            self._tools_allowed = round_ <= rounds
            reply = await self._ask()
            wanted = [made for made in reply.tool_calls if not self._is_answer(made.name)]
            if not (wanted and self.tools.offered):
                self.messages = (*self.messages, Message("assistant", _said(reply)))
                return reply
            if not self._tools_allowed:
                raise TooManyRounds(
                    f"the model still calls tools after {rounds} rounds; it has to answer by then"
                )
            answers = [await self.tools.use(made, round_) for made in wanted]
            self.messages = (*self.messages, Message("assistant", reply.text, tuple(wanted)), *answers)
        raise AssertionError("the last round returns or raises")

    def value(self, reply: Reply) -> Any:
        """The output: JSON that fits the schema, or the text."""
        if self._schema is None:
            return reply.text
        found = answer_json(reply, schema_for(self._schema, self.served))
        assert not isinstance(found, NoAnswer)  # validated in the gate
        return found.value

    async def _ask(self) -> Reply:
        try:
            answer = await self._gate.answer(self._step())
        except GateError as error:
            if error.record is not None:
                self.records.append(error.record)
            raise
        self.records.append(answer.record)
        reply: Reply = answer.value
        return reply

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

    async def _invoke(self, attempt: Attempt) -> Reply:
        way = self.served = way_to(self._ways, attempt.target)
        self._text.clear()
        ask = ask_of(
            way, self._config, self._schema, self.messages, self.tools.offered, attempt,
            tools_allowed=self._tools_allowed,
        )  # fmt: skip
        if way.vendor == "mock":
            return await self._mock.answer(way, ask)
        return await ask_server(way, ask, attempt, self._wire)

    def _new_wire(self) -> Wire:
        config = self._config
        prices = {
            model: ModelPrice(price.input, price.output, price.cached, price.cache_write)
            for model, price in config.prices.items()
        }
        return Wire(
            prices,
            self._gate.policy.timers,
            self._call.from_data("url", "targets"),
            config.allow_private,
            config.max_response_bytes,
            self._see if config.stream else None,
        )

    def _see(self, text: str) -> None:
        """Show the end of what has come, now and then, in one line without anything that a terminal would obey."""
        self._text.append(text)
        waiting = sum(map(len, self._text[1:]))
        if len(self._text) > 1 and waiting < SHOWN_EACH_CHARACTERS:
            return
        whole = "".join(self._text)[-4 * SHOWN_CHARACTERS_MAX :]
        self._text = [whole]
        line = shown(whole, len(whole))[-SHOWN_CHARACTERS_MAX:]
        if line:
            self._context.progress(line)

    def _is_answer(self, tool: str) -> bool:
        """Whether a tool's name stands for the answer itself (schemas by tool)."""
        return self._schema is not None and self.served.structured == "tool" and tool == SCHEMA_NAME

    def _inspect(self, reply: Reply) -> Signal | None:
        """A reply in order that is no answer all the same (LLM-2)."""
        found = shortcoming(reply)
        if found is not None:
            return Signal(kind=found.kind, message=found.message, finish=reply.finish_raw or None)
        known = self.tools.offered or any(self._is_answer(made.name) for made in reply.tool_calls)
        if not reply.text.strip() and not known:
            return Signal(kind="empty-response", message="the model called a tool, and none was offered")
        return None

    def _validate(self, reply: Reply) -> str | None:
        """What is wrong with an answer; wishes for tools aren't answers yet."""
        if self._schema is None or self._checker is None:
            return None
        if self.tools.offered and any(not self._is_answer(made.name) for made in reply.tool_calls):
            return None
        found = answer_json(reply, schema_for(self._schema, self.served))
        return found.message if isinstance(found, NoAnswer) else self._checker.wrong(found.value)

    def _usage(self, reply: Reply) -> Usage:
        return self._wire.usage(reply, self.served.model)

    def _estimate(self, target: Target) -> Amounts:
        way = way_to(self._ways, target)
        texts = (self._config.system or "", *(message.text for message in self.messages))
        asked = sum(len(text.encode("utf-8", "replace")) for text in texts) // BYTES_A_TOKEN
        answered = way.tokens_max or TOKENS_EXPECTED
        cost = asked * target.input_usd_per_million + answered * target.output_usd_per_million
        return Amounts(tokens=asked + answered, cost_usd=cost / 1e6)


def _said(reply: Reply) -> str:
    answers = [made.arguments for made in reply.tool_calls if made.name == SCHEMA_NAME]
    return reply.text or (answers[0] if answers else "")


def _view(reply: Reply) -> dict[str, Any]:
    """What rules see of an answer."""
    return {
        "text": reply.text[:2000],
        "finish": reply.finish,
        "model": reply.model,
        "tool_calls": len(reply.tool_calls),
    }
