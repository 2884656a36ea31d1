"""The guide's twenty examples: what loads, what is warned about, and what is refused as printed."""

from __future__ import annotations

import pytest
from tests.guide.stage import Stage
from tests.guide.twins import CLASSIFIED, GUARD_STEP, NO_FILES_IF, TWINS, VERIFICATION_LOOPBACK

from gonogo import app
from gonogo.config import Loaded
from gonogo.errors import ConfigError

UNSAFE = {1, 6, 11, 14, 20}
"""Examples that strict safety refuses: contracts that critical steps lack, and questions about all of history."""


def load(text: str, *, strict: bool = False) -> Loaded:
    """Load a text with the scripted step types."""
    return app.loads('version: "1.0"\n' + text, strict=strict, table=Stage({}).table())


def refused(text: str, *, strict: bool = False) -> list[str]:
    """The codes of what a text is refused for."""
    with pytest.raises(ConfigError) as refusal:
        load(text, strict=strict)
    return [problem.code for problem in refusal.value.problems if strict or problem.severity == "error"]


def warned(text: str) -> list[str]:
    """The codes of what a text is warned about."""
    return [problem.code for problem in load(text).problems if problem.severity == "warning"]


@pytest.mark.parametrize("number", TWINS)
def test_H40_every_example_loads(number: int) -> None:
    """H40, H8, H11: under standard safety each of the twenty loads, quoting repaired and missing prompts added."""
    assert load(TWINS[number]).plan.steps


@pytest.mark.parametrize("number", TWINS)
def test_H40_checks_is_another_name_for_steps(number: int) -> None:
    """A.1 rule 5: the guide says `checks:`; it means the same map."""
    renamed = TWINS[number].replace("\nsteps:", "\nchecks:")
    assert list(load(renamed).plan.steps) == list(load(TWINS[number]).plan.steps)


@pytest.mark.parametrize(
    "text",
    [
        'steps: {a: {type: command, exec: "echo \\"{\\\\"n\\\\":1}\\""}}',
        'steps:\n  a:\n    type: command\n    exec: "printf \\"[{""n"":1}]\\""\n',
    ],
)
def test_H40_broken_quoting_is_told_with_its_place(text: str) -> None:
    """H40: five of the printed examples end their text too early; that is one syntax error with a line."""
    with pytest.raises(ConfigError) as refusal:
        load(text)
    (problem,) = refusal.value.problems
    assert problem.code.startswith("yaml")
    assert problem.place is not None


def test_H39_a_model_without_a_prompt_is_refused() -> None:
    """H39, A.6: a prompt is required, and a model has no `exec`."""
    assert refused(NO_FILES_IF.replace("    prompt: Sum up the change.\n", "")) != []
    assert "key.unknown" in refused(NO_FILES_IF.replace("prompt: Sum", "exec: echo\n    prompt: Sum"))


def test_example_6_needs_the_steps_that_it_names() -> None:
    """I.1 8, A.6: a transition to a step that isn't there is refused, not ignored."""
    text = VERIFICATION_LOOPBACK.replace("  summary:", "  another:")
    assert refused(text) == ["reference.unknown"]


def test_H12_the_guards_printed_question_is_warned_about() -> None:
    """H12, G35: `output.exitCode` is never there; `output_meta.exit_code` always is."""
    printed = GUARD_STEP.replace("output_meta.exit_code", "output.exitCode")
    assert warned(GUARD_STEP) == []
    assert len(warned(printed)) == 1


@pytest.mark.parametrize("number", TWINS)
def test_G4_strict_safety_refuses_what_is_unsafe(number: int) -> None:
    """G4, G18, H4: under `safety: strict` warnings are errors; what says its contracts loads all the same."""
    text = "safety: strict\n" + TWINS[number]
    if number in UNSAFE:
        assert set(refused(text)) <= {
            "contract.missing_assume",
            "contract.missing_output",
            "expression.cumulative",
        }
    else:
        assert load(text).plan.safety == "strict"


@pytest.mark.parametrize("word", ["external", "internal", "policy", "info"])
def test_G5_criticality_is_one_of_four_words(word: str) -> None:
    """G5, example 1: declared on a step, and kept as declared."""
    step = load(CLASSIFIED.replace("external", word)).plan.steps["reply"]
    assert (step.criticality, step.criticality_source) == (word, "explicit")


def test_G5_another_word_is_refused() -> None:
    """G5: the peer took any."""
    assert refused(CLASSIFIED.replace("external", "vital")) == ["value.invalid"]
