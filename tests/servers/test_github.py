"""The fake GitHub answers as the published description says, keeps state, and refuses as the real one does."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.servers import github
from tests.servers.github import TOKEN, FakeGitHub, Fault, Token
from tests.servers.github_schema import API, problems_of_answer

SHA = "a" * 40


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: Any


@dataclass(slots=True)
class Client:
    """Speaks to the fake as any client would."""

    fake: FakeGitHub
    token: str = TOKEN

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        host = self.fake.url.removeprefix("http://")
        client = http.client.HTTPConnection(host, timeout=5)
        sent = {
            "authorization": f"Bearer {self.token}",
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        try:
            client.request(method, path if path.startswith("/") else f"/repos/o/r/{path}", raw, sent)
            answer = client.getresponse()
            data = answer.read()
        finally:
            client.close()
        told = {name.lower(): value for name, value in answer.headers.items()}
        return Answer(answer.status, told, json.loads(data) if data else None)


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    """A repository with a pull request and an issue; what differs from the description fails the test."""
    with FakeGitHub() as fake:
        fake.repository.add_pull(1, SHA, {"a.py": "@@ -1 +1 @@", "b.py": "@@ -1 +1 @@"})
        fake.repository.add_issue(2)
        yield fake
    assert fake.violations == []


@pytest.fixture
def do(hub: FakeGitHub) -> Client:
    """A client of it."""
    return Client(hub)


def test_every_operation_answers_as_described(hub: FakeGitHub, do: Client) -> None:
    """Requests and answers of all of them, held against the published schemas."""
    comment = do("POST", "issues/1/comments", {"body": "hi"}).body["id"]
    assert do("PATCH", f"issues/comments/{comment}", {"body": "ho"}).body["body"] == "ho"
    assert do("GET", f"issues/comments/{comment}").body["body"] == "ho"
    assert [made["id"] for made in do("GET", "issues/1/comments").body] == [comment]
    assert do("GET", "issues/2/comments").body == []
    assert do("DELETE", f"issues/comments/{comment}").status == 204
    do("POST", "issues/1/labels", {"labels": ["bug", "ai: reviewed"]})
    do("PUT", "issues/1/labels", {"labels": ["a/b", "bug"]})
    do("DELETE", "issues/1/labels/a%2Fb")
    assert [label["name"] for label in do("GET", "issues/1/labels").body] == ["bug"]
    assert do("GET", "issues/1").body["number"] == do("GET", "pulls/1").body["number"] == 1
    assert do("DELETE", "issues/1/labels").status == 204
    assert [file["filename"] for file in do("GET", "pulls/1/files").body] == ["a.py", "b.py"]
    review = {
        "event": "REQUEST_CHANGES",
        "body": "no",
        "comments": [{"path": "a.py", "line": 1, "body": "here"}],
    }
    number = do("POST", "pulls/1/reviews", review).body["id"]
    assert do("GET", f"pulls/1/reviews/{number}").body["state"] == "CHANGES_REQUESTED"
    assert len(do("GET", f"pulls/1/reviews/{number}/comments").body) == 1
    assert do("PUT", f"pulls/1/reviews/{number}/dismissals", {"message": "old"}).body["state"] == "DISMISSED"
    pending = do("POST", "pulls/1/reviews", {"body": "x"}).body["id"]
    assert do("POST", f"pulls/1/reviews/{pending}/events", {"event": "COMMENT", "body": "x"}).status == 200
    pending = do("POST", "pulls/1/reviews", {}).body["id"]
    assert do("DELETE", f"pulls/1/reviews/{pending}").status == 200
    assert len(do("GET", "pulls/1/reviews").body) == 2
    do("POST", "pulls/1/comments", {"body": "x", "path": "b.py", "commit_id": SHA, "line": 1})
    assert len(do("GET", "pulls/1/comments").body) == 2
    check(do)
    status = {"state": "success", "context": "gonogo", "description": "GO"}
    assert do("POST", f"statuses/{SHA}", status).status == 201
    assert do("GET", f"commits/{SHA}/statuses").body[0]["context"] == "gonogo"
    assert do("GET", f"commits/{SHA}/status").body["state"] == "success"
    assert do("GET", "/user").body["login"] == "gonogo[bot]"
    assert do("GET", "/rate_limit").status == 200
    assert {exchange.operation for exchange in hub.exchanges} == set(API["operations"])
    assert {exchange.status for exchange in hub.exchanges} <= {200, 201, 204}


def check(do: Client) -> None:
    """A check run with annotations, from its beginning to its end."""
    run = do("POST", "check-runs", {"name": "gonogo", "head_sha": SHA, "status": "in_progress"}).body["id"]
    note = {"path": "a.py", "start_line": 1, "end_line": 1, "annotation_level": "warning", "message": "m"}
    output = {"title": "t", "summary": "s", "annotations": [note] * 50}
    do("PATCH", f"check-runs/{run}", {"output": output})
    done = do("PATCH", f"check-runs/{run}", {"conclusion": "failure", "output": output})
    assert (done.body["status"], done.body["output"]["annotations_count"]) == ("completed", 100)
    assert do("GET", f"check-runs/{run}").body["conclusion"] == "failure"
    assert do("GET", f"commits/{SHA}/check-runs?check_name=gonogo").body["total_count"] == 1
    assert len(do("GET", f"check-runs/{run}/annotations?per_page=100").body) == 100


def test_a_wrong_answer_would_be_seen() -> None:
    """The comparison can fail."""
    assert problems_of_answer("issues/create-comment", 201, {"id": "x"}) != []
    assert problems_of_answer("issues/delete-comment", 204, {}) != []


def test_a_wrong_request_that_is_let_through_is_a_violation() -> None:
    """A client that sends what the description doesn't have is found out."""
    with FakeGitHub() as fake:
        fake.repository.add_issue(1)
        Client(fake)("GET", "issues/1/comments?colour=red")
        Client(fake)("PATCH", "nonsense")
    assert len(fake.violations) == 2


