"""How a breaker's record is written where other processes, boots and machines find it, and read on this one's clock.

Times in a record are on the machine's monotonic clock. What another boot or machine wrote is moved by the wall clocks'
difference, never to a longer wait than it was written with, whatever the clocks did meanwhile (B35, TIM-2).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from gonogo.gate.breaker import BreakerRecord, Isolation, moved

__all__ = ["ISOLATION_S_MAX", "KEYS_MAX", "Sheet", "Sheets"]

KEYS_MAX = 10_000
ISOLATION_S_MAX = 30 * 86_400.0
_FORMAT = 1


class Sheet(Struct, frozen=True):
    """What is kept of a record. `boot`, `monotonic_s` and `wall_s`: whose monotonic clock the record's times are on."""

    format: int
    key: str
    version: int
    boot: str
    monotonic_s: float
    wall_s: float
    record: BreakerRecord


class Sheets:
    """Writes and reads them. `reach_s` is the longest wait any record may ask for; `damaged` counts what was none."""

    def __init__(
        self,
        reach_s: float = 86_400.0,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        boot: str | None = None,
    ) -> None:
        self.reach_s = reach_s
        self.damaged = 0
        self._monotonic = monotonic
        self._wall = wall
        self._boot = _boot_id() if boot is None else boot
        self._shifts: dict[str, tuple[int, float]] = {}

    def written(self, key: str, version: int, record: BreakerRecord) -> bytes:
        """The record as this process's clock has it."""
        sheet = Sheet(_FORMAT, key, version, self._boot, self._monotonic(), self._wall(), record)
        return msgspec.json.encode(sheet)

    def wrote(self, key: str, version: int) -> None:
        """This version is this process's own, and needs no move."""
        self._shifts[key] = (version, 0.0)

    def read(self, data: bytes) -> Sheet | None:
        """What was written; None for what is damaged or of another format."""
        try:
            sheet = msgspec.json.decode(data, type=Sheet)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self.damaged += 1
            return None
        return sheet if sheet.format == _FORMAT and sheet.version > 0 else None

    def here(self, sheet: Sheet) -> BreakerRecord:
        """The record on this process's clock; how far it is moved is settled when a version is seen first."""
        now_s = self._monotonic()
        known = self._shifts.get(sheet.key)
        if known is not None and known[0] == sheet.version:
            by_s = known[1]
        else:
            by_s = self._shift(sheet, now_s)
            if len(self._shifts) >= KEYS_MAX:
                self._shifts.clear()
            self._shifts[sheet.key] = (sheet.version, by_s)
        record = moved(sheet.record, by_s, now_s, self.reach_s)
        isolation = record.isolation
        if isolation is None or isolation.until_s <= now_s + ISOLATION_S_MAX:
            return record
        capped = Isolation(now_s + ISOLATION_S_MAX, isolation.reason, isolation.by)
        return structs.replace(record, isolation=capped)

    def _shift(self, sheet: Sheet, now_s: float) -> float:
        if sheet.boot and sheet.boot == self._boot and sheet.monotonic_s <= now_s:
            return 0.0
        elapsed_s = max(0.0, self._wall() - sheet.wall_s)
        return now_s - elapsed_s - sheet.monotonic_s


def _boot_id() -> str:
    """Names the machine's boot, within which its monotonic clock is one; empty where the system doesn't tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
