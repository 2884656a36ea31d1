"""What is decided when a person has steps run again. All else is in `decisions.py`, which knows these, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gonogo.core.decision import About, Decision
from gonogo.core.scope import step_at

PLACES_SHOWN_MAX = 20
"""Places named in one sentence."""


class Rerun(Decision, frozen=True, tag="rerun"):
    """A person has steps run again: `asked` for, `given` an output, and all other `members`, in wave `wave`.

    Members are step and scope pairs. `unrouted` wait for a route again. `revised`: the digest of a new plan.
    """

    by: str = ""
    wave: int = 0
    asked: tuple[tuple[str, str], ...] = ()
    given: tuple[tuple[str, str], ...] = ()
    members: tuple[tuple[str, str], ...] = ()
    unrouted: tuple[tuple[str, str], ...] = ()
    revised: str | None = None

    def sentence(self) -> str:
        who, named = self.by or "a person", {*self.asked, *self.given}
        parts = [f"has {_places(self.asked)} run again"] if self.asked else []
        parts += [f"gives the output of {_places(self.given)}"] if self.given else []
        others = [place for place in self.members if place not in named]
        with_them = f", and with that {_places(others)}" if others else ""
        changed = f"; the workflow is now {self.revised}" if self.revised is not None else ""
        return f"{who} {' and '.join(parts) or 'goes on with the run'}{with_them}{changed}"


def _places(places: Sequence[tuple[str, str]]) -> str:
    shown = [step_at(*place) for place in places[:PLACES_SHOWN_MAX]]
    more = len(places) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


class Given(About, frozen=True, tag="given"):
    """A person's output stands in for a run of the step, with the number `execution`; nothing is called or judged."""

    by: str = ""
    output: Any = None
    execution: int = 1
    wave: int = 0

    def sentence(self) -> str:
        return f"output set by {self.by or 'a person'}"
