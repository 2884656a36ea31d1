"""Examples 1 to 5, 7, 8, 10, 13 and 15 to 19: gates, contracts, detectors and remedies of single steps."""

from __future__ import annotations

import pytest
from tests.guide import twins
from tests.guide.conftest import Play
from tests.guide.stage import Fails, Turns

from gonogo.core import decisions as d

CHANGED = {"files": [{"filename": "a.py"}, {"filename": "b.py"}]}
UNCHANGED: dict[str, object] = {"files": []}
OPENED = {"event": "pr_opened", "context": CHANGED}
MEMBER = {"event": "pr_opened", "context": {"pr": {"number": 1, "authorAssociation": "MEMBER"}}}
STRANGER = {"event": "pr_opened", "context": {"pr": {"number": 1, "authorAssociation": "NONE"}}}

# --- Example 1


def test_a_declared_criticality_is_in_the_report(play: Play) -> None:
    """Example 1: what was declared is what the report and the decisions speak of, and where it came from."""
    ran = play(twins.CLASSIFIED, {"reply": {"number": 1}})
    assert (ran["reply"].criticality, ran["reply"].criticality_source) == ("external", "explicit")
    assert ran.verdict == "GO"


def test_criticality_alone_doesnt_say_whether_dependents_run(play: Play) -> None:
    """Example 1: continue_on_failure does, whatever the criticality."""
    text = twins.CLASSIFIED + "  next: {type: noop, depends_on: reply}\n"
    lax = text.replace("criticality:", "continue_on_failure: true\n    criticality:")
    assert play(text, {"reply": Fails()}).why("next") == ("skipped", "dependency_failed")
    assert play(lax, {"reply": Fails()}).why("next") == ("passed", None)


# --- Example 2: if


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"env": {"ON_SERVER": "yes"}}, ("passed", None)),
        ({}, ("skipped", "if_condition")),
        ({"env": {"ON_SERVER": "yes"}, "context": UNCHANGED}, ("skipped", "if_condition")),
    ],
)
def test_if_decides_whether_the_step_is_scheduled(
    play: Play, given: dict[str, object], why: tuple[str, str | None]
) -> None:
    """Example 2: both halves must hold; else skipped, not counted as a run, nothing called."""
    ran = play(twins.IF_GATE, **{**OPENED, **given})
    assert ran.why("spelling") == why
    assert len(ran.stage.calls) == ran["spelling"].runs == (1 if why[0] == "passed" else 0)
    assert ran.verdict == "GO"


def test_another_event_leaves_the_step_out(play: Play) -> None:
    """Example 2: `on` names two events; for a third the step isn't planned."""
    ran = play(twins.IF_GATE, event="pr_closed", env={"ON_SERVER": "yes"})
    assert ran.view.excluded == {"spelling": "event_filter"}


def test_an_if_that_errs_skips_and_says_so(play: Play) -> None:
    """G25, example 2: the safe side is to skip; the error is an issue, in the record, and NO-GO."""
    ran = play(twins.IF_GATE.replace("filesCount > 0", "files[0].nothing.here > 0"), **OPENED)
    assert ran.why("spelling") == ("skipped", "if_condition")
    assert ran.rules("spelling") == ["expression/error"]
    assert (ran.judged("if")[0].error is not None, ran.verdict) == (True, "NO-GO")


@pytest.mark.parametrize(("needs", "outcome"), [("spelling", "skipped"), ("spelling|other", "passed")])
def test_dependents_of_a_skip_need_another_way(play: Play, needs: str, outcome: str) -> None:
    """Example 2: they are skipped too, unless an alternative of theirs is satisfied."""
    more = f"  other: {{type: noop}}\n  next: {{type: noop, depends_on: {needs}}}\n"
    assert play(twins.IF_GATE + more, **OPENED)["next"].outcome == outcome


# --- Example 3: assume


def test_an_assumption_that_holds_lets_the_step_run(play: Play) -> None:
    """Example 3: environment and results of dependencies can be assumed; each entry is judged."""
    ran = play(twins.ASSUME_ON_A_DEPENDENCY, env={"SCANNER": "ready"})
    assert [judged.result for judged in ran.judged("assume")] == [True, True]
    assert (ran.output("inspect"), ran.verdict) == ("inspected", "GO")


