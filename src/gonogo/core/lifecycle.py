"""Which moves a step may make: one table. Whatever isn't listed is a bug of gonogo, not of a workflow.

    pending ─▶ deciding ─▶ cleared ─▶ assuming ─▶ running ─▶ checking ─▶ routing ─▶ done
                                                     │                      │
                       holding, in_doubt ◀───────────┘      remediating, backing_off ─▶ cleared
    pending ─▶ expanding ─▶ routing ─▶ done                 (a fan-out: its items make their own moves)
    pending, deciding, cleared ─▶ initialising ─▶ cleared   (a step with on_init)

`done` goes back to `pending` when a route asks for another run. A call whose gate waits long is `paused`, and then
`running` again.
"""

from __future__ import annotations

from typing import NamedTuple

PENDING = "pending"
DECIDING = "deciding"
CLEARED = "cleared"
INITIALISING = "initialising"
ASSUMING = "assuming"
RUNNING = "running"
PAUSED = "paused"
CHECKING = "checking"
ROUTING = "routing"
REMEDIATING = "remediating"
BACKING_OFF = "backing_off"
HOLDING = "holding"
IN_DOUBT = "in_doubt"
EXPANDING = "expanding"
DONE = "done"

MOVES: dict[str, frozenset[str]] = {
    PENDING: frozenset({PENDING, DECIDING, CLEARED, INITIALISING, ASSUMING, RUNNING, EXPANDING, DONE}),
    DECIDING: frozenset({PENDING, DECIDING, CLEARED, INITIALISING, EXPANDING, DONE}),
    CLEARED: frozenset({PENDING, CLEARED, INITIALISING, ASSUMING, RUNNING, EXPANDING, DONE}),
    INITIALISING: frozenset({INITIALISING, CLEARED, ROUTING, PENDING, DONE}),
    ASSUMING: frozenset({ASSUMING, PENDING, CLEARED, RUNNING, ROUTING, DONE}),
    RUNNING: frozenset({RUNNING, PAUSED, CHECKING, ROUTING, HOLDING, IN_DOUBT, PENDING, DONE}),
    PAUSED: frozenset({RUNNING, CHECKING, ROUTING, HOLDING, IN_DOUBT, PENDING, DONE}),
    CHECKING: frozenset({CHECKING, ROUTING, PENDING, DONE}),
    ROUTING: frozenset({ROUTING, REMEDIATING, BACKING_OFF, HOLDING, PENDING, EXPANDING, DONE}),
    REMEDIATING: frozenset({ROUTING, BACKING_OFF, PENDING, EXPANDING, DONE}),
    BACKING_OFF: frozenset({CLEARED, PENDING, DONE}),
    HOLDING: frozenset({CHECKING, ROUTING, CLEARED, BACKING_OFF, PENDING, DONE}),
    IN_DOUBT: frozenset({CHECKING, ROUTING, CLEARED, PENDING, DONE}),
    EXPANDING: frozenset({ROUTING, PENDING, DONE}),
    DONE: frozenset({PENDING, REMEDIATING, EXPANDING, DONE}),
}

ACTIVE = frozenset({ASSUMING, RUNNING, CHECKING, ROUTING})
"""A step in one of these holds a slot. Waits hold none."""

CALLED = frozenset({RUNNING, PAUSED})
"""A step in one of these has a call out, or one that is to be made again."""

NOT_BEGUN = frozenset({PENDING, DECIDING, CLEARED})
"""A step in one of these has done nothing yet, in this run of it; it may wait for a slot."""

WAITING = frozenset({REMEDIATING, BACKING_OFF, HOLDING, IN_DOUBT})
"""Under way, but nothing runs: leaves room for the next item of a fan-out."""

AWAITS_RUNS = frozenset({REMEDIATING, INITIALISING})
"""A step in one of these waits for what it routed."""

BUSY = ACTIVE | {PAUSED, EXPANDING, INITIALISING}
"""An item in one of these takes up room in its fan-out's window."""


class Move(NamedTuple):
    """What a move changes around a step: slots taken, room in its fan-out's window, whether it waits for runs."""

    slots: int
    room: int
    waits: bool


def _move(before: str, after: str) -> Move:
    return Move(
        (after in ACTIVE) - (before in ACTIVE),
        (after in BUSY) - (before in BUSY),
        before in AWAITS_RUNS or after in AWAITS_RUNS,
    )


EFFECTS = {before: {after: _move(before, after) for after in allowed} for before, allowed in MOVES.items()}
"""Every move that is allowed, with what it changes."""