@pytest.mark.parametrize(
    ("token", "status", "message"),
    [("", 401, "Requires authentication"), ("wrong", 401, "Bad credentials")],
)
def test_a_token_is_needed(do: Client, token: str, status: int, message: str) -> None:
    """In its usual words."""
    do.token = token
    answer = do("GET", "issues/1")
    assert (answer.status, answer.body["message"]) == (status, message)


def test_a_token_may_do_what_it_may(hub: FakeGitHub, do: Client) -> None:
    """Reading only, and no check by anything but an app."""
    hub.tokens |= {"reader": Token("eve", {}), "person": Token("eve", app=False)}
    do.token = "reader"
    refused = do("POST", "issues/1/comments", {"body": "x"})
    assert (refused.status, refused.body["message"]) == (403, "Resource not accessible by integration")
    assert do("GET", "issues/1/comments").body == []
    do.token = "person"
    assert do("POST", "check-runs", {"name": "n", "head_sha": SHA}).status == 403


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("GET", "issues/9", None, 404, "Not Found"),
        ("GET", "/repos/o/other/issues/1", None, 404, "Not Found"),
        ("GET", "pulls/2", None, 404, "Not Found"),
        ("DELETE", "issues/1/labels/none", None, 404, "Label does not exist"),
        ("POST", "issues/1/comments", b"{", 400, "Problems parsing JSON"),
        ("POST", "issues/1/comments", {"body": " "}, 422, "Validation Failed"),
        ("POST", "issues/1/comments", {"body": "x" * 65537}, 422, "Validation Failed"),
        ("POST", "issues/1/labels", {"labels": ["x" * 51]}, 422, "Validation Failed"),
        (
            "POST",
            "check-runs",
            {"name": "n", "head_sha": "b" * 40},
            422,
            "No commit found for SHA: " + "b" * 40,
        ),
        ("POST", "pulls/1/reviews", {"event": "COMMENT"}, 422, "Unprocessable Entity"),
        ("POST", f"statuses/{SHA}", {"state": "fine"}, 422, "Validation Failed"),
    ],
)
def test_refusals_have_their_form(
    do: Client, method: str, path: str, body: Any, status: int, message: str
) -> None:
    """Status, message, and the errors of a 422."""
    answer = do(method, path, body)
    assert (answer.status, answer.body["message"]) == (status, message)
    assert answer.body["status"] == str(status)


def test_nobody_approves_their_own_pull_request(hub: FakeGitHub, do: Client) -> None:
    """422 with the reason in errors."""
    hub.repository.items[1].author = "gonogo[bot]"
    answer = do("POST", "pulls/1/reviews", {"event": "APPROVE"})
    assert (answer.status, answer.body["errors"]) == (422, ["Review Can not approve your own pull request"])


