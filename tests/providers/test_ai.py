"""ai, against a scripted server in both wire formats, against one that breaks down, and with answers of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import pytest
from msgspec import ValidationError
from tests.servers import faulty
from tests.servers.faulty import FaultyServer, Received, Script
from tests.servers.model import NO_ANSWERS, Body, Break, Said, calls, cut, refuses, says, words

from gonogo.gate.policy import Bounds, Hedge, Policy, Target, Timers, rule
from gonogo.provider import Done, Failed, Outcome, Value
from gonogo.providers.ai import PROVIDER
from gonogo.testing import ScriptedContext, call_for

Do = Callable[..., Outcome]
VENDORS = ("openai", "anthropic")
ANSWER = {"type": "object", "required": ["urgent"], "properties": {"urgent": {"type": "boolean"}}}
HASTE = Policy(timers=Timers(connect_s=1, first_token_s=0.3, idle_s=0.3, attempt_s=5), breaker=None)
ONE = Policy(bounds=Bounds(attempts_per_target=1, attempts_max=1), breaker=None)


@pytest.fixture(params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> str:
    """Each wire format in turn."""
    return str(request.param)


def at(server: FaultyServer, vendor: str = "openai", **more: Any) -> dict[str, Any]:
    """The keys of a step that asks this server."""
    url = f"http://127.0.0.1:{server.port}/v1"
    return {"provider": vendor, "model": "m", "url": url, "prompt": "Is it urgent?", **more}


def body(received: Received) -> dict[str, Any]:
    """What was asked."""
    asked: dict[str, Any] = json.loads(received.body)
    return asked


def mock(*answers: Any, **more: Any) -> dict[str, Any]:
    """The keys of a step whose answers are written down."""
    return {"provider": "mock", "prompt": "hi", "mock": {"answers": list(answers)}, **more}


def done(outcome: Outcome) -> Done:
    """It must be one."""
    assert isinstance(outcome, Done), outcome
    return outcome


def failed(outcome: Outcome) -> Failed:
    """It must be one."""
    assert isinstance(outcome, Failed), outcome
    return outcome


@pytest.mark.parametrize("stream", [False, True])
def test_the_text_is_the_output(vendor: str, stream: bool, do: Do) -> None:
    """E.11: the same whether it came whole or in pieces; the meta says who answered, why it ended, and what it took."""
    with FaultyServer(says(words("not at all"))) as server:
        answer = done(do("ai", at(server, vendor, stream=stream)))
    assert (answer.output, answer.content, answer.effect) == ("not at all", "not at all", "none")
    assert answer.meta["model"] == "scripted-1"
    assert answer.meta["finish_reason"] == ("stop" if vendor == "openai" else "end_turn")
    assert answer.meta["tokens"]["input"] == 10
    assert answer.meta["usage"]["tokens"] == 10 + answer.meta["tokens"]["output"]
    assert answer.meta["gate"]["served"] == "m"
    assert [each["kind"] for each in answer.meta["gate"]["attempts"]] == ["ok"]


def test_what_is_asked_is_what_the_step_says(vendor: str, do: Do) -> None:
    """Model, system, messages, limits, the vendor's own keys; the key in its header."""
    prompt = [{"text": "2?"}, {"role": "assistant", "text": "two"}, {"text": "3?"}]
    more = {
        "system": "Be brief.",
        "temperature": 0.5,
        "max_tokens": 7,
        "params": {"top_p": 0.9},
        "api_key": "k-1",
        "headers": {"x-team": "a"},
    }
    with FaultyServer(says("three")) as server:
        done(do("ai", at(server, vendor, prompt=prompt, **more)))
        received = server.requests[0]
    asked = body(received)
    roles = [message["role"] for message in asked["messages"]]
    assert roles[-3:] == ["user", "assistant", "user"]
    assert asked["model"] == "m"
    assert (asked["temperature"], asked["top_p"]) == (0.5, 0.9)
    assert "Be brief." in json.dumps(asked)
    assert 7 in (asked.get("max_tokens"), asked.get("max_completion_tokens"))
    sent = received.headers
    assert "k-1" in (sent.get("x-api-key"), sent.get("authorization", "").removeprefix("Bearer "))
    assert sent["x-team"] == "a"


