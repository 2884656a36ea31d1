"""What the gate of a call in flight has used up: the fold of its attempts (semantics.md 23). Facts only, no choices.

A resume goes on with it, so that a crash resets no bound, and knows by it whether a call may have done anything.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from gonogo.core.events import AttemptAsked, AttemptEnded, GateWaits

WRONG_MAX = 8
"""How many of the validator's messages are kept; two that are equal end a request."""


class Request(Struct):
    """One request of a call under way. `next`: the target that is asked next, or was last.

    `unclear`: a target that may have done what was to be done. `lost`: one whose attempt a crash cut short.
    `wait_until`: the end of a wait, on the run's clock; `waits_since` its beginning.
    """

    number: int = 0
    next: str = ""
    per_target: dict[str, int] = field(default_factory=dict)
    elapsed_s: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    money: float = 0.0
    out: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    unclear: str | None = None
    lost: str | None = None
    wait_until: float | None = None
    waits_since: float = 0.0

    @property
    def goes_on(self) -> bool:
        """True when another attempt is a further one. One after a crash isn't: as the call itself is then repeated,
        what the crash cut short is.
        """
        return self.number > 0 and self.lost is None


class Counted(Struct):
    """What attempts of a call and of runs beneath it were counted for: what the call's end tells includes it."""

    tokens: int = 0
    money: float = 0.0
    calls: int = 0


class Gated(Struct):
    """A call that has a gate.

    `requests` are those under way, by tool and number. `wishes` wait for leave, `flying` have it; both by ticket.
    `began`: an attempt of the call was made. `tried`: one that changes things; `acted`: nobody can say of each of these
    that it did nothing. `stopped`: the call was told to stop.
    """

    requests: dict[tuple[str, int], Request] = field(default_factory=dict)
    wishes: dict[int, AttemptAsked] = field(default_factory=dict)
    flying: dict[int, AttemptAsked] = field(default_factory=dict)
    counted: Counted = field(default_factory=Counted)
    began: bool = False
    tried: bool = False
    acted: bool = False
    stopped: bool = False

    def request(self, event: AttemptAsked | GateWaits) -> Request:
        """The request that an event is about, from its first attempt or wait on."""
        return self.requests.setdefault((event.tool, event.request), Request())

    def nothing_done(self) -> bool:
        """True when attempts that change things were made, and each is known to have done nothing (semantics.md 16)."""
        return self.tried and not self.acted


def key_of(event: Any) -> tuple[str, int]:
    """The request of an event: the tool it is for, and its number."""
    return event.tool, event.request


def start(gated: Gated, wish: AttemptAsked) -> bool:
    """An attempt goes out; True when it is a further one of its request."""
    gated.flying[wish.ticket] = wish
    if wish.beneath:
        return False
    request = gated.request(wish)
    further = request.goes_on
    request.number, request.next = wish.number, wish.target
    request.lost = request.wait_until = None
    request.per_target[wish.target] = request.per_target.get(wish.target, 0) + 1
    request.elapsed_s = wish.elapsed_s
    gated.began = True
    gated.tried = gated.tried or _changes(wish)
    return further


def end(gated: Gated, wish: AttemptAsked, event: AttemptEnded) -> None:
    """What came of an attempt, as far as the request goes on with it."""
    if _changes(wish) and event.effect != "none":
        gated.acted = True
    request = gated.requests.get(key_of(wish))
    if request is None or event.over:
        gated.requests.pop(key_of(wish), None)
        return
    request.elapsed_s, request.next = event.elapsed_s, event.next or wish.target
    request.input_tokens += event.input_tokens
    request.output_tokens += event.output_tokens
    request.money += event.money
    if event.out:
        request.out[wish.target] = event.out
    if event.wrong is not None:
        request.wrong = [*request.wrong, event.wrong][-WRONG_MAX:]
    if wish.effects == "mutates" and event.effect != "none":
        request.unclear = wish.target


def wait(gated: Gated, event: GateWaits) -> None:
    """A long wait begins."""
    request = gated.request(event)
    request.elapsed_s = event.elapsed_s
    request.waits_since = event.at
    request.wait_until = event.at + event.wait_s
    request.next = event.target


def lose(gated: Gated, at: float) -> None:
    """The host died: attempts under way count, and may have done anything; a wait goes on to its end (E43)."""
    for wish in gated.flying.values():
        if not wish.beneath:
            gated.acted = gated.acted or _changes(wish)
            request = gated.request(wish)
            request.lost = wish.target
            request.unclear = wish.target if wish.effects == "mutates" else request.unclear
    for request in gated.requests.values():
        if request.wait_until is not None:
            request.elapsed_s += max(0.0, min(at, request.wait_until) - request.waits_since)
    gated.flying.clear()
    gated.wishes.clear()
    gated.stopped = False


def _changes(wish: AttemptAsked) -> bool:
    """A tool's attempts prove nothing: what else was done within the call goes through no gate."""
    return wish.effects == "mutates" and not wish.tool
