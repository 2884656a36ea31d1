"""A server for the example beside it: `start` leaves it running and prints its port, `stop PID` ends it.

It listens on this machine alone and ends by itself after a minute.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

LIFE_S = 60


class Handler(BaseHTTPRequestHandler):
    """/health is fine; /flaky is fine from its second call on."""

    def do_GET(self) -> None:
        """Answer with JSON."""
        if self.path == "/flaky":
            self.server.calls += 1  # type: ignore[attr-defined]
            status = 200 if self.server.calls > 1 else 503  # type: ignore[attr-defined]
            self.answer(status, {"calls": self.server.calls})  # type: ignore[attr-defined]
        else:
            self.answer(200, {"healthy": True})

    def answer(self, status: int, data: dict[str, object]) -> None:
        """Send status and JSON."""
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


def serve() -> None:
    """Serve on a free port, tell it on stdout, end after LIFE_S."""
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.calls = 0  # type: ignore[attr-defined]
        signal.alarm(LIFE_S)
        print(server.server_port, flush=True)
        server.serve_forever()


def start() -> None:
    """Start the server so that it outlives this step; gonogo ends all else that a command leaves running."""
    environment = {name: value for name, value in os.environ.items() if name != "GONOGO_CALL"}
    child = subprocess.Popen(
        [sys.executable, __file__, "serve"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=environment,
        text=True,
    )
    assert child.stdout is not None
    print(json.dumps({"port": int(child.stdout.readline()), "pid": child.pid}))


def stop(pid: int) -> None:
    """End it."""
    os.kill(pid, signal.SIGTERM)
    print(json.dumps({"stopped": True}))


if __name__ == "__main__":
    if sys.argv[1] == "stop":
        stop(int(sys.argv[2]))
    else:
        {"start": start, "serve": serve}[sys.argv[1]]()
