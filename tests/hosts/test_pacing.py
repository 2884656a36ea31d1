"""Turns under a rate limit that others share."""

from __future__ import annotations

import asyncio
import threading

from gonogo.errors import JournalError
from gonogo.hosts.pacing import AHEAD_S, Pace, Pacer


class Shared:
    """Says what it was told to, and notes how many asked at once."""

    def __init__(self, *answers: tuple[float, bool] | JournalError | None) -> None:
        self._answers = list(answers)
        self._asking = threading.Semaphore(1)
        self.ahead_s: set[float] = set()
        self.asked = 0

    def take(
        self, run_id: str, key: str, requests: int, per_s: float, ahead_s: float
    ) -> tuple[float, bool] | None:
        assert self._asking.acquire(blocking=False)
        self.asked += 1
        self.ahead_s.add(ahead_s)
        answer = self._answers.pop(0)
        self._asking.release()
        if isinstance(answer, JournalError):
            raise answer
        return answer


def waits(shared: Shared, calls: int) -> list[str]:
    """What so many calls say when they wait for their turns together."""
    said: list[str] = []
    pace = Pace(Pacer(lambda: 0.0), lambda: shared)

    async def story() -> None:
        async with asyncio.timeout(30):
            await asyncio.gather(*(pace.turn("r", "api", 1, 0.001, said.append) for _ in range(calls)))

    asyncio.run(story())
    return said


def test_calls_of_a_process_ask_one_after_the_other() -> None:
    """Each would else ask again and again for what only the first can have."""
    shared = Shared((0.0, True), (0.0, True), (0.0, True))
    assert (waits(shared, 3), shared.asked) == ([], 3)


def test_a_turn_far_ahead_is_asked_for_again_when_it_is_near() -> None:
    """A process that died before it would have blocked it for nothing."""
    shared = Shared((AHEAD_S + 0.01, False), (0.01, True))
    assert [line[:9] for line in waits(shared, 1)] == ["waits 2.0", "waits 0.0"]
    assert shared.ahead_s == {AHEAD_S}


def test_a_store_that_is_away_holds_up_no_call() -> None:
    """The process' own turns are what is left."""
    shared = Shared(JournalError("gone", advice="wait"), None)
    assert waits(shared, 2) == ["waits 0.001 s: 1 requests in 0.001 s to api"]
