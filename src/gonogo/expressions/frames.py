"""What client and child say to each other, as text: commands out, results back, and the JSON of values.

A frame is four bytes of length (little endian) and UTF-8 parts separated by NUL. Out: the seconds the frame
may take, then commands with their arguments: `p` slot json (a value), `e` slot json (an event), `d` slots
(forget values), `x` numbers (forget functions), `c` number parameters source body (compile), `r` number kind
limit spec (run). Back: "" or `retire`, then one part for each `c` and `r`. Processes and time are left to
`process.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return list(value)
    raise TypeError(f"expected JSON data, got {type(value).__name__}")


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)
_DECODER = msgspec.json.Decoder()


def encode_value(value: Any) -> str:
    """JSON text of a value; half surrogate pairs and integers over 64 bits take a slower way. NaN becomes null."""
    try:
        return _ENCODER.encode(value).decode()
    except (UnicodeEncodeError, OverflowError, msgspec.ValidationError):
        import json

        return json.dumps(value, default=_plain)


def decode_value(text: str) -> Any:
    """The value of JSON text the engine made; raises ValueError when it is none."""
    try:
        return _DECODER.decode(text)
    except msgspec.DecodeError:
        import json

        return json.loads(text)


def pack(parts: Sequence[str]) -> bytes:
    """Parts as one frame."""
    data = "\0".join(parts).encode()
    return len(data).to_bytes(4, "little") + data


def unpack(data: bytearray) -> list[str] | None:
    """The parts of a complete frame, None while some of it is missing; raises ValueError for bytes that are none."""
    if len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "little"):
        return None
    return data[4:].decode().split("\0")
