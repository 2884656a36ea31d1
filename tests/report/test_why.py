"""OBS-1: why a step didn't run."""

from __future__ import annotations

import pytest
from tests.report.conftest import Reporting

from gonogo.report.why import CHAIN_MAX

TEN = """
if-false: {type: noop, if: "env.NOPE === 'yes'"}
if-error: {type: noop, if: "env.NOPE.length > 1"}
assumes: {type: noop, assume: "1 > 2"}
broken: {type: script, content: "throw new Error('no')"}
needs-broken: {type: noop, depends_on: broken}
needs-that: {type: noop, depends_on: needs-broken}
needs-skipped: {type: noop, depends_on: if-false}
one-of: {type: noop, depends_on: "broken|if-false"}
nothing: {type: script, forEach: true, content: "return []"}
each: {type: noop, depends_on: nothing, fanout: map}
on-pr: {type: noop, on: [pr_opened]}
needs-on-pr: {type: noop, depends_on: on-pr}
tagged: {type: noop, tags: [slow]}
"""


def test_OBS_1_every_skip_has_a_stable_reason_and_its_root(reporting: Reporting) -> None:
    """The codes, and the chain from the next cause to the root."""
    found = reporting(TEN, event="manual").whys
    assert {name: (why.reason, why.chain) for name, why in found.items()} == {
        "if-false": ("if_condition", ()),
        "if-error": ("if_condition", ()),
        "assumes": ("assume", ()),
        "needs-broken": ("dependency_failed", ("broken",)),
        "needs-that": ("dependency_failed", ("needs-broken", "broken")),
        "needs-skipped": ("dependency_failed", ("if-false",)),
        "one-of": ("dependency_failed", ("broken",)),
        "each": ("forEach_empty", ("nothing",)),
        "on-pr": ("event_filter", ()),
        "needs-on-pr": ("dependency_excluded", ("on-pr",)),
        "tagged": ("tag_filter", ()),
    }


def test_OBS_1_a_condition_is_shown_with_the_values_it_saw(reporting: Reporting) -> None:
    """Expression, paths and values; an error in place of a result."""
    found = reporting(TEN, event="manual").whys
    assert found["if-false"].text == "its if is false: env.NOPE === 'yes', with env.NOPE = null"
    assert found["if-false"].values == {"env.NOPE": None}
    assert found["if-error"].text.startswith("its if can't be evaluated: ")
    assert found["if-error"].error
    assert found["assumes"].text == "its assume is false: 1 > 2"


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ("needs-that", "needs needs-broken → broken, which failed"),
        ("needs-skipped", "needs if-false, which was skipped: its if is false"),
        ("each", "nothing gave no items"),
        ("on-pr", "not for manual (on: pr_opened)"),
        ("needs-on-pr", "needs on-pr, which is left out: not for manual"),
        ("tagged", "runs only when --tags names one of: slow"),
    ],
)
def test_OBS_1_a_reason_reads_as_a_sentence(reporting: Reporting, step: str, text: str) -> None:
    """With the root's own reason where that says more."""
    assert reporting(TEN, event="manual").whys[step].text.startswith(text)


def test_OBS_1_fail_fast_names_who_stopped_the_run(reporting: Reporting) -> None:
    """Semantics 4."""
    steps = "a: {type: script, content: 'throw new Error(1)'}\nb: {type: noop}"
    found = reporting(steps, limits={"fail_fast": True, "max_parallelism": 1}).whys
    assert found["b"].reason == "fail_fast"
    assert found["b"].text == "the run stops at the first failure (fail_fast) after a"


def test_OBS_1_counts_by_reason_add_up(reporting: Reporting) -> None:
    """Skipped steps in the statistics are those with a reason here."""
    report = reporting(TEN, event="manual")
    skipped = [name for name in report.whys if name not in report.view.excluded]
    assert len(skipped) == report.view.statistics["skippedChecks"]


def test_OBS_1_the_json_has_it_too(reporting: Reporting) -> None:
    """At each skipped step, and for what was left out."""
    whole = reporting(TEN, event="manual").as_json()
    assert whole["steps"]["needs-that"]["why"]["because"] == ["needs-broken", "broken"]
    assert whole["left_out"]["on-pr"]["reason"] == "event_filter"


def test_tags_that_were_asked_for_are_named(reporting: Reporting) -> None:
    """Both filters."""
    steps = "a: {type: noop, tags: [slow]}\nb: {type: noop, tags: [fast]}"
    found = reporting(steps, limits={"include_tags": ("fast",), "exclude_tags": ("x",)}).whys
    assert found["a"].text == "has none of the tags fast (tags: slow)"
    found = reporting(steps, limits={"exclude_tags": ("slow",)}).whys
    assert found["a"].text == "has an excluded tag (tags: slow)"


@pytest.mark.parametrize("first", ["script, content: 'throw new Error(1)'", "noop, on: [pr_opened]"])
def test_OBS_1_a_long_chain_is_cut_before_its_root(reporting: Reporting, first: str) -> None:
    """Each step of it has a chain: in whole they would be as long as the square of the steps."""
    steps = "\n".join(f"s{n}: {{type: noop, depends_on: s{n - 1}}}" for n in range(1, 60))
    why = reporting(f"s0: {{type: {first}}}\n{steps}", event="manual").whys["s59"]
    assert why.chain == (*(f"s{n}" for n in range(58, 58 - CHAIN_MAX + 1, -1)), "s0")
    assert why.text.startswith("needs s58 → s57 → s56 → s55 → … → s0, which ")
