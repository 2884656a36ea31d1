"""A small MCP server of plain Python that behaves as it is told: `python mcp_plain.py dies`. No library, so that it
starts at once and says what no library would. It ends when its input does, unless it is there not to.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

OTHERS = [{"name": f"other-{number}", "inputSchema": {"type": "object"}} for number in range(3)]
ECHO = {"name": "echo", "inputSchema": {"type": "object"}}
DESTROYS = {"readOnlyHint": False, "destructiveHint": True}


def say(line: str) -> None:
    """On standard output, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def write(message: dict[str, Any]) -> None:
    """One line."""
    say(json.dumps({"jsonrpc": "2.0", **message}))


def answer(request: dict[str, Any], result: Any) -> None:
    """To a request."""
    write({"id": request["id"], "result": result})


def refuse(request: dict[str, Any], code: int, message: str) -> None:
    """A request."""
    write({"id": request["id"], "error": {"code": code, "message": message}})


def read() -> dict[str, Any]:
    """The next message; at the end of input, the end."""
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def hello(request: dict[str, Any], version: str = "2025-06-18") -> None:
    """The handshake's answer."""
    about = {"name": "plain", "version": "0"}
    answer(request, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})


def text(words: str, **more: Any) -> dict[str, Any]:
    """A result of one text."""
    return {"content": [{"type": "text", "text": words}], **more}


class Plain:
    """A server in order: `echo` says its arguments back."""

    def initialize(self, request: dict[str, Any]) -> None:
        """Hello."""
        hello(request)

    def tools(self, request: dict[str, Any]) -> None:
        """What there is."""
        answer(request, {"tools": [*OTHERS, ECHO]})

    def call(self, request: dict[str, Any]) -> None:
        """The tool."""
        answer(request, text(json.dumps(request["params"]["arguments"])))

    def discover(self, request: dict[str, Any]) -> None:
        """What came in place of the handshake."""
        refuse(request, -32601, "no such method")

    def serve(self) -> None:
        """Until the input ends."""
        methods = {
            "initialize": self.initialize,
            "tools/list": self.tools,
            "tools/call": self.call,
            "server/discover": self.discover,
        }
        while True:
            message = read()
            method = methods.get(message.get("method", ""))
            if method is not None:
                method(message)


class Calls(Plain):
    """As Plain; its tool is the function given."""

    def __init__(self, call: Callable[[dict[str, Any]], None]) -> None:
        self._call = call

    def call(self, request: dict[str, Any]) -> None:
        """The function given."""
        self._call(request)


class Says(Plain):
    """As Plain; the first answer is the function given."""

    def __init__(self, first: Callable[[dict[str, Any]], None]) -> None:
        self._first = first

    def initialize(self, request: dict[str, Any]) -> None:
        """The function given."""
        self._first(request)


class Lists(Plain):
    """As Plain; its list of tools is the function given."""

    def __init__(self, tools: Callable[[dict[str, Any]], None]) -> None:
        self._tools = tools

    def tools(self, request: dict[str, Any]) -> None:
        """The function given."""
        self._tools(request)


class Modern(Plain):
    """Knows the protocol of 2026 alone."""

    def initialize(self, request: dict[str, Any]) -> None:
        """There is none."""
        refuse(request, -32601, "no such method")

    def discover(self, request: dict[str, Any]) -> None:
        """Hello."""
        answer(
            request,
            {
                "resultType": "complete", "ttlMs": 0, "cacheScope": "public", "capabilities": {"tools": {}},
                "supportedVersions": ["2026-07-28"],
            },
        )  # fmt: skip

    def tools(self, request: dict[str, Any]) -> None:
        """As this version wants it."""
        answer(request, {"resultType": "complete", "ttlMs": 0, "cacheScope": "public", "tools": [ECHO]})

    def call(self, request: dict[str, Any]) -> None:
        """As this version wants it."""
        answer(request, {"resultType": "complete", **text("modern")})


def about(token: str) -> dict[str, Any]:
    """A tool that tells its server's token wherever there is room for it."""
    schema = {"type": "object", "properties": {token: {"default": token}}}
    return {"name": "echo", "description": f"says {token}", "inputSchema": schema}


def nothing(request: dict[str, Any]) -> None:
    """Never answers."""


def dies(request: dict[str, Any]) -> None:
    """In the middle."""
    sys.stderr.write("the disk is full\n")
    sys.stderr.flush()
    os._exit(3)


def gone(request: dict[str, Any]) -> None:
    """Before it has said a word."""
    sys.stderr.write("no licence\n")
    sys.stderr.flush()
    os._exit(4)


def closes(request: dict[str, Any]) -> None:
    """Goes on, but says no more."""
    os.close(1)
    while True:
        signal.pause()


def without_end(request: dict[str, Any]) -> None:
    """A line that never ends."""
    while True:
        sys.stdout.write("x" * 65536)


def chatters(request: dict[str, Any]) -> None:
    """Tells more than anybody wants to know."""
    while True:
        write({"method": "notifications/message", "params": {"level": "info", "data": "x"}})


def babbles(request: dict[str, Any]) -> None:
    """Nothing that is a message."""
    say("Server started on \x1b[31mport 0\x1b[0m")


