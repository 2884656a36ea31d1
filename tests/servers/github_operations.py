"""The operations that a fake GitHub knows."""

from __future__ import annotations

from collections.abc import Callable

from tests.servers.github_checks import Checks
from tests.servers.github_pulls import Pulls
from tests.servers.github_state import Answer, Call, Repository


def operations(repository: Repository) -> dict[str, Callable[[Call], Answer]]:
    """What does each operation, by its published name."""
    pulls, checks = Pulls(repository), Checks(repository)
    return {
        "users/get-authenticated": repository.me,
        "issues/get": repository.issue_get,
        "issues/list-comments": repository.comments_list,
        "issues/create-comment": repository.comment_create,
        "issues/get-comment": repository.comment_get,
        "issues/update-comment": repository.comment_update,
        "issues/delete-comment": repository.comment_delete,
        "issues/list-labels-on-issue": repository.labels_list,
        "issues/add-labels": repository.labels_add,
        "issues/set-labels": repository.labels_set,
        "issues/remove-label": repository.label_remove,
        "issues/remove-all-labels": repository.labels_clear,
        "pulls/get": pulls.pull_get,
        "pulls/list-files": pulls.pull_files,
        "pulls/list-reviews": pulls.reviews_list,
        "pulls/create-review": pulls.review_create,
        "pulls/get-review": pulls.review_get,
        "pulls/submit-review": pulls.review_submit,
        "pulls/dismiss-review": pulls.review_dismiss,
        "pulls/delete-pending-review": pulls.review_delete,
        "pulls/list-comments-for-review": pulls.review_comments_of,
        "pulls/list-review-comments": pulls.review_comments_list,
        "pulls/create-review-comment": pulls.review_comment_create,
        "checks/create": checks.check_create,
        "checks/get": checks.check_get,
        "checks/update": checks.check_update,
        "checks/list-for-ref": checks.checks_list,
        "checks/list-annotations": checks.annotations_list,
        "repos/create-commit-status": checks.status_create,
        "repos/get-combined-status-for-ref": checks.status_combined,
        "repos/list-commit-statuses-for-ref": checks.statuses_list,
    }
