"""mcp in whole runs: what a step that says nothing may do, and what of a server's words gets where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.servers.mcp_servers import plain

import gonogo
from gonogo import RunResult


def run(folder: Path, server: str, **keys: Any) -> RunResult:
    """A workflow of one step `call`, whose server behaves as `server` says. YAML reads JSON."""
    step = {"type": "mcp", **plain(server), "method": "echo", "timeout": "30s", **keys}
    text = json.dumps({"version": "1.0", "steps": {"call": step}})
    return gonogo.loads(text).run(runs=folder / "runs")


def journal(folder: Path) -> str:
    """All that was written down."""
    return "".join(
        path.read_text(errors="replace") for path in (folder / "runs").rglob("*") if path.is_file()
    )


def test_a_tool_that_breaks_off_holds_the_run_for_a_person(tmp_path: Path) -> None:
    """A step that says nothing may have changed something: nobody knows, so nobody goes on."""
    result = run(tmp_path, "dies")
    assert (result.verdict, result.waiting) == ("HOLD", ("call",))


def test_a_tool_that_only_reads_may_break_off(tmp_path: Path) -> None:
    """`mutates: false` reaches the gate: nothing is in doubt, and the step fails for what its server said last."""
    result = run(tmp_path, "dies", mutates=False, criticality="internal")
    assert result.verdict == "NO-GO"
    assert result.fault is not None
    assert (result.fault.kind, result.fault.rule_id) == ("mcp.closed", "call/mcp/error")


def test_a_call_that_was_refused_is_not_in_doubt(tmp_path: Path) -> None:
    """A tool that isn't there was not called."""
    result = run(tmp_path, "misspelt")
    assert result.verdict == "NO-GO"


def test_a_secret_that_a_server_repeats_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets what the step gives it, and no sink gets it back."""
    monkeypatch.setenv("SHOP_TOKEN", "s3cr3t-of-the-shop")
    result = run(tmp_path, "environment", mutates=False, env={"TOKEN": "${{ env.SHOP_TOKEN }}"})
    assert result.verdict == "GO"
    assert "TOKEN" in result.output("call")
    assert "s3cr3t-of-the-shop" not in journal(tmp_path)


def test_a_servers_words_are_no_template(tmp_path: Path) -> None:
    """What a tool gives is data, wherever it looks like more."""
    assert run(tmp_path, "tempts", mutates=False).output("call") == "{{ outputs }} ${HOME} $(id)"


def test_safe_mode_calls_no_tool_that_may_change_things(tmp_path: Path) -> None:
    """The server isn't even started."""
    text = json.dumps(
        {"version": "1.0", "steps": {"call": {"type": "mcp", "command": "no-such", "method": "a"}}}
    )
    result = gonogo.loads(text).run(runs=tmp_path / "runs", safe_mode=True)
    assert result.output("call")["safe_mode"] is True
