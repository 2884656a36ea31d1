"""Has DBOS' queue threads look when there is something, instead of all the time.

Each of these threads sleeps on one event, which ends it, for as long as its queue's polling interval. DBOS (3.4) has no
way to wake one up, so the event's own `wait` is replaced here by one that a door can end: rung for, the thread looks at
once; shut, it doesn't look until the door is open again. Where DBOS is built otherwise, nothing happens but polling.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

_THREAD = "queue-worker-"
"""How DBOS names the thread of a queue."""
TIME_S = 60.0
"""Longest for one wait: a shut door is no reason to sleep for ever."""


class Door:
    """One queue's. For any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._rung = False
        self._shut = False

    def ring(self) -> None:
        """There may be something in the queue."""
        with self._changed:
            self._rung = True
            self._changed.notify_all()

    def shut(self) -> None:
        """This worker takes no more for now."""
        with self._changed:
            self._shut = True

    def open(self) -> None:
        """It does again; something may have come meanwhile."""
        with self._changed:
            if self._shut:
                self._shut, self._rung = False, True
                self._changed.notify_all()

    def wait(self, stop: threading.Event, timeout_s: float) -> bool:
        """Until it is time to look; whether it is time to end instead."""
        end_s = time.monotonic() + timeout_s
        last_s = time.monotonic() + max(timeout_s, TIME_S)
        with self._changed:
            while not stop.is_set():
                now_s = time.monotonic()
                if now_s >= last_s or (not self._shut and (self._rung or now_s >= end_s)):
                    break
                self._changed.wait((last_s if self._shut else end_s) - now_s)
            self._rung = False
        return stop.is_set()


def hang(doors: Mapping[str, Door], events: Iterable[threading.Event]) -> None:
    """Have the threads that wait on these events do so at the doors of their queues, by name."""
    for event in events:
        _Hinges(doors, event)


class _Hinges:
    """What an event does in place of its own `wait` and `set`."""

    def __init__(self, doors: Mapping[str, Door], event: threading.Event) -> None:
        self._doors = doors
        self._event = event
        self._wait = event.wait
        self._set = event.set
        replaced: Any = event
        replaced.wait = self.wait
        replaced.set = self.set

    def wait(self, timeout: float | None = None) -> bool:
        queue = threading.current_thread().name.removeprefix(_THREAD)
        door = self._doors.get(queue)
        if door is None or timeout is None:
            return self._wait(timeout)
        return door.wait(self._event, timeout)

    def set(self) -> None:
        self._set()
        for door in self._doors.values():
            door.ring()
