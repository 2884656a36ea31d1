"""github, against a fake of it that is held against the published description, and that breaks off where it hurts."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import ValidationError
from pytest_httpserver import HTTPServer
from tests.servers.github import (
    BAD_GATEWAY_AFTER,
    DROPPED_AFTER,
    DROPPED_BEFORE,
    TOKEN,
    UNAVAILABLE,
    FakeGitHub,
    Fault,
    Token,
    secondary_limit,
)
from tests.servers.github_state import Repository
from werkzeug import Request, Response

from gonogo.gate.policy import Policy
from gonogo.provider import Done, Failed, Outcome, Value
from gonogo.providers.github import PROVIDER
from gonogo.providers.github.marks import mark_in
from gonogo.testing import ScriptedContext

Run = Callable[..., Outcome]
SHA = "a" * 40
EVENT = {
    "pr": {"number": 1, "author": "ada", "sha": SHA},
    "event": {"name": "pr_opened", "repository": "o/r"},
}
BREAKS = [
    DROPPED_BEFORE,
    DROPPED_AFTER,
    BAD_GATEWAY_AFTER,
    UNAVAILABLE,
    secondary_limit(7),
    secondary_limit(),
]


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    """A repository with a pull request and an issue; what differs from the description fails the test."""
    with FakeGitHub(Repository(now_s=time.time())) as fake:
        fake.repository.add_pull(1, SHA, {"a.py": "@@ -1 +1 @@", "b.py": "@@ -1 +1 @@"})
        fake.repository.add_issue(2)
        yield fake
    assert fake.violations == []


@pytest.fixture
def run(hub: FakeGitHub, do: Run) -> Run:
    """One call for the pull request of an event: `run("labels.add", value="x")`; `changes` are the call's."""

    def call(op: str, changes: Mapping[str, Any] | None = None, **config: Any) -> Outcome:
        config = {"api_url": hub.url, "token": TOKEN, **config}
        return do("github", {"op": op, **config}, **{"names": EVENT, **(changes or {})})

    return call


def done(outcome: Outcome) -> Any:
    """The output of a call that worked."""
    assert isinstance(outcome, Done), outcome
    return outcome.output


def failed(outcome: Outcome) -> Failed:
    """It must be one."""
    assert isinstance(outcome, Failed), outcome
    return outcome


def bodies(hub: FakeGitHub) -> list[str]:
    """The comments that there are."""
    return [made["body"] for made in hub.repository.comments.values()]


# --- labels


def test_E8_R4_labels_are_added(hub: FakeGitHub, run: Run) -> None:
    """`added`: what was asked for, and `labels`: all there are, which a guarantee can look at (H13)."""
    hub.repository.items[1].labels = ["old", "reviewed"]
    output = done(run("labels.add", values=["reviewed", "size/S"]))
    assert (output["added"], output["labels"]) == (["reviewed", "size/S"], ["old", "reviewed", "size/S"])
    assert (output["idempotency_key"], output["replayed"]) == ("key-1", False)


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ({"value": " bug "}, ["bug"]),
        ({"values": '["a", "b: c"]'}, ["a", "b: c"]),
        ({"values": "a\n\n b \na"}, ["a", "b"]),
        ({"values": ["review//effort:3", "<b>!", "Größe"]}, ["review/effort:3", "b", "Größe"]),
    ],
)
def test_E8_R2_labels_are_cleaned(
    hub: FakeGitHub, run: Run, given: Mapping[str, Any], labels: list[str]
) -> None:
    """E.8 R2: lists as JSON, lines, characters that have no place, slashes, duplicates."""
    assert done(run("labels.add", **given))["added"] == labels


def test_a_cleaned_label_is_told(run: Run, context: ScriptedContext) -> None:
    """What isn't written as it was given is no secret."""
    run("labels.add", value="needs_review")
    assert ("warn", "the label 'needs_review' is written as 'needsreview'") in context.logged


