"""Chooses what to do; see `bench/growth/__init__.py`."""

from __future__ import annotations

import sys


def main(arguments: list[str]) -> None:
    """Measure, or simulate."""
    if arguments == ["measure"]:
        from bench.growth.measure import measure

        measure()
    elif arguments == ["simulate"]:
        from bench.growth.simulate import simulate

        simulate()
    else:
        raise SystemExit("python -m bench.growth measure|simulate")


main(sys.argv[1:])
