"""Lets a gate call know the gate call around it: its purse, its deadline, its watchers (F3, F25, B5).

A context variable, because wrappers between the two must not have to pass anything on. It holds no state of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from gonogo.gate.budgets import Purse
from gonogo.gate.events import Usage

Watch = Callable[[str, Any], None]
"""Hears every decision as it is made: the call's id and the decision."""


class Around:
    """One attempt of an outer call. The first inner attempt is this very attempt; further ones take from the purse."""

    __slots__ = ("call_id", "counted", "deadline_at", "purse", "used", "watch")

    def __init__(self, call_id: str, purse: Purse, deadline_at: float, watch: Watch | None) -> None:
        self.call_id = call_id
        self.purse = purse
        self.deadline_at = deadline_at
        self.watch = watch
        self.counted = False
        self.used = Usage()


AROUND: ContextVar[Around | None] = ContextVar("gonogo.gate.around", default=None)
"""The attempt that the running code is part of."""