def test_an_assumption_that_doesnt_hold_skips_without_a_call(play: Play) -> None:
    """Example 3, I.2 assume skip: reason assume, no call, no retry; what was prepared has run."""
    text = (
        twins.ASSUME_ON_A_DEPENDENCY
        + "    on_fail: {retry: {max: 2}}\n  next: {type: noop, depends_on: inspect}\n"
    )
    ran = play(text)
    assert ran.why("inspect") == ("skipped", "assume")
    assert (len(ran.stage.called("unpack")), ran.stage.called("inspect")) == (1, [])
    assert (ran.decisions(d.Retrying), ran.rules("inspect")) == ([], [])
    assert ran.why("next") == ("skipped", "dependency_failed")


def test_an_assumption_about_a_dependencys_result_can_fail(play: Play) -> None:
    """Example 3: the second entry, alone."""
    ran = play(twins.ASSUME_ON_A_DEPENDENCY, {"unpack": "nothing"}, env={"SCANNER": "ready"})
    assert ran.why("inspect") == ("skipped", "assume")


def test_an_assume_that_reads_its_own_output_is_warned_about() -> None:
    """G33, example 3: the step has no output yet; such a question belongs into guarantee."""
    from tests.guide.test_twins import warned

    text = twins.ASSUME_ON_A_DEPENDENCY.replace("outputs.unpack === 'unpacked'", "output.done")
    assert len(warned(text)) == 1


# --- Example 4: guarantee


def test_a_guarantee_that_holds_routes_nowhere(play: Play) -> None:
    """Example 4: the remedy waits for a route that doesn't come."""
    ran = play(twins.GUARANTEE_WITH_REMEDY)
    assert (ran.verdict, ran.output("harvest")) == ("GO", {"crates": [4, 5]})
    assert ran.why("replant") == ("skipped", "not_routed")


@pytest.mark.parametrize(
    ("output", "broken"), [({"crates": []}, 1), ({"crates": "none"}, 1), ({}, 2), (None, 2)]
)
def test_a_broken_guarantee_is_a_failure_with_an_issue_each(play: Play, output: object, broken: int) -> None:
    """G28, H1, I.2 guarantee, example 4: one issue for each entry, one call, failed, on_fail routed."""
    ran = play(twins.GUARANTEE_WITH_REMEDY, {"harvest": output})
    assert ran.rules("harvest") == ["contract/guarantee_failed"] * broken
    assert len(ran.stage.called("harvest")) == len(ran.stage.called("replant")) == 1
    assert (ran["harvest"].outcome, ran["replant"].outcome, ran.verdict) == ("failed", "passed", "NO-GO")


def test_a_broken_guarantee_keeps_the_whole_result(play: Play) -> None:
    """Example 4, H17: the step has run: a counted run whose result is recorded, unlike a skip's."""
    ran = play(twins.GUARANTEE_WITH_REMEDY, {"harvest": {"crates": [], "why": "hail"}})
    assert (ran["harvest"].runs, ran.output("harvest")) == (1, {"crates": [], "why": "hail"})


# --- Example 5: fail_if with retry and remedy


def test_a_detector_that_isnt_triggered_passes(play: Play) -> None:
    """Example 5: no failure, nothing routed."""
    ran = play(twins.FAIL_IF_WITH_RETRY, {"exam": {"marks": {"wrong": 0}}})
    assert (ran.verdict, ran.why("keep-papers")) == ("GO", ("skipped", "not_routed"))


def test_a_wrong_result_is_not_retried(play: Play) -> None:
    """Example 5: logical, so one call; the issue is the step's own; the remedy runs."""
    ran = play(twins.FAIL_IF_WITH_RETRY, {"exam": {"marks": {"wrong": 3}}})
    assert (len(ran.stage.called("exam")), len(ran.stage.called("keep-papers"))) == (1, 1)
    assert (ran.rules("exam"), ran["exam"].outcome) == (["exam_fail_if"], "failed")


def test_a_crash_is_retried_after_growing_waits(play: Play) -> None:
    """G9, example 5: twice more, after 4 and 8 ms give or take a tenth; the remedy first each time."""
    ran = play(twins.FAIL_IF_WITH_RETRY, {"exam": Turns(Fails(), Fails(), {"marks": {"wrong": 0}})})
    delays = [one.delay_s * 1000 for one in ran.decisions(d.Retrying)]
    assert [abs(delay / planned - 1) <= 0.1 for delay, planned in zip(delays, (4, 8), strict=True)] == [
        True
    ] * 2
    assert ran.started == ["exam", "keep-papers", "exam", "keep-papers", "exam"]
    assert (ran["exam"].outcome, ran.verdict) == ("passed", "GO")


