"""Keys that steps send are in nothing that is kept, whatever the far side makes of them (SEC-2, F.8.8)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.servers import faulty
from tests.servers.faulty import FaultyServer, Script, answer

import gonogo

SECRET = "k-Zq9-of-the-far-side"
KEY = "${{ env.HARMLESS }}"
ONE = {"bounds": {"attempts_max": 1}}
ECHOES: dict[str, Script] = {
    "a refusal": answer(
        401,
        json.dumps({"error": {"message": f"bad key {SECRET}", "type": SECRET, "code": SECRET}}).encode(),
        {"www-authenticate": SECRET, "x-request-id": SECRET, "retry-after": SECRET},
    ),
    "a redirect": answer(302, b"", {"location": f"http://{SECRET.lower()}.example/?k={SECRET}"}),
    "no answer": answer(200, f"<html>{SECRET}".encode()),
    "an event": faulty.stream(
        [f'data: {{"error": {{"message": "{SECRET}", "code": "{SECRET}"}}}}\n\n'.encode()]
    ),
}


def steps(url: str) -> dict[str, dict[str, Any]]:
    """One of each type that sends a key of its own."""
    auth, headers = {"type": "bearer", "token": KEY}, {"X-Key": KEY}
    ai = {"type": "ai", "model": "m", "api_key": KEY, "prompt": "x", "headers": headers, "reliability": ONE}
    lent = {"url": url, "auth": auth, "headers": headers, "tools": {"t": {"mutates": False}}}
    return {
        "http_client": {
            "type": "http_client", "url": f"{url}/?token={KEY}", "auth": auth, "headers": headers,
            "method": "POST", "body": "x", "mutates": False,
        },
        "openai": {**ai, "provider": "openai", "url": f"{url}/v1"},
        "anthropic": {**ai, "provider": "anthropic", "url": url, "stream": True},
        "google": {**ai, "provider": "google", "url": url, "stream": True},
        "mistral": {**ai, "provider": "mistral", "url": url},
        "mcp": {"type": "mcp", "url": url, "method": "t", "auth": auth, "headers": headers, "mutates": False},
        "lent": {
            "type": "ai", "provider": "mock", "prompt": "x", "mock": {"answers": ["x"]}, "mcp_servers": {"a": lent},
        },
    }  # fmt: skip


def kept(folder: Path) -> list[str]:
    """Files that hold the secret."""
    return [
        str(path) for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("kind", steps(""))
def test_SEC_2_a_key_that_the_far_side_repeats_is_nowhere(
    kind: str, echo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In no record, no breaker, no message and no result; whatever its variable is called."""
    monkeypatch.setenv("HARMLESS", SECRET)
    with FaultyServer(ECHOES[echo]) as server:
        step: Mapping[str, Any] = {"criticality": "internal", "timeout": "20s", **steps(server.url)[kind]}
        plan = gonogo.loads(json.dumps({"version": "1.0", "steps": {"a": step}}))
        result = plan.run(runs=tmp_path / "runs")
        assert SECRET.encode() in repr(server.requests).encode()
    assert SECRET not in repr(result)
    assert kept(tmp_path) == []
