"""What may be given to a run that others carry."""

from __future__ import annotations

import base64
import hashlib

import psycopg
import pytest
from tests.engines.world import HEAD, World

from gonogo import app
from gonogo.app.engines import Carrier, submit_run
from gonogo.app.options import Options, Start
from gonogo.errors import EngineError, UsageError

NOBODY_THERE = Options(runs="postgresql://ann@127.0.0.1:1/x", env={"PLACE": "a cellar", "MY_TOKEN": "abc"})
PLAN = app.loads(HEAD + "steps: {a: {type: noop}}\n").plan


@pytest.mark.parametrize(("denied", "name"), [("", "MY_TOKEN"), ("PLACE", "PLACE")])
def test_a_secret_is_not_given_to_workers(monkeypatch: pytest.MonkeyPatch, denied: str, name: str) -> None:
    """By its name, or because the environment says so: it would be kept masked, and be wrong without a word."""
    monkeypatch.setenv("GONOGO_DENY_ENV", denied)
    monkeypatch.setenv("GONOGO_ALLOW_ENV", "" if not denied else "MY_TOKEN")
    with pytest.raises(UsageError, match=f"-e {name} is a secret"):
        submit_run(PLAN, Start(), NOBODY_THERE, Carrier("dbos"))


def test_what_the_environment_says_is_no_secret_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets as far as the engine, which isn't there."""
    monkeypatch.setenv("GONOGO_ALLOW_ENV", "MY_TOKEN")
    with pytest.raises(EngineError):
        submit_run(PLAN, Start(), NOBODY_THERE, Carrier("dbos"))


def test_a_secret_that_one_worker_was_given_gets_to_another(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its step and the one that needs it are called by workers elsewhere; the database holds it encrypted alone."""
    monkeypatch.setenv("GONOGO_SEAL_KEY", base64.b64encode(b"k" * 32).decode())
    (here.folder / "login").write_text('{"token": "tok-en-nobody-knows"}')
    for _ in range(2):
        here.worker()
    run_id = here.submit("""
steps:
  login: {type: command, exec: cat login, secret_outputs: [token], timeout: 90}
  uses:
    type: command
    depends_on: login
    timeout: 90
    exec: printf %s {{ outputs.login.token | shell_escape }} | sha256sum
""")
    state = here.ended(run_id)
    digest = hashlib.sha256(b"tok-en-nobody-knows").hexdigest()
    assert str(state.nodes["uses"][""].output).startswith(digest)
    with psycopg.connect(here.store) as connection:
        told = repr(connection.execute("select line from gonogo_records").fetchall())
        told += repr(connection.execute("select sealed from gonogo_seals").fetchall())
    assert "tok-en" not in told + repr(here.said)
