"""Thirty bugs planted in copies of the core, each caught by the simulator: the laws see what they are for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.planted.bugs import BUGS, Planted, hunt, plant

CAUGHT = 1


def test_there_are_thirty_bugs_each_with_a_name_of_its_own() -> None:
    """As many as were promised."""
    assert len({bug.name for bug in BUGS}) == len(BUGS) == 30


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(bug: Planted, tmp_path: Path) -> None:
    """The patch still fits the source, and a known seed breaks a law with it."""
    plant(bug, tmp_path)
    done = hunt(tmp_path, "--seeds", *map(str, bug.seeds))
    assert done.returncode == CAUGHT, done.stdout + done.stderr
    assert " breaks " in done.stdout
