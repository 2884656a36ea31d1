"""How careful a file is read: `safety` of the file, of the workflow around it, and of the command line (G4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

RETRIES = "steps: {a: {type: noop, criticality: policy, on_fail: {retry: {max: 5}}}}"
BARE = "steps: {a: {type: command, exec: x, criticality: internal}}"


@pytest.mark.parametrize(
    ("said", "asked", "safety", "most"),
    [
        ("", None, "standard", 2),
        ("safety: 'off'\n", None, "off", 5),
        ("", "off", "off", 5),
        ("safety: strict\n", "off", "off", 5),
        ("safety: strict\n", "standard", "standard", 2),
    ],
)
def test_G_4_the_command_line_wins_over_the_file(
    load_text: Any, said: str, asked: Any, safety: str, most: int
) -> None:
    """G4, C.8: `off` keeps what the file asks for; the plan holds what was decided."""
    plan = load_text(said + RETRIES, safety=asked).plan
    assert (plan.safety, plan.steps["a"].on_fail.retry.max) == (safety, most)


@pytest.mark.parametrize(
    ("said", "asked"), [("safety: strict\n", None), ("", "strict"), ("safety: 'off'\n", "strict")]
)
def test_G_4_strict_refuses_what_standard_warns_about(refuse: Any, said: str, asked: Any) -> None:
    """G4: retry caps and missing contracts alike."""
    assert [problem.code for problem in refuse(said + RETRIES, safety=asked)] == ["retry.capped"]
    assert len(refuse(said + BARE, safety=asked)) == 2


def test_G_4_off_is_silent_about_care_and_not_about_mistakes(warn: Any) -> None:
    """G4: what a careful workflow says isn't asked for; a condition that can't mean what it says is told of."""
    off = "safety: 'off'\n"
    assert len(warn(BARE)) == 2
    assert warn(off + BARE) == ()
    assert len(warn(off + "steps: {a: {type: noop, fail_if: output.exitCode > 0}}")) == 1


def test_a_workflow_that_is_run_is_as_careful_as_the_one_around_it(tmp_path: Path, providers: Any) -> None:
    """C.17: unless its own file says otherwise."""
    from gonogo.config import load
    from gonogo.errors import ConfigError

    def around(top: str) -> Any:
        text = f"version: '1.0'\nimports: [quiet.yaml, own.yaml]\n{top}steps: {{a: {{type: noop}}}}"
        (tmp_path / "main.yaml").write_text(text)
        return load(tmp_path / "main.yaml", providers=providers, compile_expressions=lambda _: [])

    (tmp_path / "own.yaml").write_text("version: '1.0'\nid: own\nsafety: standard\n" + RETRIES)
    (tmp_path / "quiet.yaml").write_text("version: '1.0'\nid: quiet\n" + RETRIES)
    plans = around("safety: 'off'\n").plan.workflows
    assert {name: plan.safety for name, plan in plans.items()} == {"own": "standard", "quiet": "off"}
    with pytest.raises(ConfigError) as refusal:
        around("safety: strict\n")
    errors = [problem for problem in refusal.value.problems if problem.severity == "error"]
    assert [Path(problem.place.file).name for problem in errors if problem.place] == ["quiet.yaml"]