def test_the_key_is_in_no_record(vendor: str, do: Do) -> None:
    """Not even when the server repeats it in its refusal."""
    with FaultyServer(refuses(401, "invalid_api_key", "wrong key: k-very-secret")) as server:
        outcome = failed(do("ai", at(server, vendor, api_key="k-very-secret")))
    assert outcome.fault.kind == "ai.auth"
    assert "k-very-secret" not in repr(outcome)
    assert "***" in outcome.fault.message


@pytest.mark.parametrize("structured", ["native", "tool", "prompt"])
def test_a_schema_makes_the_answer_data(vendor: str, structured: str, do: Do) -> None:
    """E.11: the output is the parsed object, however the schema was told."""
    said = says(calls("final_answer", {"urgent": True})) if structured == "tool" else says('{"urgent": true}')
    with FaultyServer(said) as server:
        answer = done(do("ai", at(server, vendor, structured=structured), schema=ANSWER))
        asked = json.dumps(body(server.requests[0]))
    assert answer.output == {"urgent": True}
    assert "urgent" in asked


def test_LLM_2_an_answer_that_misses_the_schema_is_asked_for_again(vendor: str, do: Do) -> None:
    """With the rejected answer and one message of what was wrong, for that one call only."""
    script = (says('{"urgent": "very"}'), says("I think so"), says('{"urgent": true}'))
    with FaultyServer(*script) as server:
        answer = done(do("ai", at(server, vendor), schema=ANSWER))
        asked = [body(each)["messages"] for each in server.requests]
    assert answer.output == {"urgent": True}
    assert [len(messages) for messages in asked] == [1, 3, 3]
    assert "very" in json.dumps(asked[1][1])
    assert "boolean" in json.dumps(asked[1][2])
    assert "very" not in json.dumps(asked[2])
    assert [each["kind"] for each in answer.meta["gate"]["attempts"]] == ["schema-fail", "schema-fail", "ok"]
    assert len(answer.meta["conversation"]) == 2


def told(text: str) -> dict[str, Any]:
    """An answer of six tokens."""
    return {"text": text, "tokens": {"input": 5, "output": 1}}


def test_LLM_2_a_model_that_never_meets_the_schema_fails(do: Do) -> None:
    """Logical: asking in the same way again won't help. What it cost is billed."""
    outcome = failed(
        do("ai", mock(*(told(text) for text in ("no", "never", "{}")), model="m"), schema=ANSWER)
    )
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("ai.schema_fail", "logical")
    assert outcome.meta["usage"]["tokens"] == 6 * len(outcome.meta["gate"]["attempts"])


@pytest.mark.parametrize(
    ("finish", "kind"),
    [("length", "ai.length_stop"), ("content_filter", "ai.content_filter")],
)
def test_LLM_2_ends_that_are_no_answers_are_told_apart(finish: str, kind: str, do: Do) -> None:
    """A cut is no success, nor is a filter."""
    with FaultyServer(says(Said(("half an", " answer"), finish=finish))) as server:
        outcome = failed(do("ai", at(server)))
        assert server.connections == 1
    assert (outcome.fault.kind, outcome.fault.fault_class) == (kind, "logical")


def test_LLM_2_a_refusal_is_not_an_answer(do: Do) -> None:
    """Anthropic says it as a stop reason."""
    with FaultyServer(says(Said(("I can't",), finish="content_filter"))) as server:
        assert failed(do("ai", at(server, "anthropic"))).fault.kind == "ai.refusal"


