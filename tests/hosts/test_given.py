"""Outputs that a person gives for calls in doubt, as they are kept for whoever has the run."""

from __future__ import annotations

import pytest

from gonogo import app
from gonogo.app.given import fitting
from gonogo.app.options import Options, Start
from gonogo.app.places import places_of
from gonogo.journal.memory import MemoryRuns

ASKS = """
version: "1.0"
steps:
  ask: {type: human-input, prompt: "Which?"}
  call:
    type: http_client
    depends_on: ask
    url: http://127.0.0.1:1/
    headers: {authorization: "Bearer ${PLAIN}"}
  run: {type: command, depends_on: ask, exec: "true", env: {OWN_TOKEN: written-cormorant}}
"""


@pytest.mark.parametrize("given", [True, False], ids=["given for the run", "of the process"])
def test_an_output_that_is_told_is_kept_without_what_lets_steps_in(
    monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    """Whatever the variable is called; the run's host knows it, too."""
    runs = MemoryRuns()
    env = {"PLAIN": "let-me-in-please"} if given else {}
    if not given:
        monkeypatch.setenv("PLAIN", "let-me-in-please")
    ended = app.start_run(app.loads(ASKS).plan, Start(), Options(runs=runs, env=env))
    places = places_of(runs, ended.run_id, "ask", "")
    if given:
        monkeypatch.setenv("PLAIN", "let-me-in-please")
    output = {"note": "let-me-in-please, written-cormorant", "id": 7}
    assert fitting(output, places, runs, Options(runs=runs)) == {"note": "***, ***", "id": 7}
