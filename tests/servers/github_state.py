"""What a fake GitHub knows and does: one repository's pull requests, issues, labels, reviews, checks and statuses.

Operations by their published names. It knows no HTTP: `github.py` calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.servers.github_schema import sample

BODY_CHARACTERS_MAX = 65536
LABEL_CHARACTERS_MAX = 50
BOT = "gonogo[bot]"


class Refusal(Exception):  # noqa: N818 - an answer, not an error of the fake
    """An answer that says no."""

    def __init__(self, status: int, message: str, errors: list[Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Any] = {
            "message": message,
            **({"errors": errors} if errors else {}),
            "documentation_url": "https://docs.github.com/rest",
            "status": str(status),
        }


def invalid(resource: str, field_name: str, code: str, message: str = "") -> Refusal:
    """422 in its usual form."""
    error = {"resource": resource, "field": field_name, "code": code}
    return Refusal(422, "Validation Failed", [error | ({"message": message} if message else {})])


@dataclass(slots=True)
class Call:
    """One request, taken apart."""

    parts: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    login: str = BOT

    def number(self, name: str) -> int:
        """A number in the path; what is none isn't found."""
        if not self.parts[name].isdecimal():
            raise Refusal(404, "Not Found")
        return int(self.parts[name])

    def text(self, name: str) -> Any:
        """A field of the body."""
        return self.body.get(name) if isinstance(self.body, dict) else None


@dataclass(slots=True)
class Item:
    """An issue or a pull request."""

    number: int
    author: str
    head_sha: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)
    locked: bool = False


Answer = tuple[int, Any]