@pytest.mark.parametrize("wrong", NO_ANSWERS, ids=[each.name for each in NO_ANSWERS])
@pytest.mark.parametrize("stream", [False, True])
def test_LLM_2_a_200_without_an_answer_is_tried_again(wrong: Body, stream: bool, vendor: str, do: Do) -> None:
    """An empty body, a page, no choices, an error inside, garbage: never a success, and a good answer follows."""
    with FaultyServer(wrong.script(), says("fine")) as server:
        answer = done(do("ai", at(server, vendor, stream=stream)))
        assert server.connections == 2
    assert answer.output == "fine"
    assert answer.meta["gate"]["attempts"][0]["kind"] != "ok"


def test_LLM_2_the_last_error_names_who_was_tried(context: ScriptedContext, do: Do) -> None:
    """Every target with the kind of its failure."""
    targets = [
        {"name": "a", "mock": {"answers": [{"fail": "quota-exhausted"}]}},
        {"name": "b", "mock": {"answers": [{"fail": "auth"}]}},
    ]
    outcome = failed(do("ai", {"provider": "mock", "prompt": "hi", "targets": targets}))
    assert "a (quota-exhausted), b (auth)" in outcome.fault.message


BREAKS: list[tuple[str, Script]] = [
    (
        "before the first chunk",
        faulty.RESET_BEFORE_HEADERS,
    ),
    ("after three chunks", says(words("one two three four five"), Break(4, faulty.reset))),
    ("a clean end without an end", says(words("one two three four five"), Break(4, cut))),
    (
        "an error inside",
        says(words("one two three"), Break(3, cut, b'data: {"error": {"message": "busy"}}\n\n')),
    ),
]


@pytest.mark.parametrize("script", [row[1] for row in BREAKS], ids=[row[0] for row in BREAKS])
def test_LLM_1_a_broken_stream_goes_to_the_second_server(script: Script, do: Do) -> None:
    """Never half an answer, never two spliced: the answer is the second server's alone, and the record says why."""
    with FaultyServer(script) as first, FaultyServer(says("from the second")) as second:
        targets = [
            {"name": "a", "url": f"http://127.0.0.1:{first.port}/v1"},
            {"name": "b", "url": f"http://127.0.0.1:{second.port}/v1"},
        ]
        config = {"provider": "openai", "model": "m", "prompt": "hi", "stream": True, "targets": targets}
        answer = done(do("ai", config))
    assert answer.output == "from the second"
    assert answer.meta["target"] == "b"
    assert {each["target"] for each in answer.meta["gate"]["attempts"][:-1]} == {"a"}


def test_LLM_1_a_chunk_that_cannot_be_read_is_told(do: Do) -> None:
    """The rest is read; the answer stands with the damage recorded."""
    with FaultyServer(says(words("one two three"), Break(3, None, b"data: {oops\n\n"))) as server:
        answer = done(do("ai", at(server, stream=True)))
    assert answer.output == "one two three"
    assert answer.meta["warnings"]


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (faulty.STALL_AFTER_HEADERS, "timeout-first-token"),
        (says(words("one two three four"), Break(4, faulty.stall)), "timeout-idle"),
    ],
    ids=["never a word", "no word more"],
)
def test_LLM_4_a_silent_stream_is_left(script: Script, kind: str, context: ScriptedContext, do: Do) -> None:
    """Typed, transient, and the server sees that nobody listens any more."""
    context.policy = HASTE
    with FaultyServer(script) as server:
        outcome = failed(do("ai", at(server, stream=True)))
        assert server.until_hung_up()
    assert {each["kind"] for each in outcome.meta["gate"]["attempts"]} == {kind}
    assert outcome.fault.fault_class == "transient"


def test_LLM_4_a_stream_without_its_last_mark_ends_soon(do: Do) -> None:
    """Once it has said why it ends, the rest is waited for but a moment."""
    with FaultyServer(says(words("one two"), end_mark=False)) as server:
        assert done(do("ai", at(server, stream=True))).output == "one two"


def test_a_429_waits_as_long_as_it_says(vendor: str, context: ScriptedContext, do: Do) -> None:
    """And no shorter."""
    limited = refuses(429, "rate_limit_error", "slow down", {"retry-after": "3"})
    with FaultyServer(limited, says("fine")) as server:
        assert done(do("ai", at(server, vendor))).output == "fine"
    assert context.clock.waits_s[0] >= 3


