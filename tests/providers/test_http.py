"""http: a webhook out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import ValidationError
from pytest_httpserver import HTTPServer

from gonogo.provider import Done, Failed, Outcome
from gonogo.providers.http import PROVIDER

Do = Callable[..., Outcome]


def test_E7_the_body_is_posted(httpserver: HTTPServer, do: Do) -> None:
    """E.7, with the call's key, so that a far side can tell a repeat."""
    httpserver.expect_request("/hook", method="POST").respond_with_json({"id": 7})
    outcome = do("http", {"url": httpserver.url_for("/hook"), "body": {"text": "é"}}, key="k-1")
    assert isinstance(outcome, Done)
    assert outcome.output == {"id": 7}
    sent = httpserver.log[-1][0]
    assert (sent.get_json(), sent.headers["Idempotency-Key"]) == ({"text": "é"}, "k-1")


def test_E7_comments_become_issues(httpserver: HTTPServer, do: Do) -> None:
    """E.7."""
    comments = [{"message": "m", "file": "a.py", "line": 3, "severity": "high"}]
    httpserver.expect_request("/hook").respond_with_json({"comments": comments})
    outcome = do("http", {"url": httpserver.url_for("/hook"), "body": "x"})
    assert isinstance(outcome, Done)
    assert [(i.rule_id, i.message, i.file, i.line, i.severity) for i in outcome.issues] == [
        ("webhook", "m", "a.py", 3, "error")
    ]


def test_E7_a_failure_is_typed(httpserver: HTTPServer, do: Do) -> None:
    """C.6: `webhook/error`, classed by status; one request."""
    httpserver.expect_request("/hook").respond_with_data("no", 500)
    outcome = do("http", {"url": httpserver.url_for("/hook"), "body": "x"})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.rule_id) == ("http.status", "step/webhook/error")
    assert (outcome.fault.fault_class, outcome.effect) == ("transient", "unknown")
    assert len(httpserver.log) == 1


def test_a_refused_connection_may_be_repeated(do: Do) -> None:
    """Semantics 16: nothing was done."""
    outcome = do("http", {"url": "http://127.0.0.1:1/", "body": "x"})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.rule_id, outcome.effect) == ("step/webhook/error", "none")


def test_a_webhook_mutates(do: Do) -> None:
    """C.8; and url and body are required (A.6)."""
    assert PROVIDER.effects_of(PROVIDER.config(url="http://x", body="")) == "mutates"
    for config in ({"url": "http://x"}, {"body": "x"}):
        with pytest.raises(ValidationError):
            do("http", config)
