"""Many simulated runs in a row, and the command line over them: run, tell, shrink."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from gonogo.errors import Bug
from gonogo.testing import plans, relations
from gonogo.testing.broken import Broken
from gonogo.testing.checks import replay
from gonogo.testing.scenarios import Scenario
from gonogo.testing.simulated import Ended, Simulation

RUN_LIMIT_S = 30.0
COMMAND = "python -m gonogo.testing.simulated"


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


def run_seeds(seeds: Sequence[int], each: Callable[[Scenario, Failure | None], None]) -> None:
    """Run the scenario of every seed and tell `each` what came of it."""
    for seed in seeds:
        scenario = plans.make(seed)
        each(scenario, failure_of(scenario))


def main(arguments: Sequence[str] | None = None) -> int:
    """See `simulated.py`."""
    options = _parser().parse_args(arguments)
    if options.seed is not None:
        return _tell(options.seed, story=options.story, shrink=not options.whole)
    failures: list[Failure] = []

    def note(scenario: Scenario, failure: Failure | None) -> None:
        if failure is not None:
            failures.append(failure)
            sys.stdout.write(f"{failure}\n")
            sys.stdout.flush()

    for seed in options.seeds or range(options.first, options.first + options.runs):
        run_seeds((seed,), note)
        if failures and options.until_broken:
            return 1
    sys.stdout.write(f"{len(options.seeds or range(options.runs))} runs, {len(failures)} broke a law\n")
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=COMMAND, description="run the core against a simulated world")
    parser.add_argument("--runs", type=int, default=1000, help="how many seeds (default 1000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--seed", type=int, help="run this seed alone")
    parser.add_argument("--seeds", type=int, nargs="+", help="run these seeds")
    parser.add_argument("--until-broken", action="store_true", help="end at the first law broken")
    parser.add_argument("--story", action="store_true", help="tell the run record by record")
    parser.add_argument("--whole", action="store_true", help="don't shrink what fails")
    return parser


def _tell(seed: int, *, story: bool, shrink: bool) -> int:
    from gonogo.testing.shrinking import smallest
    from gonogo.testing.stories import describe, tell

    scenario, order = plans.make(seed), 0
    failure = failure_of(scenario)
    if failure is not None and shrink:
        scenario, order, failure = smallest(scenario, failure)
    sys.stdout.write(describe(scenario))
    if story:
        sys.stdout.write(tell(scenario, order))
    sys.stdout.write(f"{failure.text if failure else 'no law is broken'}\n")
    return 1 if failure else 0
