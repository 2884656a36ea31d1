"""Run ids: `last` is the newest by name."""

from __future__ import annotations

import re

from gonogo.hosts.start import new_run_id


def test_ids_sort_by_time_within_a_second_too() -> None:
    """To the millisecond; what follows is chance."""
    ids = [new_run_id() for _ in range(3000)]
    assert all(re.fullmatch(r"\d{8}-\d{6}-\d{3}[0-9a-f]{3}", one) for one in ids)
    times = [one[:-3] for one in ids]
    assert times == sorted(times)
