"""Events from webhooks' bodies and from GitHub Actions' environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import Gonogo, write

from gonogo.cli.triggers import Asked, detect
from gonogo.cli.triggers.payload import parse
from gonogo.cli.triggers.shape import PATCH_BYTES_MAX, PATCHES_BYTES_MAX, ChangedFile, change_names
from gonogo.errors import UsageError

PULL = {
    "number": 7,
    "title": "Add search",
    "body": None,
    "user": {"login": "ann"},
    "author_association": "MEMBER",
    "head": {"ref": "feature"},
    "base": {"ref": "main", "sha": "abc123"},
    "additions": 5,
    "deletions": 2,
}
ISSUE = {"number": 3, "title": "t", "body": "b", "user": {"login": "bob"}, "labels": [{"name": "bug"}, "odd"]}


@pytest.mark.parametrize(
    ("name", "body", "event"),
    [
        (None, {"action": "opened", "pull_request": PULL}, "pr_opened"),
        (None, {"action": "synchronize", "pull_request": PULL}, "pr_updated"),
        ("pull_request_target", {"action": "reopened", "pull_request": PULL}, "pr_opened"),
        ("pull_request", {"action": "labeled", "pull_request": PULL}, "pr_updated"),
        (None, {"action": "closed", "pull_request": PULL}, "pr_closed"),
        ("pull_request_review", {"action": "submitted", "pull_request": PULL, "review": {}}, "pr_updated"),
        (None, {"action": "opened", "issue": ISSUE}, "issue_opened"),
        ("issues", {"action": "labeled", "issue": ISSUE}, None),
        (None, {"action": "created", "issue": ISSUE, "comment": {"body": "hi"}}, "issue_comment"),
        (None, {"inputs": {"a": "1"}, "workflow": "x"}, "manual"),
        ("workflow_dispatch", {}, "manual"),
        (None, {"schedule": "0 0 * * *"}, "schedule"),
        ("push", {"ref": "refs/heads/main", "before": "abc"}, None),
        (None, {}, None),
    ],
)
def test_the_event_is_known_by_name_or_shape(
    name: str | None, body: dict[str, Any], event: str | None
) -> None:
    """GitHub's name where there is one, else the body tells."""
    assert parse(body, name).event == event


def test_a_pull_request_is_told_in_our_words() -> None:
    """With the commit to compare with first."""
    payload = parse({"action": "opened", "pull_request": PULL, "repository": {"full_name": "o/r"}})
    assert payload.pr is not None
    assert (payload.pr["number"], payload.pr["author"], payload.pr["branch"]) == (7, "ann", "feature")
    assert payload.pr["totals"] == {"additions": 5, "deletions": 2, "changes": 7}
    assert payload.repository == "o/r"
    assert payload.association == "MEMBER"
    assert payload.hints == ("abc123", "origin/main")


