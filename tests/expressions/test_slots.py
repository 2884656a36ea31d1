"""Each value is sent once; what was used longest ago is forgotten first."""

from __future__ import annotations

from gonogo.expressions.slots import HELD_BYTES_MAX, Slots


def test_the_same_object_is_sent_once() -> None:
    """Known by identity."""
    slots = Slots()
    big = {"text": "x" * 1000}
    first = slots.slot(big)
    assert slots.take_parts()[:2] == ["p", str(first)]
    assert slots.slot(big) == first
    assert slots.take_parts() == []


def test_short_values_are_known_by_their_text() -> None:
    """A fresh object that says the same needs no sending."""
    slots = Slots()
    assert slots.slot({"a": 1}) == slots.slot({"a": 1})
    assert slots.slot("x") == slots.slot("x")


def test_values_that_only_look_alike_are_kept_apart() -> None:
    """1, 1.0, true, "1", -0.0 and an event of the same text are different."""
    slots = Slots()
    event = slots.slot("1", event=True)
    assert (
        len(
            {
                slots.slot(1),
                slots.slot(1.0),
                slots.slot(True),
                slots.slot("1"),
                slots.slot(0.0),
                slots.slot(-0.0),
                event,
            }
        )
        == 7
    )


def test_slots_start_at_one() -> None:
    """0 stands for a key that isn't there."""
    assert Slots().slot(None) == 1


def test_the_oldest_make_room() -> None:
    """When too much is held, those used last stay."""
    slots = Slots()
    old, new = {"t": "x" * HELD_BYTES_MAX}, {"t": "y" * (HELD_BYTES_MAX // 4)}
    slots.slot(old)
    slots.take_parts()
    kept = slots.slot(new)
    slots.take_parts()
    slots.make_room()
    assert slots.take_parts() == ["d", "1"]
    assert slots.slot(new) == kept
    assert slots.slot(old) > kept
