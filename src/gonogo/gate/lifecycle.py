"""Which moves a gate call may make: one table. The picture in the docs is drawn from it; what isn't listed is a bug."""

from __future__ import annotations

BEFORE = "before"
ADMITTING = "admitting"
CALLING = "calling"
AFTER = "after"
WAITING = "waiting"
FALLING_BACK = "falling back"
ENDED = "ended"

MOVES: dict[str, dict[str, str]] = {
    BEFORE: {
        BEFORE: "skip-target",
        ADMITTING: "continue",
        WAITING: "wait",
        FALLING_BACK: "no target is left",
        ENDED: "fail-fast, a guard",
    },
    ADMITTING: {
        CALLING: "breaker, budget and share of retries allow it",
        BEFORE: "refused, the next target",
        WAITING: "refused by all, or a long wait and no other target",
        FALLING_BACK: "no target is left",
        ENDED: "over budget, a guard",
    },
    CALLING: {
        AFTER: "an answer or a failure",
        ENDED: "cancelled",
    },
    AFTER: {
        BEFORE: "retry-other",
        WAITING: "retry",
        FALLING_BACK: "fallback",
        ENDED: "ok, fail-fast, a guard",
    },
    WAITING: {
        BEFORE: "time is up",
        ENDED: "cancelled",
    },
    FALLING_BACK: {
        ENDED: "its answer or its failure",
    },
    ENDED: {},
}
"""state → next state → why."""


def diagram() -> str:
    """The table as a Mermaid state diagram."""

    def name(state: str) -> str:
        return state.replace(" ", "_")

    lines = ["stateDiagram-v2", f"    [*] --> {name(BEFORE)}"]
    lines += [
        f"    {name(state)} --> {name(after)}: {why}"
        for state, moves in MOVES.items()
        for after, why in moves.items()
    ]
    return "\n".join([*lines, f"    {name(ENDED)} --> [*]"])