def test_a_target_elsewhere_gets_no_key_of_another(do: Do) -> None:
    """A server gets the key that was written for it, or none."""
    with FaultyServer(refuses(503, "overloaded")) as first, FaultyServer(says("fine")) as second:
        targets = [{"name": "a"}, {"name": "b", "url": f"http://127.0.0.1:{second.port}/v1"}]
        done(do("ai", at(first, api_key="k-1", headers={"x-team": "a"}, targets=targets)))
        assert first.requests[0].headers["authorization"] == "Bearer k-1"
        assert {"authorization", "x-team"} & second.requests[0].headers.keys() == set()


def test_each_target_has_a_model_and_keys_of_its_own(do: Do) -> None:
    """X9: what the first one was asked with doesn't leak into the second."""
    with FaultyServer(
        refuses(503, "overloaded"), refuses(503, "overloaded"), refuses(503, "overloaded"), says("ok")
    ) as server:
        targets = [{"model": "big", "params": {"seed": 1}}, {"model": "small", "temperature": 0}]
        done(do("ai", at(server, targets=targets)))
        asked = [body(each) for each in server.requests]
    assert (asked[0]["model"], asked[0].get("seed")) == ("big", 1)
    assert (asked[-1]["model"], asked[-1].get("seed"), asked[-1]["temperature"]) == ("small", None, 0)


def test_a_policy_of_the_workflow_outranks_the_types(context: ScriptedContext, do: Do) -> None:
    """Its rules see the answer's kind; without targets of its own it has the step's."""
    context.policy = Policy(
        after=(rule("fail-fast", {"error_kind": "overloaded"}, kind="busy"),), breaker=None
    )
    outcome = failed(do("ai", mock({"fail": "overloaded"}, "fine")))
    assert outcome.fault.kind == "ai.busy"
    assert len(outcome.meta["gate"]["attempts"]) == 1


def test_a_policy_orders_the_steps_targets_by_their_weights(context: ScriptedContext, do: Do) -> None:
    """The weights are the targets', the order is the policy's."""
    context.policy = Policy(order="weighted", breaker=None)
    targets = [
        {"name": "spare", "weight": 0, "mock": {"answers": ["no"]}},
        {"name": "main", "weight": "2.5", "mock": {"answers": ["yes"]}},
    ]
    answer = done(do("ai", {"provider": "mock", "prompt": "hi", "targets": targets}))
    assert answer.meta["gate"]["served"] == "main"
    assert answer.meta["gate"]["decisions"][0].endswith("order is weighted: main (2.5), spare (0)")


def test_a_negative_weight_is_refused(do: Do) -> None:
    """Before anything is asked."""
    with pytest.raises(ValidationError, match="weight"):
        do("ai", mock("fine", targets=[{"weight": -1}]))


@pytest.mark.parametrize("stream", [False, True])
def test_an_older_server_is_asked_in_its_own_words(stream: bool, do: Do) -> None:
    """Many servers that speak OpenAI's format know `max_tokens` alone, and refuse what they don't know."""
    with FaultyServer(says("fine")) as server:
        done(do("ai", at(server, dialect="older", max_tokens=50, stream=stream)))
        done(do("ai", at(server, max_tokens=50, stream=stream)))
        older, current = (body(each) for each in server.requests)
    assert (older["max_tokens"], current["max_completion_tokens"]) == (50, 50)
    assert not {"max_completion_tokens", "stream_options"} & older.keys()
    assert ("stream_options" in current) is stream


def test_a_dialect_is_one_of_openais_format(do: Do) -> None:
    """Said of another format it would mean nothing."""
    with pytest.raises(ValidationError, match="only provider: openai has dialects"):
        do("ai", {"provider": "anthropic", "model": "m", "prompt": "hi", "dialect": "older"})


