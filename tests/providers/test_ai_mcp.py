"""ai: tools of MCP servers that a step lends to its model. Real servers on stdin and stdout, and over HTTP."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import ValidationError
from tests.providers.test_ai import HOSTILE, at, body, done, failed, mock
from tests.servers import faulty
from tests.servers.faulty import FaultyServer, answer
from tests.servers.mcp_servers import plain, real, real_over_http

import gonogo
from gonogo.gate import Bounds, Policy
from gonogo.gate.gate import Gate
from gonogo.provider import Outcome
from gonogo.providers.ai import PROVIDER, effects
from gonogo.providers.ai.servers import offered_as
from gonogo.testing import ScriptedContext

Do = Callable[..., Outcome]
READS = {"mutates": False}


def lent(server: Mapping[str, Any], *tools: str, mutates: bool = False, **more: Any) -> dict[str, Any]:
    """The key of a step that lends these tools of one server."""
    return {
        "mcp_servers": {"shop": {**server, "tools": {tool: {"mutates": mutates} for tool in tools}, **more}}
    }


def wish(tool: str, **arguments: Any) -> dict[str, Any]:
    """A scripted wish of the model."""
    return {"calls": [{"tool": tool, "with": arguments}]}


def test_the_model_is_offered_what_is_listed_and_nothing_else(do: Do) -> None:
    """With the server's own words and schema; what isn't listed isn't there."""
    text = {"choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}
    with FaultyServer(answer(200, json.dumps(text).encode(), {"content-type": "application/json"})) as server:
        done(do("ai", at(server, **lent(real(), "add", "say"))))
        offered = [tool["function"] for tool in body(server.requests[0])["tools"]]
    assert [tool["name"] for tool in offered] == ["shop__add", "shop__say"]
    assert offered[0]["description"] == "Adds."
    assert offered[0]["parameters"]["required"] == ["a", "b"]


def test_a_description_of_the_step_stands_for_the_servers(do: Do) -> None:
    """What a server writes there is read by the model: a step may say it itself."""
    text = {"choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}
    servers = {"shop": {**real(), "tools": {"add": {"mutates": False, "description": "Sums up."}}}}
    with FaultyServer(answer(200, json.dumps(text).encode(), {"content-type": "application/json"})) as server:
        done(do("ai", at(server, mcp_servers=servers)))
        [tool] = body(server.requests[0])["tools"]
    assert tool["function"]["description"] == "Sums up."


def test_a_tool_is_used_and_each_use_has_a_record_of_its_own(do: Do) -> None:
    """The model is told; the gate's record is with the use, not with the model's questions."""
    answers = (wish("shop__add", a=2, b=3), wish("shop__order", number=17), "done")
    found = done(do("ai", mock(*answers, **lent(real(), "add", "order"))))
    first, second = found.meta["tool_calls"]
    assert (first["tool"], first["ok"], json.loads(first["answer"])) == ("shop__add", True, {"result": 5})
    assert json.loads(second["answer"])["left"] == "Monday"
    assert [[each["kind"] for each in use["gate"]["attempts"]] for use in (first, second)] == [["ok"], ["ok"]]
    assert found.effect == "none"
    assert found.meta["gate"]["calls"] == 3


def test_over_http_too(do: Do) -> None:
    """A server at a URL, by the one way out."""
    with real_over_http() as url:
        found = done(do("ai", mock(wish("shop__add", a=2, b=3), "5", **lent({"url": url}, "add"))))
    assert found.meta["tool_calls"][0]["ok"]


def test_a_tool_that_is_not_listed_is_denied(do: Do, tmp_path: Path) -> None:
    """Though the server has it, and under whatever name: the server isn't called."""
    wishes = [wish(name, text="x")["calls"][0] for name in ("shop__say", "say", "shop__wipe", "other__add")]
    found = done(do("ai", mock({"calls": wishes}, "done", **lent(real(), "add"))))
    assert [use["ok"] for use in found.meta["tool_calls"]] == [False] * 4
    assert {use["answer"] for use in found.meta["tool_calls"]} == {
        "there is no such tool; there are: shop__add"
    }
    assert not any("gate" in use for use in found.meta["tool_calls"])


@pytest.mark.parametrize(
    ("server", "tool", "kind"),
    [
        (plain("misspelt"), "echo", "mcp.unknown_tool"),
        (plain("gone"), "echo", "mcp.closed"),
        ({"command": "no-such-server"}, "echo", "mcp.start"),
        (plain("silent"), "echo", "mcp.timeout"),
        (plain("wrong"), "echo", "mcp.protocol"),
        (plain("has-too-many"), "echo", "mcp.too_many"),
        (plain("big-tool"), "echo", "mcp.too_large"),
        (plain("big-schema"), "echo", "mcp.too_large"),
        (plain("goes-round"), "echo", "mcp.unknown_tool"),
    ],
)
def test_a_server_that_can_not_be_met_is_a_fault_before_the_model_is_asked(
    server: Mapping[str, Any], tool: str, kind: str, do: Do
) -> None:
    """Typed, within its time, with the server's name; nothing was done."""
    outcome = failed(do("ai", mock("hi", **lent(server, tool, mutates=True, timeout_s=3.0))))
    assert (outcome.fault.kind, outcome.effect) == (kind, "none")
    assert "the server 'shop'" in outcome.fault.message
    assert "gate" not in outcome.meta


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        ("dies", "ended with exit code 3"),
        ("fails", "it is broken"),
        ("huge", "larger than"),
        ("unanswered", "didn't answer within"),
        ("refuses", "not today"),
        ("closes-its-output", "closed its output"),
        ("only-demands", ""),
        ("bad-result", ""),
    ],
)
def test_what_fails_is_told_to_the_model_or_holds_the_run(behaviour: str, told: str, do: Do) -> None:
    """A tool that reads may fail; what one that changes things has done by then nobody knows, so a person looks."""
    answers = (wish("shop__echo", a=1), "so be it")
    found = done(do("ai", mock(*answers, **lent(plain(behaviour), "echo", timeout_s=3.0))))
    [use] = found.meta["tool_calls"]
    assert (found.output, use["ok"]) == ("so be it", False)
    assert told in use["answer"]
    config = mock(*answers, **lent(plain(behaviour), "echo", mutates=True, timeout_s=3.0))
    outcome = failed(do("ai", config))
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("ai.tool_in_doubt", "lost")
    assert outcome.effect == "unknown"


