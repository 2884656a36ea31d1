"""One module opens outbound HTTP, and no other path out exists (issue of the gate: law 6)."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from gonogo.providers import _http
from gonogo.providers._http import Request

SOURCE = Path(__file__).resolve().parents[2] / "src" / "gonogo"
WAY_OUT = "providers/_http.py"
CLIENTS = frozenset(
    """
    httpx2 httpx httpcore httpcore2 http.client http.server urllib.request urllib3 requests aiohttp socket ssl ftplib
    smtplib poplib imaplib telnetlib xmlrpc websockets h11 h2 anthropic openai github pycurl socketserver
    mcp.client.streamable_http mcp.client.sse mcp.client.websocket mcp.client.client mcp.client.stdio mcp.server
    mcp.client.auth mcp.client.session_group mcp.shared._httpx_utils starlette uvicorn pydantic_ai google mistralai groq
    """.split()
)
"""What could open a connection, or serve one."""
OPENERS = frozenset(
    """
    open_connection open_unix_connection create_connection connect_tcp connect_unix connect_tcp_with_tls urlopen
    urlretrieve create_connected_udp_socket create_udp_socket sock_connect
    streamable_http_client sse_client create_mcp_http_client stdio_client UpdatePrices
    """.split()
)
LOOKS_UP = {
    "providers/_addresses.py": {"socket"},
    "providers/_lent.py": {"httpx2"},
    "providers/ai/library.py": {"pydantic_ai"},
    "providers/ai/library_stream.py": {"pydantic_ai"},
}
"""Connect to nothing: of `socket` a constant is used alone; a lent client has the one way out as its transport, and the
vendors' libraries get that client (`test_ai_vendors.py` counts what they open)."""


def modules() -> list[str]:
    """Every module, by its path."""
    return sorted(str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py"))


def named(tree: ast.AST) -> Iterator[str]:
    """Modules that are imported, attributes that are called, and module names in texts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Attribute):
            yield f".{node.attr}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield f"'{node.value}'"


def ways_out(source: str) -> set[str]:
    """The clients and openers that a module names."""
    found = set()
    for name in named(ast.parse(source)):
        if name.startswith("."):
            found |= {name[1:]} & OPENERS
        elif name.startswith("'"):
            found |= {name.strip("'")} & {"httpx2", "httpx", "aiohttp", "urllib3"}
        else:
            parts = name.split(".")
            found |= {".".join(parts[:length]) for length in range(1, len(parts) + 1)} & (CLIENTS | OPENERS)
            found |= {parts[-1]} & OPENERS
    return found


@pytest.mark.parametrize("module", [name for name in modules() if name != WAY_OUT])
def test_no_module_but_one_can_open_a_connection(module: str) -> None:
    """Not even by importing a client lazily, or by a name in a text."""
    assert ways_out((SOURCE / module).read_text()) <= LOOKS_UP.get(module, set())


def test_the_lookup_uses_no_more_of_sockets_than_a_constant() -> None:
    """`_addresses.py` asks the resolver and opens nothing."""
    tree = ast.parse((SOURCE / "providers/_addresses.py").read_text())
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "socket"
    }
    assert used == {"SOCK_STREAM"}


def test_a_lent_client_has_no_transport_of_its_own() -> None:
    """`_lent.py` makes one client, which gets our transport and reads no proxies from the environment."""
    tree = ast.parse((SOURCE / "providers/_lent.py").read_text())
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    made = [
        each for each in calls if isinstance(each.func, ast.Attribute) and each.func.attr == "AsyncClient"
    ]
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "httpx2"
    }
    given = {each.arg: ast.unparse(each.value) for each in made[0].keywords}
    assert len(made) == 1
    assert (given["transport"], given["trust_env"]) == ("exchange", "False")
    assert used == {
        "AsyncBaseTransport", "AsyncByteStream", "AsyncClient", "NetworkError", "ReadError", "Request", "Response",
        "Timeout", "URL", "UnsupportedProtocol",
    }  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [
        "import httpx2",
        "def f():\n    from urllib.request import urlopen",
        "from urllib import request",
        "import asyncio\nasyncio.open_connection('x', 1)",
        "import anyio\nanyio.connect_tcp('x', 1)",
        "__import__('httpx2')",
        "import socket as s",
        "from mcp.client.streamable_http import streamable_http_client",
        "from mcp.client import Client, sse\nsse.sse_client('x')",
    ],
)
def test_the_check_sees_a_way_out(source: str) -> None:
    """A test that can't fail holds nothing."""
    assert ways_out(source)


def test_X24_an_exchange_outside_of_a_gate_fails_its_test() -> None:
    """X24, F2: the fixture that watches all tests sees what goes around the gate."""
    request = Request("GET", "http://127.0.0.1:1/", from_data=False)
    with pytest.raises(AssertionError, match="goes around the gate"):
        anyio.run(_http.send, request, _http.Limits())


def test_a_run_without_calls_loads_no_client() -> None:
    """Start-up: who calls nothing pays nothing, neither for a client nor for the gate."""
    code = (
        "import sys, gonogo.providers.http_client, gonogo.providers.http;"
        "print('httpx2' in sys.modules, 'gonogo.gate.machine' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False False"