@pytest.mark.parametrize(
    ("output", "labels"),
    [
        ({"labels": ["x"], "tags": {"label": "y"}}, ["x"]),
        ({"tags": {"label": "bug", "review-effort": 3}}, ["bug", "review/effort:3"]),
        ({"labels": 7, "tags": []}, []),
        ("text", []),
    ],
)
def test_E8_R3_labels_come_from_the_steps_before(run: Run, output: Any, labels: list[str]) -> None:
    """E.8 R3: of what the step depends on, and of nothing else."""
    names = {**EVENT, "outputs": {"before": output, "beside": {"labels": ["no"]}}}
    assert done(run("labels.add", {"names": names, "depends_on": ("before",)}))["added"] == labels


def test_E8_R3_without_labels_nothing_is_called(hub: FakeGitHub, run: Run) -> None:
    """E.8 R3: and the step succeeds."""
    assert done(run("labels.add"))["added"] == []
    assert done(run("labels.remove", values=[]))["removed"] == []
    assert hub.exchanges == []


def test_labels_may_be_computed(run: Run, context: ScriptedContext) -> None:
    """value_js wins."""
    context.evaluate_with = lambda source, kind, names: Value(["a", {"name": "b"}])
    assert done(run("labels.add", value="c", value_js="…"))["added"] == ["a", "b"]


def test_E8_R4_labels_are_removed(hub: FakeGitHub, run: Run) -> None:
    """Whatever is in a name; one that isn't on it is no failure and no call."""
    hub.repository.items[1].labels = ["a/b", "keep", "Größe"]
    output = done(run("labels.remove", values=["A/b", "gone", "Größe"]))
    assert (output["removed"], output["labels"]) == (["a/b", "Größe"], ["keep"])
    assert hub.repository.items[1].labels == ["keep"]
    assert hub.count("issues/remove-label") == 2


@pytest.mark.parametrize("fault", BREAKS)
def test_labels_survive_a_break(hub: FakeGitHub, run: Run, fault: Fault) -> None:
    """Setting is the same when it is done twice, taking off, too: the second try finds it gone."""
    hub.inject(fault)
    assert done(run("labels.add", value="bug"))["labels"] == ["bug"]
    hub.inject(None, fault)
    assert done(run("labels.remove", value="bug"))["removed"] == ["bug"]
    assert hub.repository.items[1].labels == []


# --- comments


BODY = '# Report\n\n- same line\n- same line\n\n`a_b`, *c*; <d> & "e" – ünï 🚦  \n'


@pytest.mark.parametrize("key", ["body", "value", "values"])
def test_I1_24_a_comment_says_what_its_template_gave(hub: FakeGitHub, run: Run, key: str) -> None:
    """I.1 24: byte for byte; a hidden line behind it carries the key."""
    output = done(run("comment.create", **{key: BODY}))
    (body,) = bodies(hub)
    assert body.startswith(BODY)
    assert body.removeprefix(BODY).strip() == mark_in(body)
    assert output["body"] == BODY


def test_H13_a_comments_id_is_a_number(hub: FakeGitHub, run: Run) -> None:
    """E.8 R4, H13: what the guide's guarantees ask for."""
    output = done(run("comment.create", body="hi"))
    assert isinstance(output["id"], int)
    assert output["id"] in hub.repository.comments
    assert output["url"].startswith("https://")
    assert (output["idempotency_key"], output["replayed"]) == ("key-1", False)


def test_G12_two_runs_under_a_key_leave_one_comment(hub: FakeGitHub, run: Run) -> None:
    """G12, semantics 17: the second gets the first one's, as it was written."""
    first = done(run("comment.create", body=BODY))
    second = done(run("comment.create", body=BODY))
    assert second == {**first, "replayed": True}
    assert len(bodies(hub)) == 1


def test_G12_another_key_is_another_comment(hub: FakeGitHub, run: Run) -> None:
    """And so is another step's."""
    run("comment.create", body="hi")
    run("comment.create", {"key": "key-2"}, body="hi")
    run("comment.create", {"step": "other"}, body="hi")
    assert len(bodies(hub)) == 3


def test_a_comment_is_found_behind_a_hundred_others(hub: FakeGitHub, run: Run) -> None:
    """Pages."""
    for number in range(130):
        run("comment.create", {"key": f"other {number}"}, body="x") if number == 120 else _comment(
            hub, "y", "ada"
        )
    found = done(run("comment.create", {"key": "other 120"}, body="x"))
    assert found["replayed"] is True
    assert hub.exchanges[-2].query["page"] == "2"


