"""Check runs and commit statuses of a fake GitHub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.servers.github_schema import sample
from tests.servers.github_state import Answer, Call, Refusal, Repository, invalid, user

ANNOTATIONS_MAX = 50
_STATUS = ("id", "state", "context", "description", "target_url", "created_at", "updated_at", "url")


@dataclass(frozen=True, slots=True)
class Checks:
    """What can be done with checks and statuses `of` a repository."""

    of: Repository

    def check_create(self, call: Call) -> Answer:
        name, sha = call.text("name"), self.of.commit(call.text("head_sha"), "CheckRun")
        if not name:
            raise Refusal(422, 'Invalid request.\n\n"name" wasn\'t supplied.')
        made = sample(
            "check-run", id=self.of.next_id(), name=name, head_sha=sha, status="queued", conclusion=None
        )
        made |= {"started_at": self.of.moment(), "completed_at": None}
        self.of.check_runs[made["id"]], self.of.annotations[made["id"]] = made, []
        return 201, self._checked(made, call)

    def check_update(self, call: Call) -> Answer:
        return 200, self._checked(self.of.found(self.of.check_runs, call, "check_run_id"), call)

    def _checked(self, made: dict[str, Any], call: Call) -> dict[str, Any]:
        """Take status, conclusion and output; annotations of several requests add up."""
        output = call.text("output") or {}
        annotations = output.get("annotations", [])
        if len(annotations) > ANNOTATIONS_MAX:
            limit = f"No more than {ANNOTATIONS_MAX} items are allowed; {len(annotations)} were supplied."
            raise Refusal(422, f"Invalid request.\n\n{limit}")
        if call.text("status") == "completed" and not call.text("conclusion"):
            raise Refusal(422, 'Invalid request.\n\n"conclusion" wasn\'t supplied.')
        for name in ("name", "status", "details_url", "external_id", "started_at"):
            if call.text(name) is not None:
                made[name] = call.text(name)
        if call.text("conclusion"):
            made |= {"status": "completed", "conclusion": call.text("conclusion")}
            made["completed_at"] = call.text("completed_at") or self.of.moment()
        self.of.annotations[made["id"]] += annotations
        told = {key: output[key] for key in ("title", "summary", "text") if key in output}
        made["output"] |= {**told, "annotations_count": len(self.of.annotations[made["id"]])}
        return made

    def check_get(self, call: Call) -> Answer:
        return 200, self.of.found(self.of.check_runs, call, "check_run_id")

    def checks_list(self, call: Call) -> Answer:
        wanted = {"name": call.query.get("check_name"), "status": call.query.get("status")}
        runs = [
            made
            for made in self.of.check_runs.values()
            if made["head_sha"] == call.parts["ref"]
            and all(made[key] == value for key, value in wanted.items() if value)
        ]
        return 200, {"total_count": len(runs), "check_runs": runs}

    def annotations_list(self, call: Call) -> Answer:
        number = self.of.found(self.of.check_runs, call, "check_run_id")["id"]
        return 200, [sample("check-annotation", **made) for made in self.of.annotations[number]]

    def status_create(self, call: Call) -> Answer:
        sha = self.of.commit(call.parts["sha"], "Status")
        if call.text("state") not in ("error", "failure", "pending", "success"):
            raise invalid("Status", "state", "custom", "state is not included in the list")
        made = sample(
            "status",
            id=self.of.next_id(),
            state=call.text("state"),
            context=call.text("context") or "default",
            description=call.text("description"),
            target_url=call.text("target_url"),
            created_at=self.of.moment(),
            updated_at=self.of.moment(),
            creator=user(call.login),
            url=f"https://api.github.test/repos/{self.of.full_name}/statuses/{sha}",
        )
        self.of.statuses.append(made)
        return 201, made

    def statuses_list(self, call: Call) -> Answer:
        return 200, [made for made in reversed(self.of.statuses) if made["url"].endswith(call.parts["ref"])]

    def status_combined(self, call: Call) -> Answer:
        """The latest of each context; one failure fails all, none or a pending one is pending."""
        if call.parts["ref"] not in self.of.commits:
            raise Refusal(404, "Not Found")
        latest = {
            made["context"]: made for made in self.of.statuses if made["url"].endswith(call.parts["ref"])
        }
        states = {made["state"] for made in latest.values()}
        state = (
            "failure"
            if states & {"error", "failure"}
            else "pending"
            if "pending" in states or not states
            else "success"
        )
        told = [
            sample("simple-commit-status", **{key: made[key] for key in _STATUS}) for made in latest.values()
        ]
        return 200, sample(
            "combined-commit-status", state=state, sha=call.parts["ref"], total_count=len(told), statuses=told
        )