def test_targets_of_a_policy_name_models(context: ScriptedContext, do: Do) -> None:
    """A target that the step doesn't know is the step's server with another model."""
    context.policy = Policy(targets=(Target("other", model="m-2", params={"seed": 3}),), breaker=None)
    with FaultyServer(says("fine")) as server:
        done(do("ai", at(server)))
        asked = body(server.requests[0])
    assert (asked["model"], asked["seed"]) == ("m-2", 3)


def test_prices_make_costs(do: Do) -> None:
    """By the model, failed attempts included; a currency is the budget's."""
    tokens = {"input": 1000, "output": 100}
    answers = ({"text": " ", "tokens": tokens}, {"text": "yes", "tokens": tokens})
    answer = done(do("ai", mock(*answers, model="m", prices={"m": {"input": 2, "output": 10}})))
    assert answer.meta["usage"] == {"tokens": 2200, "cost": 0.006}
    assert answer.meta["gate"]["wasted"]["cost"] == 0.003


def test_a_stream_is_shown_as_it_comes(context: ScriptedContext, do: Do) -> None:
    """In one line, without what a terminal would obey."""
    with FaultyServer(says(words("one two \x1b[31mthree four five six seven eight nine ten"))) as server:
        done(do("ai", at(server, stream=True)))
    assert context.shown[-1].startswith("one two [31mthree")
    assert not any("\x1b" in line for line in context.shown)


class Releasing(ScriptedContext):
    """A context in which each line that is shown lets the server go on; without it the server would wait for ever."""

    server: FaultyServer

    def progress(self, text: str) -> None:
        """Go on."""
        super().progress(text)
        self.server.release(100)


def test_a_piece_is_shown_before_the_next_one_comes() -> None:
    """Nothing is held back: the server says the rest only when the beginning was seen."""
    with FaultyServer(says(words("one two"), held=True)) as server:
        context = Releasing()
        context.server = server
        server.release(2)  # the role, and the first word
        answer = done(anyio.run(PROVIDER.run, call_for(PROVIDER, at(server, stream=True)), context))
    assert answer.output == "one two"
    assert context.shown[0] == "one"


def test_findings_in_an_answer_are_findings(do: Do) -> None:
    """E.11: with a code-review schema, issues are extracted."""
    found = {"issues": [{"file": "a.py", "line": 3, "message": "off by one", "severity": "error"}]}
    schema = {"type": "object", "required": ["issues"]}
    answer = done(do("ai", mock({"json": found}), schema=schema))
    assert [(issue.message, issue.severity) for issue in answer.issues] == [("off by one", "error")]
    assert answer.output == found


def test_SEC_3_an_address_from_data_may_not_be_private(do: Do) -> None:
    """Written out in the file it may; from a template it needs `allow_private`."""
    with FaultyServer(says("fine")) as server:
        outcome = failed(do("ai", at(server), templated=frozenset({"url"})))
        assert server.connections == 0
        allowed = do("ai", at(server, allow_private=True), templated=frozenset({"url"}))
    assert outcome.fault.kind == "ai.permission"
    assert done(allowed).output == "fine"


def test_an_answer_has_a_size(do: Do) -> None:
    """No server fills the memory."""
    with FaultyServer(says("x" * 4000)) as server:
        outcome = failed(do("ai", at(server, max_response_bytes=1000), timeout_s=20))
    assert outcome.meta["gate"]["attempts"][0]["kind"] == "malformed-stream"


def test_a_conversation_goes_on(vendor: str, do: Do) -> None:
    """`session`: what another step said and heard comes before the prompt; tools it used don't."""
    kept = [
        {"role": "user", "text": "2+2?"},
        {"role": "assistant", "tool_calls": [{"id": "c", "name": "add", "arguments": "{}"}]},
        {"role": "tool", "text": "4", "tool_call_id": "c"},
        {"role": "assistant", "text": "4"},
    ]
    names = {"outputs_meta": {"first": {"conversation": kept}}}
    with FaultyServer(says("because")) as server:
        answer = done(do("ai", at(server, vendor, session="first"), names=names))
        asked = body(server.requests[0])["messages"]
    assert [message["role"] for message in asked] == ["user", "assistant", "user"]
    assert len(answer.meta["conversation"]) == 4


