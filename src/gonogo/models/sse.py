"""Server-sent events out of bytes, as WHATWG's HTML says (9.2.6), with a limit on lines and events.

Bytes may be cut anywhere: the events are the same. Data stays bytes, so that whoever decodes it sees damage.
"""

from __future__ import annotations

import re

from msgspec import Struct

LINE_BYTES_MAX = 1024 * 1024
EVENT_BYTES_MAX = 4 * 1024 * 1024
_END_OF_LINE = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseEvent(Struct, frozen=True, gc=False):
    """One event: its name (empty for none given) and its data, lines joined by a line feed."""

    name: bytes
    data: bytes


class SseParser:
    """Feed it bytes, take events. After `overflow` is set it reads nothing more."""

    __slots__ = (
        "_after_cr",
        "_data",
        "_event_bytes_max",
        "_line_bytes_max",
        "_name",
        "_rest",
        "_size",
        "_started",
        "overflow",
    )

    def __init__(self, line_bytes_max: int = LINE_BYTES_MAX, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        self.overflow = ""
        self._line_bytes_max = line_bytes_max
        self._event_bytes_max = event_bytes_max
        self._rest = bytearray()
        self._started = False
        self._after_cr = False
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0

    @property
    def pending(self) -> bool:
        """Whether the bytes so far end within a line or an event."""
        return bool(self._rest or self._data or self._name)

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that these bytes complete."""
        if chunk.startswith(b"data: ") and self._is_one_event(chunk):
            return [SseEvent(b"", chunk[6:-2])]
        events: list[SseEvent] = []
        if self.overflow:
            return events
        for line in self._lines(chunk):
            if len(line) > self._line_bytes_max:
                self.overflow = f"a line is longer than {self._line_bytes_max:,} bytes"
            elif line:
                self._field(line)
            else:
                self._dispatch(events)
            if self.overflow:
                return events
        if len(self._rest) > self._line_bytes_max:
            self.overflow = f"a line is longer than {self._line_bytes_max:,} bytes"
        return events

    def _is_one_event(self, chunk: bytes) -> bool:
        """Whether the bytes are one whole event of one line, as servers mostly send them: then there is a short way."""
        return (
            chunk.find(b"\n") == len(chunk) - 2
            and chunk.endswith(b"\n\n")
            and b"\r" not in chunk
            and len(chunk) <= min(self._line_bytes_max, self._event_bytes_max)
            and self._started
            and not self.pending
            and not self._after_cr
            and not self.overflow
        )

    def _lines(self, chunk: bytes) -> list[bytes]:
        """The lines that are complete now; what is left waits. A CR ends a line at once, with the LF behind it."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        if not self._started:
            chunk = self._start(chunk)
        carriage_return = b"\r" in chunk
        if not carriage_return and b"\n" not in chunk:
            self._rest += chunk  # a long line in small pieces isn't searched from its start each time
            return []
        text = bytes(self._rest + chunk) if self._rest else chunk
        *lines, rest = _END_OF_LINE.split(text) if carriage_return else text.split(b"\n")
        self._rest = bytearray(rest)
        return lines

    def _start(self, chunk: bytes) -> bytes:
        """The bytes without a byte order mark; none, and they wait, while they may still be one."""
        start = bytes(self._rest + chunk)
        self._rest.clear()
        if len(start) < len(_BYTE_ORDER_MARK) and _BYTE_ORDER_MARK.startswith(start):
            self._rest += start
            return b""
        self._started = True
        return start.removeprefix(_BYTE_ORDER_MARK)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._size += len(value) + 1
            if self._size > self._event_bytes_max:
                self.overflow = f"an event is larger than {self._event_bytes_max:,} bytes"
            else:
                self._data.append(value)
        elif name == b"event":
            self._name = value
        # Comments (no name), `id` and `retry` mean nothing here: a model's answer isn't resumed by id.

    def _dispatch(self, events: list[SseEvent]) -> None:
        if self._data:
            events.append(SseEvent(self._name, b"\n".join(self._data)))
        self._name, self._data, self._size = b"", [], 0
