"""Example 9 and what the guide says of critical and other steps, and of criticality beside continue_on_failure."""

from __future__ import annotations

import pytest
from tests.guide import twins
from tests.guide.conftest import Play
from tests.guide.stage import Fails
from tests.guide.test_twins import load, warned

# --- Example 9


@pytest.mark.parametrize(
    ("answer", "outcome"), [({"troubles": []}, "passed"), ({}, "passed"), ({"troubles": [1]}, "tolerated")]
)
def test_a_step_may_fail_without_stopping_the_rest(play: Play, answer: object, outcome: str) -> None:
    """Example 9: what is behind it runs either way, and the run is GO."""
    ran = play(twins.SOFT, {"digest": answer}, event="pr_opened")
    assert (ran["digest"].outcome, ran["file-digest"].outcome, ran.verdict) == (outcome, "passed", "GO")


def test_a_tolerated_failure_keeps_its_issue(play: Play) -> None:
    """Example 9: nothing is hidden: fault, issue and outcome tell it."""
    ran = play(twins.SOFT, {"digest": {"troubles": [1]}}, event="pr_opened")
    assert ran.rules("digest") == ["digest_fail_if"]
    assert ran["digest"].fault is not None


def test_an_outage_of_a_soft_step_is_tolerated_too(play: Play) -> None:
    """Example 9: a failed call is a failure like any other."""
    ran = play(twins.SOFT, {"digest": Fails()}, event="pr_opened")
    assert (ran["digest"].outcome, ran.verdict) == ("tolerated", "GO")


def test_without_the_key_the_tag_info_tolerates_nothing(play: Play) -> None:
    """Example 9, semantics 1: a tag says how critical a step is, not that its failure may pass."""
    text = twins.SOFT.replace("    continue_on_failure: true\n", "")
    ran = play(text, {"digest": {"troubles": [1]}}, event="pr_opened")
    assert (ran["digest"].outcome, ran.why("file-digest")[1], ran.verdict) == (
        "failed",
        "dependency_failed",
        "NO-GO",
    )


# --- Which steps are critical


INFERRED = {
    "type: github, op: comment.create": "external",
    "type: github, op: labels.remove": "external",
    "type: github, op: issues.list": "info",
    "type: http_client, url: 'http://localhost/', method: POST": "external",
    "type: http_client, url: 'http://localhost/', method: DELETE": "external",
    "type: http_client, url: 'http://localhost/', method: HEAD": "info",
    "type: http_client, url: 'http://localhost/'": "info",
    "type: http_client, url: 'http://localhost/', output_file: page.html": "external",
    "type: command, exec: echo, mutates: true": "external",
    "type: command, exec: echo": "info",
    "type: script, content: '1', forEach: true": "internal",
    "type: noop, on_success: {goto: other}": "internal",
    "type: noop, on_fail: {run: [other]}": "internal",
    "type: noop, on_fail: {transitions: [{when: 'true', to: other}]}": "internal",
    "type: ai, prompt: Hm?": "info",
}


@pytest.mark.parametrize("step", INFERRED)
def test_G_6_criticality_is_inferred_from_what_a_step_does(step: str) -> None:
    """G6, G36, H2: changing the outside is external, routing and lists are internal, all else is not critical."""
    found = load(f"steps: {{it: {{{step}}}, other: {{type: noop}}}}").plan.steps["it"]
    assert (found.criticality, found.criticality_source) == (INFERRED[step], "inferred")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("criticality: info, tags: [critical, external]", ("info", "explicit")),
        ("critical: true", ("external", "explicit")),
        ("critical: false", ("info", "explicit")),
        ("tags: [info]", ("info", "tag")),
        ("tags: [internal]", ("internal", "tag")),
        ("tags: [critical]", ("external", "tag")),
        ("tags: [nightly]", ("external", "inferred")),
    ],
)
def test_what_is_written_comes_before_tags_and_tags_before_guesses(
    keys: str, expected: tuple[str, str]
) -> None:
    """G8, G34, H2: the field, then the shorthand, then a reserved tag, then what the type does."""
    text = f"steps: {{it: {{type: github, op: comment.create, {keys}}}}}"
    step = load("tag_filter: {include: [nightly]}\n" + text).plan.steps["it"]
    assert (step.criticality, step.criticality_source) == expected