def test_retries_are_bounded(play: Play) -> None:
    """Example 5: after the last attempt the failure stands."""
    ran = play(twins.FAIL_IF_WITH_RETRY, {"exam": Fails()})
    assert (len(ran.stage.called("exam")), ran["exam"].outcome, ran.verdict) == (3, "failed", "NO-GO")


def test_a_detector_that_errs_is_told_apart(play: Play) -> None:
    """G26, H43: an error is an issue of its own; in a step that routes it counts as a failure, in others it doesn't."""
    plain = twins.FAIL_IF_WITH_RETRY.replace("      run: [keep-papers]\n", "")
    assert play(twins.FAIL_IF_WITH_RETRY, {"exam": {}})["exam"].outcome == "failed"
    ran = play(plain, {"exam": {}})
    assert (ran["exam"].outcome, ran.rules("exam")) == ("passed", ["expression/error"])


# --- Examples 7, 8, 10, 13: external steps


def test_tags_declare_an_external_step(play: Play) -> None:
    """Example 7, G34, H7: two reserved tags do, and don't leave the step out."""
    ran = play(
        twins.TAGGED_EXTERNAL, {"announce": {"number": 9}}, event="pr_opened", env={"MAY_ANNOUNCE": "true"}
    )
    assert (ran["announce"].criticality, ran["announce"].criticality_source) == ("external", "tag")
    assert (ran.verdict, len(ran.stage.calls)) == ("GO", 1)


def test_nothing_is_posted_without_permission(play: Play) -> None:
    """Example 7: a false assumption means no call to the outside."""
    ran = play(twins.TAGGED_EXTERNAL, event="pr_opened")
    assert (ran.why("announce"), ran.stage.calls) == (("skipped", "assume"), [])


def test_a_post_that_gives_no_number_failed_and_isnt_repeated(play: Play) -> None:
    """Example 7, H13: the guarantee is judged on what the call returned; logical, so no second post."""
    ran = play(
        twins.TAGGED_EXTERNAL, {"announce": {"number": "9"}}, event="pr_opened", env={"MAY_ANNOUNCE": "true"}
    )
    assert (ran["announce"].outcome, ran.rules("announce")) == ("failed", ["contract/guarantee_failed"])
    assert len(ran.stage.calls) == 1


def test_an_outage_is_retried_twice_at_most(play: Play) -> None:
    """Example 7: transient faults that did nothing outside are tried again, with growing waits."""
    given = {"event": "pr_opened", "env": {"MAY_ANNOUNCE": "true"}}
    ran = play(twins.TAGGED_EXTERNAL, {"announce": Turns(Fails(), Fails(), {"number": 1})}, **given)
    assert (len(ran.stage.calls), ran.verdict) == (3, "GO")
    assert len(play(twins.TAGGED_EXTERNAL, {"announce": Fails()}, **given).stage.calls) == 3


def test_a_post_that_may_have_arrived_is_never_repeated(play: Play) -> None:
    """Example 7, law 3: when nobody knows whether it was done, a person is asked."""
    ran = play(
        twins.TAGGED_EXTERNAL,
        {"announce": Fails(effect="unknown")},
        event="pr_opened",
        env={"MAY_ANNOUNCE": "true"},
    )
    assert (ran.verdict, ran["announce"].outcome, len(ran.stage.calls)) == ("HOLD", "in_doubt", 1)


@pytest.mark.parametrize(
    ("given", "answer", "outcome"),
    [
        (MEMBER, {"now": ["old", "seen"]}, "passed"),
        (MEMBER, {"now": ["old"]}, "failed"),
        (MEMBER, None, "failed"),
        (STRANGER, {"now": ["seen"]}, "skipped"),
        ({"event": "pr_opened"}, {"now": ["seen"]}, "skipped"),
    ],
)
def test_a_label_is_put_for_members_and_must_be_there(
    play: Play, given: dict[str, object], answer: object, outcome: str
) -> None:
    """Example 8: contracts may be one text each; nobody known is no member (I.1 7)."""
    assert play(twins.LABEL, {"mark": answer}, **given)["mark"].outcome == outcome


@pytest.mark.parametrize("text", [twins.STRICT_COMMENT_BY_TAGS, twins.STRICT_COMMENT])
@pytest.mark.parametrize(
    ("given", "outcome", "calls"),
    [
        (MEMBER, "passed", 1),
        ({**MEMBER, "env": {"REHEARSAL": "true"}}, "skipped", 0),
        (STRANGER, "skipped", 0),
    ],
)
def test_a_strict_comment_needs_both_assumptions(
    play: Play, text: str, given: dict[str, object], outcome: str, calls: int
) -> None:
    """Examples 10 and 13: by tags or by the field, the same rules."""
    ran = play(text, {"thank": {"number": 3}}, **given)
    assert (ran["thank"].outcome, len(ran.stage.calls)) == (outcome, calls)


