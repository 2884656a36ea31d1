"""What the rows of calls on offer and of their answers say. What can't be read, for its row was changed, ends its call:
whoever waits for it would wait for ever.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Struct

from gonogo.core.commands import StartCall
from gonogo.core.events import AnyEvent, CallFailed, CallLost
from gonogo.core.faults import Fault
from gonogo.journal.pool import Claim, Ticket
from gonogo.journal.postgres.address import Address

__all__ = ["claim_in", "event_in", "token_of"]

T = TypeVar("T")

log = logging.getLogger("gonogo.worker")

_BY = b"by:"
_NEWER = "its ticket says what this version has no words for"


class _Least(Struct):
    """What a ticket of any version says."""

    call: int


_command: Callable[[bytes], StartCall] = msgspec.json.Decoder(StartCall).decode
_least: Callable[[bytes], _Least] = msgspec.json.Decoder(_Least).decode
_event: Callable[[bytes], AnyEvent] = msgspec.json.Decoder(AnyEvent).decode


def claim_in(
    row: tuple[int, int, bytes, str, int, bool, bytes | None], run_id: str, token: bytes, place: Address
) -> Claim | CallFailed:
    """The claim that was made with a token: of call, record, command, label, claims before, stop, and the token before.
    What becomes of the call where its command can't be read.
    """
    call, seq, data, label, before, stop, had = row
    command = _read(_command, data, f"call {call} of run {run_id} in {place}")
    if command is not None:
        return Claim(Ticket(run_id, command, seq, label), before, stop, had=_claimed_by(had, token))
    if _names(data, call):
        return Claim(Ticket(run_id, _unknown(call), seq, label), before, stop, _NEWER)
    return _unreadable(call, before)


def event_in(data: bytes, call: int, what: str) -> AnyEvent:
    """An answer to a call; one that can't be read tells that the call is lost. `what` is how the log names it."""
    return _read(_event, data, what) or CallLost(call=call)


def token_of(worker: str) -> bytes:
    """Of one claim alone. It keeps who made it when the call is free again."""
    return _BY + worker.encode() + b"\0" + secrets.token_bytes(12)


def _claimed_by(token: bytes | None, own: bytes) -> str:
    """Who made the claim before; empty where that was this one, sent twice, or where it isn't known."""
    if token is None or token == own or not token.startswith(_BY):
        return ""
    return token[len(_BY) :].partition(b"\0")[0].decode(errors="replace")


def _read(decode: Callable[[bytes], T], data: bytes, what: str) -> T | None:
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        log.error("%s can't be read: %s", what, error)
        return None


def _names(data: bytes, call: int) -> bool:
    """Whether a command that can't be read is whole and this call's all the same, as a newer gonogo would write it."""
    try:
        return _least(data).call == call
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _unknown(call: int) -> StartCall:
    """The least that any call is."""
    return StartCall(call, "", "", 0, 0, "", "mutates")


def _unreadable(call: int, before: int) -> CallFailed:
    """What becomes of a call that nobody can perform; who claimed it before may have."""
    fault = Fault("call.unreadable", "bug", "unreadable", f"the ticket of call {call} can't be read")
    return CallFailed(call=call, fault=fault, effect="unknown" if before else "none")
