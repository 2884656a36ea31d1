"""mcp: servers that are silent, wrong, endless or gone. A step ends all the same, says why, leaves nothing behind."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tests.servers.mcp_servers import plain

from gonogo.provider import Done, Failed, Outcome
from gonogo.providers._mcp.talking import (
    TOOLS_MAX,
)  # takes a second, here rather than in somebody's time limit
from gonogo.providers.table import built_in
from gonogo.testing import ScriptedContext, call_for

Do = Callable[..., Outcome]
BEFORE = [
    ("old", "mcp.protocol", "unsupported protocol version from the server: 1999-01-01"),
    ("wrong", "mcp.protocol", "the server's answer is wrong: capabilities: field required"),
    ("no-object", "mcp.protocol", "the answer to initialize is no object"),
    ("big-hello", "mcp.too_large", "the answer to initialize is larger than 262,144 bytes"),
    ("deep-hello", "mcp.protocol", "the server's answer is wrong"),
    ("bad-list", "mcp.protocol", "the server's list of tools is none"),
    ("bad-tool", "mcp.protocol", "tools.0.inputSchema: field required"),
    ("big-tool", "mcp.too_large", "the answer to tools/list is larger than 262,144 bytes"),
    ("has-many", "mcp.unknown_tool", "t18, t19 and 8,980 more)"),
    ("has-too-many", "mcp.too_many", f"the server has more than {TOOLS_MAX:,} tools"),
    ("goes-round", "mcp.unknown_tool", "has no tool 'echo' (it has: other-0, other-1, other-2)"),
    ("misspelt", "mcp.unknown_tool", "has no tool 'echo', did you mean 'echos'?"),
    ("gone", "mcp.closed", "the server ended with exit code 4 before it answered; it said last: no licence"),
    ("killed", "mcp.closed", "the server ended by SIGKILL before it answered"),
]
"""What a server does, the fault, and a part of its message; the tool wasn't called."""
AMID = [
    ("dies", "mcp.closed", "exit code 3 before it answered; it said last: the disk is full"),
    ("huge", "mcp.too_large", "a message of the server is larger than 2,000,000 bytes"),
    ("without-end", "mcp.too_large", "raise `max_response_bytes` if that's meant"),
    ("chatters", "mcp.too_many", "the server sent more than 10,000 messages"),
    ("only-demands", "mcp.too_many", "the server asks and doesn't read what it is answered"),
    ("refuses", "mcp.error", "the server refuses: not today (code -32000)"),
    ("bad-result", "mcp.protocol", "the server's answer is wrong"),
    ("wants-input", "mcp.input_required", "the tool asks for more while it runs"),
    ("closes-its-output", "mcp.closed", "the server closed its output before it answered"),
]
"""As BEFORE; the tool was called, so nobody knows what it did."""


@pytest.mark.parametrize(("server", "kind", "told"), BEFORE, ids=[row[0] for row in BEFORE])
def test_what_goes_wrong_before_the_call_did_nothing(do: Do, server: str, kind: str, told: str) -> None:
    """A step that changes things may be tried again then."""
    outcome = do("mcp", {**plain(server), "method": "echo"}, timeout_s=20.0)
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == kind
    assert told in outcome.fault.message
    assert outcome.effect == "none"


@pytest.mark.parametrize(("server", "kind", "told"), AMID, ids=[row[0] for row in AMID])
def test_what_goes_wrong_amid_the_call_may_have_done_something(
    do: Do, server: str, kind: str, told: str
) -> None:
    """A step that changes things holds for a person then."""
    config = {**plain(server), "method": "echo", "max_response_bytes": 2_000_000}
    outcome = do("mcp", config, timeout_s=20.0)
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == kind
    assert told in outcome.fault.message
    assert outcome.effect == "unknown"


def test_a_method_that_the_server_does_not_know_did_nothing(do: Do) -> None:
    """Code -32601 of JSON-RPC says so."""
    outcome = do("mcp", {**plain("knows-no-calls"), "method": "echo"})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.cause, outcome.effect) == ("mcp.error", "-32601", "none")


def test_a_server_that_never_answers_runs_out_of_time(do: Do) -> None:
    """Transient, and nothing was done: it didn't even say hello."""
    outcome = do("mcp", {**plain("silent"), "method": "echo"}, timeout_s=0.3)
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("mcp.timeout", "transient")
    assert (outcome.fault.message.split(" within")[0], outcome.effect) == ("the server didn't answer", "none")


def test_a_tool_that_never_answers_runs_out_of_time(do: Do) -> None:
    """It may have done its work."""
    outcome = do("mcp", {**plain("unanswered"), "method": "echo"}, timeout_s=2.0)
    assert isinstance(outcome, Failed)
    assert outcome.fault.message.startswith("the tool 'echo' didn't answer within")
    assert (outcome.fault.kind, outcome.effect) == ("mcp.timeout", "unknown")


def test_what_is_no_message_is_shown_when_nothing_else_came(do: Do) -> None:
    """The usual mistake of a server that logs to its standard output; without what could trick a terminal."""
    outcome = do("mcp", {**plain("babbles"), "method": "echo"}, timeout_s=1.0)
    assert isinstance(outcome, Failed)
    assert outcome.fault.message.endswith("; it wrote what is no message: 'Server started on [31mport 0[0m'")


@pytest.mark.parametrize("server", ["banner", "id-as-text", "another-first"])
def test_what_other_clients_overlook_is_overlooked(do: Do, server: str) -> None:
    """A banner before the first message, ids given back as text, answers that nobody waits for."""
    assert isinstance(do("mcp", {**plain(server), "method": "echo"}), Done)


def test_a_server_gets_no_model_no_person_and_no_folder(do: Do) -> None:
    """What it asks for is refused, and a ping answered."""
    outcome = do("mcp", {**plain("demands"), "method": "echo"})
    assert isinstance(outcome, Done)
    ping, sampling, roots = outcome.output
    assert ping["result"] == {}
    assert [each["error"]["code"] for each in (sampling, roots)] == [-32601, -32601]


def test_a_deep_answer_is_an_output_like_any_other(do: Do) -> None:
    """What the library would refuse with an exception of no kind."""
    outcome = do("mcp", {**plain("deep"), "method": "echo"})
    assert isinstance(outcome, Done)
    assert list(outcome.output) == ["a"]


def test_L7_a_cancel_ends_a_server_that_does_not_want_to_end(tmp_path: Path) -> None:
    """Law 7: neither the end of its input nor TERM ends it, and its child has a session of its own."""
    seconds = "38.4177"
    config = {**plain("stays", seconds), "method": "echo"}

    class Started(ScriptedContext):
        """Hears of progress, by which the server and its child are there."""

        cancel: Callable[[], None]

        def progress(self, text: str) -> None:
            if text == "up":
                self.cancel()

    async def cancelled() -> bool:
        provider = built_in().get("mcp")
        context = Started(working_directory=str(tmp_path))
        with anyio.fail_after(20), anyio.CancelScope() as scope:
            context.cancel = scope.cancel
            await provider.run(call_for(provider, config), context)
        return scope.cancelled_caught

    assert anyio.run(cancelled)
    assert living(seconds) == []


def living(words: str) -> list[str]:
    """Command lines of processes that hold these words."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if words in line:
            found.append(line)
    return found


def test_a_server_that_stays_is_ended_with_its_family_when_time_is_up(do: Do) -> None:
    """Before the outcome is told."""
    seconds = "38.4178"
    outcome = do("mcp", {**plain("stays", seconds), "method": "echo"}, timeout_s=2.0)
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "mcp.timeout"
    assert living(seconds) == []