def demands(request: dict[str, Any]) -> None:
    """Asks before it answers, and says what it heard."""
    heard = []
    for number, method in enumerate(("ping", "sampling/createMessage", "roots/list")):
        write({"id": f"mine-{number}", "method": method})
        heard.append(read())
    answer(request, text(json.dumps(heard)))


def only_demands(request: dict[str, Any]) -> None:
    """Asks and reads nothing."""
    number = 0
    while True:
        number += 1
        write({"id": number + 1000, "method": "ping"})


def stays(request: dict[str, Any]) -> None:
    """Neither answers nor ends: not at the end of its input, not on TERM, and nor does its child."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["setsid", "sleep", sys.argv[2]])
    write(
        {"method": "notifications/progress", "params": {"progressToken": 0, "progress": 0, "message": "up"}}
    )
    while True:
        signal.pause()


def goes_round(request: dict[str, Any]) -> None:
    """Pages without end."""
    answer(request, {"tools": OTHERS, "nextCursor": "on"})


def has_many(request: dict[str, Any]) -> None:
    """Thousands of tools, none of them wanted."""
    answer(request, {"tools": [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(9_000)]})


def deep() -> Any:
    """Objects within objects, as far down as JSON goes here."""
    value: Any = 1
    for _ in range(900):
        value = {"a": value}
    return value


SERVERS: dict[str, Callable[[], Plain]] = {
    "plain": Plain,
    "modern": Modern,
    "silent": lambda: Says(nothing),
    "babbles": lambda: Says(babbles),
    "old": lambda: Says(lambda request: hello(request, "1999-01-01")),
    "wrong": lambda: Says(lambda request: answer(request, {"protocolVersion": 7})),
    "no-object": lambda: Says(lambda request: answer(request, [1])),
    "goes-round": lambda: Lists(goes_round),
    "has-many": lambda: Lists(has_many),
    "has-too-many": lambda: Lists(lambda r: answer(r, {"tools": [{"name": "t"}] * 10_001})),
    "bad-tool": lambda: Lists(lambda request: answer(request, {"tools": [{"name": "echo"}]})),
    "big-tool": lambda: Lists(lambda r: answer(r, {"tools": [{**ECHO, "description": "x" * 300_000}]})),
    "big-schema": lambda: Lists(
        lambda r: answer(r, {"tools": [{**ECHO, "inputSchema": {"type": "object", "x": "y" * 40_000}}]})
    ),
    "big-hello": lambda: Says(lambda r: answer(r, {"protocolVersion": "x" * 300_000})),
    "deep": lambda: Calls(lambda request: answer(request, text("", structuredContent=deep()))),
    "wants-input": lambda: Calls(
        lambda request: answer(request, {"resultType": "input_required", "inputRequests": {}})
    ),
    "deep-hello": lambda: Says(lambda request: answer(request, {"protocolVersion": deep()})),
    "misspelt": lambda: Lists(lambda request: answer(request, {"tools": [{"name": "echos"}]})),
    "gone": lambda: Says(gone),
    "killed": lambda: Says(lambda request: os.kill(os.getpid(), signal.SIGKILL)),
    "closes-its-output": lambda: Calls(closes),
    "environment": lambda: Calls(lambda request: answer(request, text(json.dumps(dict(os.environ))))),
    "tells-its-token": lambda: Lists(lambda r: answer(r, {"tools": [about(os.environ["TOKEN"])]})),
    "destroys": lambda: Lists(lambda r: answer(r, {"tools": [{**ECHO, "annotations": DESTROYS}]})),
    "bad-list": lambda: Lists(lambda request: answer(request, {"tools": [{"name": 3}]})),
    "unanswered": lambda: Calls(nothing),
    "dies": lambda: Calls(dies),
    "huge": lambda: Calls(lambda request: answer(request, text("x" * 5_000_000))),
    "without-end": lambda: Calls(without_end),
    "chatters": lambda: Calls(chatters),
    "demands": lambda: Calls(demands),
    "only-demands": lambda: Calls(only_demands),
    "stays": lambda: Calls(stays),
    "refuses": lambda: Calls(lambda request: refuse(request, -32000, "not today")),
    "knows-no-calls": lambda: Calls(lambda request: refuse(request, -32601, "no such method")),
    "fails": lambda: Calls(lambda request: answer(request, text("it is broken", isError=True))),
    "fails-silently": lambda: Calls(lambda request: answer(request, {"content": [], "isError": True})),
    "bad-result": lambda: Calls(lambda request: answer(request, {"content": "text"})),
    "structured": lambda: Calls(lambda r: answer(r, text("words", structuredContent={"a": [1, None]}))),
    "picture": lambda: Calls(
        lambda r: answer(r, {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]})
    ),
    "says": lambda: Calls(lambda request: answer(request, text(request["params"]["arguments"]["text"]))),
    "tempts": lambda: Calls(lambda request: answer(request, text("{{ outputs }} ${HOME} $(id)"))),
    "id-as-text": lambda: Calls(
        lambda request: write({"id": str(request["id"]), "result": text("as text")})
    ),
    "another-first": lambda: Calls(
        lambda request: (write({"id": 999, "result": text("not this")}), answer(request, text("this")))[1]
    ),
}  # fmt: skip

if __name__ == "__main__":
    if sys.argv[1] == "banner":
        say("Welcome! This line is no message.")
    SERVERS.get(sys.argv[1], Plain)().serve()