def _comment(hub: FakeGitHub, body: str, login: str) -> None:
    from tests.servers.github_state import Call

    call = Call({"owner": "o", "repo": "r", "issue_number": "1"}, {}, {"body": body}, login)
    hub.operations["issues/create-comment"](call)


@pytest.mark.parametrize("asked", [None, Fault(403, {"message": "Resource not accessible by integration"})])
def test_a_mark_in_a_strangers_comment_counts_for_nothing(
    hub: FakeGitHub, run: Run, asked: Fault | None
) -> None:
    """Else anyone could keep a report from being posted; GitHub may not say who the token is."""
    run("comment.create", body="hi")
    _comment(hub, bodies(hub)[0], "mallory")
    hub.repository.comments.pop(min(hub.repository.comments))
    hub.inject(None, asked)
    assert done(run("comment.create", body="hi"))["replayed"] is False
    assert len(bodies(hub)) == 2


@pytest.mark.parametrize("fault", BREAKS)
def test_semantics_16_a_comment_is_made_once_whatever_breaks(hub: FakeGitHub, run: Run, fault: Fault) -> None:
    """Semantics 16: another attempt looks first; the answer that got lost is found, and isn't one from before."""
    hub.inject(None, fault)
    output = done(run("comment.create", body="hi"))
    assert (len(bodies(hub)), output["replayed"]) == (1, False)


def test_semantics_16_what_stays_unclear_is_said_to_be(hub: FakeGitHub, run: Run) -> None:
    """Semantics 16: nobody knows, so a person has to look; a later call under the key finds it."""
    hub.inject(None, DROPPED_AFTER, DROPPED_BEFORE, DROPPED_BEFORE)
    outcome = failed(run("comment.create", body="hi"))
    assert (outcome.effect, outcome.fault.kind) == ("unknown", "http.network")
    assert done(run("comment.create", body="hi"))["replayed"] is True
    assert len(bodies(hub)) == 1


@pytest.mark.parametrize("fault", [DROPPED_AFTER, BAD_GATEWAY_AFTER])
def test_what_breaks_while_looking_has_done_nothing(hub: FakeGitHub, run: Run, fault: Fault) -> None:
    """Semantics 16: only a write leaves anything."""
    hub.inject(fault, fault, fault)
    assert failed(run("comment.create", body="hi")).effect == "none"


def test_another_text_under_a_key_is_told(hub: FakeGitHub, run: Run, context: ScriptedContext) -> None:
    """Write once: it is left as it is."""
    run("comment.create", body="old")
    assert done(run("comment.create", body="new"))["body"] == "old"
    assert [level for level, text in context.logged if "something else" in text] == ["warn"]


def test_a_comment_is_updated_and_keeps_its_mark(hub: FakeGitHub, run: Run) -> None:
    """So that a later run still finds it."""
    made = done(run("comment.create", body="old"))
    output = done(run("comment.update", body="new\n", comment_id=made["id"]))
    assert (output["id"], output["body"]) == (made["id"], "new\n")
    found = done(run("comment.create", body="new\n"))
    assert (found["id"], found["body"], found["replayed"]) == (made["id"], "new\n", True)
    _comment(hub, "theirs", "ada")
    done(run("comment.update", body="ours", comment_id=max(hub.repository.comments)))
    assert bodies(hub)[-1] == "ours"


@pytest.mark.parametrize("body", ["", " \n"])
def test_nothing_to_say_is_a_failure(hub: FakeGitHub, run: Run, body: str) -> None:
    """Without a call."""
    outcome = failed(run("comment.create", body=body))
    assert (outcome.fault.kind, outcome.effect, hub.exchanges) == ("github.empty", "none", [])


def test_a_body_that_github_would_refuse_isnt_sent(hub: FakeGitHub, run: Run) -> None:
    """Its limit is known; cutting would change the text."""
    assert failed(run("comment.create", body="x" * 65_600)).fault.kind == "github.too_long"
    done(run("comment.create", body="x" * 65_476))


# --- reviews


