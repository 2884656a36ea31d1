"""Many simulated runs in a row, and the command line over them: run, tell, shrink.

python -m gonogo.testing --seed 17 --story    # one run, told in full
python -m gonogo.testing --runs 50000         # a campaign
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from gonogo.testing import plans
from gonogo.testing.judging import COMMAND, Failure, failure_of
from gonogo.testing.scenarios import Scenario
from gonogo.testing.shrinking import smallest
from gonogo.testing.stories import describe, tell


def run_seeds(seeds: Sequence[int], each: Callable[[Scenario, Failure | None], None]) -> None:
    """Run the scenario of every seed and tell `each` what came of it."""
    for seed in seeds:
        scenario = plans.make(seed)
        each(scenario, failure_of(scenario))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of the simulator; exit code 1 when a law is broken."""
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
    scenario, order = plans.make(seed), 0
    failure = failure_of(scenario)
    if failure is not None and shrink:
        scenario, order, failure = smallest(scenario, failure)
    sys.stdout.write(describe(scenario))
    if story:
        sys.stdout.write(tell(scenario, order))
    sys.stdout.write(f"{failure.text if failure else 'no law is broken'}\n")
    return 1 if failure else 0
