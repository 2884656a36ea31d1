"""`reliability:` of a file and of its steps."""

from __future__ import annotations

from typing import Any

import pytest

STEP = "steps: {a: {type: http_client, url: 'http://x.example/', %s}}"


def test_a_step_names_a_policy_of_the_file(load_text: Any) -> None:
    """The plan keeps both as they are written; what they mean is the gate's."""
    made = load_text(
        "reliability: {careful: {bounds: {deadline_s: 5}}}\n" + STEP % "reliability: careful"
    ).plan
    assert made.reliability == {"careful": {"bounds": {"deadline_s": 5}}}
    assert made.steps["a"].reliability == "careful"


def test_a_policys_deadline_is_the_steps_time_unless_it_has_its_own(load_text: Any) -> None:
    """Semantics 23: the step's timeout is the gate's deadline."""
    policy = "reliability: {bounds: {deadline_s: 5}}"
    assert load_text(STEP % policy).plan.steps["a"].timeout_s == 5
    assert load_text(STEP % f"timeout: 2s, {policy}").plan.steps["a"].timeout_s == 2
    assert load_text(STEP % "method: GET").plan.steps["a"].timeout_s == 30


def test_the_policy_named_default_is_for_steps_that_call_out_and_name_none(load_text: Any) -> None:
    """A command's time stays its own."""
    text = "reliability: {default: {bounds: {deadline_s: 5}}}\n"
    made = load_text(
        text + "steps: {a: {type: http_client, url: 'http://x.example/'}, b: {type: command, exec: ls}}"
    ).plan
    assert made.steps["a"].timeout_s == 5
    assert made.steps["b"].timeout_s == 60


@pytest.mark.parametrize(
    ("policy", "code", "path"),
    [
        ("{bounds: {atempts_max: 1}}", "policy.key", ".bounds.atempts_max"),
        ("{bounds: {attempts_max: two}}", "policy.form", ".bounds.attempts_max"),
        ("{bounds: {attempts_max: 0}}", "policy.number", ".bounds.attempts_max"),
        ("{bounds: {deadline_s: -1}}", "policy.number", ".bounds.deadline_s"),
        ("{after: {then: retry}}", "policy.form", ".after"),
        ("{after: [{then: retry}]}", "policy.form", ".after[0].when"),
        ("{after: [{when: 'true', then: skip-target}]}", "rule.verb", ".after[0].then"),
        ("{after: [{when: {eror: 1}, then: retry}]}", "rule.when", ".after[0].when.eror"),
        ("{after: [{when: 'eror_kind == 1', then: retry}]}", "expression.name", ".after[0].when"),
        ("{targets: []}", "policy.targets", ".targets"),
        ("{targets: [{model: m}]}", "policy.form", ".targets[0]"),
        ("{mode: sideways}", "policy.form", ".mode"),
        ("{before: 7}", "policy.form", ".before"),
    ],
)
@pytest.mark.parametrize("inline", [True, False])
def test_what_is_wrong_with_a_policy_is_told_at_its_place(
    refuse: Any, policy: str, code: str, path: str, inline: bool
) -> None:
    """Before anything runs, on a step and at the top alike."""
    named = f"reliability: {{p: {policy}}}\n" + STEP % "reliability: p"
    text, at = (STEP % f"reliability: {policy}", "steps.a") if inline else (named, "")
    place = f"{at}.reliability{path}" if inline else f"reliability.p{path}"
    assert (code, place) in [(each.code, each.path) for each in refuse(text)]


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("{bounds: {deadline_s: soon}}", "expected a number, got text"),
        ("{bounds: {attempts_max: two}}", "expected a whole number, got text"),
        ("{targets: [{model: m}]}", "missing required field `name`"),
    ],
)
def test_what_a_policy_should_hold_is_told_in_words(refuse: Any, policy: str, told: str) -> None:
    """Not by the names of Python's types."""
    [problem] = refuse(STEP % f"reliability: {policy}")
    assert told in problem.message


