"""One simulated run with every law checked: the law it breaks, if any."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gonogo.errors import Bug
from gonogo.testing import relations
from gonogo.testing.broken import Broken
from gonogo.testing.checks import replay
from gonogo.testing.scenarios import Scenario
from gonogo.testing.simulated import Ended, Simulation

RUN_LIMIT_S = 30.0
COMMAND = "python -m gonogo.testing"


@dataclass(frozen=True, slots=True)
class Failure:
    """A seed that breaks a law."""

    seed: int
    law: str
    text: str

    def __str__(self) -> str:
        return f"seed {self.seed} breaks {self.text}\n    {COMMAND} --seed {self.seed} --story"


COMPARED_EVERY = 5
"""Comparing costs half a dozen runs, so not every seed is compared."""


def run_one(scenario: Scenario, order: int = 0) -> Ended:
    """One run with every law checked, and for some seeds every relation. Raises Broken."""
    ended = Simulation(scenario, order).run()
    replay(ended.records)
    if scenario.seed % COMPARED_EVERY == 0:
        relations.check(scenario)
    return ended


@contextmanager
def watchdog(limit_s: float) -> Iterator[None]:
    """Breaks the law `ends` when what is inside takes far too long. Needs the main thread."""

    def bark(number: int, frame: object) -> None:
        raise Broken("ends", f"no end within {limit_s:g} s: the core turns in circles")

    before = signal.signal(signal.SIGALRM, bark)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def failure_of(scenario: Scenario, order: int = 0, *, limit_s: float = RUN_LIMIT_S) -> Failure | None:
    """The law a scenario breaks, or None."""
    try:
        with watchdog(limit_s):
            run_one(scenario, order)
    except Broken as broken:
        return Failure(scenario.seed, broken.law, str(broken))
    except (Bug, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return Failure(scenario.seed, "crash", f"crash: {type(error).__name__}: {error}")
    return None
