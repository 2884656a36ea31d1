"""A record with only what counts and reasons are made from: when it was, and some of its decisions.

Plans, outputs and the rest are passed over without being built, so that a second look at a long journal costs a
fraction of the first, and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Union, get_args

import msgspec
from msgspec import Struct

from gonogo.core import decisions as d
from gonogo.core.events import AnyEvent, AttemptEnded, CallFailed
from gonogo.journal.codec import decode_with
from gonogo.journal.records import AnyDecision, Record

__all__ = ["Glimpse", "fault_glimpse_decoder", "glimpse_decoder", "glimpses_of"]

_KEPT = (
    d.Started, d.Ended, d.Superseded, d.Skipped, d.Retrying, d.Refused, d.Judged, d.Held, d.Doubted, d.FaultEvent,
    d.Undone, d.AttemptStarted, d.AttemptRefused, d.Given,
)  # fmt: skip
_SEQ = b'{"seq":'
_CALL_FAILED = str(CallFailed.__struct_config__.tag)


class Moment(Struct, frozen=True):
    """Of an event its time on the run's clock and its kind; of an attempt's end which one it was and how it failed; of
    what has them who performs (`by`) or decides (`host`).
    """

    at: float = 0.0
    type: str = ""
    call: int = 0
    ticket: int = 0
    kind: str = ""
    by: str = ""
    host: str = ""

    @property
    def failed(self) -> bool:
        """True for a call that failed."""
        return self.type == _CALL_FAILED


class Glimpse(Struct, frozen=True):
    """A record. Of its decisions those in `_KEPT` are themselves; what stands for others has no meaning."""

    seq: int
    event: Moment
    decisions: tuple[Any, ...] = ()


def glimpses_of(records: Iterable[Record]) -> Iterator[Glimpse]:
    """Glimpses of whole records."""
    for record in records:
        event = record.event
        yield Glimpse(record.seq, _moment(event), record.decisions)


def _moment(event: AnyEvent) -> Moment:
    tag = str(event.__struct_config__.tag)
    if isinstance(event, AttemptEnded):
        return Moment(event.at, tag, event.call, event.ticket, event.kind)
    by, host = getattr(event, "by", ""), getattr(event, "host", "")
    return Moment(event.at, tag, by=by, host=host)


def glimpse_decoder() -> Callable[[bytes], Glimpse]:
    """Makes glimpses of lines. It raises as `codec.decode_line`."""
    kinds = tuple(kind if kind in _KEPT else _passed_over(kind) for kind in get_args(AnyDecision))
    decisions: Any = tuple[Union[kinds], ...]  # type: ignore[valid-type]  # noqa: UP007 - known when it runs
    line: Any = msgspec.defstruct("Line", [("decisions", decisions, ())], bases=(Glimpse,), frozen=True)
    decode: Callable[[bytes], Glimpse] = msgspec.json.Decoder(line).decode
    return lambda text: decode_with(decode, text)


def fault_glimpse_decoder() -> Callable[[bytes], Glimpse]:
    """As `glimpse_decoder`, but of lines that tell nothing of faults only their number is looked at. For a journal that
    was read before: such lines aren't checked again.
    """
    decode, empty = glimpse_decoder(), Moment()
    marks = [f'"type":"{kind.__struct_config__.tag}"'.encode() for kind in (d.FaultEvent, d.Undone)]

    def skim(line: bytes) -> Glimpse:
        if any(mark in line for mark in marks) or not line.startswith(_SEQ):
            return decode(line)
        return Glimpse(int(line[len(_SEQ) : line.index(b",")]), empty)

    return skim


def _passed_over(kind: type[Struct]) -> type[Struct]:
    """A struct of the same tag and no fields: the decoder skips what the line has for them."""
    return msgspec.defstruct(kind.__name__, [], tag=kind.__struct_config__.tag, tag_field="type", frozen=True)
