"""Which runs somebody wants to see, of very many."""

from __future__ import annotations

from calendar import timegm
from collections.abc import Collection
from time import strptime

from msgspec import Struct

__all__ = ["Wanted"]

_ID_TIME = "%Y%m%d-%H%M%S"
_SLACK_S = 86_400.0
"""An id is made before its run starts; not so much before."""


class Wanted(Struct, frozen=True):
    """`standings`: how they stand (`standing.WORDS`), any if there are none; `workflow`: the name of theirs, any if it
    is empty; `since_s`: Unix time in seconds, before which they hadn't started. `children`: those that other runs
    started, too.
    """

    standings: Collection[str] = ()
    workflow: str = ""
    since_s: float | None = None
    children: bool = False

    def may_fit(self, run_id: str) -> bool:
        """Whether a run of this id needs looking at. Ids that we made begin with their time."""
        if "." in run_id and not self.children:
            return False
        made_s = _made_s(run_id) if self.since_s is not None else None
        return made_s is None or self.since_s is None or made_s + _SLACK_S >= self.since_s

    def fits(self, standing: str | None, workflow: str, started_at_ms: float) -> bool:
        """Whether a run is one of them. Of one that can't be read (None) nothing is known, so it is none where
        something is asked.
        """
        if standing is None:
            return not self.standings and not self.workflow and self.since_s is None
        return (
            (not self.standings or standing in self.standings)
            and self.workflow in ("", workflow)
            and (self.since_s is None or started_at_ms >= self.since_s * 1000)
        )


def _made_s(run_id: str) -> float | None:
    try:
        return float(timegm(strptime(run_id[:15], _ID_TIME)))
    except ValueError:
        return None
