"""A server that misbehaves as told, on raw sockets, for tests of whatever calls out.

A script has one list of steps for each connection; the last one is for all that follow. What arrives is kept.
Nothing here knows HTTP clients or gates. Waits are held until the test releases them, or tiny.
"""

from __future__ import annotations

import gzip
import select
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from types import TracebackType
from typing import Self

REQUEST_BYTES_MAX = 16 * 1024 * 1024
ENDLESS_BYTES_MAX = 256 * 1024 * 1024
"""Even an endless body ends, should nobody hang up: a test that waits for it fails instead of filling a disk."""


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came. Header names are lower case; of repeated ones the last is kept."""

    connection: int
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class Connection:
    """One accepted connection, for the steps of its script."""

    number: int
    socket: socket.socket
    server: FaultyServer
    open: bool = True

    def send(self, data: bytes) -> bool:
        """All of it; False when the client is gone or the server stops."""
        view = memoryview(data)
        while view and self.open:
            readable, writable, _ = select.select([self.server.wake], [self.socket], [])
            if readable or not writable:
                return False
            try:
                view = view[self.socket.send(view) :]
            except OSError:
                self.gone()
        return self.open

    def receive(self) -> bytes:
        """Some bytes; none when the client is gone or the server stops."""
        readable, _, _ = select.select([self.server.wake, self.socket], [], [])
        if self.server.wake in readable:
            return b""
        try:
            return self.socket.recv(65536)
        except OSError:
            return b""

    def gone(self) -> None:
        """The client hung up."""
        self.open = False
        self.server.hung_up.append(self.number)

    def reset(self) -> None:
        """End with RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
        self.open = False

    def finish(self) -> None:
        """End with FIN, and read what still comes, so that unread bytes make no RST of it."""
        if self.open:
            try:
                self.socket.shutdown(socket.SHUT_WR)
                while self.receive():
                    pass
            except OSError:
                pass  # it is closed, which is what was wanted
        self.socket.close()
        self.open = False


Step = Callable[[Connection], None]
Script = tuple[Step, ...]


class FaultyServer:
    """Listens on a free port of the loopback until it is closed. `requests` and `hung_up` grow as things happen."""

    def __init__(self, *scripts: Script, wait_s: float = 10.0) -> None:
        self.requests: list[Received] = []
        self.hung_up: list[int] = []
        """Numbers of connections that the client ended before their script did."""
        self.connections = 0
        self._scripts = scripts or (answer(),)
        self._wait_s = wait_s
        self._permits = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self.wake, self._waker = socket.socketpair()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def release(self, pieces: int = 1) -> None:
        """Let so many `hold` steps go on."""
        self._permits.release(pieces)

    def hold(self) -> bool:
        """Wait for a release; False when the server stops, or nobody released it in time."""
        return self._permits.acquire(timeout=self._wait_s) and not self._stopping.is_set()

    def pause(self, seconds: float) -> None:
        """A tiny wait that ends with the server."""
        self._stopping.wait(seconds)

    def until_hung_up(self, connections: int = 1) -> bool:
        """Whether so many clients hung up within the server's patience (the tests' only wait for the far end)."""
        for _ in range(int(self._wait_s / 0.005)):
            if len(self.hung_up) >= connections:
                return True
            self.pause(0.005)
        return False

    def close(self) -> None:
        """Stop, hang up on everybody, and leave no thread behind."""
        self._stopping.set()
        self._waker.close()
        self._permits.release(1000)
        for thread in self._threads:
            thread.join(self._wait_s)
            assert not thread.is_alive(), "a connection of the server didn't end"
        self._listener.close()
        self.wake.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="faulty server")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            readable, _, _ = select.select([self.wake, self._listener], [], [])
            if self.wake in readable:
                return
            accepted, _ = self._listener.accept()
            connection = Connection(self.connections, accepted, self)
            self.connections += 1
            self._start(lambda connection=connection: self._serve(connection))  # type: ignore[misc]

    def _serve(self, connection: Connection) -> None:
        script = self._scripts[min(connection.number, len(self._scripts) - 1)]
        for step in script:
            step(connection)
            if not connection.open or self._stopping.is_set():
                break
        connection.finish()


# Steps.


def take_request(connection: Connection) -> None:
    """Read one request and keep it; a client that hangs up before ends the script."""
    data = b""
    while b"\r\n\r\n" not in data and len(data) < REQUEST_BYTES_MAX:
        more = connection.receive()
        if not more:
            return connection.gone()
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < min(int(headers.get("content-length", "0")), REQUEST_BYTES_MAX):
        more = connection.receive()
        if not more:
            return connection.gone()
        body += more
    method, target, *_ = [*first.split(" "), "", ""]
    connection.server.requests.append(Received(connection.number, method, target, headers, body))
    return None