REMARK = {"path": "a.py", "line": 1, "body": "here"}


def test_a_review_is_made_once(hub: FakeGitHub, run: Run) -> None:
    """With its remarks, about the commit of the event."""
    hub.inject(None, DROPPED_AFTER)
    output = done(run("review.create", event="REQUEST_CHANGES", body="no", comments=[REMARK]))
    assert (output["state"], output["body"], output["replayed"]) == ("CHANGES_REQUESTED", "no", False)
    assert done(run("review.create", event="COMMENT", body="no"))["replayed"] is True
    assert (len(hub.repository.reviews), len(hub.repository.review_comments)) == (1, 1)
    assert hub.repository.reviews[output["id"]]["commit_id"] == SHA


def test_a_review_needs_something_to_say(hub: FakeGitHub, run: Run) -> None:
    """An approval alone doesn't."""
    assert failed(run("review.create")).fault.kind == "github.empty"
    assert done(run("review.create", event="APPROVE"))["state"] == "APPROVED"


# --- checks and statuses


def notes(count: int) -> list[dict[str, Any]]:
    """So many annotations, told apart by their line."""
    return [{"path": "a.py", "start_line": number + 1, "message": "m"} for number in range(count)]


def lines(hub: FakeGitHub) -> list[int]:
    """The lines that a check's annotations are about."""
    (annotations,) = hub.repository.annotations.values()
    return [one["start_line"] for one in annotations]


@pytest.mark.parametrize(("count", "requests"), [(0, 0), (50, 0), (51, 1), (120, 2)])
def test_annotations_go_out_fifty_at_a_time(hub: FakeGitHub, run: Run, count: int, requests: int) -> None:
    """GitHub's limit; the check ends with the last ones."""
    output = done(run("checks.create", conclusion="failure", title="t", annotations=notes(count)))
    assert (output["status"], output["conclusion"], output["annotations_count"]) == (
        "completed",
        "failure",
        count,
    )
    assert lines(hub) == list(range(1, count + 1))
    assert (hub.count("checks/create"), hub.count("checks/update")) == (1, requests)
    ends = [exchange.body.get("status") for exchange in hub.exchanges if exchange.method != "GET"]
    assert ends == ["in_progress"] * requests + ["completed"]


@pytest.mark.parametrize("fault", BREAKS)
@pytest.mark.parametrize("at", [1, 2, 3])
def test_semantics_16_a_check_and_its_annotations_are_made_once(
    hub: FakeGitHub, run: Run, fault: Fault, at: int
) -> None:
    """Semantics 16: at whichever request it breaks."""
    hub.inject(*[None] * at, fault)
    output = done(run("checks.create", conclusion="success", annotations=notes(120)))
    assert (output["conclusion"], output["replayed"]) == ("success", False)
    assert (lines(hub), len(hub.repository.check_runs)) == (list(range(1, 121)), 1)


def test_G12_a_check_that_was_begun_is_gone_on_with(hub: FakeGitHub, run: Run) -> None:
    """G12: the run before broke off after the first annotations."""
    hub.inject(None, None, *[DROPPED_BEFORE] * 3)
    assert failed(run("checks.create", conclusion="success", annotations=notes(70))).effect == "unknown"
    output = done(run("checks.create", conclusion="success", annotations=notes(70)))
    assert (output["replayed"], output["conclusion"], lines(hub)) == (True, "success", list(range(1, 71)))


def test_a_check_is_updated(hub: FakeGitHub, run: Run) -> None:
    """What it says is replaced; annotations are more."""
    made = done(run("checks.create", name="gate", status="in_progress", annotations=notes(1)))
    hub.inject(None, None, DROPPED_AFTER)
    output = done(
        run("checks.update", check_id=made["id"], conclusion="neutral", title="t", annotations=notes(60))
    )
    assert (output["status"], output["name"], output["annotations_count"]) == ("completed", "gate", 61)


