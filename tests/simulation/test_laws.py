"""The laws of architecture.md 5 over random plans. A failure names its seed and the command that tells its story."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from itertools import combinations

import pytest

from gonogo.journal.codec import encode_line
from gonogo.testing import campaign, plans
from gonogo.testing.scenarios import FEATURES, features
from gonogo.testing.simulated import Simulation

SEEDS = 5000
SLICE = 500
MEETINGS_MIN = 20


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, SLICE))
def test_random_plans_keep_the_laws(first: int) -> None:
    """I.2 property bounded: Laws 1, 2, 3, 5 and the invariants, at every record of every run."""
    failures: list[str] = []
    campaign.run_seeds(
        range(first, first + SLICE),
        lambda scenario, failure: failures.append(str(failure)) if failure else None,
    )
    assert not failures, "\n".join(failures)


def test_every_pair_of_constructs_meets_often_enough() -> None:
    """Faults live where constructs meet: each pair is in at least twenty of the plans run."""
    met: Counter[tuple[str, str]] = Counter()
    for seed in range(SEEDS):
        met.update(combinations(sorted(features(plans.make(seed))), 2))
    rare = {pair: met[pair] for pair in combinations(sorted(FEATURES), 2) if met[pair] < MEETINGS_MIN}
    assert rare == {}


def journal_of(seeds: range) -> bytes:
    """The journals of some seeds, as written."""
    runs = (Simulation(plans.make(seed)).run() for seed in seeds)
    return b"".join(encode_line(record) for run in runs for record in run.records)


def test_another_process_with_another_hash_seed_decides_the_same() -> None:
    """Law 1: nothing depends on the order of sets or on addresses."""
    program = (
        "import hashlib, sys; from gonogo.journal.codec import encode_line; from gonogo.testing import plans;"
        "from gonogo.testing.simulated import Simulation;"
        "runs = (Simulation(plans.make(seed)).run() for seed in range(60));"
        "sys.stdout.buffer.write(b''.join(encode_line(r) for run in runs for r in run.records))"
    )
    for hash_seed in ("1", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        )
        assert done.stdout == journal_of(range(60))
