"""The parts that are made without a run: a sandbox, the table of step types."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gonogo.expressions.sandbox import Sandbox
    from gonogo.provider import Provider
    from gonogo.providers.table import Table


def new_sandbox(started_at_ms: float) -> Sandbox:
    """The sandbox of a run that started then (Unix time, ms); its process starts at the first expression."""
    from gonogo.expressions.sandbox import Sandbox

    return Sandbox(started_at_ms)


def built_in_table(given: Iterable[Provider] = ()) -> Table:
    """The built-in step types and those of installed packages, after those that are `given`."""
    from gonogo.providers.table import built_in

    return built_in(given)
