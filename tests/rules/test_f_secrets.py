"""F.8.8 in whole runs: what a far side repeats of a key is in no record, no event, no error, no log, no report."""

from __future__ import annotations

import json

import pytest
from tests.servers import faulty
from tests.servers.faulty import FaultyServer, Script
from tests.servers.model import refuses
from tests.whole import RunYaml

KEY = "sk-0123456789abcdef"
ECHO = json.dumps({"error": {"message": f"wrong key {KEY}", "code": KEY, "type": KEY}}).encode()
HEADERS = {"x-request-id": KEY, "retry-after": f"soon, {KEY}", "x-echo": f"Bearer {KEY}"}
FAR: dict[str, Script] = {
    "a refusal": faulty.answer(401, ECHO, HEADERS),
    "a limit": faulty.answer(429, ECHO, HEADERS),
    "a breakdown": faulty.answer(503, ECHO, HEADERS),
    "an error page": faulty.answer(500, f"<html>{KEY}</html>".encode(), HEADERS),
    "an answer": faulty.answer(200, json.dumps({"you": KEY}).encode(), HEADERS),
    "a redirect": faulty.redirect(f"/again?key={KEY}"),
    "a broken stream": (*refuses(400, KEY, f"key {KEY}"),),
    "a cut answer": (faulty.take_request, faulty.send(faulty.head(200, {"content-length": "999"}) + ECHO)),
}


@pytest.mark.parametrize("case", FAR)
def test_F_8_8_a_key_in_headers_urls_and_bodies_is_written_nowhere(run_yaml: RunYaml, case: str) -> None:
    """F.8.8, SEC-2: sent in a header, a URL and a body; journal, blobs, log and result are searched for it."""
    with FaultyServer(FAR[case]) as server:
        ran = run_yaml(
            f"""
reliability:
  default: {{bounds: {{attempts_per_target: 2}}, backoff: {{base_s: 0}}}}
steps:
  get:
    type: http_client
    criticality: info
    url: "{server.url}/a?key={{{{ env.API_KEY }}}}"
    headers: {{Authorization: "Bearer {{{{ env.API_KEY }}}}"}}
    method: POST
    body: "key={{{{ env.API_KEY }}}}"
  ask:
    type: ai
    criticality: info
    provider: openai
    model: m
    url: "{server.url}/v1"
    api_key: "${{{{ env.API_KEY }}}}"
    prompt: "my key is {{{{ env.API_KEY }}}}"
""",
            env={"API_KEY": KEY},
        )
    assert server.requests
    assert any(KEY in each.headers.get("authorization", "") for each in server.requests)
    written = "".join(
        path.read_text("utf-8", "replace") for path in (ran.folder.parent / "runs").rglob("*.jsonl")
    )
    assert '"gate"' in written
    assert KEY not in written
    assert KEY not in repr(ran.logged)
    assert KEY not in json.dumps(ran.view.as_json())
