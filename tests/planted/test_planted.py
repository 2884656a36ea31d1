"""Bugs planted in copies of the core, each caught: the laws and the tests see what they are for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.planted.bugs import BUGS, Planted, hunt, plant, run_tests

BROKEN = 1


def test_there_are_at_least_sixty_bugs_each_with_a_name_of_its_own() -> None:
    """As many as were promised, or more."""
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 60


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.seeds], ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught_by_a_random_plan(bug: Planted, tmp_path: Path) -> None:
    """The patch still fits the source, and a known seed breaks a law with it."""
    plant(bug, tmp_path)
    done = hunt(tmp_path, "--seeds", *map(str, bug.seeds))
    assert done.returncode == BROKEN, done.stdout + done.stderr
    assert " breaks " in done.stdout


@pytest.mark.parametrize("bug", [bug for bug in BUGS if not bug.seeds], ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught_by_a_test(bug: Planted, tmp_path: Path) -> None:
    """The patch still fits the source, and each of its tests fails with it."""
    assert bug.tests
    plant(bug, tmp_path)
    done = run_tests(tmp_path, bug.tests)
    assert done.returncode == BROKEN, done.stdout + done.stderr