def test_field_and_tags_mean_the_same() -> None:
    """Examples 10 and 13, 11 and 14: only the source of the criticality differs."""
    from tests.guide.test_twins import load

    for tagged, written in ((10, 13), (11, 14)):
        one, other = load(twins.TWINS[tagged]).plan.steps, load(twins.TWINS[written]).plan.steps
        assert [step.criticality for step in one.values()] == [step.criticality for step in other.values()]


# --- Examples 15 and 16: the same intent


@pytest.mark.parametrize(
    ("text", "reason"), [(twins.NO_FILES_IF, "if_condition"), (twins.NO_FILES_ASSUME, "assume")]
)
def test_both_gates_skip_for_an_empty_change(play: Play, text: str, reason: str) -> None:
    """Examples 15 and 16, H15: no call either way; the reason tells which gate it was."""
    ran = play(text, event="pr_opened", context=UNCHANGED)
    assert (ran.why("digest"), ran.stage.calls, ran.verdict) == (("skipped", reason), [], "GO")
    assert play(text, event="pr_updated", context=CHANGED)["digest"].outcome == "passed"


def test_if_comes_earlier_than_assume(play: Play) -> None:
    """Examples 15 and 16: behind a failed step, `if` still gives its own reason; assume isn't reached."""
    first = "\nsteps:\n  broken: {type: command, exec: exit 1}"
    behind = [
        text.replace("\nsteps:", first) + "    depends_on: broken\n"
        for text in (twins.NO_FILES_IF, twins.NO_FILES_ASSUME)
    ]
    given = {"event": "pr_opened", "context": UNCHANGED}
    assert play(behind[0], **given).why("digest") == ("skipped", "if_condition")
    ran = play(behind[1], **given)
    assert (ran.why("digest"), ran.judged("assume")) == (("skipped", "dependency_failed"), [])


# --- Examples 17 and 18: the same intent


@pytest.mark.parametrize("text", [twins.INVARIANT_BY_GUARANTEE, twins.INVARIANT_BY_FAIL_IF])
@pytest.mark.parametrize(
    ("output", "outcome"), [({"shells": [1]}, "passed"), ({"shells": []}, "failed"), (7, "failed")]
)
def test_both_detectors_fail_and_route(play: Play, text: str, output: object, outcome: str) -> None:
    """Examples 17 and 18: a failed run either way, and the remedy."""
    ran = play(text, {"gather": output})
    assert ran["gather"].outcome == outcome
    assert len(ran.stage.called("dive-again")) == (1 if outcome == "failed" else 0)


def test_their_issues_tell_contract_from_policy(play: Play) -> None:
    """Examples 17 and 18: the rule says which it was."""
    found = [
        play(text, {"gather": {"shells": []}}).rules("gather")
        for text in (twins.INVARIANT_BY_GUARANTEE, twins.INVARIANT_BY_FAIL_IF)
    ]
    assert found == [["contract/guarantee_failed"], ["gather_fail_if"]]


# --- Example 19: a guard step


def test_a_guard_fails_hard_where_an_assumption_would_skip(play: Play) -> None:
    """Example 19, I.2 assume: the guard's failure is NO-GO and what is behind it doesn't run."""
    ran = play(twins.GUARD_STEP)
    assert (ran["tools"].outcome, ran.why("build")) == ("failed", ("skipped", "dependency_failed"))
    assert (ran.verdict, ran.stage.called("build")) == ("NO-GO", [])


def test_a_guard_that_passes_lets_through(play: Play) -> None:
    """Example 19, G35: `output_meta.exit_code` is 0 for a success, so the detector is silent."""
    ran = play(twins.GUARD_STEP.replace("test -e hammer", "echo here"))
    assert (ran.verdict, ran.output("build")) == ("GO", "built")


def test_assume_mode_fail_does_without_a_guard(play: Play) -> None:
    """G1, H15, example 19: the same hard failure, on the step itself, without a call."""
    text = """
steps:
  build: {type: command, exec: echo built, assume: "false", assume_mode: fail, on_fail: {run: [told]}}
  told: {type: noop}
"""
    ran = play(text)
    assert (ran["build"].outcome, ran.rules("build")) == ("failed", ["contract/assume_failed"])
    assert (ran.stage.called("build"), ran["told"].outcome) == ([], "passed")
