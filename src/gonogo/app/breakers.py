"""The breakers that outlive runs: what they are, and a person's word about one of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from gonogo.app.options import Options, runs_in
from gonogo.errors import UsageError
from gonogo.hosts.gates import REACH_S
from gonogo.journal.postgres.address import is_address
from gonogo.journal.store import Runs

if TYPE_CHECKING:
    from gonogo.gate.breakers import Breakers, Listed
    from gonogo.gate.stores import Keeper, Store
    from gonogo.hosts.pacing import Turns

FOLDER = "breakers"
"""Within the folder of runs; a run's folder has a journal, this one hasn't."""
_NAMED_MAX = 5


def store_opener(options: Options, runs: Runs) -> Callable[[], Store] | None:
    """Opens what keeps the breakers' records of these runs: beside them. None where runs are kept in memory."""
    folder = _folder(options)
    if folder is not None:
        return lambda: _file_store(folder)
    return (lambda: _kept_store(runs)) if isinstance(runs, KeepsSheets) else None


def turns_opener(runs: Runs) -> Callable[[], Turns] | None:
    """Opens what shares the turns of rate limits among all that use these runs; None where each process has its own."""
    return (lambda: runs.turns) if isinstance(runs, KeepsTurns) else None


@runtime_checkable
class KeepsTurns(Protocol):
    """A place of runs that shares turns among those who reach it."""

    @property
    def turns(self) -> Turns:
        """Who gives them out."""
        ...


@runtime_checkable
class KeepsSheets(Protocol):
    """A place of runs that keeps breakers' records, too."""

    @property
    def breakers(self) -> Keeper:
        """Who keeps them."""
        ...


def list_breakers(options: Options | None = None) -> list[Listed]:
    """Every breaker that has a record, by key. Raises UsageError when they can't be read."""
    found = _breakers(options)
    listed = [] if found is None else found.listed()
    if found is not None:
        _told(found)
    return listed


def isolate_breaker(
    key: str, reason: str, *, by: str, for_s: float = 3600.0, options: Options | None = None
) -> str:
    """Let no call to a target through for a time; its whole key. `key` may be a part of it that no other has.

    A target that was never called is named by its whole key (`name=…/endpoint=…`). Raises UsageError.
    """
    breakers = _told(_breakers(options, make=True))
    whole = key if "=" in key else _only(breakers, key)
    breakers.isolate(whole, reason, by=by, for_s=for_s)
    _told(breakers)
    return whole


def reset_breaker(key: str, options: Options | None = None) -> str:
    """Let calls to a target through again, whatever its breaker says; its whole key. Raises UsageError."""
    breakers = _told(_breakers(options, make=True))
    whole = _only(breakers, key)
    breakers.reset(whole)
    _told(breakers)
    return whole


def _breakers(options: Options | None, *, make: bool = False) -> Breakers | None:
    from gonogo.gate.breaker import BreakerPolicy
    from gonogo.gate.breakers import Breakers
    from gonogo.gate.stores import StoreTrouble

    options = options or Options()
    opener = store_opener(options, runs_in(options))
    if opener is None:
        raise UsageError("these runs are kept in memory, and so are their breakers")
    folder = _folder(options)
    if folder is not None and not make and not folder.is_dir():
        return None
    try:
        store = opener()
    except StoreTrouble as trouble:
        raise UsageError(str(trouble)) from trouble
    return Breakers(BreakerPolicy(), store, time.monotonic)


def _folder(options: Options) -> Path | None:
    """Where records are kept as files."""
    if not isinstance(options.runs, str | Path) or is_address(str(options.runs)):
        return None
    return Path(options.runs).absolute() / FOLDER


def _file_store(folder: Path) -> Store:
    from gonogo.gate.stores import FileStore

    return FileStore(folder, reach_s=REACH_S)


def _kept_store(runs: KeepsSheets) -> Store:
    from gonogo.gate.stores import KeptStore

    return KeptStore(runs.breakers, reach_s=REACH_S)


def _told(breakers: Breakers | None) -> Breakers:
    assert breakers is not None
    if breakers.trouble is not None:
        raise UsageError(breakers.trouble)
    return breakers


def _only(breakers: Breakers, part: str) -> str:
    keys = [each.key for each in breakers.listed()]
    _told(breakers)
    if part in keys:
        return part
    found = [key for key in keys if part in key]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"there is no breaker {part!r}", advice="'gonogo breakers' lists them")
    told = ", ".join(found[:_NAMED_MAX])
    raise UsageError(f"{part!r} is a part of {len(found)} breakers: {told}", advice="name more of it")
