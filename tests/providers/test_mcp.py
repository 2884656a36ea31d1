"""mcp: what a tool gives, and what becomes of it. Servers that do wrong are in test_mcp_hostile.py."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import ValidationError
from tests.servers.mcp_servers import plain, real

from gonogo.expressions.results import Value
from gonogo.gate import Bounds, Policy
from gonogo.provider import Done, Failed, Outcome
from gonogo.providers._mcp.process import PASSED_ON
from gonogo.providers._mcp.results import output_of
from gonogo.providers._mcp.server import Server, place_of
from gonogo.testing import ScriptedContext

Do = Callable[..., Outcome]
ECHO = {**plain("plain"), "method": "echo"}


def text(words: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": words}


PICTURE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("content", "structured", "output"),
    [
        ([text("words")], {"a": 1}, {"a": 1}),
        ([text("words")], [], []),
        ([text(' {"a": 1} ')], None, {"a": 1}),
        ([text("5")], None, 5),
        ([text("two"), text("parts")], None, "two\nparts"),
        ([text(" words ")], None, "words"),
        ([], None, ""),
        ([text("see"), PICTURE], None, [text("see"), PICTURE]),
    ],
)
def test_the_output_is_structured_content_else_json_else_text(
    content: list[dict[str, Any]], structured: Any, output: Any
) -> None:
    """Nothing that a tool gave is lost: blocks that aren't text stay what they are."""
    assert output_of(content, structured) == output


def test_a_tool_gets_its_arguments_and_gives_the_output(do: Do) -> None:
    """Over stdin and stdout, with who answered in the meta."""
    outcome = do("mcp", {**ECHO, "methodArgs": {"a": [1, {"b": None}], "c": "ü"}})
    assert isinstance(outcome, Done)
    assert outcome.output == {"a": [1, {"b": None}], "c": "ü"}
    assert outcome.meta == {"protocol": "2025-06-18", "server": {"name": "plain", "version": "0"}}
    assert outcome.effect == "done"


def test_the_librarys_own_server_is_understood(do: Do, context: ScriptedContext) -> None:
    """Its handshake, its list, its progress and its structured answer."""
    outcome = do("mcp", {**real(), "method": "count", "methodArgs": {"to": 3}})
    assert isinstance(outcome, Done), outcome
    assert outcome.output == {"result": 3}
    assert outcome.meta["server"] == {"name": "orders", "version": "1.0"}
    assert [line for line in context.shown if line.startswith("at ")] == ["at 0", "at 1", "at 2"]


def test_a_server_without_the_handshake_is_understood(do: Do) -> None:
    """The protocol of 2026 has none; what came in its place is asked then."""
    outcome = do("mcp", {**plain("modern"), "method": "echo"})
    assert isinstance(outcome, Done), outcome
    assert (outcome.output, outcome.meta["protocol"]) == ("modern", "2026-07-28")


def test_a_tool_that_fails_fails_the_step_with_its_words(do: Do) -> None:
    """isError: nobody knows what it did by then, and another attempt may go better, as with a command."""
    outcome = do("mcp", {**plain("fails"), "method": "echo"})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("mcp.tool", "transient")
    assert (outcome.fault.rule_id, outcome.fault.message) == ("step/mcp/tool_error", "it is broken")
    assert outcome.output == {"error": True, "message": "it is broken", "result": "it is broken"}
    assert outcome.effect == "unknown"


def test_arguments_may_come_from_one_template(do: Do) -> None:
    """argsTransform gives JSON, numbers and all."""
    outcome = do("mcp", {**ECHO, "argsTransform": '{"number": 17}'})
    assert isinstance(outcome, Done)
    assert outcome.output == {"number": 17}


@pytest.mark.parametrize("given", ["{number: 17}", "[1]", "", '{"a": NaN}'])
def test_arguments_that_are_no_object_are_told_before_anything_starts(do: Do, given: str) -> None:
    """A template that forgot the filter `json` is the usual reason."""
    outcome = do("mcp", {"command": "/no/such/server", "method": "echo", "argsTransform": given})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.effect) == ("mcp.arguments", "none")


def test_the_output_may_be_transformed(do: Do, context: ScriptedContext) -> None:
    """As with commands: JavaScript sees `output`."""
    context.evaluate_with = lambda source, kind, names: Value(names["output"]["a"] + 1)
    outcome = do("mcp", {**ECHO, "methodArgs": {"a": 1}, "transform_js": "output.a + 1"})
    assert isinstance(outcome, Done)
    assert outcome.output == 2


