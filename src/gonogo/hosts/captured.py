"""The names of an expression as they were when it was asked, though the run's state moves on meanwhile.

Names are read from the live state as long as it stands still; right before it changes, `freeze` copies what the
expression names (expressions.md, "Frozen mirror"). Most evaluations end before that, and copy nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gonogo.expressions.analyse import Reading
from gonogo.expressions.names import ASSOCIATION, PERMISSION_HELPERS, STATUS, STATUS_HELPERS


class Captured(Mapping[str, Any]):
    """Names under a reading. What the reading doesn't name is read live."""

    __slots__ = ("_frozen", "_live", "_reading", "late")

    def __init__(
        self, live: Mapping[str, Any], reading: Reading | None, late: frozenset[str] = frozenset()
    ) -> None:
        """`late` names stay live until they are taken off it."""
        self._live = live
        self._reading = reading
        self._frozen: dict[str, Any] = {}
        self.late = late

    def __getitem__(self, name: str) -> Any:
        if name in self._frozen:
            return self._frozen[name]
        return self._live[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._live)

    def __len__(self) -> int:
        return len(self._live)

    def freeze(self) -> None:
        """Copy what is named and wasn't copied before. The state moves on after this."""
        reading = self._reading
        for name in self._live if reading is None else _named(reading):
            if name in self._frozen or name in self.late:
                continue
            try:
                value = self._live[name]
            except KeyError:
                continue
            self._frozen[name] = _copied(name, value, reading)


def _named(reading: Reading) -> Iterator[str]:
    yield from reading.names
    if reading.calls and not STATUS_HELPERS.isdisjoint(reading.calls):
        yield STATUS
    if reading.calls and not PERMISSION_HELPERS.isdisjoint(reading.calls):
        yield ASSOCIATION
    if "outputs" in reading.dynamic:
        yield "outputs_history"


def _copied(name: str, value: Any, reading: Reading | None) -> Any:
    """Values don't change once they are stored; only views by step do."""
    if isinstance(value, dict) or not isinstance(value, Mapping):
        return value
    if reading is None or name in reading.dynamic or name not in reading.names:
        return {key: value[key] for key in value}
    keys = {str(path[1]) for path in reading.paths if len(path) > 1 and path[0] == name}
    return _Part({key: value[key] for key in sorted(keys) if key in value}, value)


class _Part(Mapping[str, Any]):
    """The entries that were named, copied; any other is read live."""

    def __init__(self, given: dict[str, Any], live: Mapping[str, Any]) -> None:
        self._given = given
        self._live = live

    def __getitem__(self, key: str) -> Any:
        return self._given[key] if key in self._given else self._live[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._live)

    def __len__(self) -> int:
        return len(self._live)