def test_a_refused_use_of_a_tool_that_changes_things_is_not_in_doubt(do: Do) -> None:
    """The server doesn't know the method: nothing was done, and the model may go on."""
    config = mock(wish("shop__echo"), "well", **lent(plain("knows-no-calls"), "echo", mutates=True))
    assert done(do("ai", config)).effect == "none"


def test_a_tool_that_has_changed_something_is_told_in_the_effect(do: Do) -> None:
    """And whoever says nothing of a tool says that it changes things."""
    config = mock(wish("shop__echo", a=1), "done", **lent(plain("plain"), "echo", mutates=True))
    assert done(do("ai", config)).effect == "done"
    silent = mock("x", mcp_servers={"shop": {**plain("plain"), "tools": {"echo": {}}}})
    assert effects(PROVIDER.checked(silent)) == "mutates"
    assert effects(PROVIDER.checked(mock("x", **lent(plain("plain"), "echo")))) == "reads"


def test_a_use_is_made_once_whatever_policy_the_step_has(do: Do, context: ScriptedContext) -> None:
    """The step's `reliability` is the model's: its targets, rules and attempts aren't the servers'."""
    context.policy = Policy(bounds=Bounds(attempts_per_target=3))
    found = done(do("ai", mock(wish("shop__echo"), "x", **lent(plain("dies"), "echo"))))
    assert len(found.meta["tool_calls"][0]["gate"]["attempts"]) == 1