def test_a_server_gets_what_programs_need_and_what_the_step_gives(
    do: Do, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is somebody else's program: gonogo's own environment, secrets in it, isn't for it."""
    monkeypatch.setenv("SOME_TOKEN", "secret")
    outcome = do("mcp", {**plain("environment"), "method": "echo"}, env={"GIVEN": "1"}, key="k-1")
    assert isinstance(outcome, Done)
    assert set(outcome.output) <= {*PASSED_ON, "GIVEN", "GONOGO_IDEMPOTENCY_KEY"}
    assert outcome.output["GIVEN"] == "1"
    assert outcome.output["GONOGO_IDEMPOTENCY_KEY"] == "k-1"
    assert outcome.output["PATH"] == os.environ["PATH"]


def test_a_servers_hints_decide_nothing(do: Do, context: ScriptedContext) -> None:
    """`mutates:` is the step's word; a server that says more than the step is worth a warning."""
    outcome = do("mcp", {**plain("destroys"), "method": "echo"}, effects="idempotent")
    assert isinstance(outcome, Done)
    warning = "the step says that it changes nothing, but the server says that 'echo' changes things"
    assert outcome.meta["warnings"] == [warning]
    assert context.logged == [("warn", warning)]


def test_a_call_that_may_change_things_is_not_repeated_by_the_gate(do: Do, context: ScriptedContext) -> None:
    """A step that says nothing changes things; whether the tool did its work when its server died, nobody knows."""
    context.policy = Policy(bounds=Bounds(attempts_max=3, attempts_per_target=3))
    outcome = do("mcp", {**plain("dies"), "method": "echo"})
    assert isinstance(outcome, Failed)
    assert [each["kind"] for each in outcome.meta["gate"]["attempts"]] == ["network"]
    assert (outcome.fault.kind, outcome.effect) == ("mcp.closed", "unknown")


def test_a_call_that_changes_nothing_is_repeated_by_the_gate(do: Do, context: ScriptedContext) -> None:
    """`mutates: false` allows it; each attempt has a server of its own."""
    context.policy = Policy(bounds=Bounds(attempts_max=3, attempts_per_target=3))
    outcome = do("mcp", {**plain("dies"), "method": "echo"}, effects="idempotent")
    assert isinstance(outcome, Failed)
    assert [each["kind"] for each in outcome.meta["gate"]["attempts"]] == ["network"] * 3
    assert outcome.fault.message.endswith("(after 3 attempts)")


def test_servers_of_one_program_are_told_apart() -> None:
    """A breaker that one of them opens is none of the other's business."""
    long = ["-m", "x" * 200]
    names = [
        place_of(Server("key", 1, "python3", tuple(args)))
        for args in (["a.py"], ["b.py"], [*long, "a"], [*long, "b"])
    ]
    assert names[0] == "stdio:python3 a.py"
    assert len(set(names)) == 4
    assert max(map(len, names)) < 130


def test_a_server_that_cannot_start_did_nothing(do: Do) -> None:
    """So another attempt of a step that changes things would be allowed."""
    outcome = do("mcp", {"command": "no-such-server", "method": "echo"})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.effect) == ("mcp.start", "none")
    assert outcome.fault.message == "the server 'no-such-server' can't be started: no such file or directory"


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (
            {"command": "python3", "args": ["a\0b"]},
            "a text for the server 'python3' holds a NUL byte, which no system takes; pass it by `methodArgs:`",
        ),
        (
            {"command": "python3", "cwd": "none/such"},
            "none/such' to start the server 'python3' in",
        ),
    ],
)
def test_what_keeps_a_server_from_starting_names_the_keys_of_its_step(
    do: Do, config: dict[str, Any], told: str
) -> None:
    """Not those of a command, which is started by the same code."""
    outcome = do("mcp", {**config, "method": "echo"})
    assert isinstance(outcome, Failed)
    assert told in outcome.fault.message


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"method": "a"}, "`command` that is the server, or its `url`"),
        ({"method": "a", "command": "x", "url": "http://x"}, "one of them"),
        ({"method": "a", "command": "x", "transport": "http"}, "transport: http needs `url`"),
        ({"method": "a", "url": "http://x", "transport": "stdio"}, "transport: stdio needs `command`"),
        ({"method": "a", "command": "x", "headers": {"a": "b"}}, "over stdio has no `headers`"),
        ({"method": "a", "url": "http://x", "args": ["b"]}, "over http has no `args`"),
        ({"method": "a", "command": "x", "methodArgs": {"a": 1}, "argsTransform": "{}"}, "keep one"),
        ({"method": "", "command": "x"}, "length"),
    ],
)
def test_a_step_names_one_server_and_one_tool(do: Do, config: dict[str, Any], told: str) -> None:
    """What contradicts itself is refused when the file is read."""
    with pytest.raises(ValidationError, match=told):
        do("mcp", config)


def test_without_the_extra_a_call_says_how_to_install_it(do: Do, monkeypatch: pytest.MonkeyPatch) -> None:
    """For whoever runs a plan that was compiled elsewhere; files are refused before."""
    for name in [name for name in sys.modules if name.split(".")[0] == "mcp" or name.endswith(".talking")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    outcome = do("mcp", ECHO)
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "mcp.not_installed"
    assert outcome.fault.message.endswith("isn't installed: pip install 'gonogo[mcp]'")


def test_reading_a_file_with_such_a_step_loads_neither_the_library_nor_the_gate() -> None:
    """Start-up: the library takes a second to import."""
    code = (
        "import sys, gonogo.providers.mcp;"
        "print([name for name in ('mcp', 'mcp_types', 'pydantic', 'gonogo.gate.machine') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