def send(data: bytes) -> Step:
    """Send bytes as they are."""
    return lambda connection: void(connection.send(data))


def drip(data: bytes, size: int = 1, pause_s: float = 0.001) -> Step:
    """Send so many bytes at a time, with tiny waits between."""

    def step(connection: Connection) -> None:
        for start in range(0, len(data), size):
            if not connection.send(data[start : start + size]):
                return
            connection.server.pause(pause_s)

    return step


def hold(connection: Connection) -> None:
    """Wait until the test releases it: a wait without a clock."""
    if not connection.server.hold():
        connection.open = False


def stall(connection: Connection) -> None:
    """Say nothing until the client hangs up or the server is closed."""
    while connection.receive():
        pass
    if not connection.server._stopping.is_set():
        connection.gone()


def reset(connection: Connection) -> None:
    """RST."""
    connection.reset()


def endless(piece: bytes) -> Step:
    """The same bytes until the client hangs up."""

    def step(connection: Connection) -> None:
        for _ in range(ENDLESS_BYTES_MAX // len(piece)):
            if not connection.send(piece):
                return

    return step


def void(_: object) -> None:
    """Steps return nothing."""


# Scripts: what a connection does from its request on.


def head(status: int = 200, headers: Mapping[str, str] | None = None) -> bytes:
    """Status line and headers; nothing is added but the wish to close."""
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1")


def answer(status: int = 200, body: bytes = b"{}", headers: Mapping[str, str] | None = None) -> Script:
    """A whole answer with its length."""
    sized = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    return (take_request, send(head(status, sized) + body))


def chunked(pieces: Iterable[bytes]) -> list[bytes]:
    """Pieces of a chunked body, without the last chunk."""
    return [f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces]


LAST_CHUNK = b"0\r\n\r\n"
STREAM = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}


def stream(pieces: Iterable[bytes], *end: Step, headers: Mapping[str, str] | None = None) -> Script:
    """An event stream of chunks, then what its end is: by default a proper one."""
    steps = [send(piece) for piece in chunked(pieces)]
    return (
        take_request,
        send(head(200, {**STREAM, **(headers or {})})),
        *steps,
        *(end or (send(LAST_CHUNK),)),
    )


def held_stream(pieces: Iterable[bytes], *end: Step) -> Script:
    """An event stream whose every piece waits for the test's release."""
    steps = [step for piece in chunked(pieces) for step in (hold, send(piece))]
    return (take_request, send(head(200, STREAM)), *steps, *(end or (send(LAST_CHUNK),)))


RESET_AT_ONCE: Script = (reset,)
RESET_BEFORE_HEADERS: Script = (take_request, reset)
RESET_AMID_HEADERS: Script = (take_request, send(b"HTTP/1.1 200 OK\r\ncontent-le"), reset)
RESET_MID_BODY: Script = (take_request, send(head(200, {"content-length": "1000"}) + b"half"), reset)
CLOSE_BEFORE_HEADERS: Script = (take_request,)
STALL_AT_ACCEPT: Script = (stall,)
STALL_BEFORE_HEADERS: Script = (take_request, stall)
STALL_AFTER_HEADERS: Script = (take_request, send(head(200, STREAM)), stall)
STALL_MID_BODY: Script = (take_request, send(head(200, {"content-length": "1000"}) + b"half"), stall)
TRUNCATED: Script = (take_request, send(head(200, {"content-length": "1000"}) + b'{"half": '))
TRUNCATED_CHUNKED: Script = (take_request, send(head(200, STREAM) + b'a\r\n{"half": "\r\n'))
TRUNCATED_IN_A_CHUNK: Script = (take_request, send(head(200, STREAM) + b"ff\r\nhalf"))
GARBAGE: Script = (take_request, send(b"\x00\xff\x16\x03\x01 this is no HTTP\r\n\r\n"))
GARBAGE_CHUNK_SIZE: Script = (take_request, send(head(200, STREAM) + b"zz\r\nhalf\r\n"))
LENGTH_NO_NUMBER: Script = (take_request, send(head(200, {"content-length": "many"}) + b"{}"))
LENGTH_TOO_SMALL: Script = (take_request, send(head(200, {"content-length": "1"}) + b"{} and more"))
TWO_LENGTHS: Script = (
    take_request,
    send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}x"),
)
ENDLESS_HEADERS: Script = (
    take_request,
    send(b"HTTP/1.1 200 OK\r\n"),
    endless(b"x-more: " + b"y" * 8000 + b"\r\n"),
)
ENDLESS_HEADER_LINE: Script = (take_request, send(b"HTTP/1.1 200 OK\r\nx-more: "), endless(b"y" * 65536))
ENDLESS_BODY: Script = (take_request, send(head(200)), endless(b"x" * 65536))
ENDLESS_CHUNKS: Script = (take_request, send(head(200, STREAM)), endless(chunked([b"x" * 65536])[0]))
ENDLESS_EVENTS: Script = (take_request, send(head(200, STREAM)), endless(chunked([b": ping\n\n" * 4096])[0]))
INVALID_UTF_8: Script = answer(200, b'{"text": "\xff\xfe"}')


