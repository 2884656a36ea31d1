"""People who have steps of a simulated run run again: which ones, with which outputs given, under which workflow."""

from __future__ import annotations

import random
from collections.abc import Sequence

from msgspec.structs import replace

from gonogo.core.apply import fold
from gonogo.core.asking_again import Unfit, look_at
from gonogo.core.events import GivenOutput, RerunAsked
from gonogo.core.plan import Edge, Need, Plan, Step
from gonogo.core.revising import renumbered
from gonogo.core.state import State
from gonogo.journal.records import Record

TRIES = 4


class Wishes:
    """What people ask of a run that stands still; `left` times at most. It draws from a source of its own."""

    def __init__(self, seed: str, times: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - a simulation must be repeatable
        self.left = times
        self.made = 0

    def next(self, records: Sequence[Record], at: float) -> RerunAsked | None:
        """A wish that can be, or None: nobody has one, or none that was thought of can be."""
        if self.left <= 0 or not records:
            return None
        self.left -= 1
        for _ in range(TRIES):
            state = fold(records)
            wish = replace(self._wish(state), at=at)
            try:
                look_at(state, wish)
            except Unfit:
                continue
            self.made += 1
            return wish
        return None

    def _wish(self, state: State) -> RerunAsked:
        places = [(node.step, node.scope) for node in state.all_nodes()] or [("s0", "")]
        asked = tuple(self.rng.sample(places, min(len(places), self.rng.choice((0, 1, 1, 1, 2)))))
        given = self.rng.sample(places, self.rng.choice((0, 0, 0, 1)))
        return RerunAsked(
            by="ann",
            steps=asked,
            outputs=tuple(
                GivenOutput(step, self.rng.choice((None, 7, [1, 2], "x")), scope) for step, scope in given
            ),
            plan=self._revised(state.graph.plan) if self.rng.randrange(3) == 0 else None,
        )

    def _revised(self, plan: Plan) -> Plan:
        """A step more; or one that is another, which can be only where it never ran or runs again."""
        steps = dict(plan.steps)
        name = self.rng.choice(list(steps))
        if self.rng.randrange(2):
            behind = self.rng.sample(list(steps), self.rng.choice((0, 1, 1)))
            added = f"n{len(steps)}"
            steps[added] = Step(added, "noop", depends_on=tuple(Need((Edge(each),)) for each in behind))
        elif self.rng.randrange(2):
            steps[name] = replace(steps[name], config={"as": "revised"})
        elif not any(f"'{name}'" in repr(other) for other in steps.values() if other.name != name):
            del steps[name]
        return renumbered(replace(plan, steps=steps, digest=f"revision {self.made}"), plan)
