"""Lets a gate call know the gate call around it: its purse, its deadline, its watchers (F3, F25, B5).

A context variable, because wrappers between the two must not have to pass anything on. It holds no state of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol

from gonogo.gate.budgets import Purse
from gonogo.gate.events import Usage

Watch = Callable[[str, Any], None]
"""Hears every decision as it is made: the call's id and the decision."""


class Around(Protocol):
    """One attempt of an outer call, as a call within it sees it.

    The first attempt within is this very attempt (`counted` says that it was made); further ones take from the purse.
    `used` sums up what calls within have used.
    """

    counted: bool
    used: Usage

    @property
    def call_id(self) -> str:
        """The outer call's id."""
        ...

    @property
    def deadline_at(self) -> float:
        """When the outer call's time is up."""
        ...

    @property
    def watch(self) -> Watch | None:
        """Who hears the outer call's decisions."""
        ...

    def purse(self) -> Purse:
        """The outer call's budget."""
        ...


AROUND: ContextVar[Around | None] = ContextVar("gonogo.gate.around", default=None)
"""The attempt that the running code is part of."""