def test_each_use_has_a_key_that_is_the_same_when_it_is_made_again(do: Do) -> None:
    """F27: a server that honours keys does one thing once; another use is another thing."""

    def keys() -> list[str]:
        wishes = [wish("shop__environment")["calls"][0]] * 2
        server = plain("environment")
        config = mock({"calls": [{"tool": "shop__echo"}] * len(wishes)}, "x", **lent(server, "echo"))
        uses = done(do("ai", config)).meta["tool_calls"]
        return [str(json.loads(use["answer"])["GONOGO_IDEMPOTENCY_KEY"]) for use in uses]

    assert keys() == keys()
    assert len(set(keys())) == 2


@pytest.fixture
def _known_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run knows the secret s3cr3t."""
    given = ScriptedContext.gate

    def gate(self: ScriptedContext, default: Policy | None = None) -> Gate:
        made = given(self, default)
        made.redact = lambda text: text.replace("s3cr3t", "***")
        return made

    monkeypatch.setattr(ScriptedContext, "gate", gate)


@pytest.mark.usefixtures("_known_secret")
def test_a_secret_in_what_a_server_says_of_its_tools_does_not_reach_the_model(do: Do) -> None:
    """Not in the description, and nowhere in the schema."""
    text = {"choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}
    told = {**plain("tells-its-token"), "env": {"TOKEN": "s3cr3t"}}
    with FaultyServer(answer(200, json.dumps(text).encode(), {"content-type": "application/json"})) as server:
        done(do("ai", at(server, **lent(told, "echo"))))
        [tool] = body(server.requests[0])["tools"]
    assert tool["function"]["description"] == "says ***"
    assert tool["function"]["parameters"] == {"type": "object", "properties": {"***": {"default": "***"}}}


@pytest.mark.usefixtures("_known_secret")
def test_a_secret_that_a_server_repeats_does_not_reach_the_model(do: Do) -> None:
    """Whoever serves the model is one more who would get it."""
    server = {**plain("environment"), "env": {"TOKEN": "s3cr3t"}}
    found = done(do("ai", mock(wish("shop__echo"), "x", **lent(server, "echo"))))
    [use] = found.meta["tool_calls"]
    assert "s3cr3t" not in repr(found.meta)
    assert '"TOKEN": "***"' in use["answer"]


def test_a_server_gets_its_own_variables_and_few_others(do: Do, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the step's, which may be for the model or for another server."""
    monkeypatch.setenv("AMBIENT", "x")
    server = {**plain("environment"), "env": {"MINE": "1"}}
    config = mock(wish("shop__echo"), "x", **lent(server, "echo"))
    found = done(do("ai", config, env={"STEPS_OWN": "2"}))
    names = json.loads(found.meta["tool_calls"][0]["answer"]).keys()
    assert "MINE" in names
    assert not {"AMBIENT", "STEPS_OWN"} & names


def test_a_server_that_says_more_than_the_step_is_worth_a_look(do: Do) -> None:
    """A hint decides nothing."""
    found = done(do("ai", mock("x", **lent(real(), "wipe"))))
    assert "the server says that it does" in found.meta["warnings"][0]


def test_uses_are_bounded_over_all_rounds(do: Do) -> None:
    """64 in one call of the step, whatever the model wants; each use's record is cut to a size."""
    many = {"calls": [{"tool": "shop__echo", "with": {"text": "x"}}] * 70}
    found = done(do("ai", mock(many, "x", **lent(plain("says"), "other-0"))))
    uses = found.meta["tool_calls"]
    assert len(uses) == 70
    assert not any(use["ok"] for use in uses)


@pytest.mark.parametrize(
    ("tool", "name"),
    [("add", "shop__add"), ("a-b_c", "shop__a-b_c")],
)
def test_a_name_that_vendors_take_stays(tool: str, name: str) -> None:
    """Told apart by the server."""
    assert offered_as("shop", tool) == name


def test_a_name_that_no_vendor_takes_is_changed_and_stays_its_own() -> None:
    """Dots, slashes and length."""
    names = {offered_as("shop", tool) for tool in ("a.b", "a/b", "a b", "x" * 80, "x" * 81)}
    assert len(names) == 5
    assert all(len(name) <= 64 and name.replace("-", "_").isidentifier() for name in names)