def test_annotations_may_be_text_or_computed(hub: FakeGitHub, run: Run, context: ScriptedContext) -> None:
    """A template gives JSON; JavaScript a list. What isn't annotations is a failure before any call."""
    text = '[{"path": "a.py", "start_line": 3, "message": "m"}]'
    assert done(run("checks.create", annotations=text))["annotations_count"] == 1
    context.evaluate_with = lambda source, kind, names: Value(notes(2))
    assert done(run("checks.create", {"key": "k"}, value_js="…"))["annotations_count"] == 2
    context.evaluate_with = lambda source, kind, names: Value([{"path": 1}])
    before = len(hub.exchanges)
    assert failed(run("checks.create", value_js="…")).fault.kind == "github.value"
    assert len(hub.exchanges) == before


def test_a_commit_gets_a_status(hub: FakeGitHub, run: Run, context: ScriptedContext) -> None:
    """A description is cut to GitHub's limit, and that is told."""
    output = done(run("status.create", state="failure", context="gate", description="x" * 200))
    (made,) = hub.repository.statuses
    assert (output["state"], output["sha"], made["context"]) == ("failure", SHA, "gate")
    assert len(made["description"]) == 140
    assert context.logged[0][0] == "warn"


def test_the_head_of_a_pull_request_is_asked_for(hub: FakeGitHub, run: Run) -> None:
    """An event that brings no commit (a comment)."""
    names = {**EVENT, "pr": {"number": 1}}
    assert done(run("status.create", {"names": names}, state="success"))["sha"] == SHA
    assert hub.count("pulls/get") == 1


# --- reads


def test_a_pull_request_is_read(hub: FakeGitHub, run: Run) -> None:
    """What steps ask for, in GitHub's words; reading did nothing outside."""
    hub.repository.items[1].labels = ["bug"]
    outcome = run("pr.get")
    output = done(outcome)
    assert (output["number"], output["author"], output["labels"]) == (1, "ada", ["bug"])
    assert output["head"]["sha"] == SHA
    assert outcome.effect == "none"  # type: ignore[union-attr]
    assert outcome.meta["rate_limit"]["remaining"] == 4999  # type: ignore[union-attr]


def test_lists_come_in_pages_up_to_a_limit(hub: FakeGitHub, run: Run, context: ScriptedContext) -> None:
    """No page is asked for that isn't wanted; a cut is told."""
    hub.repository.items[1].files = {f"{number}.py": "@@" for number in range(250)}
    assert [one["filename"] for one in done(run("pr.files"))] == [f"{number}.py" for number in range(250)]
    assert (hub.count("pulls/list-files"), context.logged) == (3, [])
    assert len(done(run("pr.files", limit=120))) == 120
    assert hub.count("pulls/list-files") == 5
    assert "cut after 120" in context.logged[0][1]
    assert len(done(run("pr.files", limit=100))) == 100
    assert hub.count("pulls/list-files") == 6


def test_comments_are_listed(hub: FakeGitHub, run: Run) -> None:
    """Of an issue, too."""
    _comment(hub, "hello", "ada")
    (one,) = done(run("comments.list"))
    assert (one["body"], one["author"]) == ("hello", "ada")
    assert done(run("comments.list", number=2)) == []


@pytest.mark.parametrize(("op", "operation"), [("pr.get", "pulls/get"), ("pr.files", "pulls/list-files")])
def test_what_hasnt_changed_costs_nothing(hub: FakeGitHub, run: Run, op: str, operation: str) -> None:
    """ETags: a step that runs again gets its own output back, and GitHub doesn't count it."""
    first = run(op)
    assert isinstance(first, Done)
    again = {**EVENT, "outputs": {"step": first.output}, "outputs_meta": {"step": first.meta}}
    second = run(op, {"names": again})
    assert isinstance(second, Done)
    assert (second.output, second.meta["unchanged"], hub.used) == (first.output, True, 1)
    hub.repository.add_pull(1, SHA, {"c.py": "@@"}, author="bob")
    assert done(run(op, {"names": again})) != first.output
    hub.repository.add_pull(3, SHA)
    done(run(op, {"names": again}, number=3))
    assert "if-none-match" not in hub.exchanges[-1].headers