def test_rules_see_the_calls_names_and_those_of_the_step(load_text: Any) -> None:
    """`error_kind` is the call's, `inputs` the workflow's."""
    rule = "{when: \"error_kind == 'server-5xx' && inputs.patient\", then: retry}"
    assert load_text(STEP % f"reliability: {{after: [{rule}]}}")


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ("{after: [{when: 'true', then: retry-other}]}", "after[0].then"),
        ("{bounds: {attempts_per_target: 1}, after: [{when: 'attempt < 3', then: retry}]}", "after[0].then"),
        ("{after: [{when: {attempt: 1}, then: retry}, {when: {attempt: 1}, then: ok}]}", "after[1].when"),
        (
            "{mode: pass-through, after: [{when: {attempt: 1}, then: retry, feedback: no}]}",
            "after[0].feedback",
        ),
    ],
)
def test_what_can_not_be_meant_is_a_warning(warn: Any, policy: str, path: str) -> None:
    """Unreachable rules, verbs without a place to go, a retry of what is out already."""
    policy = policy.replace("feedback: no", "feedback: again")
    found = [(each.code, each.path) for each in warn(STEP % f"reliability: {policy}")]
    assert ("policy.doubt", f"steps.a.reliability.{path}") in found


def test_a_policy_that_is_not_there_is_refused_with_the_nearest(refuse: Any) -> None:
    """A misspelt name would mean no policy at all."""
    [problem] = refuse("reliability: {careful: {}}\n" + STEP % "reliability: carefull")
    assert (problem.code, problem.suggestion) == ("policy.unknown", "did you mean careful?")


def test_a_policy_on_a_step_that_calls_nothing_is_said_to_be_idle(warn: Any) -> None:
    """CLI-1: no key does nothing in silence."""
    [problem] = warn("steps: {a: {type: noop, reliability: {}}}")
    assert (problem.code, problem.path) == ("key.idle", "steps.a.reliability")


def test_a_policy_that_no_step_goes_by_is_noted(warn: Any) -> None:
    """Not wrong: files that others extend hold some."""
    found = warn("reliability: {spare: {}}\n" + STEP % "reliability: {}")
    assert [(each.code, each.severity) for each in found] == [("policy.unused", "info")]


def test_a_breaker_and_hedging_may_be_switched_off(load_text: Any) -> None:
    """`breaker: false`; `null` is for taking back what a file one extends says."""
    assert load_text(STEP % "reliability: {breaker: false}").plan.steps["a"].reliability == {"breaker": False}


def test_what_a_policy_leaves_to_the_step_type_is_not_doubted(load_text: Any) -> None:
    """A model's step has targets of its own, and takes feedback whatever the mode says of streams."""
    other, again = (
        "when: {error_kind: overloaded}, then: retry-other",
        "when: {error_kind: schema-fail}, then: retry",
    )
    rules = f"[{{{other}}}, {{{again}, feedback: f}}]"
    asks = "provider: openai, model: m, prompt: hi, targets: [{model: a}, {model: b}]"
    loaded = load_text(f"steps:\n  a: {{{asks}, reliability: {{after: {rules}}}}}\n")
    assert [problem.code for problem in loaded.problems] == []
    doubted = load_text(f"steps:\n  a: {{{asks}, reliability: {{targets: [{{name: x}}], after: {rules}}}}}\n")
    assert [problem.code for problem in doubted.problems] == ["policy.doubt"]


TARGETS = "steps: {a: {type: ai, provider: mock, mock: {answers: [x]}, prompt: hi, targets: [%s], %s}}"


@pytest.mark.parametrize(
    ("targets", "policy", "path"),
    [
        ("{weight: 1}, {weight: 2}", "reliability: {order: weighted}", None),
        ("{weight: 1}, {}", "reliability: {order: least-latency}", "steps.a.targets[0].weight"),
        ("{}, {weight: 1}", "tags: [x]", "steps.a.targets[1].weight"),
        ("{}, {}", "reliability: {order: weighted}", "steps.a.targets"),
        ("{}, {}", "reliability: {order: least-latency}", None),
    ],
)
def test_weights_of_a_step_and_the_order_of_its_policy_belong_together(
    load_text: Any, targets: str, policy: str, path: str | None
) -> None:
    """The targets are the step's, the order is the policy's: each alone is idle."""
    found = [each for each in load_text(TARGETS % (targets, policy)).problems if each.code == "policy.doubt"]
    assert [each.path for each in found] == ([] if path is None else [path])


def test_a_named_policy_that_orders_by_weight_is_held_against_the_steps_targets(load_text: Any) -> None:
    """Also the one that is the default."""
    text = "reliability: {default: {order: weighted}}\n" + TARGETS % ("{weight: 1}, {}", "tags: [x]")
    assert [each for each in load_text(text).problems if each.code == "policy.doubt"] == []
