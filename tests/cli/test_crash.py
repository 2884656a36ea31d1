"""SEC-4: an unexpected error tells where it was, never what was in the variables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from tests.cli.conftest import Gonogo, write

from gonogo.errors import Bug

TOKEN = "hunter2-" + "0123456789"


@dataclass
class Holder:
    """A field with a secret."""

    token: str


def broken(error: Exception) -> object:
    """A function that holds a token in a local variable and in a field, and fails."""

    def fail(*_: object, **__: object) -> None:
        token = TOKEN
        holder = Holder(token)
        assert holder.token
        raise error

    return fail


@pytest.mark.parametrize("verbose", [[], ["-v"]])
def test_SEC_4_neither_mode_prints_a_value(
    gonogo: Gonogo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verbose: list[str]
) -> None:
    """A short message with an id; the file with the traceback has values masked and one reader."""
    write(tmp_path, "a: {type: noop}")
    monkeypatch.setattr("gonogo.app.start_run", broken(RuntimeError(f"with {TOKEN} in it")))
    ended = gonogo("run", *verbose, API_TOKEN=TOKEN)
    assert ended.code == 70
    assert TOKEN not in ended.out + ended.err
    assert "Traceback" not in ended.err
    assert "this is a bug in gonogo" in ended.err
    [kept] = (tmp_path / ".gonogo" / "errors").iterdir()
    assert kept.name.removeprefix("error-").removesuffix(".txt") in ended.err
    assert kept.stat().st_mode & 0o777 == 0o600
    text = kept.read_text()
    assert TOKEN not in text
    assert "with *** in it" in text
    assert "in fail" in text


def test_SEC_4_values_given_for_the_run_are_masked_too(
    gonogo: Gonogo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-e NAME=secret`."""
    write(tmp_path, "a: {type: noop}")
    monkeypatch.setattr("gonogo.app.start_run", broken(RuntimeError(TOKEN)))
    assert gonogo("run", "-e", f"NAME={TOKEN}").code == 70
    [kept] = (tmp_path / ".gonogo" / "errors").iterdir()
    assert TOKEN not in kept.read_text()


def test_SEC_4_values_of_denied_names_are_masked_too(
    gonogo: Gonogo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GONOGO_DENY_ENV holds for a crash as it does for a run."""
    write(tmp_path, "a: {type: noop}")
    monkeypatch.setattr("gonogo.app.start_run", broken(RuntimeError(TOKEN)))
    assert gonogo("run", GONOGO_DENY_ENV="PLAIN", PLAIN=TOKEN).code == 70
    [kept] = (tmp_path / ".gonogo" / "errors").iterdir()
    assert TOKEN not in kept.read_text()


def test_a_bug_is_json_where_json_was_asked_for(
    gonogo: Gonogo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the id, exit code 70."""
    write(tmp_path, "a: {type: noop}")
    monkeypatch.setattr("gonogo.app.start_run", broken(Bug("a rule was broken")))
    ended = gonogo("run", "--format", "json")
    assert ended.code == ended.json["exit_code"] == 70
    assert ended.json["error"]["code"] == "bug"
    assert ended.json["error"]["message"].startswith("a rule was broken (error ")
    assert ended.json["error"]["error_id"] in ended.err


def test_messages_that_quote_values_are_left_out(
    gonogo: Gonogo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """msgspec, and what step types from outside may use, show what they were given."""
    import msgspec

    value = "a value that nobody named a secret"
    with pytest.raises(msgspec.ValidationError, match="nobody named") as problem:
        msgspec.convert(value, Literal["other"])
    write(tmp_path, "a: {type: noop}")
    monkeypatch.setattr("gonogo.app.start_run", broken(problem.value))
    gonogo("run")
    [kept] = (tmp_path / ".gonogo" / "errors").iterdir()
    assert "nobody named" not in kept.read_text()


def test_the_journal_to_attach_is_named(
    gonogo: Gonogo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a run has begun."""
    write(tmp_path, "a: {type: noop}")
    monkeypatch.setattr("gonogo.report.report.report_of", broken(RuntimeError("x")))
    ended = gonogo("run")
    assert ended.code == 70
    [journal] = (tmp_path / ".gonogo" / "runs").glob("*/journal.jsonl")
    assert str(journal.relative_to(tmp_path)) in ended.err


def test_ctrl_c_while_loading_is_no_bug(
    gonogo: Gonogo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """130, and a word."""
    write(tmp_path, "a: {type: noop}")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gonogo.app.load", interrupted)
    ended = gonogo("run")
    assert ended.code == 130
    assert "gonogo: interrupted" in ended.err
