"""One record, one line: compact strict JSON with a checksum as its last member, ended by a newline.

    {"seq":7,"at":1764000000.25,"event":{"type":"call_done",…},"decisions":[…],"crc":"1f0c33aa"}

The checksum is the CRC-32 of the line without it; it tells a flipped byte or a lost tail from a record, not
an attack.
Unknown members are skipped, so a newer version may add some; a newer format is refused before anything else
is read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar
from zlib import crc32

import msgspec
from msgspec import Struct

from gonogo.journal.records import FORMAT_VERSION, Record

__all__ = [
    "LineDamaged",
    "NewerFormat",
    "check_first",
    "check_format",
    "decode_line",
    "decode_with",
    "encode_line",
    "unsealed",
]

T = TypeVar("T")

_SEAL = b',"crc":"'
_SEAL_LENGTH = len(_SEAL) + len('01234567"}')
_encode = msgspec.json.Encoder().encode


class LineDamaged(ValueError):  # noqa: N818 - the name says what is wrong
    """A line that isn't what was written; the text says in what way."""


class NewerFormat(ValueError):  # noqa: N818 - the name says what is wrong
    """A whole line that this version can't understand."""


class _HeadEvent(Struct):
    type: str = ""
    format_version: int = 1
    core_version: str = ""


class _Head(Struct):
    event: _HeadEvent


_decode_head = msgspec.json.Decoder(_Head).decode


@lru_cache(maxsize=1)
def _decoder() -> Callable[[bytes], Record]:
    """Made when it is first used: who only writes journals needs none, and it takes milliseconds."""
    return msgspec.json.Decoder(Record).decode


def encode_line(record: Record) -> bytes:
    """The line of a record, newline included.

    Raises:
        UnicodeEncodeError, TypeError: the event wasn't normalised (`normalise.normalise_event`).
    """
    body = _encode(record)[:-1]
    return b'%s,"crc":"%08x"}\n' % (body, crc32(body))


def decode_line(line: bytes) -> Record:
    """The record of a line, with or without its newline.

    Raises:
        LineDamaged: the line is cut or changed.
        NewerFormat: the line is whole, but says what this version has no words for.
    """
    return decode_with(_decoder(), line)


def decode_with(decode: Callable[[bytes], T], line: bytes) -> T:
    """What `decode` makes of a line's JSON. Raises as `decode_line`."""
    body = unsealed(line.removesuffix(b"\n"))
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        raise NewerFormat(str(error)) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise LineDamaged(str(error)) from error


def check_first(line: bytes) -> None:
    """Look at a journal's first line before any other.

    Raises:
        LineDamaged: as `decode_line`, or it isn't the start of a run.
        NewerFormat: its format is newer than this version's.
    """
    if check_format(line) != "run_started":
        raise LineDamaged("the start of the run is missing")


def check_format(first_line: bytes) -> str:
    """The kind of a first line's event, if this version can read what follows. Raises LineDamaged, NewerFormat."""
    try:
        event = _decode_head(unsealed(first_line.removesuffix(b"\n"))).event
    except msgspec.DecodeError as error:
        raise LineDamaged(str(error)) from error
    if event.format_version > FORMAT_VERSION:
        by = f" by gonogo {event.core_version}" if event.core_version else ""
        raise NewerFormat(f"format {event.format_version}{by}; this version reads up to {FORMAT_VERSION}")
    return event.type


def unsealed(line: bytes) -> bytes:
    """The JSON that was sealed: one brace less on the way in, one more on the way out."""
    body, seal = line[:-_SEAL_LENGTH], line[-_SEAL_LENGTH:]
    if not seal.startswith(_SEAL):
        raise LineDamaged("its end is missing" if b'"crc"' not in line else "its checksum is not at its end")
    if seal != b'%s%08x"}' % (_SEAL, crc32(body)):
        raise LineDamaged("its checksum doesn't match")
    return body + b"}"
