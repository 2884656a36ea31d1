"""ai: vendors with wire formats of their own, by a library that gets our way out and none of its own (extra `ai`)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from msgspec import ValidationError
from tests.providers.test_ai import HOSTILE
from tests.servers import faulty
from tests.servers.faulty import FaultyServer, Received, Script, answer

from gonogo.gate.policy import Bounds, Policy, Target, Timers
from gonogo.provider import Done, Failed, Outcome, Value
from gonogo.providers.ai import PROVIDER
from gonogo.providers.ai.config import PARAMS
from gonogo.testing import ScriptedContext, call_for

Do = Callable[..., Outcome]
KEY = "k-very-secret"
SCHEMA = {"type": "object", "required": ["urgent"], "properties": {"urgent": {"type": "boolean"}}}
SCRIPT = """
import json, sys
import anyio
from tests.servers.faulty import FaultyServer, answer
from gonogo.gate.policy import Bounds, Policy
from gonogo.providers import _http
from gonogo.providers.ai import PROVIDER
from gonogo.testing import ScriptedContext, call_for

connects, sends = [], []
sys.addaudithook(lambda event, given: connects.append(given[1]) if event == "socket.connect" else None)
send = _http.send

async def counted(*given):
    sends.append(given[0].url)
    return await send(*given)

_http.send = counted
for vendor, stream in (("google", False), ("mistral", False), ("google", True), ("mistral", True)):
    with FaultyServer(answer(503, b"{}")) as server:
        config = {"provider": vendor, "model": "m", "url": server.url, "api_key": "k", "prompt": "hi", "stream": stream}
        connects.clear(), sends.clear()
        one = Policy(bounds=Bounds(attempts_per_target=1, attempts_max=1), breaker=None)
        outcome = anyio.run(PROVIDER.run, call_for(PROVIDER, config), ScriptedContext(policy=one))
        out = [each for each in connects if isinstance(each, tuple) and each[1] == server.port]
        print(json.dumps([vendor, outcome.fault.kind, len(server.requests), len(sends), len(out), len(connects)]))
"""


def google(*parts: Any, finish: str = "STOP", **more: Any) -> dict[str, Any]:
    """An answer of generateContent (Gemini API, v1beta)."""
    return {
        "candidates": [
            {"index": 0, "content": {"role": "model", "parts": list(parts)}, "finishReason": finish}
        ],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 3, "totalTokenCount": 13},
        "modelVersion": "scripted-1",
        "responseId": "r-1",
        **more,
    }


def mistral(content: Any, calls: Any = None, finish: str = "stop") -> dict[str, Any]:
    """An answer of chat completions (La Plateforme, v1)."""
    message = {"role": "assistant", "content": content, "tool_calls": calls}
    return {
        "id": "c-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "scripted-1",
        "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13},
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }


def said(vendor: str, text: str) -> Script:
    """A text."""
    return whole(google({"text": text}) if vendor == "google" else mistral(text))


def called(vendor: str, name: str, arguments: Mapping[str, Any]) -> Script:
    """A wish to call one tool."""
    if vendor == "google":
        return whole(google({"functionCall": {"name": name, "args": dict(arguments)}}))
    function = {"name": name, "arguments": json.dumps(arguments)}
    return whole(mistral("", [{"id": "abcDEF123", "type": "function", "function": function}], "tool_calls"))


def chunk(vendor: str, text: str, finish: str | None = None, calls: Any = None) -> bytes:
    """One event of a stream."""
    if vendor == "google":
        parts = [{"text": text}] if text else []
        parts += [{"functionCall": {"name": name, "args": dict(given)}} for name, given in calls or ()]
        whole_one = google(*parts)
        whole_one["candidates"][0]["finishReason"] = finish.upper() if finish else None
        said_one = whole_one if finish else {**whole_one, "usageMetadata": None}
    else:
        told = [
            {
                "index": number,
                "id": f"abcDEF12{number}",
                "function": {"name": name, "arguments": json.dumps(given)},
            }
            for number, (name, given) in enumerate(calls or ())
        ]
        delta = {"role": "assistant", "content": text, **({"tool_calls": told} if told else {})}
        said_one = {
            "id": "c-1",
            "object": "chat.completion.chunk",
            "created": 1_760_000_000,
            "model": "scripted-1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        if finish:
            said_one["usage"] = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    return b"data: " + json.dumps(said_one).encode() + b"\n\n"


def pieces(vendor: str, *texts: str) -> list[bytes]:
    """A stream in order, without what comes behind its finish reason."""
    *first, last = texts
    return [*(chunk(vendor, text) for text in first), chunk(vendor, last, "stop")]


def flowing(vendor: str, *texts: str) -> Script:
    """A stream in order."""
    return faulty.stream([*pieces(vendor, *texts), *([b"data: [DONE]\n\n"] if vendor == "mistral" else [])])


def refusal(vendor: str, status: int, code: str, message: str) -> Script:
    """The vendor's own form of an error."""
    inside = {"code": status, "message": message, "status": code}
    own = {"object": "error", "message": message, "type": code, "code": "1"}
    return whole({"error": inside} if vendor == "google" else own, status)