def test_issues_and_permissions_are_read(httpserver: HTTPServer, run: Run) -> None:
    """Both aren't part of the fake; a login can't lead elsewhere."""
    issue = {
        "number": 3,
        "title": "t",
        "state": "open",
        "user": {"login": "ada"},
        "labels": [{"name": "bug"}],
    }
    httpserver.expect_request("/repos/o/r/issues", query_string="state=all&per_page=100").respond_with_json(
        [issue, {**issue, "number": 4, "pull_request": {}}]
    )
    httpserver.expect_request("/repos/o/r/collaborators/a/../b/permission").respond_with_json(
        {"permission": "write", "role_name": "maintain"}
    )
    url = httpserver.url_for("").rstrip("/")
    listed = done(run("issues.list", api_url=url, query={"state": "all"}))
    assert [(one["number"], one["labels"], one["is_pull_request"]) for one in listed] == [
        (3, ["bug"], False), (4, ["bug"], True),
    ]  # fmt: skip
    found = done(run("permissions", api_url=url, user="a/../b"))
    assert found == {"user": "a/../b", "permission": "write", "role": "maintain"}
    assert "a%2F..%2Fb" in httpserver.log[-1][0].environ["REQUEST_URI"]


# --- limits and refusals


@pytest.mark.parametrize(
    ("fault", "wait_s"), [(secondary_limit(7), 7), (secondary_limit(), 60), (secondary_limit(5, 429), 5)]
)
def test_RET_4_a_limits_wait_is_kept(
    hub: FakeGitHub, run: Run, context: ScriptedContext, fault: Fault, wait_s: float
) -> None:
    """RET-4 c: by its header, else the documented minute; never less."""
    hub.inject(fault)
    done(run("labels.add", value="x"))
    (waited,) = context.clock.waits_s
    assert wait_s <= waited <= wait_s * 1.1


def test_RET_4_a_plain_403_is_not_tried_again(hub: FakeGitHub, run: Run, context: ScriptedContext) -> None:
    """RET-4 d, CLI-3: and its message says what to write into the workflow file."""
    hub.tokens[TOKEN] = Token(permissions={"contents": "read"})
    outcome = failed(run("comment.create", body="hi"))
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("github.permission", "logical")
    assert "`permissions: issues: write or pull-requests: write`" in outcome.fault.message
    assert "fork" in outcome.fault.message
    assert (context.clock.waits_s, hub.count("issues/create-comment")) == ([], 1)
    assert outcome.effect == "none"


def test_RET_4_a_spent_limit_is_never_slept_out(hub: FakeGitHub, run: Run, context: ScriptedContext) -> None:
    """RET-4 e: the reset is an hour away; the step ends at once and tells when to come back."""
    hub.limit = 0
    outcome = failed(run("labels.add", value="x"))
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("github.rate_limit", "transient")
    assert 3500 < (outcome.fault.retry_after_s or 0) < 3700
    assert (context.clock.waits_s, outcome.effect) == ([], "none")


@pytest.mark.parametrize(
    ("op", "config", "kind", "words"),
    [
        ("labels.add", {"value": "x", "number": 99}, "not_found", "issues: write"),
        ("pr.get", {"repo": "o/other"}, "not_found", "may not see it"),
        ("labels.add", {"value": "x", "token": "other"}, "auth", "GITHUB_TOKEN"),
        ("labels.add", {"value": "x" * 51}, "invalid", "Label.name name is too long"),
        ("review.create", {"body": "x", "comments": [{**REMARK, "path": "z"}]}, "invalid", "could not be resolved"),
        ("status.create", {"state": "success", "sha": "b" * 40}, "invalid", "No commit found"),
    ],
)  # fmt: skip
def test_refusals_are_told_apart(
    hub: FakeGitHub, run: Run, op: str, config: Mapping[str, Any], kind: str, words: str
) -> None:
    """By status; with GitHub's own words and what to do. None is tried again."""
    outcome = failed(run(op, **config))
    assert (outcome.fault.kind, outcome.fault.fault_class) == (f"github.{kind}", "logical")
    assert outcome.fault.rule_id == "step/github/op_failed"
    assert words in outcome.fault.message
    assert len([one for one in hub.exchanges if one.status >= 400]) <= 1


