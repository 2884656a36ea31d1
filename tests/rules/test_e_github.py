"""E.8 in whole runs: an event, a workflow, a fake GitHub; what is there afterwards, and how the run ends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cases.conftest import Ended, gonogo
from tests.servers.github import DROPPED_AFTER, DROPPED_BEFORE, TOKEN, FakeGitHub, Token
from tests.servers.github_state import Repository

__all__ = ["gonogo"]

SHA = "a" * 40
PULL = {
    "number": 1,
    "title": "t",
    "user": {"login": "ada"},
    "head": {"ref": "x", "sha": SHA},
    "base": {"ref": "main", "sha": "b" * 40},
}
EVENT = {"action": "opened", "pull_request": PULL, "repository": {"full_name": "o/r"}}

STEPS = """
version: "1.0"
steps:
  look: {type: script, content: "return { text: 'All *good*.', labels: ['reviewed', 'size: S'] }"}
  post:
    type: github
    op: comment.create
    criticality: external
    depends_on: look
    idempotency_key: "report-{{ pr.number }}"
    assume: "pr !== null"
    body: |
      # Report

      {{ outputs.look.text }}
      {{ outputs.look.text }}
    guarantee: "typeof output.id === 'number'"
  mark:
    type: github
    op: labels.add
    criticality: external
    depends_on: look
    assume: "pr !== null"
    guarantee: "Array.isArray(output.added) && output.added.includes('reviewed')"
"""
BODY = "# Report\n\nAll *good*.\nAll *good*.\n"

Play = Callable[..., Ended]


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    """A repository with a pull request; what differs from GitHub's description fails the test."""
    with FakeGitHub(Repository(now_s=time.time())) as fake:
        fake.repository.add_pull(1, SHA)
        yield fake
    assert fake.violations == []


@pytest.fixture
def run(hub: FakeGitHub, gonogo: Play, tmp_path: Path) -> Play:
    """`gonogo run` for the event, with the variables of a job of GitHub Actions."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps(EVENT))
    env = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": hub.url}

    def call(text: str, *more: str) -> Ended:
        return gonogo(text, "run", "--payload", str(event), "--format", "json", *more, env=env)

    return call


def steps_of(ended: Ended) -> dict[str, Any]:
    """Each step of the report, by its name."""
    found: dict[str, Any] = ended.json["steps"]
    return found


def bodies(hub: FakeGitHub) -> list[str]:
    """The comments that there are."""
    return [made["body"] for made in hub.repository.comments.values()]


def test_H13_guarantees_about_what_was_made_hold(hub: FakeGitHub, run: Play) -> None:
    """E.8 R3, R4, H13: the guide's own guarantees; labels come from the step before."""
    ended = run(STEPS)
    assert (ended.code, ended.json["verdict"]) == (0, "GO"), ended.err
    assert hub.repository.items[1].labels == ["reviewed", "size: S"]


def test_I1_24_a_body_is_byte_identical_to_its_template(hub: FakeGitHub, run: Play) -> None:
    """I.1 24: punctuation and lines that are alike stay."""
    run(STEPS)
    (body,) = bodies(hub)
    assert body.partition("\n\n<!-- gonogo:")[0] == BODY


def test_G12_two_runs_of_an_event_leave_one_comment(hub: FakeGitHub, run: Play) -> None:
    """G12, semantics 17: a key that holds across runs; the second run is GO, too."""
    assert [run(STEPS).code, run(STEPS).code] == [0, 0]
    assert len(bodies(hub)) == 1


def test_E8_R5_a_refusal_fails_the_step(hub: FakeGitHub, run: Play) -> None:
    """E.8 R5, C.6, CLI-3: fatal, told with what to do, not tried again, and nothing else fails."""
    hub.tokens[TOKEN] = Token(permissions={"contents": "read"})
    ended = run(STEPS + "  also: {type: noop}\n")
    steps = steps_of(ended)
    assert (ended.code, ended.json["verdict"]) == (1, "NO-GO")
    assert (steps["post"]["outcome"], steps["also"]["outcome"]) == ("failed", "passed")
    assert "permissions: issues: write or pull-requests: write" in ended.out.decode()
    assert hub.count("issues/create-comment") == 1


def test_semantics_16_what_nobody_knows_holds_the_run(hub: FakeGitHub, run: Play, gonogo: Play) -> None:
    """Semantics 16, 17: the comment may be there, so a person is asked; asked to try again, the call finds it."""
    unkeyed = STEPS.partition("  mark:")[0].replace("idempotency_key", "title")
    hub.inject(None, DROPPED_AFTER, DROPPED_BEFORE, DROPPED_BEFORE)
    ended = run(unkeyed)
    assert (ended.code, ended.json["verdict"]) == (3, "HOLD")
    env = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": hub.url}
    answered = gonogo(unkeyed, "answer", ended.json["run_id"], "post", "again", "--format", "json", env=env)
    assert answered.code == 0, answered.out
    assert len(bodies(hub)) == 1


def test_semantics_16_a_key_of_ones_own_needs_nobody(hub: FakeGitHub, run: Play) -> None:
    """Semantics 16: GitHub's comments honour a key here, so the run may simply be started again."""
    hub.inject(None, DROPPED_AFTER, DROPPED_BEFORE, DROPPED_BEFORE)
    only = STEPS.partition("  mark:")[0]
    assert [run(only).code, run(only).code] == [1, 0]
    assert len(bodies(hub)) == 1


def test_G21_safe_mode_writes_nothing(hub: FakeGitHub, run: Play) -> None:
    """G21: it works by itself, for only reads are reads."""
    read = "  read: {type: github, op: pr.get, depends_on: look}\n"
    assert run(STEPS + read, "--safe-mode").code == 0
    assert {exchange.method for exchange in hub.exchanges} == {"GET"}
    assert (bodies(hub), hub.repository.items[1].labels) == ([], [])


def test_the_token_is_in_no_record(hub: FakeGitHub, run: Play, tmp_path: Path) -> None:
    """Secrets are in no sink: not in the journal, nor in a report."""
    said = STEPS.replace("op: labels.add", 'op: labels.add\n    token: "${{ env.GITHUB_TOKEN }}"')
    ended = run(said)
    assert ended.code == 0, ended.err
    kept = [path.read_bytes() for path in (tmp_path / "process").rglob("*") if path.is_file()]
    assert not any(TOKEN.encode() in data for data in (*kept, ended.out, ended.err.encode()))
    assert any(b"labels.add" in data for data in kept)


def test_a_token_has_no_place_in_a_file(gonogo: Play) -> None:
    """It has to be a reference."""
    ended = gonogo(STEPS.replace("op: labels.add", "op: labels.add\n    token: ghs_abc"), "validate")
    assert ended.code == 2
    assert "token" in ended.out.decode() + ended.err


def test_what_hasnt_changed_is_not_read_again(hub: FakeGitHub, run: Play) -> None:
    """A step that waits for something by running again costs GitHub's limit once."""
    ended = run("""
version: "1.0"
routing: {max_loops: 3}
steps:
  poll:
    type: github
    op: pr.get
    fail_if: "!output_meta.unchanged"
    on_fail: {run: [pause], goto: poll}
  pause: {type: noop, if: "true"}
""")
    assert ended.code == 0, ended.err
    assert [exchange.status for exchange in hub.exchanges] == [200, 304]
