"""A real MCP server, of the library's own making: `python mcp_real.py` on stdin and stdout, `python mcp_real.py http`
on a free port of the loopback, which it prints. Ended by who started it.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("orders", version="1.0", log_level="CRITICAL")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@server.tool()
def order(number: int) -> dict[str, Any]:
    """Tells of an order."""
    return {"number": number, "left": "Monday"}


@server.tool(structured_output=False)
def say(text: str) -> str:
    """Says it back."""
    return text


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
def wipe() -> str:
    """Says of itself that it destroys."""
    return "gone"


@server.tool()
def fail(why: str) -> str:
    """Fails, as tools do."""
    raise ValueError(why)


@server.tool(structured_output=False)
def environment() -> str:
    """The names of its variables."""
    return " ".join(sorted(os.environ))


@server.tool(structured_output=False)
def variable(name: str) -> str:
    """One variable."""
    return os.environ.get(name, "")


@server.tool()
async def count(context: Context, to: int) -> int:
    """Tells how far it is."""
    for number in range(to):
        await context.report_progress(number, to, f"at {number}")
    return to


@server.tool()
async def wait() -> str:
    """Never answers."""
    await anyio.sleep_forever()
    return "never"


def main() -> None:
    """Serve until the end of input, or until somebody ends the process."""
    if sys.argv[1:] == ["http"]:
        listening = socket.create_server(("127.0.0.1", 0))
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        config = uvicorn.Config(server.streamable_http_app(), log_level="critical")
        uvicorn.Server(config).run(sockets=[listening])
    else:
        server.run("stdio")


if __name__ == "__main__":
    main()