@pytest.mark.parametrize("tag", ["critical", "external", "internal", "info"])
def test_H_7_reserved_tags_leave_no_step_out(play: Play, tag: str) -> None:
    """H7, G34: usable without a tag filter, as the guide does."""
    ran = play(f"steps: {{it: {{type: noop, tags: [{tag}]}}, other: {{type: noop, tags: [slow]}}}}")
    assert (ran["it"].outcome, set(ran.view.excluded)) == ("passed", {"other"})


# --- Contracts are asked for


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("", {"contract.missing_assume", "contract.missing_output"}),
        (", assume: 'true'", {"contract.missing_output"}),
        (", if: 'true', guarantee: ['true']", set()),
        (", assume: ['true'], guarantee: 'true'", set()),
        (", assume: 'true', schema: {type: object}", set()),
    ],
)
@pytest.mark.parametrize("criticality", ["external", "internal"])
def test_G_18_a_critical_step_should_say_its_contracts(
    criticality: str, keys: str, expected: set[str]
) -> None:
    """G18, H4: warned about what is missing; one text or a list will do, and a schema is a guarantee."""
    assert (
        set(warned(f"steps: {{it: {{type: command, exec: echo, criticality: {criticality}{keys}}}}}"))
        == expected
    )


def test_contracts_are_only_recommended_to_others() -> None:
    """Info steps, written so or inferred, are not warned about."""
    assert (
        warned(
            "steps: {it: {type: command, exec: echo, criticality: info}, other: {type: command, exec: echo}}"
        )
        == []
    )


def test_G_19_an_unclassified_mutating_step_is_warned_about() -> None:
    """G19: a post without a word on its criticality; a read needs none."""
    assert warned("steps: {it: {type: github, op: comment.create}}") == ["criticality.inferred"]
    assert warned("steps: {it: {type: github, op: comment.create, criticality: external, if: 'true'}}") == []
    assert warned("steps: {it: {type: http_client, url: 'http://localhost/'}}") == []


# --- Criticality beside tolerance


@pytest.mark.parametrize(
    ("keys", "after", "verdict"),
    [
        ("criticality: external", "skipped", "NO-GO"),
        ("criticality: internal", "skipped", "NO-GO"),
        ("criticality: policy", "skipped", "NO-GO"),
        ("criticality: info", "passed", "GO"),
        ("criticality: info, continue_on_failure: false", "skipped", "NO-GO"),
        ("criticality: external, continue_on_failure: true", "passed", "GO"),
        ("criticality: policy, continue_on_failure: true", "passed", "GO"),
    ],
)
def test_H_46_criticality_sets_defaults_that_can_be_overridden(
    play: Play, keys: str, after: str, verdict: str
) -> None:
    """H46, A.5: only a written info tolerates failure by default; what is written wins."""
    ran = play(
        f"steps: {{it: {{type: noop, {keys}}}, next: {{type: noop, depends_on: it}}}}", {"it": Fails()}
    )
    assert (ran["next"].outcome, ran.verdict) == (after, verdict)


def test_one_edge_may_be_opened_by_itself(play: Play) -> None:
    """H33: per edge: one dependent runs, the other doesn't, and the failure still counts."""
    text = """
steps:
  it: {type: noop}
  near: {type: noop, depends_on: [{step: it, on_failure: continue}]}
  far: {type: noop, depends_on: it}
"""
    ran = play(text, {"it": Fails()})
    assert (ran["near"].outcome, ran["far"].outcome, ran.verdict) == ("passed", "skipped", "NO-GO")
