"""noop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import ValidationError

from gonogo.provider import UNSET, Done, Outcome


def test_noop_gives_nothing(do: Callable[..., Outcome]) -> None:
    """E.5: no output, no issues."""
    outcome = do("noop", {})
    assert isinstance(outcome, Done)
    assert outcome.output is UNSET
    assert outcome.issues == ()
    assert outcome.effect == "none"


def test_noop_takes_no_keys(do: Callable[..., Outcome]) -> None:
    """A key that means nothing is an error."""
    with pytest.raises(ValidationError):
        do("noop", {"message": "hi"})
