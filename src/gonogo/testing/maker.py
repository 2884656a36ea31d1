"""What random plans are made with: drafts of steps, behaviours, and draws that depend on a seed alone."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from gonogo.core.plan import Block, Edge, Expression, Limits, Need, Plan, Step
from gonogo.testing.behaviours import Behaviour
from gonogo.testing.formulas import reading
from gonogo.testing.scenarios import Scenario

CONDITIONS = ("true", "true", "false", "fails", "output is odd", "attempt < 2", "loop < 2")


class Maker:
    """A plan in the making: a draft (keyword arguments of Step) and a behaviour for each step."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.expressions: list[str] = []
        self.drafts: dict[str, dict[str, Any]] = {}
        self.behaviours: dict[str, Behaviour] = {}
        self.extras: dict[str, Any] = {}
        self.options: dict[str, Any] = {}

    # --- drawing

    def by_chance(self, hundredths: int) -> bool:
        return self.rng.randrange(100) < hundredths

    def some(self, most: int = 2) -> list[str]:
        """One or a few steps."""
        names = list(self.drafts)
        return self.rng.sample(names, min(len(names), self.rng.randint(1, most)))

    def one(self) -> str:
        return self.rng.choice(list(self.drafts))

    def earlier(self, name: str) -> list[str]:
        names = list(self.drafts)
        return names[: names.index(name)]

    def expression(self, source: str) -> int:
        if source not in self.expressions:
            self.expressions.append(source)
        return self.expressions.index(source)

    def condition(self, name: str) -> int:
        """A condition for a step: a constant, or something about itself or what it depends on."""
        sources = [edge.step for need in self.drafts[name]["depends_on"] for edge in need.any_of]
        choices = [*CONDITIONS, *(f"of {source} is odd" for source in sources)]
        if self.by_chance(10):
            choices = [f"of {self.one()} is odd", f"runs of {self.one()} < 2"]
        return self.expression(self.rng.choice(choices))

    # --- building

    def lay_out(self) -> None:
        """Steps and dependencies."""
        count = self.rng.choice((2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9))
        for number in range(count):
            name = f"s{number}"
            needs = () if not number or self.by_chance(20) else self._needs(number)
            self.drafts[name] = {"name": name, "type": "noop", "depends_on": needs}
            self.behaviours[name] = Behaviour(
                transient=self.rng.choice((0, 0, 10, 40)), logical=self.rng.choice((0, 0, 0, 20))
            )

    def _needs(self, number: int) -> tuple[Need, ...]:
        picked = self.rng.sample(range(number), min(number, self.rng.choice((1, 1, 1, 2, 3))))
        return tuple(Need((Edge(f"s{index}"),)) for index in sorted(picked))

    def behave(self, name: str, **changes: Any) -> None:
        self.behaviours[name] = replace(self.behaviours[name], **changes)

    def block(self, name: str, key: str, **parts: Any) -> None:
        """Add to a step's block."""
        old = self.drafts[name].get(key, {})
        self.drafts[name][key] = {**old, **parts}

    def scenario(self, seed: int) -> Scenario:
        limits = Limits(
            max_parallelism=self.rng.choice((1, 1, 2, 3, 4)),
            max_loops=self.rng.choice((0, 1, 2, 3, 4)),
            max_runs=self.rng.choice((2, 5, 8)),
            history_max=self.rng.choice((2, 1000)),
        )
        steps = {name: _step(draft) for name, draft in self.drafts.items()}
        expressions = tuple(Expression(source, "condition", reading(source)) for source in self.expressions)
        plan = Plan(f"plan {seed}", steps, expressions, limits, **self.extras)
        return Scenario(seed, plan, self.behaviours, **self.options)


def _step(draft: dict[str, Any]) -> Step:
    made: dict[str, Any] = {key: Block(**value) if key in _BLOCKS else value for key, value in draft.items()}
    return Step(**made)


_BLOCKS = frozenset({"on_success", "on_fail", "on_finish"})
