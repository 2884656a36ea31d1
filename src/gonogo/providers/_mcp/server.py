"""One server, as a file names it: a program to start, or a URL. What a tool is called with goes by it alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from msgspec import Struct, field

from gonogo.gate.policy import Bounds, Policy, Target, Timers
from gonogo.providers._auth import Auth
from gonogo.providers._calling import origin_of

_PLACE_CHARACTERS_MAX = 100


class Server(Struct, frozen=True):
    """Either `command`, with all that it is started with, or `url`. `key` is the call's idempotency key.

    `from_data`: data had a hand in the URL, so private addresses need `allow_private`.
    """

    key: str
    bytes_max: int
    command: str | None = None
    args: tuple[str, ...] = ()
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    auth: Auth | None = None
    from_data: bool = True
    allow_private: bool = False


def place_of(server: Server) -> str:
    """Which server it is, for breakers and records: programs are told apart by their arguments, too."""
    if server.command is None:
        return origin_of(server.url)
    words = " ".join((server.command, *server.args))
    if len(words) > _PLACE_CHARACTERS_MAX:
        words = f"{words[:_PLACE_CHARACTERS_MAX]}… {hashlib.sha256(words.encode()).hexdigest()[:8]}"
    return f"stdio:{words}"


def policy_of(server: Server, timeout_s: float) -> Policy:
    """One attempt, so long, unless somebody says more."""
    place = place_of(server)
    return Policy(
        targets=(Target(place, endpoint=place),),
        bounds=Bounds(attempts_per_target=1, attempts_max=1, deadline_s=timeout_s),
        timers=Timers(attempt_s=timeout_s),
        breaker=None,
    )
