"""A pooler that gives each transaction of a client to whichever session with Postgres is free, as PgBouncer does with
`pool_mode = transaction`.
"""

from __future__ import annotations

import os
import queue
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

_TOLD = ("server_version", "client_encoding", "server_encoding", "standard_conforming_strings", "DateStyle",
         "integer_datetimes", "TimeZone")  # fmt: skip
_WANTS_ENCRYPTION = (80877103, 80877104)
_ASKS = b"QS"


class Pooler:
    """Anybody may connect, to the one database. `last_first`: the session that was used last is used next."""

    def __init__(self, url: str, sessions: int, *, last_first: bool) -> None:
        self._connections = [psycopg.connect(url, autocommit=True) for _ in range(sessions)]
        statuses = self._connections[0].info.parameter_status
        self._greeting = b"".join(_message(b"S", f"{name}\0{statuses(name)}\0".encode()) for name in _TOLD)
        self._free: queue.Queue[socket.socket] = queue.LifoQueue() if last_first else queue.Queue()
        self._sockets = [socket.socket(fileno=os.dup(each.fileno())) for each in self._connections]
        for session in self._sockets:
            session.setblocking(True)
            self._free.put(session)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://anybody@127.0.0.1:{self._listener.getsockname()[1]}/any?sslmode=disable"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """End all sessions, and take no more clients."""
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for connection in self._connections:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            self._greet(client)
            while (asked := _read(client))[0] != b"X":
                session = self._free.get()
                try:
                    _transaction(client, session, asked)
                finally:
                    self._free.put(session)

    def _greet(self, client: socket.socket) -> None:
        while _started(client) in _WANTS_ENCRYPTION:
            client.sendall(b"N")
        ready = _message(b"K", struct.pack("!II", 1, 1)) + _message(b"Z", b"I")
        client.sendall(_message(b"R", struct.pack("!I", 0)) + self._greeting + ready)


def _transaction(client: socket.socket, session: socket.socket, asked: tuple[bytes, bytes]) -> None:
    while True:
        session.sendall(_message(*asked))
        if asked[0] in _ASKS and _answered(client, session) == b"I":
            return
        asked = _read(client)
        if asked[0] == b"X":
            session.sendall(_message(b"Q", b"rollback\0"))
            while _read(session)[0] != b"Z":
                pass
            raise ConnectionError


def _answered(client: socket.socket, session: socket.socket) -> bytes:
    """How the session stands once it has said all."""
    while True:
        kind, body = _read(session)
        client.sendall(_message(kind, body))
        if kind == b"Z":
            return body


def _started(client: socket.socket) -> int:
    length, code = struct.unpack("!II", _exactly(client, 8))
    _exactly(client, length - 8)
    return int(code)


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _read(stream: socket.socket) -> tuple[bytes, bytes]:
    kind = _exactly(stream, 1)
    (length,) = struct.unpack("!I", _exactly(stream, 4))
    return kind, _exactly(stream, length - 4)


def _exactly(stream: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        some = stream.recv(count - len(found))
        if not some:
            raise ConnectionError
        found += some
    return found


@contextmanager
def pooler_to(url: str, sessions: int = 3, *, last_first: bool) -> Iterator[Pooler]:
    """One that is gone afterwards."""
    made = Pooler(url, sessions, last_first=last_first)
    try:
        yield made
    finally:
        made.close()