def test_a_comment_on_a_pull_request_has_one() -> None:
    """GitHub sends an issue that says so."""
    body = {
        "issue": {**ISSUE, "pull_request": {"url": "x"}},
        "comment": {"body": "hi", "user": {"login": "eve"}},
    }
    payload = parse(body)
    assert payload.pr is not None
    assert payload.pr["number"] == 3
    assert payload.trigger["comment"] == {"body": "hi", "author": "eve"}
    assert payload.trigger["issue"]["labels"] == ["bug"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "action",
                    "pull_request",
                    "issue",
                    "comment",
                    "user",
                    "head",
                    "base",
                    "number",
                    "labels",
                    "inputs",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@given(
    st.dictionaries(st.sampled_from(["action", "pull_request", "issue", "comment", "inputs", "before"]), JSON)
)
def test_no_body_breaks_it(body: dict[str, Any]) -> None:
    """It is hostile input: nothing in it has to have a type, and no hint is an option for git."""
    payload = parse(body)
    json.dumps(payload.trigger)
    assert not any(hint.startswith("-") for hint in payload.hints)


@pytest.mark.parametrize("content", [b"", b"[1]", b"nonsense", b"\xff", b"[" * 100_000])
def test_a_payload_that_is_none_is_a_usage_error(tmp_path: Path, content: bytes) -> None:
    """It says what is expected."""
    path = tmp_path / "body.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="isn't"):
        detect(Asked(payload=path), {}, tmp_path)
    with pytest.raises(UsageError, match="can't be read"):
        detect(Asked(payload=tmp_path / "missing"), {}, tmp_path)
    with pytest.raises(UsageError, match="isn't a file"):
        detect(Asked(payload=tmp_path), {}, tmp_path)


def test_with_nothing_asked_there_is_no_event(tmp_path: Path) -> None:
    """C.2 R10: outside of CI no step's `on` is looked at."""
    detected = detect(Asked(), {"PATH": ""}, tmp_path)
    assert detected.trigger is None
    assert detected.context["files"] == []


def test_what_is_asked_for_wins(tmp_path: Path) -> None:
    """The event's name over the payload's; `all` is no event."""
    path = tmp_path / "body.json"
    path.write_text(json.dumps({"action": "opened", "pull_request": PULL}))
    detected = detect(Asked(event="pr_closed", payload=path), {"PATH": ""}, tmp_path)
    assert detected.trigger == {"name": "pr_closed", "event_name": "pr_closed", "action": "opened"}
    assert detect(Asked(event="all", payload=path), {"PATH": ""}, tmp_path).trigger is None


@pytest.mark.parametrize(
    ("event", "advice"), [("pr_open", "did you mean pr_opened?"), ("push", "it is one of pr_opened")]
)
def test_an_event_that_no_step_can_be_for_is_refused(tmp_path: Path, event: str, advice: str) -> None:
    """It would leave out every step with an `on`, and the verdict would be GO for nothing."""
    with pytest.raises(UsageError) as refused:
        detect(Asked(event=event), {"PATH": ""}, tmp_path)
    assert (refused.value.advice or "").startswith(advice)


def test_github_actions_tells_event_branch_and_base(tmp_path: Path) -> None:
    """From its environment; only inside of Actions."""
    path = tmp_path / "event.json"
    path.write_text(json.dumps({"action": "synchronize", "pull_request": PULL}))
    environment = {
        "PATH": "",
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_PATH": str(path),
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_BASE_REF": "main",
        "GITHUB_HEAD_REF": "feature",
    }
    detected = detect(Asked(), environment, tmp_path)
    assert detected.trigger is not None
    assert detected.trigger["name"] == "pr_updated"
    assert detected.trigger["repository"] == "o/r"
    assert (detected.context["branch"], detected.context["baseBranch"]) == ("feature", "main")
    assert detected.context["pr"]["totals"]["additions"] == 5, "the payload's, where git knows no files"
    assert detect(Asked(), {**environment, "GITHUB_ACTIONS": ""}, tmp_path).trigger is None


def test_patches_are_capped_at_whole_lines() -> None:
    """Each, and all together; file names stay."""
    line = "+" + "x" * 99 + "\n"
    files = [ChangedFile(f"f{number}", "modified", 1, 0, None, line * 1000) for number in range(100)]
    names = change_names(files)
    patches = [file.get("patch") for file in names["files"]]
    assert patches[0] is not None
    assert len(patches[0]) <= PATCH_BYTES_MAX
    assert patches[0].endswith("\n")
    assert sum(len(patch or "") for patch in patches) <= PATCHES_BYTES_MAX
    assert names["filesCount"] == 100


def test_C_2_R10_a_workflow_that_reviews_code_is_about_an_updated_pull_request(
    gonogo: Gonogo, tmp_path: Path
) -> None:
    """C.2 R10: unless an event is named; `all` names none."""
    review = "review:\n  type: noop\n  schema: code-review\nopened:\n  type: noop\n  on: [pr_opened]"
    path = write(tmp_path, review)
    assert set(gonogo("run", str(path), "--format", "json").json["steps"]) == {"review"}
    assert set(gonogo("run", str(path), "--event", "all", "--format", "json").json["steps"]) == {
        "review",
        "opened",
    }