class Repository:
    """`owner/name` with what happened in it. Tests add items and look at the lists."""

    def __init__(self, full_name: str = "o/r", now_s: float = 1_767_225_600.0) -> None:
        self.full_name = full_name
        self.now_s = now_s
        self.items: dict[int, Item] = {}
        self.comments: dict[int, dict[str, Any]] = {}
        self.reviews: dict[int, dict[str, Any]] = {}
        self.review_comments: dict[int, dict[str, Any]] = {}
        self.check_runs: dict[int, dict[str, Any]] = {}
        self.annotations: dict[int, list[dict[str, Any]]] = {}
        self.statuses: list[dict[str, Any]] = []
        self.commits: set[str] = set()
        self._ids = 1000

    def add_pull(
        self, number: int, head_sha: str, files: Mapping[str, str] | None = None, author: str = "ada"
    ) -> Item:
        """A pull request; `files` are paths with their patches."""
        self.items[number] = Item(number, author, head_sha, dict(files or {}))
        self.commits.add(head_sha)
        return self.items[number]

    def add_issue(self, number: int, author: str = "ada") -> Item:
        """An issue."""
        self.items[number] = Item(number, author)
        return self.items[number]

    def next_id(self) -> int:
        """Ids rise over everything."""
        self._ids += 1
        return self._ids

    def moment(self) -> str:
        """Now, as it stands in answers."""
        return datetime.fromtimestamp(self.now_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    # Looking things up.

    def item(self, call: Call, name: str = "issue_number") -> Item:
        found = self.items.get(call.number(name))
        if found is None or (name == "pull_number" and found.head_sha is None):
            raise Refusal(404, "Not Found")
        return found

    def open_item(self, call: Call) -> Item:
        item = self.item(call)
        if item.locked:
            raise Refusal(403, "Unable to create comment because issue is locked.")
        return item

    def found(self, table: Mapping[int, dict[str, Any]], call: Call, name: str) -> dict[str, Any]:
        made = table.get(call.number(name))
        if made is None:
            raise Refusal(404, "Not Found")
        return made

    def commit(self, sha: object, resource: str) -> str:
        if not isinstance(sha, str) or sha not in self.commits:
            raise Refusal(422, f"No commit found for SHA: {sha}")
        return sha

    # Issues.

    def issue_get(self, call: Call) -> Answer:
        item = self.item(call)
        pull = (
            {"pull_request": dict.fromkeys(("url", "html_url", "diff_url", "patch_url"))}
            if item.head_sha
            else {}
        )
        labels = [self.label(name) for name in item.labels]
        return 200, sample(
            "issue",
            number=item.number,
            user=user(item.author),
            labels=labels,
            state="open",
            locked=item.locked,
            **pull,
        )

    def label(self, name: str) -> dict[str, Any]:
        return sample("label", name=name, color="ededed", id=sum(name.encode()) + 1)

    def labels(self, item: Item) -> Answer:
        return 200, [self.label(name) for name in item.labels]

    def labels_list(self, call: Call) -> Answer:
        return self.labels(self.item(call))

    def labels_add(self, call: Call) -> Answer:
        item, names = self.item(call), _label_names(call.body)
        present = {name.lower() for name in item.labels}
        item.labels += [name for name in dict.fromkeys(names) if name.lower() not in present]
        return self.labels(item)

    def labels_set(self, call: Call) -> Answer:
        item = self.item(call)
        item.labels = list(dict.fromkeys(_label_names(call.body)))
        return self.labels(item)

    def label_remove(self, call: Call) -> Answer:
        item, wanted = self.item(call), call.parts["name"].lower()
        if wanted not in {name.lower() for name in item.labels}:
            raise Refusal(404, "Label does not exist")
        item.labels = [name for name in item.labels if name.lower() != wanted]
        return self.labels(item)

    def labels_clear(self, call: Call) -> Answer:
        self.item(call).labels = []
        return 204, None

    def comments_list(self, call: Call) -> Answer:
        item = self.item(call)
        suffix = f"/issues/{item.number}"
        return 200, [made for made in self.comments.values() if made["issue_url"].endswith(suffix)]

    def comment_create(self, call: Call) -> Answer:
        item, body = self.open_item(call), _body(call, "IssueComment")
        made = self.written(
            "issue-comment",
            call,
            body=body,
            issue_url=f"https://api.github.test/repos/{self.full_name}/issues/{item.number}",
        )
        self.comments[made["id"]] = made
        return 201, made

    def comment_get(self, call: Call) -> Answer:
        return 200, self.found(self.comments, call, "comment_id")

    def comment_update(self, call: Call) -> Answer:
        made = self.found(self.comments, call, "comment_id")
        made |= {"body": _body(call, "IssueComment"), "updated_at": self.moment()}
        return 200, made

    def comment_delete(self, call: Call) -> Answer:
        del self.comments[self.found(self.comments, call, "comment_id")["id"]]
        return 204, None

    def written(self, schema: str, call: Call, **fields: Any) -> dict[str, Any]:
        number, moment = self.next_id(), self.moment()
        url = f"https://github.test/{self.full_name}#{schema}-{number}"
        return sample(
            schema,
            id=number,
            user=user(call.login),
            html_url=url,
            created_at=moment,
            updated_at=moment,
            **fields,
        )

    def me(self, call: Call) -> Answer:
        return 200, sample("public-user", login=call.login, type="Bot")


def user(login: str) -> dict[str, Any]:
    """A person, or a bot by its name."""
    return {**sample("simple-user"), "login": login, "type": "Bot" if login.endswith("[bot]") else "User"}


def _body(call: Call, resource: str) -> str:
    body = call.text("body")
    if not isinstance(body, str) or not body.strip():
        raise invalid(resource, "body", "missing_field")
    if len(body) > BODY_CHARACTERS_MAX:
        message = f"Body is too long (maximum is {BODY_CHARACTERS_MAX} characters)"
        raise invalid(resource, "data", "unprocessable", message)
    return body


def _label_names(body: Any) -> list[str]:
    """The forms that are taken: a list, an object with a list, of texts or of objects with a name."""
    given = body.get("labels", []) if isinstance(body, dict) else body
    given = [given] if isinstance(given, str) else given
    names: list[Any] = [one.get("name") if isinstance(one, dict) else one for one in given or []]
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise invalid("Label", "name", "missing_field")
        if len(name) > LABEL_CHARACTERS_MAX:
            raise invalid(
                "Label", "name", "custom", f"name is too long (maximum is {LABEL_CHARACTERS_MAX} characters)"
            )
    return names
