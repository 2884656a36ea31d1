"""Which values the child already holds, so that each is sent, parsed and frozen once.

A value is known by the identity of its Python object, which is kept alive meanwhile, or by its JSON text if
that is short. Callers promise that values don't change. What a slot is used for is left to `sandbox.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from gonogo.expressions.frames import encode_value

SHORT_TEXT = 256
HELD_BYTES_MAX = 24 << 20
HELD_COUNT_MAX = 20_000


class _Held(Struct):
    slot: int
    size_bytes: int
    used_at: int


class Slots:
    """The client's picture of the child's table of values. Not thread safe."""

    def __init__(self) -> None:
        self._by_text: dict[tuple[str, str], _Held] = {}
        self._by_object: dict[tuple[str, int], tuple[Any, _Held]] = {}
        self._next_slot = 1
        self._frame = 0
        self._held_bytes = 0
        self._parts: list[str] = []

    def slot(self, value: Any, *, event: bool = False) -> int:
        """The slot of `value`; if the child hasn't got it, sending it is added to the next frame."""
        how = "e" if event else "p"
        known = self._by_object.get((how, id(value)))
        if known is not None:
            known[1].used_at = self._frame
            return known[1].slot
        held = self._held(how, encode_value(value))
        if isinstance(value, (str, dict, list, tuple, Mapping)):
            self._by_object[how, id(value)] = (value, held)
        return held.slot

    def take_parts(self) -> list[str]:
        """The commands to send before the next runs."""
        parts, self._parts = self._parts, []
        self._frame += 1
        return parts

    def make_room(self) -> None:
        """Between frames: forget the values used longest ago when too much is held."""
        if self._held_bytes <= HELD_BYTES_MAX and len(self._by_object) + len(self._by_text) <= HELD_COUNT_MAX:
            return
        held = {each.slot: each for each in self._by_text.values()}
        held.update((each.slot, each) for _, each in self._by_object.values())
        dropped: set[int] = set()
        for each in sorted(held.values(), key=lambda entry: entry.used_at):
            if self._held_bytes <= HELD_BYTES_MAX // 2 and len(held) - len(dropped) <= HELD_COUNT_MAX // 4:
                break
            self._held_bytes -= each.size_bytes
            dropped.add(each.slot)
        self._by_text = {key: each for key, each in self._by_text.items() if each.slot not in dropped}
        kept = {key: pair for key, pair in self._by_object.items() if pair[1].slot not in dropped}
        self._by_object = kept if len(kept) <= HELD_COUNT_MAX // 2 else {}
        self._parts += ("d", ",".join(map(str, dropped)))

    def _held(self, how: str, text: str) -> _Held:
        """The entry of a JSON text; long texts aren't compared, their object is what is known."""
        short = len(text) <= SHORT_TEXT
        held = self._by_text.get((how, text)) if short else None
        if held is not None:
            held.used_at = self._frame
            return held
        held = _Held(self._next_slot, len(text), self._frame)
        self._next_slot += 1
        self._held_bytes += len(text)
        self._parts += (how, str(held.slot), text)
        if short:
            self._by_text[how, text] = held
        return held
