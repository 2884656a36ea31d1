"""Mutation testing of the core's fault management: `python -m tools.mutants` (or `make mutants`).

Changes one syntax node after the other and runs tests/core and some simulated runs on it. What lives is compared with
`tests/mutants/survivors.md`, where each has its reason: exit code 1 when one lives that isn't listed, or when fewer
than 85 % of a module's die. Takes minutes; not part of the normal run.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from tools.mutants import survivors
from tools.mutants.running import ROOT, Bench, Fate, Trial, fates, load, watch

MODULES = (
    "budgets", "suppression", "compensation", "exhaustion", "spending", "retries", "contracts", "routing", "fanout",
    "fanout_items", "beforehand", "faults", "fault_events", "fault_decisions", "fault_deltas",
)  # fmt: skip
KILLED_MIN = 0.85


class Campaign:
    """A plugin of pytest: has the tests collected, then tries the mutants instead of running them once."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.fates: list[Fate] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of the loop over the tests."""
        if session.testsfailed:
            raise session.Interrupted("the tests can't be collected")
        _quick_properties()
        names = self.options.modules
        tests = [Trial(item.nodeid, _runner(item)) for item in session.items]
        runs = [Trial(f"simulated run {seed}", _simulation(seed)) for seed in range(self.options.seeds)]
        say(f"watching {len(tests)} tests and {len(runs)} simulated runs")
        seen = watch([*tests, *runs], names)
        broken = [trial.name for trial, one in zip([*tests, *runs], seen, strict=True) if not one.passes]
        if broken:
            raise session.Interrupted(f"fails without any mutant: {', '.join(broken)}")
        bench = Bench(
            list(zip(tests, seen[: len(tests)], strict=True)),
            list(zip(runs, seen[len(tests) :], strict=True)),
            self.options.runs,
        )
        mutants = [pair for pair in load(names) if self.options.only in pair[1].name]
        say(f"trying {len(mutants)} mutants")
        for fate in fates(mutants, bench, self.options.jobs):
            self.fates.append(fate)
            if fate.killed_by is None:
                say(
                    f"lives: {fate.mutant.module} {fate.mutant.name} (line {fate.mutant.lines[0]}, {fate.tried} trials)"
                )
            elif self.options.verbose:
                say(f"dies: {fate.mutant.module} {fate.mutant.name} by {fate.killed_by}")
        return True


def say(text: str) -> None:
    """To the real output, past pytest's capture."""
    sys.__stdout__.write(text + "\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]


def _quick_properties() -> None:
    """A failing property needs no smallest example here, and must be the same each time."""
    from hypothesis import Phase, settings

    phases = (Phase.explicit, Phase.generate)
    settings.register_profile(
        "mutants", deadline=None, database=None, derandomize=True, max_examples=30, phases=phases
    )
    settings.load_profile("mutants")


def _runner(item: pytest.Item) -> Callable[[], bool]:
    def passes() -> bool:
        from _pytest.runner import runtestprotocol

        if hasattr(item, "_initrequest"):
            item._initrequest()
        return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))

    return passes


def _simulation(seed: int) -> Callable[[], bool]:
    def passes() -> bool:
        from gonogo.testing import plans
        from gonogo.testing.judging import failure_of

        return failure_of(plans.make(seed), limit_s=60.0) is None

    return passes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and say what lives."""
    options = _options(arguments)
    campaign = Campaign(options)
    code = pytest.main(
        ["-q", "--no-header", "--no-summary", "-p", "no:cacheprovider", str(ROOT / "tests" / "core")],
        plugins=[campaign],
    )
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) or not campaign.fates:
        say("nothing was tried: see above")
        return 2
    return _report(campaign.fates, complete=not options.only)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "modules", nargs="*", default=MODULES, help="modules of the core (default: all known)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (default 1)")
    parser.add_argument("--seeds", type=int, default=300, help="simulated runs to choose from (default 300)")
    parser.add_argument("--runs", type=int, default=40, help="simulated runs per mutant at most (default 40)")
    parser.add_argument("--only", default="", help="only mutants with this text in their name")
    parser.add_argument("--verbose", action="store_true", help="say of each mutant what kills it")
    return parser.parse_args(arguments)


def _report(found: Sequence[Fate], *, complete: bool) -> int:
    total = Counter(fate.mutant.module for fate in found)
    killed = Counter(fate.mutant.module for fate in found if fate.killed_by is not None)
    for name in total:
        say(f"{name:14} {killed[name]:4} of {total[name]:4} killed ({killed[name] / total[name]:.1%})")
    say(f"{'all':14} {killed.total():4} of {total.total():4} killed ({killed.total() / total.total():.1%})")
    weak = [name for name in total if killed[name] < KILLED_MIN * total[name]]
    for name in weak:
        say(f"too many live: {name}")
    lives = {(fate.mutant.module, fate.mutant.name) for fate in found if fate.killed_by is None}
    known = {place for place in survivors.known() if place[0] in total}
    new, gone = sorted(lives - known), sorted(known - lives) if complete else []
    for module, name in new:
        say(f"not listed in {survivors.LIST.relative_to(ROOT)}: {module} {name}")
    for module, name in gone:
        say(f"listed, but doesn't live: {module} {name}")
    return 1 if new or gone or weak else 0


if __name__ == "__main__":
    raise SystemExit(main())
