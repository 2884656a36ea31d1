"""What simulated calls come to: faults, waits and outputs, by a hash of who calls and for which time.

The same call gets the same reply whenever it is made and whatever else goes on, so orders of events can be compared.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from gonogo.core.commands import StartCall
from gonogo.core.events import CallDone, CallFailed, CallParked
from gonogo.core.faults import Effect, Fault, FaultClass, Issue
from gonogo.provider import MemoryOp

Event = CallDone | CallFailed | CallParked


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How often, in hundredths, a step's calls go wrong in each way. `items`: outputs are lists of at most so many.

    `unknown`: the call fails and nobody knows what it did. `half_done`: it fails after it has acted. `parks`: it waits
    for a person. `child`: it waits for a run of its own. `strange`: it gives nothing, null, text or one item.
    `remembers`: it changes the run's memory. `broken_scope`: a scope in which every call fails for good. `tokens`: what
    a call says it used. `attempts`: it goes through a gate, and some attempts fail before one comes through.
    """

    transient: int = 0
    logical: int = 0
    bug: int = 0
    unknown: int = 0
    half_done: int = 0
    parks: int = 0
    child: bool = False
    items: int | None = None
    strange: int = 0
    remembers: bool = False
    broken_scope: str | None = None
    tokens: int = 0
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What comes back, after how long, and whether the outside world was changed."""

    event: Event
    acted: bool
    duration_s: float


def digest(*parts: object) -> int:
    """A number from the parts alone: the same in every process."""
    text = "/".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def reply_to(seed: int, behaviour: Behaviour, command: StartCall, *, child_ended: bool) -> Reply:
    """The reply to one call; `child_ended` when the run it waits for has come to its end."""
    number = digest(seed, command.step, command.scope, command.execution, command.attempt)
    chance, number = number % 100, number // 100
    duration_s = (1 + number % 7) * 0.25
    event, acted = _event(behaviour, command, chance, number, child_ended=child_ended)
    return Reply(event, acted, duration_s)


def _event(
    behaviour: Behaviour, command: StartCall, chance: int, number: int, *, child_ended: bool
) -> tuple[Event, bool]:
    call = command.call
    if behaviour.broken_scope == command.scope:
        return failed(call, "logical", "none"), False
    if behaviour.child and not child_ended:
        return CallParked(call=call, prompt="child", details={"child": command.intent}), False
    for kind, below in _thresholds(behaviour):
        if chance < below:
            return _fault_or_wait(kind, call, number)
    return _done(behaviour, call, number), True


def _thresholds(behaviour: Behaviour) -> list[tuple[str, int]]:
    found, total = [], 0
    for kind in ("transient", "logical", "bug", "unknown", "half_done", "parks"):
        total += getattr(behaviour, kind)
        found.append((kind, total))
    return found


def _fault_or_wait(kind: str, call: int, number: int) -> tuple[Event, bool]:
    if kind == "unknown":
        return failed(call, "transient", "unknown"), number % 2 == 0
    if kind == "half_done":
        return failed(call, "transient", "done"), True
    if kind == "parks":
        return _parked(call, number), False
    return failed(call, kind, "none"), False  # type: ignore[arg-type]


def failed(call: int, fault_class: FaultClass, effect: Effect) -> CallFailed:
    """A failed call."""
    fault = Fault(
        f"simulated.{fault_class}", fault_class, f"simulated/{fault_class}", f"a {fault_class} fault"
    )
    return CallFailed(call=call, fault=fault, effect=effect)


def _parked(call: int, number: int) -> CallParked:
    timeout_s = (None, None, 1.0, 5.0)[number % 4]
    default = "yes" if number % 8 == 2 else None
    return CallParked(call=call, prompt="go on?", timeout_s=timeout_s, default=default)


def _done(behaviour: Behaviour, call: int, number: int) -> CallDone:
    memory = (MemoryOp("append", "calls", number % 10),) if behaviour.remembers else ()
    issues = (Issue("hint", "worth a look", "warning"),) if number % 11 == 0 else ()
    meta = {"usage": {"tokens": behaviour.tokens, "cost": behaviour.tokens / 32}} if behaviour.tokens else {}
    return CallDone(call=call, output=_output(behaviour, number), memory=memory, issues=issues, meta=meta)


def _output(behaviour: Behaviour, number: int) -> Any:
    if number % 100 < behaviour.strange:
        return (UNSET, None, "text", "[1, 2]", {"a": 1}, 7)[number % 6]
    if behaviour.items is None:
        return number % 10
    return [(number >> shift) % 10 for shift in range(number % (behaviour.items + 1))]
