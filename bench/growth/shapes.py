"""The kinds of runs that growth is reckoned with, and what they cost the store.

The costs were measured by `python -m bench.growth measure` on Postgres 18 with DBOS, both workers and the server on one
machine of two cores; the polling of idle workers is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass

_HEAD = 'version: "1.0"\nsteps:\n'


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of run. `share` of all runs; `calls` of them on other workers, each of about `call_s` seconds; `waits_s`:
    how long a person takes, 0 for nobody; `commits` and `wal_bytes`: what a run costs the store.
    """

    name: str
    text: str
    share: float
    calls: int
    call_s: float
    waits_s: float
    commits: float
    wal_bytes: float


def _check() -> str:
    """A pull request: eight checks of which three depend on others."""
    lone = "".join(f"  check{n}: {{type: noop}}\n" for n in range(5))
    behind = "".join(
        f"  after{n}: {{type: noop, depends_on: [check{n}], guarantee: 'true'}}\n" for n in range(3)
    )
    return _HEAD + lone + behind


def _agent() -> str:
    """Six calls one after the other, each of them known to change something outside."""
    steps = "".join(
        f"  act{n}: {{type: command, exec: 'true', mutates: true"
        + (f", depends_on: [act{n - 1}]" if n else "")
        + "}\n"
        for n in range(6)
    )
    return _HEAD + steps


def _list(items: int) -> str:
    """A list, each item of it a call for any worker."""
    content = f"return Array.from({{length: {items}}}, (_, n) => n)"
    return (
        _HEAD
        + f'  list: {{type: script, forEach: true, forEach_concurrency: 64, content: "{content}"}}\n'
        + "  each: {type: command, exec: 'true', depends_on: [list]}\n"
    )


def _approval() -> str:
    """A step, a person, a step."""
    return (
        _HEAD
        + "  before: {type: noop}\n"
        + "  ask: {type: human-input, prompt: 'go on?', depends_on: [before]}\n"
        + "  after: {type: noop, depends_on: [ask]}\n"
    )


SHAPES = (
    Shape("check", _check(), 0.70, 0, 0.0, 0.0, 34.0, 18.5e3),
    Shape("agent", _agent(), 0.249, 6, 4.0, 0.0, 41.0, 13e3),
    Shape("approval", _approval(), 0.05, 0, 0.0, 48 * 3600.0, 34.0, 9e3),
    Shape("list of 100", _list(100), 0.000_95, 100, 1.0, 0.0, 880.0, 384e3),
    Shape("list of 10,000", _list(10_000), 0.000_05, 10_000, 1.0, 0.0, 88_000.0, 38e6),
)