def test_a_check_needs_an_apps_token(hub: FakeGitHub, run: Run) -> None:
    """GitHub's own words say so."""
    hub.tokens[TOKEN] = Token("ada", app=False)
    outcome = failed(run("checks.create", conclusion="success"))
    assert "You must authenticate via a GitHub App." in outcome.fault.message


def test_an_answer_that_isnt_githubs_is_a_failure(httpserver: HTTPServer, run: Run) -> None:
    """A page of a proxy, or a yes without an id: what was written counts as done."""
    httpserver.expect_request("/repos/o/r/pulls/1").respond_with_data("<html>")
    httpserver.expect_request("/repos/o/r/statuses/" + SHA).respond_with_json({"ok": True}, 201)
    url = httpserver.url_for("").rstrip("/")
    assert failed(run("pr.get", api_url=url)).fault.kind == "github.unreadable"
    outcome = failed(run("status.create", api_url=url, state="success"))
    assert (outcome.fault.kind, outcome.effect) == ("github.unreadable", "done")


# --- where, and with which token


@pytest.mark.parametrize(
    ("names", "config", "kind"),
    [
        ({}, {}, "missing_context"),
        ({"event": EVENT["event"]}, {}, "missing_context"),
        (EVENT, {"repo": "../../x"}, "invalid_context"),
        (EVENT, {"owner": "..", "repo": "r"}, "invalid_context"),
        (EVENT, {"repo": "r"}, "invalid_context"),
        ({**EVENT, "event": {"repository": "o/r?x=/"}}, {}, "invalid_context"),
        (EVENT, {"api_url": "http://example.com"}, "invalid_context"),
        (EVENT, {"api_url": "https://u:p@example.com"}, "invalid_context"),
        (EVENT, {"token": "${{ env.NO_SUCH_TOKEN }}"}, "missing_token"),
        (EVENT, {"token": "a\nb"}, "missing_token"),
    ],
)
def test_E8_R1_what_it_needs_is_named_before_any_call(
    hub: FakeGitHub,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    names: Any,
    config: Mapping[str, Any],
    kind: str,
) -> None:
    """E.8 R1; the token goes nowhere but to the API that is meant."""
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    outcome = failed(run("comments.list", {"names": names}, **config))
    assert (outcome.fault.kind, outcome.effect, hub.exchanges) == (f"github.{kind}", "none", [])


