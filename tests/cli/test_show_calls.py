"""`show` tells of calls that were tried again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Gonogo
from tests.servers import faulty
from tests.servers.faulty import FaultyServer

STEP = (
    'version: "1.0"\nsteps:\n  a:\n    type: http_client\n    url: "%s"\n'
    "    reliability: {backoff: {base_s: 0.001}}\n"
)


@pytest.fixture
def failed(gonogo: Gonogo, tmp_path: Path) -> str:
    """A run whose call failed three times; where it called."""
    with FaultyServer(faulty.answer(503)) as far:
        (tmp_path / "gonogo.yaml").write_text(STEP % far.url)
        assert gonogo("run").code == 1
    return far.url


def test_attempts_are_shown_under_their_step(gonogo: Gonogo, failed: str) -> None:
    """A line each, with what came of it."""
    shown = gonogo("show", "last").out
    assert f"attempt 1 on {failed}: overloaded (503)" in shown
    assert "attempt 3 on" in shown


def test_programs_get_the_whole_record(gonogo: Gonogo, failed: str) -> None:
    """Under the step."""
    gate = gonogo("show", "last", "--format", "json").json["steps"]["a"]["gate"]
    assert [each["status"] for each in gate["attempts"]] == [503, 503, 503]


@pytest.mark.parametrize("words", [("--records",), ("--explain", "a")])
def test_the_calls_story_is_told_in_sentences(gonogo: Gonogo, failed: str, words: tuple[str, ...]) -> None:
    """E.10: generated from the records; within the story of its fault, too."""
    told = " ".join(gonogo("show", "last", *words).out.split())
    assert "the taxonomy wanted retry" in told
    assert "ended failed after 3 attempts: overloaded" in told


def test_a_call_that_worked_at_once_says_nothing(gonogo: Gonogo, tmp_path: Path) -> None:
    """Rows stay one line."""
    with FaultyServer(faulty.answer()) as far:
        (tmp_path / "gonogo.yaml").write_text(STEP % far.url)
        assert gonogo("run").code == 0
    assert "attempt" not in gonogo("show", "last").out