def whole(body: Any, status: int = 200) -> Script:
    """JSON in one piece."""
    return answer(status, json.dumps(body).encode(), {"content-type": "application/json"})


def at(server: FaultyServer, vendor: str, **more: Any) -> dict[str, Any]:
    """The keys of a step that asks this server."""
    keys = {"provider": vendor, "model": "m", "url": server.url, "api_key": KEY}
    return {**keys, "prompt": "Is it urgent?", **more}


def body(received: Received) -> dict[str, Any]:
    """What was asked."""
    asked: dict[str, Any] = json.loads(received.body)
    return asked


def done(outcome: Outcome) -> Done:
    """It must be one."""
    assert isinstance(outcome, Done), outcome
    return outcome


def failed(outcome: Outcome) -> Failed:
    """It must be one."""
    assert isinstance(outcome, Failed), outcome
    return outcome


def kinds(outcome: Done | Failed) -> list[str]:
    """Of all attempts."""
    return [each["kind"] for each in outcome.meta["gate"]["attempts"]]


@pytest.fixture(params=["google", "mistral"])
def vendor(request: pytest.FixtureRequest) -> str:
    """Each in turn."""
    return str(request.param)


def test_the_text_is_the_output(vendor: str, do: Do) -> None:
    """With who answered, why it ended, and what it took at the step's own price."""
    prices = {"scripted-1": {"input": 1_000_000, "output": 2_000_000}}
    with FaultyServer(said(vendor, "not at all")) as server:
        found = done(do("ai", at(server, vendor, prices=prices)))
    assert (found.output, found.effect, found.meta["provider"]) == ("not at all", "none", vendor)
    assert found.meta["model"] == "scripted-1"
    assert found.meta["finish_reason"] == ("STOP" if vendor == "google" else "stop")
    assert found.meta["tokens"] == {"input": 10, "output": 3}
    assert found.meta["cost"] == 16
    assert kinds(found) == ["ok"]


HASTE = Policy(
    bounds=Bounds(attempts_per_target=1, attempts_max=1),
    timers=Timers(connect_s=0.5, first_token_s=0.5, idle_s=0.3, tail_s=0.3),
    breaker=None,
)


def test_a_stream_is_the_same_answer(vendor: str, do: Do, context: ScriptedContext) -> None:
    """Shown as it comes, counted, priced, and named by who answered."""
    prices = {"scripted-1": {"input": 1_000_000, "output": 2_000_000}}
    with FaultyServer(flowing(vendor, "not at", " all, ", "\x1b[31mnot a bit of it, no")) as server:
        found = done(do("ai", at(server, vendor, stream=True, prices=prices)))
        target, asked = server.requests[0].target, body(server.requests[0])
    assert found.output == "not at all, \x1b[31mnot a bit of it, no"
    assert (found.meta["model"], found.meta["tokens"], found.meta["cost"]) == (
        "scripted-1",
        {"input": 10, "output": 3},
        16,
    )
    assert found.meta["finish_reason"] == ("STOP" if vendor == "google" else "stop")
    assert context.shown[0] == "not at"
    assert "\x1b" not in "".join(context.shown)
    if vendor == "google":
        assert target == "/v1beta/models/m:streamGenerateContent?alt=sse"
    else:
        assert (target, asked["stream"]) == ("/v1/chat/completions", True)


