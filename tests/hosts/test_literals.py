"""Secrets that stand in a workflow file don't get into its journal (semantics.md 14), and still do their work."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gonogo import app
from gonogo.core.plan import Plan
from gonogo.hosts.base import RunResult

HEAD = 'version: "1.0"\nmax_parallelism: 1\n'
FILE = (
    HEAD
    + """
env: {SOME_TOKEN: written-in-the-file}
steps:
  shell: {type: command, exec: "printf %s swordfish-9 | sha256sum"}
  variable: {type: command, exec: 'printf %s "$SOME_TOKEN" | sha256sum', depends_on: shell}
  templated:
    type: command
    exec: "printf %s swordfish-9{{ inputs.x | shell_escape }} | sha256sum"
    depends_on: variable
  script: {type: script, content: "return 'swordfish-9'.length", depends_on: templated}
  asks: {type: human-input, prompt: go on?, depends_on: script}
  last: {type: command, exec: "printf %s swordfish-9 | sha256sum", depends_on: asks}
"""
)
LITERALS = (b"swordfish-9", b"written-in-the-file")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("API_TOKEN", "swordfish-9")


def run(text: str = FILE, **options: str) -> RunResult:
    """A run named r."""
    return app.start_run(app.loads(text), app.Start(run_id="r"), app.Options(**options))  # type: ignore[arg-type]


def journals() -> bytes:
    """What all journals hold."""
    return b"".join(path.read_bytes() for path in sorted(Path(".gonogo/runs").rglob("journal.jsonl")))


def hashed(text: str) -> str:
    """What sha256sum says of a text."""
    return f"{hashlib.sha256(text.encode()).hexdigest()}  -"


def test_the_journal_holds_a_handle_and_the_call_gets_the_secret() -> None:
    """What is known as a secret by the environment, or by its name in the file; also where no template is."""
    result = run()
    assert [secret for secret in LITERALS if secret in journals()] == []
    assert journals().count(b"[secret workflow ") >= 4
    names = ("shell", "variable", "templated", "script")
    assert [result.output(name) for name in names] == [
        hashed("swordfish-9"), hashed("written-in-the-file"), hashed("swordfish-9"), 11,
    ]  # fmt: skip


def test_a_run_that_is_gone_on_with_still_has_them() -> None:
    """Elsewhere in time: from the sealed store, whatever the environment says by then."""
    run()
    result = app.answer_run("r", "asks", "yes")
    assert result is not None
    assert result.output("last") == hashed("swordfish-9")
    assert [secret for secret in LITERALS if secret in journals()] == []


def test_without_the_store_the_run_waits_for_a_person() -> None:
    """A command with a handle in a secret's place would do who knows what."""
    run()
    Path(".gonogo/runs/r/sealed").unlink()
    result = app.answer_run("r", "asks", "yes")
    assert result is not None
    assert (result.verdict, result.waiting) == ("HOLD", ("last",))
    assert "--from" not in str(result.state.nodes["last"][""].hold)


def test_the_same_file_is_no_changed_file() -> None:
    """Its secrets are compared as what they are; what did change is looked at, and sealed, too."""
    run()
    same = app.run_again_from("r", app.Wish(steps=("script",), workflow=app.loads(FILE).plan))
    assert same.waiting == ("asks",)
    changed = FILE.replace("'swordfish-9'.length", "'swordfish-9-'.length")
    result = app.run_again_from("r", app.Wish(steps=("script",), workflow=app.loads(changed).plan))
    assert result.output("script") == 12
    assert [secret for secret in LITERALS if secret in journals()] == []


def test_a_child_gets_them_from_its_parents_plan() -> None:
    """Imported workflows are part of the plan; each run has handles of its own."""
    Path("child.yaml").write_text(
        HEAD + 'id: child\nsteps: {one: {type: command, exec: "printf %s swordfish-9 | sha256sum"}}\n'
    )
    Path("main.yaml").write_text(
        HEAD + "imports: [child.yaml]\nenv: {SOME_TOKEN: written-in-the-file}\n"
        "steps: {calls: {type: workflow, workflow: child}}\n"
    )
    result = app.start_run(app.load("main.yaml"))
    assert result.output("calls") == hashed("swordfish-9")
    assert [secret for secret in LITERALS if secret in journals()] == []


def test_a_plan_without_secrets_is_the_same_plan_and_seals_nothing() -> None:
    """The usual case."""
    plan: Plan = app.loads(HEAD + "steps: {one: {type: noop}}").plan
    result = app.start_run(plan, app.Start(run_id="r"))
    assert result.state.graph.plan is plan or result.state.graph.plan == plan
    assert not Path(".gonogo/runs/r/sealed").exists()


def test_where_nothing_can_be_sealed_the_run_goes_on(database: str) -> None:
    """In Postgres without a key, the file's own secrets stay as `validate` warned."""
    result = run(runs=database)
    assert result.output("shell") == hashed("swordfish-9")