def test_a_locked_issue_takes_no_comment(hub: FakeGitHub, do: Client) -> None:
    """A plain 403, which is no limit (RET-4 d)."""
    hub.repository.items[2].locked = True
    answer = do("POST", "issues/2/comments", {"body": "x"})
    assert answer.status == 403
    assert "retry-after" not in answer.headers


def test_lists_come_in_pages(do: Client) -> None:
    """With links to the others."""
    for number in range(7):
        do("POST", "issues/1/comments", {"body": str(number)})
    first = do("GET", "issues/1/comments?per_page=3")
    middle = do("GET", "issues/1/comments?per_page=3&page=2")
    last = do("GET", "issues/1/comments?per_page=3&page=3")
    assert [len(page.body) for page in (first, middle, last)] == [3, 3, 1]
    assert first.headers["link"].count("rel=") == 2
    assert 'page=3>; rel="next"' in middle.headers["link"]
    assert 'rel="next"' not in last.headers["link"]
    assert "link" not in do("GET", "issues/1/comments").headers


def test_an_etag_spares_an_answer_that_is_known(hub: FakeGitHub, do: Client) -> None:
    """304, not counted against the limit, until something changes."""
    tag = do("GET", "issues/1/labels").headers["etag"]
    used = hub.used
    assert do("GET", "issues/1/labels", if_none_match=tag).status == 304
    assert hub.used == used
    do("POST", "issues/1/labels", {"labels": ["new"]})
    assert do("GET", "issues/1/labels", if_none_match=tag).status == 200


def test_the_primary_limit_is_counted_down_and_refuses(hub: FakeGitHub, do: Client) -> None:
    """403 with nothing remaining and the moment of the reset; asking for the limit is free."""
    hub.limit = 2
    assert do("GET", "issues/1").headers["x-ratelimit-remaining"] == "1"
    do("GET", "issues/1")
    refused = do("GET", "issues/1")
    assert (refused.status, refused.headers["x-ratelimit-remaining"]) == (403, "0")
    assert int(refused.headers["x-ratelimit-reset"]) == hub.repository.now_s + 3600
    assert do("GET", "/rate_limit").body["rate"]["remaining"] == 0


def test_a_secondary_limit_is_told_by_its_body(hub: FakeGitHub, do: Client) -> None:
    """With or without Retry-After; nothing was done."""
    hub.inject(github.secondary_limit(), github.secondary_limit(60, 429))
    first, second = (do("POST", "issues/1/comments", {"body": "x"}) for _ in range(2))
    assert (first.status, "retry-after" in first.headers) == (403, False)
    assert "secondary rate limit" in first.body["message"]
    assert (second.status, second.headers["retry-after"]) == (429, "60")
    assert hub.repository.comments == {}


def test_a_break_after_the_work_leaves_it_done(hub: FakeGitHub, do: Client) -> None:
    """What a caller that sees a break can't know."""
    hub.inject(github.DROPPED_BEFORE, github.DROPPED_AFTER, github.BAD_GATEWAY_AFTER, None)
    for _ in range(2):
        with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
            do("POST", "issues/1/comments", {"body": "x"})
    assert do("POST", "issues/1/comments", {"body": "x"}).status == 502
    assert do("POST", "issues/1/comments", {"body": "x"}).status == 201
    assert len(hub.repository.comments) == 3
    assert hub.count("issues/create-comment") == 4


def test_any_status_can_be_put_ahead(hub: FakeGitHub, do: Client) -> None:
    """And what came with it is kept."""
    hub.inject(Fault(500, {"message": "Server Error"}))
    assert do("POST", "issues/1/labels", {"labels": ["x"]}).status == 500
    assert hub.exchanges[-1].body == {"labels": ["x"]}
    assert hub.repository.items[1].labels == []


def test_the_combined_status_is_the_latest_of_each_context(do: Client) -> None:
    """One failure fails all; nothing yet is pending."""
    assert do("GET", f"commits/{SHA}/status").body["state"] == "pending"
    for state, combined in (("failure", "failure"), ("success", "success"), ("pending", "pending")):
        do("POST", f"statuses/{SHA}", {"state": state, "context": "c"})
        assert do("GET", f"commits/{SHA}/status").body["state"] == combined


def test_closing_leaves_no_thread_behind() -> None:
    """And frees the port."""
    before = set(threading.enumerate())
    with FakeGitHub() as fake:
        Client(fake)("GET", "/user")
    assert set(threading.enumerate()) == before
