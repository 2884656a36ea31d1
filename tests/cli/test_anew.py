"""A worker that lost its session to the store: it begins anew in the same process, and not for ever."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from gonogo.cli.anew import EXIT_FENCED, PAUSE_S, STEADY_S, TRIES, TRIES_MAX, Anew
from gonogo.errors import EngineError


class Ended(Exception):  # noqa: N818 - a process' end is no error
    """The process is over."""


class Process:
    """What becomes of the process: programs that took its place, pauses, and how it ended."""

    def __init__(self, **environment: str) -> None:
        self.replaced: list[dict[str, str]] = []
        self.paused: list[float] = []
        self.told: list[str] = []
        self.now_s = 0.0
        self.anew = Anew(
            environment,
            self.told.append,
            replace=self._replace,
            end=self._end,
            now=lambda: self.now_s,
            pause=self.paused.append,
        )

    def _replace(self, program: str, arguments: list[str], environment: dict[str, str]) -> None:
        assert (program, arguments) == (sys.executable, sys.orig_argv)
        self.replaced.append(environment)
        raise Ended

    def _end(self, code: int) -> None:
        raise Ended(code)

    def lose(self) -> None:
        """Others may have its work."""
        with pytest.raises(Ended):
            self.anew.begin()


def away() -> None:
    """What a store says that is away."""
    raise EngineError("the store is away", advice="wait")


def test_a_fenced_worker_begins_anew_with_the_environment_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with what was put into it since: marks by which the commands of the old one are found and ended."""
    process = Process(PATH="/bin")
    monkeypatch.setitem(os.environ, "GONOGO_CALL", "mark")
    process.lose()
    assert process.replaced == [{"PATH": "/bin", TRIES: "1"}]
    assert process.told == ["the worker begins anew in the same process, under a new name"]


def test_a_store_that_is_still_away_is_waited_for() -> None:
    """With a pause, and one more try on the count."""
    process = Process(**{TRIES: "3"})
    with pytest.raises(Ended):
        process.anew.carry(away)
    assert process.told == ["the worker can't begin again yet: the store is away"]
    assert (process.paused, process.replaced) == ([PAUSE_S], [{TRIES: "4"}])


@pytest.mark.parametrize("tries", [None, str(TRIES_MAX)])
def test_a_first_start_and_a_last_try_say_what_is_wrong(tries: str | None) -> None:
    """A wrong address is no outage, and nobody waits for ever."""
    process = Process(**({} if tries is None else {TRIES: tries}))
    with pytest.raises(EngineError, match="the store is away"):
        process.anew.carry(away)
    assert process.replaced == []


def test_a_worker_that_never_lasts_ends_in_the_end() -> None:
    """With the code that a supervisor knows as a passing failure."""
    process = Process(**{TRIES: str(TRIES_MAX)})
    process.anew.ready()
    with pytest.raises(Ended, match=str(EXIT_FENCED)):
        process.anew.begin()
    assert process.told == [
        f"the worker began anew {TRIES_MAX} times and never lasted: it ends ({EXIT_FENCED})"
    ]


def test_a_worker_that_lasted_counts_from_the_start() -> None:
    """What was weeks ago is no matter."""
    process = Process(**{TRIES: str(TRIES_MAX)})
    process.anew.ready()
    process.now_s = STEADY_S
    process.lose()
    assert process.replaced == [{TRIES: "1"}]


@pytest.mark.parametrize("text", ["", "-1", "x", "\u0663", "9" * 5000])
def test_a_count_that_is_none_is_none(text: str) -> None:
    """The environment is anybody's."""
    process: Any = Process(**{TRIES: text})
    process.lose()
    assert process.replaced == [{TRIES: "1"}]