class Releasing(ScriptedContext):
    """A context in which each line that is shown lets the server go on; without it the server would wait for ever."""

    server: FaultyServer

    def progress(self, text: str) -> None:
        """Go on."""
        super().progress(text)
        self.server.release(100)


def test_a_piece_is_shown_before_the_next_one_comes(vendor: str) -> None:
    """Neither we nor the library hold anything back: the server goes on only when the beginning was seen."""
    with FaultyServer(faulty.held_stream(pieces(vendor, "one", " two"))) as server:
        context = Releasing()
        context.server = server
        server.release(1)
        config = at(server, vendor, stream=True)
        found = done(anyio.run(PROVIDER.run, call_for(PROVIDER, config), context))
    assert found.output == "one two"
    assert context.shown[0] == "one"


def test_a_streamed_wish_for_a_tool_and_a_streamed_schema(
    vendor: str, do: Do, context: ScriptedContext
) -> None:
    """What comes in pieces is put together."""
    context.evaluate_with = lambda source, kind, names: Value(names["args"]["at"])
    look = {"description": "looks", "script": "1", "parameters": {"properties": {"at": {"type": "string"}}}}
    finish = "stop" if vendor == "google" else "tool_calls"
    wishes = chunk(vendor, "", finish, [("look", {"at": "it"})])
    structured = "prompt" if vendor == "google" else "tool"
    answers = {
        "google": flowing(vendor, '{"urg', 'ent": tr', "ue}"),
        "mistral": faulty.stream([chunk(vendor, "", finish, [("final_answer", {"urgent": True})])]),
    }
    with FaultyServer(faulty.stream([wishes]), answers[vendor]) as server:
        config = at(server, vendor, stream=True, tools={"look": look}, structured=structured)
        found = done(do("ai", config, schema=SCHEMA))
    assert found.output == {"urgent": True}
    assert found.meta["tool_calls"][0]["answer"] == "it"


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        ("never a word", "timeout-first-token"),
        ("no word more", "timeout-idle"),
        ("cut off", "truncated-stream"),
        ("reset", "truncated-stream"),
        ("ended without a reason", "truncated-stream"),
        ("an error inside", "overloaded"),
        ("no JSON alone", "malformed-stream"),
        ("another shape", "malformed-stream"),
        ("nothing", "empty-response"),
        ("one piece", "malformed-stream"),
        ("a page", "malformed-stream"),
        ("endless", "malformed-stream"),
        ("a bomb", "malformed-stream"),
        ("invalid UTF-8", "malformed-stream"),
    ],
)
def test_F12_a_stream_that_does_not_end_well_is_no_answer(
    case: str, kind: str, vendor: str, do: Do, context: ScriptedContext
) -> None:
    """F12 to F14: each is one attempt of its kind, and one request; the far side is hung up on."""
    context.policy = HASTE
    one = chunk(vendor, "one")
    inside = b'data: {"error": {"code": 503, "status": "UNAVAILABLE", "message": "m"}}\n\n'
    script = {
        "never a word": faulty.STALL_AFTER_HEADERS,
        "no word more": faulty.stream([one], faulty.stall),
        "cut off": faulty.stream([one, one[:20]], faulty.void),
        "reset": faulty.stream([one], faulty.reset),
        "ended without a reason": faulty.stream([one]),
        "an error inside": faulty.stream([one, inside], faulty.stall),
        "no JSON alone": faulty.stream([b"data: {oh\n\n"]),
        "another shape": faulty.stream([one, b'data: {"choices": 7, "candidates": 7}\n\n']),
        "nothing": faulty.stream([]),
        "one piece": answer(200, json.dumps(google({"text": "x"})).encode()),
        "a page": answer(200, b"<html>"),
        "endless": faulty.stream([one], faulty.endless(faulty.chunked([one])[0])),
        "a bomb": faulty.gzip_bomb(),
        "invalid UTF-8": faulty.stream([b"data: \xff\xfe{}\n\n", b"\xff" * 100]),
    }[case]
    with FaultyServer(script) as server:
        outcome = failed(do("ai", at(server, vendor, stream=True, max_response_bytes=50_000)))
        assert len(server.requests) == 1
    assert kinds(outcome) == [kind]


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_server_ends_a_stream_in_a_typed_fault(
    case: str, vendor: str, do: Do, context: ScriptedContext
) -> None:
    """Within the limits of size and time, whatever the library would make of it."""
    context.policy = HASTE
    with FaultyServer(HOSTILE[case]) as server:
        outcome = failed(do("ai", at(server, vendor, stream=True, max_response_bytes=1 << 20)))
    assert kinds(outcome)[0] in (
        "network", "malformed-stream", "truncated-stream", "empty-response", "not-found", "timeout-first-token",
    )  # fmt: skip
    assert outcome.fault.fault_class in ("transient", "logical")


