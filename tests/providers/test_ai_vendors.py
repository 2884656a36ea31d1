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
from tests.servers import faulty
from tests.servers.faulty import FaultyServer, Received, Script, answer

from gonogo.gate.policy import Bounds, Policy
from gonogo.provider import Done, Failed, Outcome, Value
from gonogo.providers.ai import PROVIDER
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
for vendor in ("google", "mistral"):
    with FaultyServer(answer(503, b"{}")) as server:
        config = {"provider": vendor, "model": "m", "url": server.url, "api_key": "k", "prompt": "hi"}
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
def test_a_refusal_is_a_row_of_the_taxonomy(
    vendor: str, status: int, code: str, message: str, kind: str, do: Do, context: ScriptedContext
) -> None:
    """D.2, from the bytes; and each is one request (B21, F3)."""
    context.policy = Policy(bounds=Bounds(attempts_per_target=1, attempts_max=1), breaker=None)
    with FaultyServer(refusal(vendor, status, code, f"{message} for {KEY}")) as server:
        outcome = failed(do("ai", at(server, vendor)))
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


def test_params_that_the_vendor_does_not_take_are_refused(vendor: str, do: Do) -> None:
    """Before anything is asked: dropping them would be silent, and some would turn retries on."""
    with FaultyServer(said(vendor, "hi")) as server:
        outcome = failed(do("ai", at(server, vendor, params={"max_retries": 5})))
        assert server.requests == []
    assert "max_retries" in outcome.fault.message


def test_the_libraries_open_nothing_and_ask_once() -> None:
    """F3, X24: on a 503 there is one connection, it is ours, and one request; the libraries' retries are off."""
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    told = [json.loads(line) for line in ended.stdout.splitlines()]
    assert told == [[vendor, "ai.overloaded", 1, 1, 1, 1] for vendor in ("google", "mistral")]


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


def test_L7_a_cancelled_question_is_hung_up_on(vendor: str, context: ScriptedContext) -> None:
    """Law 7: through the library, too, and no second request follows."""

    async def cancelled(server: FaultyServer) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(PROVIDER.run, call_for(PROVIDER, at(server, vendor)), context)
            while not server.requests:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    with FaultyServer(faulty.STALL_BEFORE_HEADERS) as server:
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