def test_a_session_that_is_not_there_is_a_fault(do: Do) -> None:
    """Before anything is asked."""
    outcome = failed(do("ai", mock("x", session="first"), names={"outputs_meta": {}}))
    assert outcome.fault.kind == "ai.session"
    assert "first" in outcome.fault.message


@pytest.mark.parametrize(
    "config",
    [
        {"prompt": "hi"},
        {"prompt": "hi", "provider": "openai"},
        {"prompt": "hi", "provider": "mock"},
        {"prompt": "", "provider": "openai", "model": "m"},
        {"prompt": [], "provider": "openai", "model": "m"},
        {"prompt": "hi", "provider": "openai", "model": "m", "temperature": 3},
        {"prompt": "hi", "targets": [{"provider": "openai"}]},
        {"prompt": "hi", "provider": "anthropic", "model": "m", "structured": "json_object"},
        {
            "prompt": "hi",
            "provider": "mock",
            "mock": {"answers": ["x"]},
            "tools": {"a b": {"description": "d", "script": "1"}},
        },
        {
            "prompt": "hi",
            "provider": "mock",
            "mock": {"answers": ["x"]},
            "tools": {"a": {"description": "d"}},
        },
        {"prompt": "hi", "provider": "openai", "model": "m", "targets": [{"name": "fallback"}]},
    ],
)
def test_what_cannot_be_asked_is_refused(config: Mapping[str, Any]) -> None:
    """When the file is read, not when the step runs."""
    with pytest.raises(ValidationError):
        PROVIDER.checked(config)


def test_the_steps_time_is_the_limit(context: ScriptedContext) -> None:
    """Of all requests together, and the step says so itself."""
    with FaultyServer(faulty.STALL_AFTER_HEADERS) as server:
        call = call_for(PROVIDER, at(server), timeout_s=0.3)
        outcome = failed(anyio.run(PROVIDER.run, call, context))
    assert outcome.fault.kind == "ai.deadline"
    assert outcome.fault.fault_class == "transient"


def test_a_script_of_the_workflow_sees_only_data(do: Do, context: ScriptedContext) -> None:
    """Law 6: what a model writes is an argument, never a source."""
    seen: list[tuple[str, Any]] = []

    def evaluate(source: str, kind: str, names: Mapping[str, Any]) -> Value:
        seen.append((source, names["args"]))
        return Value(3)

    context.evaluate_with = evaluate
    tools = {"add": {"description": "adds", "script": "args.a + 1"}}
    answers = ({"calls": [{"tool": "add", "with": {"a": "'; steal()"}}]}, "done")
    done(do("ai", mock(*answers, tools=tools)))
    assert seen == [("args.a + 1", {"a": "'; steal()"})]


def test_of_two_attempts_side_by_side_the_first_to_answer_counts(context: ScriptedContext, do: Do) -> None:
    """Hedging: the answer, its target and its tokens are those of one server."""
    targets = (Target("slow", client="slow"), Target("fast", client="fast"))
    context.policy = Policy(targets=targets, hedge=Hedge(0.05), breaker=None)
    with FaultyServer(faulty.STALL_AFTER_HEADERS) as slow, FaultyServer(says("fast one")) as fast:
        servers = [
            {"name": "slow", "model": "a"},
            {"name": "fast", "url": f"http://127.0.0.1:{fast.port}/v1", "model": "b"},
        ]
        answer = done(do("ai", at(slow, targets=servers)))
    assert (answer.output, answer.meta["target"]) == ("fast one", "fast")


@pytest.mark.parametrize("stream", [False, True])
def test_L7_a_cancelled_question_is_hung_up_on(stream: bool, context: ScriptedContext) -> None:
    """Law 7: the server sees it at once."""

    async def cancelled(server: FaultyServer) -> None:
        with anyio.move_on_after(0.2):
            await PROVIDER.run(call_for(PROVIDER, at(server, stream=stream)), context)

    with FaultyServer(faulty.STALL_AFTER_HEADERS) as server:
        anyio.run(cancelled, server)
        assert server.until_hung_up()