def test_F12a_an_event_that_is_no_json_is_passed_over(vendor: str, do: Do) -> None:
    """S10: the rest is the answer, and the step says so."""
    first, last = pieces(vendor, "one", " two")
    with FaultyServer(faulty.stream([first, b"data: {oh\n\n", last])) as server:
        found = done(do("ai", at(server, vendor, stream=True)))
    assert found.output == "one two"
    assert "passed over" in found.meta["warnings"][0]


def test_LLM_4_a_stream_that_has_said_why_it_ends_is_not_waited_for(
    vendor: str, do: Do, context: ScriptedContext
) -> None:
    """S11: the connection stays open, and the answer is there."""
    context.policy = HASTE
    with FaultyServer(faulty.stream(pieces(vendor, "one", " two"), faulty.stall)) as server:
        assert done(do("ai", at(server, vendor, stream=True))).output == "one two"
        assert server.until_hung_up()


def test_LLM_1_a_broken_stream_is_asked_for_anew(vendor: str, do: Do) -> None:
    """S08: the whole answer of a new attempt, never half of one; the tokens of both are counted."""
    broken = faulty.stream([chunk(vendor, "ONE")], faulty.reset)
    with FaultyServer(broken, flowing(vendor, "one", " two")) as server:
        found = done(do("ai", at(server, vendor, stream=True)))
    assert found.output == "one two"
    assert kinds(found) == ["truncated-stream", "ok"]


def test_what_is_asked_is_what_the_step_says(vendor: str, do: Do) -> None:
    """In the vendor's words, at its address, with the key in its header."""
    prompt = [{"text": "2?"}, {"role": "assistant", "text": "two"}, {"text": "3?"}]
    more = {"system": "Be brief.", "temperature": 0.5, "max_tokens": 7, "params": {"top_p": 0.9}}
    with FaultyServer(said(vendor, "three")) as server:
        done(do("ai", at(server, vendor, prompt=prompt, headers={"x-team": "a"}, **more)))
        received = server.requests[0]
    asked, sent = body(received), received.headers
    assert sent["x-team"] == "a"
    if vendor == "google":
        given = asked["generationConfig"]
        assert received.target == "/v1beta/models/m:generateContent"
        assert sent["x-goog-api-key"] == KEY
        assert [each["role"] for each in asked["contents"]] == ["user", "model", "user"]
        assert asked["systemInstruction"]["parts"] == [{"text": "Be brief."}]
        assert (given["temperature"], given["maxOutputTokens"], given["topP"]) == (0.5, 7, 0.9)
    else:
        assert received.target == "/v1/chat/completions"
        assert sent["authorization"] == f"Bearer {KEY}"
        assert [each["role"] for each in asked["messages"]] == ["system", "user", "assistant", "user"]
        assert (asked["model"], asked["temperature"], asked["max_tokens"]) == ("m", 0.5, 7)


