"""The breakers that outlive runs: what they are, and a person's word about one of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from gonogo.app.options import Options
from gonogo.errors import UsageError
from gonogo.hosts.gates import REACH_S

if TYPE_CHECKING:
    from gonogo.gate.breakers import Breakers, Listed

FOLDER = "breakers"
"""Within the folder of runs; a run's folder has a journal, this one hasn't."""
_NAMED_MAX = 5


def breakers_folder(options: Options) -> str | None:
    """Where the breakers' records of these runs are; None where runs are kept in memory."""
    if not isinstance(options.runs, str | Path):
        return None
    return str(Path(options.runs).absolute() / FOLDER)


def list_breakers(options: Options | None = None) -> list[Listed]:
    """Every breaker that has a record, by key. Raises UsageError when they can't be read."""
    found = _breakers(options)
    return [] if found is None else _told(found).listed()


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
    from gonogo.gate.stores import FileStore, StoreTrouble

    folder = breakers_folder(options or Options())
    if folder is None:
        raise UsageError("these runs are kept in memory, and so are their breakers")
    if not make and not Path(folder).is_dir():
        return None
    try:
        store = FileStore(folder, reach_s=REACH_S)
    except StoreTrouble as trouble:
        raise UsageError(str(trouble)) from trouble
    return Breakers(BreakerPolicy(), store, time.monotonic)


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
