"""Pull requests of a fake GitHub: files, reviews and their comments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.servers.github_schema import sample
from tests.servers.github_state import Answer, Call, Item, Refusal, Repository, invalid, user

_STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}
_SHARED = (
    "id",
    "body",
    "path",
    "commit_id",
    "user",
    "created_at",
    "updated_at",
    "html_url",
    "pull_request_url",
)


@dataclass(frozen=True, slots=True)
class Pulls:
    """What can be done with pull requests `of` a repository."""

    of: Repository

    def pull_get(self, call: Call) -> Answer:
        item = self.of.item(call, "pull_number")
        labels = [self.of.label(name) | {"description": None} for name in item.labels]
        return 200, sample(
            "pull-request",
            number=item.number,
            user=user(item.author),
            labels=labels,
            head={"sha": item.head_sha},
        )

    def pull_files(self, call: Call) -> Answer:
        item = self.of.item(call, "pull_number")
        return 200, [
            sample("diff-entry", filename=path, patch=patch, status="modified", sha="f" * 40)
            for path, patch in item.files.items()
        ]

    def reviews_list(self, call: Call) -> Answer:
        number = self.of.item(call, "pull_number").number
        return 200, [
            made for made in self.of.reviews.values() if made["pull_request_url"].endswith(f"/{number}")
        ]

    def review_create(self, call: Call) -> Answer:
        item = self.of.item(call, "pull_number")
        event = call.text("event")
        sha = self.of.commit(call.text("commit_id") or item.head_sha, "PullRequestReview")
        _check_event(event, call, item)
        comments = call.text("comments") or []
        for comment in comments:
            _in_diff(comment, item)
        url = f"https://api.github.test/repos/{self.of.full_name}/pulls/{item.number}"
        made = sample(
            "pull-request-review",
            id=self.of.next_id(),
            user=user(call.login),
            body=call.text("body") or "",
            state=_STATES.get(event, "PENDING"),
            commit_id=sha,
            pull_request_url=url,
            html_url=f"https://github.test/{self.of.full_name}/pull/{item.number}#pullrequestreview",
            **({"submitted_at": self.of.moment()} if event else {}),
        )
        self.of.reviews[made["id"]] = made
        for comment in comments:
            self._review_comment(call, item, comment, made["id"])
        return 200, made

    def review_get(self, call: Call) -> Answer:
        self.of.item(call, "pull_number")
        return 200, self.of.found(self.of.reviews, call, "review_id")

    def review_submit(self, call: Call) -> Answer:
        item, made = self.of.item(call, "pull_number"), self.of.found(self.of.reviews, call, "review_id")
        if made["state"] != "PENDING":
            raise Refusal(422, "Unprocessable Entity", ["Can not submit a review that is not pending"])
        _check_event(call.text("event"), call, item)
        made |= {"state": _STATES[call.text("event")], "submitted_at": self.of.moment()}
        made["body"] = call.text("body") or made["body"]
        return 200, made

    def review_dismiss(self, call: Call) -> Answer:
        self.of.item(call, "pull_number")
        made = self.of.found(self.of.reviews, call, "review_id")
        if made["state"] not in ("APPROVED", "CHANGES_REQUESTED"):
            raise Refusal(422, "Unprocessable Entity", ["Can not dismiss a commented pull request review"])
        made["state"] = "DISMISSED"
        return 200, made

    def review_delete(self, call: Call) -> Answer:
        self.of.item(call, "pull_number")
        made = self.of.found(self.of.reviews, call, "review_id")
        if made["state"] != "PENDING":
            raise Refusal(422, "Unprocessable Entity", ["Can not delete a non-pending pull request review"])
        return 200, self.of.reviews.pop(made["id"])

    def review_comments_of(self, call: Call) -> Answer:
        number = self.of.found(self.of.reviews, call, "review_id")["id"]
        comments = [
            made for made in self.of.review_comments.values() if made["pull_request_review_id"] == number
        ]
        return 200, [sample("review-comment", **{key: made[key] for key in _SHARED}) for made in comments]

    def review_comments_list(self, call: Call) -> Answer:
        url = f"/pulls/{self.of.item(call, 'pull_number').number}"
        return 200, [
            made for made in self.of.review_comments.values() if made["pull_request_url"].endswith(url)
        ]

    def review_comment_create(self, call: Call) -> Answer:
        item = self.of.item(call, "pull_number")
        self.of.commit(call.text("commit_id"), "PullRequestReviewComment")
        _in_diff(call.body, item)
        return 201, self._review_comment(call, item, call.body, None)

    def _review_comment(
        self, call: Call, item: Item, comment: Mapping[str, Any], review: int | None
    ) -> dict[str, Any]:
        made = self.of.written(
            "pull-request-review-comment",
            call,
            body=comment["body"],
            path=comment["path"],
            line=comment.get("line"),
            commit_id=item.head_sha,
            original_commit_id=item.head_sha,
            pull_request_review_id=review,
            pull_request_url=f"https://api.github.test/repos/{self.of.full_name}/pulls/{item.number}",
        )
        self.of.review_comments[made["id"]] = made
        return made


def _check_event(event: object, call: Call, item: Item) -> None:
    if event not in (None, *_STATES):
        raise invalid("PullRequestReview", "event", "invalid")
    if event in ("REQUEST_CHANGES", "COMMENT") and not (call.text("body") or call.text("comments")):
        raise Refusal(422, "Unprocessable Entity", ["Body can't be blank"])
    if event in ("APPROVE", "REQUEST_CHANGES") and item.author == call.login:
        word = "approve" if event == "APPROVE" else "request changes on"
        raise Refusal(422, "Unprocessable Entity", [f"Review Can not {word} your own pull request"])


def _in_diff(comment: Mapping[str, Any], item: Item) -> None:
    if comment.get("path") not in item.files:
        raise Refusal(422, "Unprocessable Entity", ["Path could not be resolved"])
    if not comment.get("body"):
        raise invalid("PullRequestReviewComment", "body", "missing_field")
