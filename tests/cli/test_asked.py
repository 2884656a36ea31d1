"""What `answer` and `cancel` say where the run goes on elsewhere."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Pipe

from gonogo.app.requests import Asked
from gonogo.cli.asked import left_with
from gonogo.cli.output import Output
from gonogo.cli.session import Session
from gonogo.errors import EngineError, GonogoError, JournalError

AWAY = EngineError("the Temporal server at there:7233 can't be used: it doesn't answer")


def said(asked: Asked, *, quiet: bool = False) -> str:
    """On stderr."""
    err = Pipe()
    output = Output({}, Pipe(), err)
    output.quiet = quiet
    left_with(Session(output, {}), asked, "the answer")
    return err.getvalue()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (Asked("r", carrier="temporal", is_taken=True), "is taken; the workers of temporal go on with run r"),
        (Asked("r", carrier="dbos"), "is left with the run; the workers of dbos go on with run r"),
        (Asked("r"), "is left with the run; the process that runs it takes it up"),
        (
            Asked("r", carrier="dbos", is_taken=True, so_far=("ask: approved 1 of 2 (ana)",)),
            "\nask: approved 1 of 2",
        ),
    ],
)
def test_who_goes_on_with_the_run_is_said(asked: Asked, told: str) -> None:
    """And how far an approval is."""
    assert told in said(asked)


@pytest.mark.parametrize(
    ("carrier", "problem", "when"),
    [
        ("temporal", AWAY, "once temporal can be reached"),
        ("", JournalError("gone"), "once its store is back"),
    ],
)
@pytest.mark.parametrize("quiet", [False, True])
def test_that_nobody_could_be_told_is_said_even_when_quiet(
    carrier: str, problem: GonogoError, when: str, quiet: bool
) -> None:
    """With what will come of it, and why."""
    told = said(Asked("r", carrier=carrier, away=problem), quiet=quiet)
    assert "the answer is kept with run r, which takes it up by itself " + when in told
    assert problem.message in told
