"""G4, G18 to G20, G33 (A.6): what a file is warned about, and refused for under a strict profile."""

from __future__ import annotations

import pytest
from tests.guide.test_twins import load, refused, warned

from gonogo.errors import ConfigError

ROUND = """
{top}
steps:
  draft: {{type: noop}}
  review:
    type: noop
    depends_on: draft
    {keys}
    on_fail: {{{way}}}
"""
WAYS = {
    "goto": "goto: draft",
    "transitions": "transitions: [{when: 'attempt > 0', to: draft}]",
}


@pytest.mark.parametrize("way", WAYS)
def test_G_20_a_way_back_without_a_budget_of_its_own_is_warned_about(way: str) -> None:
    """G20, A.6: a cycle of routes bounded by the default alone: a warning; an error under strict."""
    text = ROUND.format(top="", keys="group: g", way=WAYS[way])
    assert len(warned(text)) == 1
    assert refused("safety: strict" + text) == warned(text)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("top", "keys"), [("routing: {max_loops: 4}", "group: g"), ("", "loop_budget: 3")])
def test_G_20_a_tight_budget_is_enough(way: str, top: str, keys: str) -> None:
    """G20: below the default, by the file or by the step."""
    assert warned(ROUND.format(top=top, keys=keys, way=WAYS[way])) == []


def test_G_20_a_way_ahead_is_no_loop() -> None:
    """G20: a transition to a step that doesn't lead back."""
    step = "{type: noop, on_success: {transitions: [{when: 'true', to: b}]}}"
    text = f"steps: {{a: {step}, b: {{type: noop, start: routed}}}}"
    assert warned(text) == []


UNSAFE = {
    "criticality: external, mutates: false": {"contract.missing_assume"},
    "criticality: internal": {"contract.missing_assume"},
    "assume: output.done": {"assume.own_output"},
    "on_fail: {retry: {max: 9}}": {"retry.capped"},
    "criticality: policy, on_fail: {retry: {max: 1, retry_on: [logical]}}": {"retry.logical"},
}


@pytest.mark.parametrize("keys", UNSAFE)
def test_G_4_strict_turns_warnings_into_errors(keys: str) -> None:
    """G4: standard warns, strict refuses, by the file or from the command line."""
    text = f"\nsteps: {{a: {{type: noop, {keys}}}}}"
    found = set(warned(text))
    assert len(found) == 1
    assert set(refused("safety: strict" + text)) == set(refused(text, strict=True)) == found


@pytest.mark.parametrize("word", ["off", "standard", "strict"])
def test_G_4_a_profile_is_one_of_three(word: str) -> None:
    """G4: and standard when nothing is said."""
    assert load(f"safety: '{word}'\nsteps: {{a: {{type: noop}}}}").plan.safety == word
    assert load("steps: {a: {type: noop}}").plan.safety == "standard"


def test_G_4_another_profile_is_refused() -> None:
    """G4: with its place."""
    with pytest.raises(ConfigError) as refusal:
        load("safety: paranoid\nsteps: {a: {type: noop}}")
    assert refusal.value.problems[0].path == "safety"
