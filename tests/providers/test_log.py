"""log."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import ValidationError

from gonogo.provider import UNSET, Done, Outcome
from gonogo.testing import ScriptedContext

QUIET = {"include_pr_context": False, "include_dependencies": False, "include_metadata": False}


def test_log_says_the_message_at_its_level(do: Callable[..., Outcome], context: ScriptedContext) -> None:
    """E.5: message and level; info when none is given."""
    do("log", {"message": "one"})
    do("log", {"message": "two", "level": "error"})
    assert context.logged == [("info", "one"), ("error", "two")]


def test_log_keeps_the_message_as_content_and_gives_no_output(do: Callable[..., Outcome]) -> None:
    """E.5: the result carries content."""
    outcome = do("log", {"message": "one", **QUIET})
    assert isinstance(outcome, Done)
    assert (outcome.content, outcome.output) == ("one", UNSET)


def test_log_adds_the_facts_around_it_to_the_content(do: Callable[..., Outcome]) -> None:
    """E.5: the include keys are on by default."""
    names = {"pr": {"number": 7, "title": "Fix"}, "outputs": {"a": 1, "b": 2}}
    outcome = do("log", {"message": "m"}, names=names)
    assert isinstance(outcome, Done)
    assert outcome.content == "m\npull request: #7 Fix\noutputs: a, b\nstep: step, attempt 1"


def test_log_refuses_an_unknown_level(do: Callable[..., Outcome]) -> None:
    """Levels are debug, info, warn and error."""
    with pytest.raises(ValidationError):
        do("log", {"message": "m", "level": "loud"})
