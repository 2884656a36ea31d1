"""Awaits something within a limit of time, and sets a timer only if it has to wait at all.

Pieces of a stream often come several at a time; a timer for each would cost more than all else the gate does with them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any

from gonogo.gate.clock import Clock


async def within(clock: Clock, awaitable: Awaitable[Any], limit_s: float) -> tuple[bool, Any]:
    """Whether it came in time, and what came. Raises what the awaitable raises."""
    steps = awaitable.__await__()
    try:
        first = next(steps)
    except StopIteration as done:
        return True, done.value
    with clock.limit(limit_s):
        return True, await _Rest(steps, first)
    return False, None


class _Rest:
    """An awaitable whose first step has been taken already."""

    __slots__ = ("_first", "_steps")

    def __init__(self, steps: Generator[Any, Any, Any], first: Any) -> None:
        self._steps = steps
        self._first = first

    def __await__(self) -> Generator[Any, Any, Any]:
        steps, waits_for = self._steps, self._first
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 - a cancellation, handed to where it belongs
                step = _thrown(steps, error)
            else:
                step = _sent(steps, sent)
            if isinstance(step, StopIteration):
                return step.value
            waits_for = step[0]


def _sent(steps: Generator[Any, Any, Any], value: Any) -> tuple[Any] | StopIteration:
    try:
        return (next(steps) if value is None else steps.send(value),)
    except StopIteration as done:
        return done


def _thrown(steps: Generator[Any, Any, Any], error: BaseException) -> tuple[Any] | StopIteration:
    try:
        return (steps.throw(error),)
    except StopIteration as done:
        return done
