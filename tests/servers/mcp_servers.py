"""What tests of mcp steps start: the real server over HTTP, and the commands of the servers on stdin and stdout."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def plain(*words: str) -> dict[str, Any]:
    """The keys of a server that behaves as the words tell (mcp_plain.py)."""
    return {"command": sys.executable, "args": ["-S", str(FOLDER / "mcp_plain.py"), *words]}


def real() -> dict[str, Any]:
    """The keys of the library's own server."""
    return {"command": sys.executable, "args": [str(FOLDER / "mcp_real.py")]}


@contextmanager
def real_over_http() -> Iterator[str]:
    """The address of the library's own server, which runs until this is left."""
    command = [sys.executable, str(FOLDER / "mcp_real.py"), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"
        finally:
            server.terminate()
