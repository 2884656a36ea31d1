"""What `gonogo worker` is told, before it reaches for its store or engine."""

from __future__ import annotations

import pytest
from msgspec import Meta
from tests.cli.conftest import Gonogo

from gonogo.cli.verbs.worker import LABEL, UNLIMITED
from gonogo.config.schema.base import Label
from gonogo.engines import base

NOWHERE = ("--engine", "dbos", "--store", "postgresql://ann@127.0.0.1:1/x")


@pytest.mark.parametrize("label", ["", "a b", "A", "é", "-a", "a'; drop table x", "x" * 41, "a\n"])
def test_a_label_that_no_file_can_name_is_refused(gonogo: Gonogo, label: str) -> None:
    """It would wait for calls that never come; it is part of a queue's name, too."""
    ended = gonogo("worker", *NOWHERE, "--label", label)
    assert (ended.code, "can't be a label" in ended.err) == (2, True)


def test_labels_are_those_of_files() -> None:
    """One pattern, written in two places."""
    [meta] = [each for each in Label.__metadata__ if isinstance(each, Meta)]
    assert meta.pattern == f"^{LABEL}$"
    assert UNLIMITED == base.UNLIMITED


@pytest.mark.parametrize("bound", ["0", "-1", "1.5", "x", "", "\u0663", "100001", "9" * 5000])
def test_a_bound_over_all_workers_that_is_none_is_refused(gonogo: Gonogo, bound: str) -> None:
    """It may be lifted, which takes a word of its own."""
    ended = gonogo("worker", *NOWHERE, "--calls-everywhere", bound)
    assert (ended.code, "'unlimited' lifts what was set before" in ended.err) == (2, True)


def test_a_bound_that_temporal_would_not_keep_is_refused(gonogo: Gonogo) -> None:
    """A limit that nobody heeds is worse than none."""
    ended = gonogo("worker", "--engine", "temporal", *NOWHERE[2:], "--calls-everywhere", "2")
    assert (ended.code, "Temporal knows no bound of calls over all workers" in ended.err) == (2, True)


@pytest.mark.parametrize(
    "rate", ["1/nan", "1/0", "1/inf", "0/1", "-1/1", "1e9/1", "1/1e-300", f"{10**20}/1", "1", "/"]
)
def test_a_rate_that_nothing_can_keep_is_refused(gonogo: Gonogo, rate: str) -> None:
    """Before anything is written into an engine's tables."""
    ended = gonogo("worker", *NOWHERE, "--rate", rate)
    assert (ended.code, "--rate takes CALLS/SECONDS" in ended.err) == (2, True)


@pytest.mark.parametrize("option", [["--url", "127.0.0.1:7233"], ["--queue", "q"]])
def test_where_temporal_is_is_refused_with_dbos(gonogo: Gonogo, option: list[str]) -> None:
    """It would say that it takes work from there."""
    ended = gonogo("worker", *NOWHERE, *option)
    assert ended.code == 2
    assert f"{option[0]} says where Temporal is" in ended.err