def test_a_schema_makes_the_answer_data(vendor: str, do: Do) -> None:
    """By the vendor's structured output, or by a tool that must be called where there is none."""
    native = vendor == "google"
    script = said(vendor, '{"urgent": true}') if native else called(vendor, "final_answer", {"urgent": True})
    with FaultyServer(script) as server:
        found = done(do("ai", at(server, vendor), schema=SCHEMA))
        asked = body(server.requests[0])
    assert found.output == {"urgent": True}
    if native:
        assert asked["generationConfig"]["responseJsonSchema"]["required"] == ["urgent"]
    else:
        assert asked["tool_choice"] == "any"
        assert asked["tools"][0]["function"]["parameters"] == SCHEMA


@pytest.mark.parametrize("structured", ["tool", "prompt"])
def test_an_answer_that_misses_the_schema_is_asked_for_again(vendor: str, structured: str, do: Do) -> None:
    """LLM-2: the gate's own way, the same for all vendors."""
    bad, good = {"urgent": "very"}, {"urgent": True}
    script = [
        called(vendor, "final_answer", each) if structured == "tool" else said(vendor, json.dumps(each))
        for each in (bad, good)
    ]
    with FaultyServer(*script) as server:
        found = done(do("ai", at(server, vendor, structured=structured), schema=SCHEMA))
        again = server.requests[1].body.decode()
    assert found.output == good
    assert kinds(found) == ["schema-fail", "ok"]
    assert "very" in again
    assert "boolean" in again


def test_a_tool_is_used_and_the_model_told(vendor: str, do: Do, context: ScriptedContext) -> None:
    """Its answer goes back under the call's own name."""
    context.evaluate_with = lambda source, kind, names: Value(names["args"]["at"])
    tools = {
        "look": {
            "description": "looks",
            "script": "42",
            "parameters": {"properties": {"at": {"type": "string"}}},
        }
    }
    script = (called(vendor, "look", {"at": "it"}), said(vendor, "it is 42"))
    with FaultyServer(*script) as server:
        found = done(do("ai", at(server, vendor, tools=tools)))
        second = body(server.requests[1])
    assert found.output == "it is 42"
    if vendor == "google":
        assert second["contents"][-1]["parts"][0]["functionResponse"]["name"] == "look"
    else:
        assert (second["messages"][-1]["role"], second["messages"][-1]["tool_call_id"]) == (
            "tool",
            "abcDEF123",
        )


@pytest.mark.parametrize(
    ("status", "code", "message", "kind"),
    [
        (400, "INVALID_ARGUMENT", "The input token count exceeds the maximum", "context-too-long"),
        (400, "INVALID_ARGUMENT", "no such field", "bad-request"),
        (401, "UNAUTHENTICATED", "bad key", "auth"),
        (403, "PERMISSION_DENIED", "not yours", "permission"),
        (404, "NOT_FOUND", "no such model", "not-found"),
        (429, "RESOURCE_EXHAUSTED", "slower", "rate-limit"),
        (500, "INTERNAL", "oh", "server-5xx"),
        (503, "UNAVAILABLE", "busy", "overloaded"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_is_a_row_of_the_taxonomy(
    vendor: str,
    stream: bool,
    status: int,
    code: str,
    message: str,
    kind: str,
    do: Do,
    context: ScriptedContext,
) -> None:
    """D.2, from the bytes; and each is one request (B21, F3)."""
    context.policy = Policy(bounds=Bounds(attempts_per_target=1, attempts_max=1), breaker=None)
    with FaultyServer(refusal(vendor, status, code, f"{message} for {KEY}")) as server:
        outcome = failed(do("ai", at(server, vendor, stream=stream)))
        assert len(server.requests) == 1
    assert kinds(outcome) == [kind]
    assert KEY not in repr(outcome)


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (answer(200, b"<html>"), "not-json"),
        (answer(200, b'{"choices": 7, "candidates": 7}'), "malformed-stream"),
        (answer(200, b"\xff\xfe{"), "not-json"),
        (answer(200, b'{"error": {"code": 503, "status": "UNAVAILABLE", "message": "m"}}'), "overloaded"),
        (faulty.RESET_BEFORE_HEADERS, "network"),
        (faulty.gzip_bomb(), "malformed-stream"),
    ],
)
def test_a_hostile_server_ends_in_a_kind(
    vendor: str, script: Script, kind: str, do: Do, context: ScriptedContext
) -> None:
    """Whatever the library would make of it."""
    context.policy = Policy(bounds=Bounds(attempts_per_target=1, attempts_max=1), breaker=None)
    with FaultyServer(script) as server:
        outcome = failed(do("ai", at(server, vendor, max_response_bytes=1_000_000)))
    assert kinds(outcome) == ["malformed-stream" if kind == "not-json" else kind]


def test_a_filtered_answer_is_no_answer(do: Do) -> None:
    """LLM-2: by the vendor's finish reason, and for a prompt that it doesn't take at all."""
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 10}}
    for script in (whole(google({"text": "half"}, finish="SAFETY")), whole(blocked)):
        with FaultyServer(script) as server:
            assert failed(do("ai", at(server, "google"))).fault.kind == "ai.content_filter"


