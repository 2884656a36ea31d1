"""A wire between a client and a server on the loopback that can be cut at an exact moment."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Wire:
    """Hands on what either side says. `swallow_answer`: what the server says next is lost, with the connection.
    `go_silent`: nothing is handed on to anybody any more, though all connections stay. `cut`: all connections end, and
    new ones do at once, until `mend`; `silently`, they stay and nobody hears anything. `delay_s`: how long everything
    takes on its way, in either direction.
    """

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._swallow = threading.Event()
        self._silent = threading.Event()
        self._sockets: list[socket.socket] = []
        self._is_cut = False
        self._is_silent = False
        self.delay_s = 0.0
        threading.Thread(target=self._accept, daemon=True).start()

    def through(self, url: str) -> str:
        """The URL by way of this wire."""
        return url.replace(f":{self._server_port}/", f":{self.port}/")

    def swallow_answer(self) -> None:
        """Once."""
        self._swallow.set()

    def go_silent(self) -> None:
        """For connections that there are; new ones are well."""
        self._silent.set()
        self._silent = threading.Event()

    def cut(self, *, silently: bool = False) -> None:
        """The server is well, and nobody reaches it."""
        self._is_cut, self._is_silent = True, silently
        if silently:
            self.go_silent()
        else:
            self._end_all()

    def mend(self) -> None:
        """Who connects now gets through."""
        self._is_cut = False
        if self._is_silent:
            self._is_silent = False
            self._end_all()

    def close(self) -> None:
        """Cut everything."""
        self._end(self._listener, *self._sockets)

    def _end_all(self) -> None:
        self._end(*self._sockets)
        self._sockets.clear()

    def _end(self, *sockets: socket.socket) -> None:
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                client, _ = self._listener.accept()
                if self._is_silent:
                    self._sockets.append(client)
                    continue
                if self._is_cut:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._server_port))
                self._sockets += [client, server]
                for source, target, answers in ((client, server, False), (server, client, True)):
                    threading.Thread(
                        target=self._hand_on, args=(source, target, answers, self._silent), daemon=True
                    ).start()

    def _hand_on(
        self, source: socket.socket, target: socket.socket, answers: bool, silent: threading.Event
    ) -> None:
        with suppress(OSError):  # either side is gone
            while data := source.recv(65536):
                if answers and self._swallow.is_set():
                    self._swallow.clear()
                    break
                if self.delay_s:
                    threading.Event().wait(self.delay_s)
                if not silent.is_set():
                    target.sendall(data)
        if silent.is_set():
            return  # nobody hears of its end either
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def wire_to(port: int) -> Iterator[Wire]:
    """A wire that is gone afterwards."""
    wire = Wire(port)
    try:
        yield wire
    finally:
        wire.close()
