"""G2, G3, G10, G24, G32 with H3, H6, H20 and H38: what is retried, how often, and who counts."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from tests.guide.conftest import Play, play
from tests.guide.stage import Fails
from tests.whole import Ran, RunYaml

from gonogo.core import decisions as d
from gonogo.core.faults import FaultClass

__all__ = ["play"]

CRITICALITIES = ("external", "internal", "policy", "info")
ASKED = ("", "transient", "logical", "transient, logical")

REPEATS = {
    ("transient", ""),
    ("transient", "transient"),
    ("transient", "transient, logical"),
    ("logical", "logical"),
    ("logical", "transient, logical"),
}
"""Class of a fault and what `retry_on` says, where it may be repeated; logical ones at info only (C.8)."""


@pytest.mark.parametrize("fault_class", ["transient", "logical", "bug"])
def test_I_2_retry_honours_the_class(play: Play, fault_class: FaultClass) -> None:
    """I.2 retry, G3, G32, H3: class x criticality x retry_on; critical steps never repeat what is simply wrong."""
    combinations = {f"s{n}": pair for n, pair in enumerate(product(CRITICALITIES, ASKED))}
    steps = "".join(step(name, *pair, retries=9) for name, pair in combinations.items())
    ran = play("steps:\n" + steps, dict.fromkeys(combinations, Fails(fault_class)))
    for name, (criticality, asked) in combinations.items():
        allowed = (fault_class, asked) in REPEATS and (fault_class != "logical" or criticality == "info")
        most = (3 if criticality == "info" else 2) if allowed else 0
        assert (criticality, asked, len(ran.stage.called(name))) == (criticality, asked, 1 + most)


def step(name: str, criticality: str, asked: str = "", retries: int = 9) -> str:
    """A step that is to be retried."""
    classes = f", retry_on: [{asked}]" if asked else ""
    retry = f"{{max: {retries}{classes}}}"
    return f"  {name}: {{type: noop, criticality: {criticality}, on_fail: {{retry: {retry}}}}}\n"


@pytest.mark.parametrize(
    ("safety", "retries", "expected"),
    [("standard", 9, [3, 3, 3, 4]), ("standard", 1, [2] * 4), ("off", 5, [6] * 4)],
)
def test_G_10_retries_have_a_cap(play: Play, safety: str, retries: int, expected: list[int]) -> None:
    """G10, H20: 3 for info, 2 for critical steps; less stays less; `safety: off` keeps what was written."""
    steps = "".join(step(name, name, retries=retries) for name in CRITICALITIES)
    ran = play(f"safety: {safety}\nsteps:\n{steps}", dict.fromkeys(CRITICALITIES, Fails()))
    assert [len(ran.stage.called(name)) for name in CRITICALITIES] == expected


BROKEN = """
steps:
  a:
    type: script
    content: "return 'text'"
    criticality: {criticality}
    schema: {{type: number}}
    on_fail: {{retry: {{max: 2, retry_on: [transient, logical]}}, run: [told]}}
  told: {{type: noop}}
  after: {{type: noop, depends_on: a}}
"""


@pytest.mark.parametrize("criticality", CRITICALITIES)
def test_H_6_an_output_against_its_schema_is_a_failure(run_yaml: RunYaml, criticality: str) -> None:
    """H6, H5: failed and routed at every criticality; tried again only where logical faults may be."""
    ran = run_yaml(BROKEN.format(criticality=criticality))
    assert ran["a"].outcome == ("tolerated" if criticality == "info" else "failed")
    assert ran.calls["a"] == (3 if criticality == "info" else 1)
    assert ran["told"].outcome == "passed"
    assert ran.rules("a") == ["contract/schema_validation_failed"]


COUNTED = """
steps:
  a:
    type: noop
    fail_if: attempt < 3
    on_fail: {retry: {max: 3, retry_on: [logical], backoff: {delay_ms: 1}}}
"""


def test_G_24_the_attempt_can_be_read(run_yaml: RunYaml) -> None:
    """G24, H38: `attempt` counts from 1 in every construct; the engine's counters are not in the user's memory."""
    ran = run_yaml(COUNTED)
    assert (ran.calls["a"], ran.verdict) == (3, "GO")
    assert ran.result.state.memory == {}


def test_G_24_the_count_goes_on_after_a_crash(run_yaml: RunYaml, tmp_path: Path) -> None:
    """G24, I.1 17: cut after the first retry was decided, the resumed run makes the attempts that were left."""
    whole = run_yaml(COUNTED, run_id="whole")
    journal = next((tmp_path / "runs").rglob("*.jsonl"))
    lines = journal.read_bytes().splitlines(keepends=True)
    keep = next(
        n
        for n, record in enumerate(whole.records)
        if any(isinstance(x, d.Retrying) for x in record.decisions)
    )
    journal.write_bytes(b"".join(lines[: keep + 1]))
    ran = Ran(whole.result, whole.runs, whole.folder, []).resumed()
    assert [one.attempt for one in ran.decisions(d.Started, "a")] == [1, 2, 3]
    assert ran.verdict == "GO"