def test_an_answer_cut_off_is_no_answer(vendor: str, do: Do) -> None:
    """At the limit of tokens."""
    cut = (
        google({"text": "half"}, finish="MAX_TOKENS")
        if vendor == "google"
        else mistral("half", None, "length")
    )
    with FaultyServer(whole(cut)) as server:
        assert failed(do("ai", at(server, vendor))).fault.kind == "ai.length_stop"


def test_the_gate_fails_over_from_one_vendor_to_the_other(do: Do) -> None:
    """Each is asked in its own words, with its own key."""
    with (
        FaultyServer(refusal("google", 401, "UNAUTHENTICATED", "no")) as first,
        FaultyServer(said("mistral", "yes")) as second,
    ):
        targets = [
            {"name": "a", "provider": "google", "model": "ga", "url": first.url, "api_key": "key-a"},
            {"name": "b", "provider": "mistral", "model": "mb", "url": second.url, "api_key": "key-b"},
        ]
        found = done(do("ai", {"prompt": "hi", "targets": targets}))
        assert "ga:generateContent" in first.requests[0].target
        assert second.requests[0].headers["authorization"] == "Bearer key-b"
    assert (found.output, found.meta["target"], kinds(found)) == ("yes", "b", ["auth", "ok"])


def test_a_key_of_the_environment_is_not_taken(do: Do, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty key stays empty: what the step doesn't name isn't sent."""
    monkeypatch.setenv("GOOGLE_API_KEY", "ambient")
    with FaultyServer(said("google", "hi")) as server:
        outcome = failed(do("ai", at(server, "google", api_key="")))
        assert server.requests == []
    assert outcome.fault.kind == "ai.auth"


def test_params_that_a_policy_brings_and_the_vendor_does_not_take_are_refused(
    vendor: str, do: Do, context: ScriptedContext
) -> None:
    """Before anything is asked: dropping them would be silent, and some would turn retries on."""
    context.policy = Policy(targets=(Target("m", params={"max_retries": 5}),))
    with FaultyServer(said(vendor, "hi")) as server:
        outcome = failed(do("ai", at(server, vendor)))
        assert server.requests == []
    assert "max_retries" in outcome.fault.message


@pytest.mark.parametrize("vendor_name", ["google", "mistral"])
def test_params_that_the_vendor_does_not_take_are_refused_when_the_file_is_read(vendor_name: str) -> None:
    """With all that it takes, and the one that was meant; of another target, too."""
    keys = {"prompt": "hi", "model": "m", "api_key": "k"}
    with pytest.raises(
        ValidationError, match=f"{vendor_name} takes no params 'top_pp'; did you mean top_p"
    ) as told:
        PROVIDER.checked({**keys, "provider": vendor_name, "params": {"top_pp": 1}})
    assert all(name in str(told.value) for name in PARAMS[vendor_name])
    targets = [{"provider": "openai"}, {"provider": vendor_name, "api_key": "k"}]
    with pytest.raises(ValidationError, match=r"targets\[1\].*takes no params 'logprobs'"):
        PROVIDER.checked({**keys, "provider": "openai", "params": {"logprobs": True}, "targets": targets})


@pytest.mark.parametrize("stream", [False, True])
def test_each_param_that_is_taken_is_sent(vendor: str, stream: bool, do: Do) -> None:
    """The list is what the library does, streamed or not."""
    values: dict[str, tuple[Any, str]] = {
        "google_cached_content": ("cachedContents/a", "cachedContents/a"),
        "google_labels": ({"team": "b"}, "team"),
        "google_safety_settings": (
            [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
            "HARASSMENT",
        ),
        "google_thinking_config": ({"thinking_budget": 7003}, "7003"),
        "mistral_prompt_cache_key": ("cached", "cached"),
        "parallel_tool_calls": (True, "parallel_tool_calls"),
        "service_tier": ("flex", "flex"),
        "stop_sequences": (["halt"], "halt"),
        "seed": (7001, "7001"),
        "top_k": (7002, "7002"),
    }
    params = {name: values.get(name, (0.77, name.split("_")[0])) for name in PARAMS[vendor]}
    given = {name: value for name, (value, _) in params.items()}
    with FaultyServer(flowing(vendor, "a") if stream else said(vendor, "a")) as server:
        done(do("ai", at(server, vendor, params=given, stream=stream)))
        asked = server.requests[0].body.decode()
    assert [name for name, (_, sign) in params.items() if sign not in asked] == []
    assert asked.count("0.77") == 3


def test_the_libraries_open_nothing_and_ask_once() -> None:
    """F3, X24: on a 503 there is one connection, it is ours, and one request; the libraries' retries are off."""
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    told = [json.loads(line) for line in ended.stdout.splitlines()]
    assert told == [[vendor, "ai.overloaded", 1, 1, 1, 1] for vendor in ("google", "mistral") * 2]


def test_without_the_extra_the_fault_says_what_to_install(
    vendor: str, do: Do, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is asked."""
    monkeypatch.setitem(sys.modules, "pydantic_ai.messages", None)
    monkeypatch.delitem(sys.modules, "gonogo.providers.ai.library", raising=False)
    with FaultyServer(said(vendor, "hi")) as server:
        outcome = failed(do("ai", at(server, vendor)))
        assert server.requests == []
    assert outcome.fault.kind == "ai.not_installed"
    assert "gonogo[ai]" in outcome.fault.message


@pytest.mark.parametrize("stream", [False, True])
def test_L7_a_cancelled_question_is_hung_up_on(vendor: str, stream: bool, context: ScriptedContext) -> None:
    """Law 7: through the library, too, and no second request follows."""

    async def cancelled(server: FaultyServer) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(PROVIDER.run, call_for(PROVIDER, at(server, vendor, stream=stream)), context)
            while not server.requests:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    script = faulty.stream([chunk(vendor, "one")], faulty.stall) if stream else faulty.STALL_BEFORE_HEADERS
    with FaultyServer(script) as server:
        anyio.run(cancelled, server)
        assert server.until_hung_up()
        assert len(server.requests) == 1


def test_who_asks_others_loads_no_library() -> None:
    """The libraries take seconds to load."""
    code = (
        "import sys, anyio\n"
        "from gonogo.providers.ai.config import Config\n"
        "from gonogo.providers.ai.loading import load\n"
        "anyio.run(load, Config(prompt='hi', provider='openai', model='m'))\n"
        "print('pydantic_ai' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False"


@pytest.mark.parametrize(
    "more",
    [
        {"provider": "google"},
        {"provider": "google", "api_key": "k", "structured": "json_object"},
        {"provider": "mistral", "api_key": "k", "structured": "native"},
        {"provider": "mistral", "api_key": "k", "structured": "json_object"},
        {"provider": "openai", "api_key": "k", "targets": [{"provider": "google"}]},
        {"provider": "mistral", "api_key": "k", "dialect": "older"},
    ],
)
def test_what_cannot_be_asked_is_refused(more: Mapping[str, Any]) -> None:
    """When the file is read. Another vendor's key is none."""
    with pytest.raises(ValidationError):
        PROVIDER.checked({"prompt": "hi", "model": "m", **more})