class NeverDone(ScriptedContext):
    """A context in which a tool's step hangs."""

    async def run_step(
        self, step: str, arguments: Mapping[str, Any], *, number: int, mutates: bool = False
    ) -> Outcome:
        """For ever."""
        await anyio.sleep_forever()
        raise AssertionError


@pytest.mark.parametrize(("mutates", "effect"), [(False, "none"), (True, "unknown")])
def test_a_tool_that_hangs_ends_with_the_step(mutates: bool, effect: str) -> None:
    """What changes things may have changed them: nobody knows."""
    tools = {"t": {"description": "d", "step": "s", "mutates": mutates}}
    call = call_for(PROVIDER, mock({"calls": [{"tool": "t"}]}, tools=tools), timeout_s=0.05)
    outcome = failed(anyio.run(PROVIDER.run, call, NeverDone()))
    assert (outcome.fault.kind, outcome.fault.fault_class, outcome.effect) == (
        "ai.timeout",
        "transient",
        effect,
    )
    assert outcome.meta["gate"]["served"] == "mock"


def test_costs_are_those_of_all_questions(do: Do, context: ScriptedContext) -> None:
    """Also of those that only led to a tool."""
    context.steps = iter([Done("7")])
    tokens = {"input": 1000, "output": 0}
    answers = ({"calls": [{"tool": "t"}], "tokens": tokens}, {"text": "7", "tokens": tokens})
    tools = {"t": {"description": "d", "step": "s"}}
    prices = {"m": {"input": 1, "output": 1}}
    answer = done(do("ai", mock(*answers, model="m", tools=tools, prices=prices)))
    assert (answer.meta["cost"], answer.meta["usage"]["tokens"]) == (0.002, 2000)
    assert answer.meta["gate"]["calls"] == 2
    assert context.step_calls == [("s", {}, False)]


def test_a_tool_may_not_be_called_like_the_answer() -> None:
    """Both would be the same word to the model."""
    tools = {"final_answer": {"description": "d", "script": "1"}}
    with pytest.raises(ValidationError, match="choose another"):
        PROVIDER.checked(mock("x", tools=tools))


def test_a_bug_of_the_step_type_is_told_as_one(do: Do, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 4: the gate's typed error doesn't make a logical failure of it."""
    from gonogo.providers.ai.talk import Talk

    def broken(self: Talk, given: Any) -> Any:
        raise KeyError("a bug")

    monkeypatch.setattr(Talk, "_usage", broken)
    outcome = failed(do("ai", mock("hello")))
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("ai.step_error", "bug")


HOSTILE = {
    "endless headers": faulty.ENDLESS_HEADERS,
    "an endless header": faulty.ENDLESS_HEADER_LINE,
    "an endless body": faulty.ENDLESS_BODY,
    "events without end": faulty.ENDLESS_EVENTS,
    "two lengths": faulty.TWO_LENGTHS,
    "a length that is no number": faulty.LENGTH_NO_NUMBER,
    "a broken chunk": faulty.GARBAGE_CHUNK_SIZE,
    "a loop": faulty.redirect("/v1/chat/completions", 307),
    "no UTF-8": faulty.INVALID_UTF_8,
    "a bomb": faulty.gzip_bomb(64 << 20),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_server_ends_in_a_typed_fault(
    case: str, stream: bool, do: Do, context: ScriptedContext
) -> None:
    """Within the limits of size and time, and never in an answer or a bug."""
    context.policy = ONE
    with FaultyServer(HOSTILE[case]) as server:
        outcome = failed(do("ai", at(server, stream=stream, max_response_bytes=1 << 20)))
    assert outcome.fault.kind.startswith("ai.")
    assert outcome.fault.fault_class in ("transient", "logical")
    (attempt,) = outcome.meta["gate"]["attempts"]
    assert attempt["kind"] in (
        "network",
        "malformed-stream",
        "truncated-stream",
        "empty-response",
        "not-found",
    )