def dripped(body: bytes, pause_s: float = 0.001) -> Script:
    """A whole answer, byte by byte."""
    return (take_request, drip(head(200, {"content-length": str(len(body))}) + body, 1, pause_s))


def redirect(location: str, status: int = 302) -> Script:
    """To anywhere: itself, another origin, a private address, no URL at all."""
    return answer(status, b"", {"location": location})


PRIVATE_LOCATIONS = (
    "http://169.254.169.254/latest/meta-data/",
    "http://127.0.0.1:1/",
    "http://localhost:1/",
    "http://[::1]:1/",
    "http://10.0.0.1/",
    "http://192.168.0.1/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://[::ffff:127.0.0.1]/",
    "file:///etc/hostname",
    "gopher://127.0.0.1/",
)
"""Where a redirect may not lead (SEC-3)."""


def gzip_bomb(unpacked_bytes: int = 256 * 1024 * 1024) -> Script:
    """A small answer that unpacks to so many zeros."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    megabyte = bytes(1024 * 1024)
    packed = (
        b"".join(packer.compress(megabyte) for _ in range(unpacked_bytes // len(megabyte))) + packer.flush()
    )
    return answer(200, packed, {"content-encoding": "gzip"})


def gzip_cut_off(body: bytes = b"{}" * 1000) -> Script:
    """A packed answer that ends in the middle, although its length is right."""
    return answer(200, gzip.compress(body, mtime=0)[:-12], {"content-encoding": "gzip"})


def throttled(form: str, seconds: int = 2, now_s: float = 0.0, status: int = 429) -> Script:
    """429 with one form of Retry-After (a key of `RETRY_AFTER_FORMS`), so many seconds ahead of `now_s`."""
    error = b'{"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}}'
    return answer(status, error, RETRY_AFTER_FORMS[form](seconds, now_s))


RETRY_AFTER_FORMS: Mapping[str, Callable[[int, float], dict[str, str]]] = {
    "none": lambda seconds, now_s: {},
    "seconds": lambda seconds, now_s: {"retry-after": str(seconds)},
    "date": lambda seconds, now_s: {"retry-after": formatdate(now_s + seconds, usegmt=True)},
    "date of a wrong clock": lambda seconds, now_s: {
        "date": formatdate(now_s - 7200, usegmt=True),
        "retry-after": formatdate(now_s - 7200 + seconds, usegmt=True),
    },
    "milliseconds": lambda seconds, now_s: {"retry-after-ms": str(seconds * 1000)},
    "requests reset": lambda seconds, now_s: {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": f"{seconds}s",
    },
    "tokens reset": lambda seconds, now_s: {
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": f"{seconds * 1000}ms",
    },
    "reset at": lambda seconds, now_s: {
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": str(int(now_s) + seconds),
    },
    "garbage": lambda seconds, now_s: {"retry-after": "banana"},
    "negative": lambda seconds, now_s: {"retry-after": "-5"},
    "absurd": lambda seconds, now_s: {"retry-after": "86400000"},
    "a day": lambda seconds, now_s: {"retry-after": "86400"},
}


def storm(failures: int, then: Script | None = None, status: int = 503) -> tuple[Script, ...]:
    """So many refusals in a row, then an answer."""
    refusal = answer(status, b'{"error": {"message": "overloaded"}}')
    return (*([refusal] * failures), then or answer())


@dataclass(slots=True)
class HangingAccept:
    """A port where no connection is ever made: its queue is full, so a client waits for the handshake."""

    port: int = field(init=False)
    _sockets: list[socket.socket] = field(init=False, default_factory=list)

    def __enter__(self) -> Self:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        self.port = listener.getsockname()[1]
        self._sockets.append(listener)
        for _ in range(4):  # the queue of length 0 takes one or two
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", self.port))
            self._sockets.append(filler)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for one in self._sockets:
            one.close()
