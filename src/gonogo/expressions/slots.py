"""Which values the child already holds, so that each is sent, parsed and frozen once.

A value is known by the identity of its Python object, which is kept alive meanwhile, or by its JSON text if
that is short. Callers promise that values don't change. What a slot is used for is left to `sandbox.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gonogo.expressions.frames import encode_value

SHORT_TEXT = 256
HELD_BYTES_MAX = 24 << 20
HELD_COUNT_MAX = 20_000
NULL_SLOT = 0


@dataclass(slots=True)
class _Held:
    slot: int
    size_bytes: int
    used_at: int
    value: Any


class Slots:
    """The client's picture of the child's table of values. Not thread safe."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str | int], _Held] = {}
        self._next_slot = 1
        self._frame = 0
        self._held_bytes = 0
        self._parts: list[str] = []

    def slot(self, value: Any, *, event: bool = False) -> int:
        """The slot of `value`; if the child hasn't got it, sending it is added to the next frame."""
        how = "e" if event else "p"
        key: tuple[str, str | int]
        if isinstance(value, (int, float, bool)) or value is None:
            return self._by_text(how, encode_value(value), value)
        held = self._held.get((how, id(value)))
        if held is not None:
            held.used_at = self._frame
            return held.slot
        text = encode_value(value)
        if len(text) <= SHORT_TEXT:
            return self._by_text(how, text, None)
        key = (how, id(value))
        return self._add(key, how, text, value)

    def take_parts(self) -> list[str]:
        """The commands to send before the next runs."""
        parts, self._parts = self._parts, []
        self._frame += 1
        return parts

    def make_room(self) -> None:
        """Between frames: forget the values used longest ago when too much is held."""
        if self._held_bytes <= HELD_BYTES_MAX and len(self._held) <= HELD_COUNT_MAX:
            return
        dropped = []
        for key, held in sorted(self._held.items(), key=lambda item: item[1].used_at):
            if self._held_bytes <= HELD_BYTES_MAX // 2 and len(self._held) <= HELD_COUNT_MAX // 2:
                break
            self._held_bytes -= held.size_bytes
            dropped.append(str(held.slot))
            del self._held[key]
        self._parts += ("d", ",".join(dropped))

    def _by_text(self, how: str, text: str, value: Any) -> int:
        held = self._held.get((how, text))
        if held is not None:
            held.used_at = self._frame
            return held.slot
        return self._add((how, text), how, text, value)

    def _add(self, key: tuple[str, str | int], how: str, text: str, value: Any) -> int:
        slot = self._next_slot
        self._next_slot += 1
        self._held[key] = _Held(slot, len(text), self._frame, value)
        self._held_bytes += len(text)
        self._parts += (how, str(slot), text)
        return slot
