"""Calls under keys that the author gives: none is made twice, not even at the same time (semantics.md 17, spec G12).

What a key has been answered with is in the run's state. A call whose key another one is under way with waits for that
one; if it fails, the waiting one is made.
"""

from __future__ import annotations

import asyncio

from gonogo.core.events import AnyEvent, CallDone
from gonogo.core.state import State

Place = tuple[str, str]
"""A step, and the digest of a key."""


class Keys:
    """The keys of one run."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._under_way: dict[Place, asyncio.Future[CallDone | None]] = {}
        # Answers whose event is still to come to the state: until then another call must not take the key for unused.
        self._landed: dict[Place, CallDone] = {}

    def stored(self, place: Place) -> CallDone | None:
        """What a call under this key gave."""
        kept = self._state.answers.get(place)
        return kept.event if kept is not None else self._landed.get(place)

    async def claim(self, place: Place) -> CallDone | None:
        """What a call under this key gave, waited for where one is under way; None: make the call, the key is yours."""
        while True:
            answer = self.stored(place)
            other = self._under_way.get(place)
            if answer is None and other is not None:
                # Shielded: that a waiting call is stopped is no concern of the others.
                answer = await asyncio.shield(other)
            elif answer is None:
                self._under_way[place] = asyncio.get_running_loop().create_future()
                return None
            if answer is not None:
                return answer

    def release(self, place: Place, event: AnyEvent) -> None:
        """The call that claimed the key is over."""
        answer = event if isinstance(event, CallDone) else None
        self._landed = {
            known: kept for known, kept in self._landed.items() if known not in self._state.answers
        }
        if answer is not None:
            self._landed[place] = answer
        waiting = self._under_way.pop(place, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)