@pytest.mark.parametrize(
    "servers",
    [
        {"shop": {"command": "a", "url": "http://b", "tools": {"t": {}}}},
        {"shop": {"tools": {"t": {}}}},
        {"shop": {"command": "a", "tools": {}}},
        {"shop": {"command": "a"}},
        {"shop": {"command": "a", "headers": {"a": "b"}, "tools": {"t": {}}}},
        {"shop": {"url": "http://b", "env": {"a": "b"}, "tools": {"t": {}}}},
        {"a b": {"command": "a", "tools": {"t": {}}}},
        {f"s{n}": {"command": "a", "tools": {"t": {}}} for n in range(11)},
        {"shop": {"command": "a", "tools": {f"t{n}": {} for n in range(65)}}},
        {"a": {"command": "a", "tools": {"b__c": {}}}, "a__b": {"command": "a", "tools": {"c": {}}}},
        {"shop": {"command": "a", "tools": {"t": {"timeout": 3}}}},
    ],
)
def test_what_cannot_be_lent_is_refused(servers: Mapping[str, Any]) -> None:
    """When the file is read."""
    with pytest.raises(ValidationError):
        PROVIDER.checked(mock("x", mcp_servers=servers))


def test_without_the_extra_the_fault_says_what_to_install(do: Do, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked."""
    for name in [name for name in sys.modules if name.split(".")[0] == "mcp" or name.endswith(".talking")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    outcome = failed(do("ai", mock("x", **lent(plain("plain"), "echo"))))
    assert outcome.fault.kind == "ai.not_installed"
    assert "gonogo[mcp]" in outcome.fault.message


def go(folder: Path, **keys: Any) -> gonogo.RunResult:
    """A run of one step that asks. YAML reads JSON."""
    step = {"type": "ai", "timeout": "60s", "criticality": "internal", **keys}
    text = json.dumps({"version": "1.0", "steps": {"ask": step}})
    return gonogo.loads(text).run(runs=folder / "runs")


def journal(folder: Path) -> list[dict[str, Any]]:
    """All records that were written down."""
    lines = [line for path in (folder / "runs").rglob("*.jsonl") for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def test_in_a_run_each_use_is_a_request_with_attempts_of_its_own(tmp_path: Path) -> None:
    """Semantics 23: a pair of events each, beside the model's; a policy of the step is the model's alone."""
    answers = (wish("shop__add", a=2, b=3), "five")
    policy = {"targets": [{"name": "m", "model": "mock"}], "bounds": {"attempts_per_target": 2}}
    result = go(tmp_path, **mock(*answers, **lent(real(), "add")), reliability=policy)
    assert (result.verdict, result.output("ask")) == ("GO", "five")
    text = "".join(path.read_text() for path in (tmp_path / "runs").rglob("*.jsonl"))
    assert text.count("attempt_started") >= 4 or text.count("AttemptStarted") >= 4, text[:3000]


def test_in_a_run_a_tool_that_breaks_off_holds(tmp_path: Path) -> None:
    """A person looks."""
    result = go(tmp_path, **mock(wish("shop__echo"), "x", **lent(plain("dies"), "echo", mutates=True)))
    assert result.verdict == "HOLD"


def test_L6_no_template_fills_in_what_a_server_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 6: beside a reference, too, tags are plain text: no data chooses a program, an argument or an address."""
    monkeypatch.setenv("SHOP", "named")
    server = plain("environment")
    given = {
        "args": [*server["args"], "{{ outputs.x }}"],
        "env": {"FROM": "${{ env.SHOP }}", "TAG": "{{ 7 | plus: 1 }}"},
    }
    result = go(tmp_path, **mock(wish("shop__echo"), "x", **lent({**server, **given}, "echo")))
    assert result.verdict == "GO", result.fault
    [done_] = [record["event"] for record in journal(tmp_path) if record["event"]["type"] == "call_done"]
    variables = json.loads(done_["meta"]["tool_calls"][0]["answer"])
    assert (variables["FROM"], variables["TAG"]) == ("named", "{{ 7 | plus: 1 }}")


def test_a_token_in_the_file_is_refused(tmp_path: Path) -> None:
    """A file is no place for a secret."""
    auth = {"type": "bearer", "token": "abc"}
    config = mock("x", **lent({"url": "http://127.0.0.1:9", "auth": auth}, "echo"))
    with pytest.raises(gonogo.ConfigError, match="no place for a secret"):
        go(tmp_path, **config)


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_server_at_a_url_is_a_typed_fault(case: str, do: Do) -> None:
    """Within the limits of size and time, before the model is asked."""
    with FaultyServer(HOSTILE[case]) as server:
        outcome = failed(do("ai", mock("x", **lent({"url": server.url}, "echo", timeout_s=5.0))))
    assert outcome.fault.kind.split(".")[0] in ("http", "mcp")


def test_a_server_at_a_url_that_is_down_is_a_fault(do: Do) -> None:
    """As any exchange."""
    with FaultyServer(faulty.RESET_BEFORE_HEADERS) as server:
        outcome = failed(do("ai", mock("x", **lent({"url": server.url}, "echo"))))
    assert outcome.fault.kind == "http.network"


@pytest.mark.parametrize(
    "body",
    [b"nobody knows you, k3y-of-the-shop", b'{"error": {"message": "k3y-of-the-shop"}}'],
    ids=["text", "JSON"],  # the test's name is a variable of the run
)
def test_SEC_2_a_token_that_a_server_repeats_is_nowhere(
    body: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its variable is called: a key that holds a secret says that it is one, however deep it stands."""
    monkeypatch.setenv("HARMLESS", "k3y-of-the-shop")
    auth = {"type": "bearer", "token": "${{ env.HARMLESS }}"}
    with FaultyServer(answer(200, body), answer(401, body)) as server:
        for _ in range(2):
            result = go(tmp_path, **mock("x", **lent({"url": server.url, "auth": auth}, "t")))
            assert result.verdict == "NO-GO"
            assert "k3y-of-the-shop" not in repr(result)
        assert server.requests[0].headers["authorization"] == "Bearer k3y-of-the-shop"
    kept = [
        path for path in tmp_path.rglob("*") if path.is_file() and b"k3y-of-the-shop" in path.read_bytes()
    ]
    assert kept == []


SLOW = """
import json, os, sys, time
def answered(method, params):
    if method == "initialize":
        about = {"name": "slow", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    with open("called", "a") as called:
        called.write("x")
    with open("bell", "w") as bell:
        bell.write("x")
    while not os.path.exists("go"):
        time.sleep(0.05)
    return {"content": [{"type": "text", "text": "done"}]}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = answered(asked["method"], asked.get("params"))
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize(("mutates", "verdict", "calls"), [(False, "GO", 2), (True, "HOLD", 1)])
def test_a_use_that_a_crash_cut_short(mutates: bool, verdict: str, calls: int, tmp_path: Path) -> None:
    """Killed in the middle of it: what only reads is used again, of what changes things nobody knows (L3)."""
    (tmp_path / "slow.py").write_text(SLOW)
    server = {"command": sys.executable, "args": ["-S", "slow.py"], "tools": {"t": {"mutates": mutates}}}
    config = mock(wish("s__t"), "fine", mcp_servers={"s": server})
    step = {"type": "ai", "timeout": "60s", "criticality": "internal", **config}
    (tmp_path / "gonogo.yaml").write_text(json.dumps({"version": "1.0", "steps": {"ask": step}}))
    os.mkfifo(tmp_path / "bell")
    bell = os.open(tmp_path / "bell", os.O_RDWR)
    command = [sys.executable, "-m", "gonogo"]
    with subprocess.Popen([*command, "run"], cwd=tmp_path, stderr=subprocess.DEVNULL) as first:
        assert select.select([bell], [], [], 60)[0]
        first.kill()
    (tmp_path / "go").touch()
    ended = subprocess.run(
        [*command, "resume", "last"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    os.close(bell)
    assert verdict in ended.stdout
    assert "done" in ended.stdout or mutates  # what the tool answered
    assert (tmp_path / "called").read_text() == "x" * calls
