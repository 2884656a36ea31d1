"""A server on the loopback that counts what was done: it outlives the processes that are killed while they call it.

    GET  …/read/NAME    a value; the same each time
    GET  …/flaky/NAME   503 the first time, then a value
    POST …/post/NAME    acts each time it is asked
    POST …/keyed/NAME   acts once for each Idempotency-Key, and gives the same answer again

NAME may have parts (`each/2`). What a call does it does whole, whether or not somebody still waits for the answer.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from zlib import crc32

STAGES = ("arrived", "acted", "answered")


class Counting:
    """What was asked (`asked`), and what was done (`acted`, and when: `moments`), by path. `at_stage` is told of each
    stage of each call.
    """

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.acted: Counter[str] = Counter()
        self.moments: dict[str, list[float]] = {}
        self.keys: dict[str, set[str]] = {}
        self.at_stage: Callable[[str, str], None] = lambda stage, path: None
        self._lock = threading.Lock()

    def take(self, method: str, path: str, key: str) -> tuple[int, dict[str, Any]]:
        """Do what a call asks for; the status and the answer."""
        kind, _, name = path.split("/", 2)[2].partition("/")
        with self._lock:
            self.asked[path] += 1
            known = self.keys.setdefault(path, set())
            if kind == "flaky" and self.asked[path] == 1:
                return 503, {"error": "not yet"}
            if method == "POST" and not (kind == "keyed" and key in known):
                self.acted[path] += 1
                self.moments.setdefault(path, []).append(time.time())
            known.add(key)
        return 200, {"value": crc32(name.encode()) % 97, "of": name}


class _Server(ThreadingHTTPServer):
    """Where the queue is full, Linux takes a request when it is sent again: seconds after its sender was killed."""

    request_queue_size = 128
    daemon_threads = True


@contextmanager
def counting() -> Iterator[tuple[Counting, str]]:
    """The counts, and the address of the server while it runs."""
    counts = Counting()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._serve("GET")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self._serve("POST")

        def _serve(self, method: str) -> None:
            counts.at_stage("arrived", self.path)
            status, answer = counts.take(method, self.path, self.headers.get("idempotency-key") or "")
            counts.at_stage("acted", self.path)
            try:
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # nobody waits for it any more
            counts.at_stage("answered", self.path)

        def log_message(self, *_: object) -> None:
            """Silence."""

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield counts, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