def test_place_and_token_come_from_githubs_own_variables(
    hub: FakeGitHub, do: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they stand in a job of GitHub Actions; what the step's env says comes first."""
    for name, value in (("API_URL", hub.url), ("REPOSITORY", "O/r"), ("TOKEN", "wrong"), ("SHA", SHA)):
        monkeypatch.setenv(f"GITHUB_{name}", value)
    outcome = do("github", {"op": "status.create", "state": "success"}, env={"GITHUB_TOKEN": TOKEN})
    assert done(outcome)["sha"] == SHA


def test_a_steps_env_says_nothing_of_where_the_token_goes(hub: FakeGitHub, do: Run, run: Run) -> None:
    """Templates may fill it, and so data could."""
    env = {"GITHUB_API_URL": "http://127.0.0.1:1"}
    assert done(run("comments.list", {"env": env})) == []
    assert not {"api_url", "token", "owner", "repo", "op"} & PROVIDER.templates


def test_an_issue_is_known_by_its_event(hub: FakeGitHub, run: Run) -> None:
    """Where there is no pull request."""
    names = {"event": {"repository": "o/r", "issue": {"number": 2}}}
    assert done(run("labels.add", {"names": names}, value="x"))["added"] == ["x"]
    assert hub.repository.items[2].labels == ["x"]


@pytest.mark.parametrize(
    "config",
    [
        {"op": "labels.set"},
        {"op": "status.create"},
        {"op": "comment.update"},
        {"op": "checks.update"},
        {"op": "checks.create", "status": "completed"},
        {"op": "labels.add", "owner": "o"},
    ],
)
def test_what_an_operation_cant_do_without_is_checked(config: Mapping[str, Any]) -> None:
    """While the file is read."""
    with pytest.raises(ValidationError):
        PROVIDER.checked(config)


def test_only_reads_are_reads() -> None:
    """C.15: so that safe mode holds the others back."""
    said = {
        op: PROVIDER.effects_of(PROVIDER.checked({"op": op}))
        for op in ("pr.get", "labels.add", "comment.create")
    }
    assert said == {"pr.get": "reads", "labels.add": "mutates", "comment.create": "mutates"}


def test_the_token_is_in_nothing_that_is_kept(hub: FakeGitHub, run: Run, context: ScriptedContext) -> None:
    """Nor in a failure's."""
    hub.inject(None, UNAVAILABLE, UNAVAILABLE, Fault(422, {"message": "no"}))
    for outcome in (run("comment.create", body="x"), run("labels.add", value="x")):
        assert TOKEN not in repr(outcome)
    assert TOKEN not in repr(context.logged)


def test_its_calls_are_told(hub: FakeGitHub, run: Run) -> None:
    """One row of attempts over all requests of the step."""
    hub.repository.items[1].labels = ["a", "b"]
    outcome = run("labels.remove", values=["a", "b"])
    assert isinstance(outcome, Done)
    gate = outcome.meta["gate"]
    assert (gate["calls"], [one["n"] for one in gate["attempts"]]) == (3, [1, 2, 3])


# --- whatever breaks


def test_semantics_16_part_of_the_work_is_done(hub: FakeGitHub, run: Run) -> None:
    """One label is off, the other may not be taken off: something has changed outside."""
    hub.repository.items[1].labels = ["a", "b"]
    hub.inject(None, None, Fault(403, {"message": "no"}))
    assert failed(run("labels.remove", values=["a", "b"])).effect == "done"


def test_semantics_16_what_never_left_did_nothing(run: Run) -> None:
    """Nobody listens there."""
    outcome = failed(run("status.create", state="success", api_url="http://127.0.0.1:1"))
    assert (outcome.fault.kind, outcome.effect) == ("http.network", "none")


@pytest.mark.parametrize(("op", "effect"), [("status.create", "unknown"), ("pr.get", "none")])
def test_the_steps_time_ends_what_its_policy_would_go_on_with(
    httpserver: HTTPServer, run: Run, context: ScriptedContext, op: str, effect: str
) -> None:
    """What was sent by then may have been done."""
    go_on = threading.Event()

    def late(_: Request) -> Response:
        go_on.wait(20)
        return Response()

    httpserver.expect_request(re.compile(".*")).respond_with_handler(late)
    context.policy = Policy(breaker=None)
    url = httpserver.url_for("").rstrip("/")
    outcome = failed(run(op, {"timeout_s": 0.2}, state="success", api_url=url))
    go_on.set()
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("github.timeout", "transient")
    assert outcome.effect == effect


CHAOS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FAULTS = st.lists(st.sampled_from([None, None, *BREAKS]), max_size=8)


@CHAOS
@given(faults=FAULTS)
def test_property_a_comment_is_made_at_most_once_and_its_effect_is_told(
    hub: FakeGitHub, run: Run, faults: list[Fault | None]
) -> None:
    """Semantics 16: done means one, none means none, unknown means either; a later call leaves exactly one."""
    hub.repository.comments.clear()
    hub.faults.clear()
    hub.inject(*faults)
    outcome = run("comment.create", body="hi")
    there = len(bodies(hub))
    told = (
        (1,)
        if isinstance(outcome, Done)
        else {"none": (0,), "done": (1,)}.get(failed(outcome).effect, (0, 1))
    )
    assert there in told, outcome
    hub.faults.clear()
    again = done(run("comment.create", body="hi"))
    assert (len(bodies(hub)), again["replayed"]) == (1, there == 1)


@CHAOS
@given(faults=FAULTS)
def test_property_annotations_arrive_once(hub: FakeGitHub, run: Run, faults: list[Fault | None]) -> None:
    """Semantics 16, G12: wherever it breaks, the next call goes on where it was."""
    hub.repository.check_runs.clear()
    hub.repository.annotations.clear()
    hub.faults.clear()
    hub.inject(*faults)
    run("checks.create", conclusion="success", annotations=notes(120))
    hub.faults.clear()
    assert done(run("checks.create", conclusion="success", annotations=notes(120)))["conclusion"] == "success"
    assert lines(hub) == list(range(1, 121))
