"""http_client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import ValidationError
from pytest_httpserver import HTTPServer

from gonogo.provider import Done, Failed, Failure, Outcome, Value
from gonogo.providers.http_client import PROVIDER
from gonogo.testing import ScriptedContext

Do = Callable[..., Outcome]


def test_the_answer_is_the_output(httpserver: HTTPServer, do: Do) -> None:
    """E.6 R3; status and headers are in the meta."""
    httpserver.expect_request("/a").respond_with_json({"a": 1})
    outcome = do("http_client", {"url": httpserver.url_for("/a")})
    assert isinstance(outcome, Done)
    assert outcome.output == {"a": 1}
    assert outcome.meta["status"] == 200
    assert outcome.meta["headers"]["content-type"] == "application/json"
    assert outcome.effect == "done"


def test_E6_R2_any_other_status_is_a_failure(httpserver: HTTPServer, do: Do) -> None:
    """C.6, I.1 row 9: fatal, classed, with Retry-After."""
    httpserver.expect_request("/a").respond_with_data("busy", 429, {"Retry-After": "7"})
    outcome = do("http_client", {"url": httpserver.url_for("/a")})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("http.status", "transient")
    assert outcome.fault.rule_id == "step/http_client/fetch_error"
    assert outcome.fault.retry_after_s == 7
    assert outcome.meta["status"] == 429
    assert len(httpserver.log) == 1


def test_a_network_failure_is_typed(do: Do) -> None:
    """C.6."""
    outcome = do("http_client", {"url": "http://127.0.0.1:1/"})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.fault_class, outcome.effect) == (
        "http.network",
        "transient",
        "none",
    )


def test_E1_the_timeout_is_the_steps(httpserver: HTTPServer, do: Do) -> None:
    """Over the whole call."""
    import threading

    gone_on = threading.Event()
    httpserver.expect_request("/slow").respond_with_handler(lambda _: gone_on.wait(10) and None)  # type: ignore[arg-type,return-value]
    outcome = do("http_client", {"url": httpserver.url_for("/slow")}, timeout_s=0.2)
    gone_on.set()
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "http.timeout"


@pytest.mark.parametrize(
    ("config", "method", "path", "query", "body"),
    [
        ({"path": "/a"}, "GET", "/a", "", b""),
        ({"path": "a", "body": "x"}, "GET", "/a", "", b""),
        ({"path": "a", "method": "post", "body": {"x": 1}}, "POST", "/a", "", b'{"x": 1}'),
        ({"path": "/u/{id}", "params": {"id": "a b/../c"}}, "GET", "/u/a b/../c", "", b""),
        (
            {"path": "/q?x=1", "query": {"y": "a&b", "z": True, "n": None}},
            "GET",
            "/q",
            "x=1&y=a%26b&z=true",
            b"",
        ),
    ],
)
def test_E6_the_request_is_what_the_config_says(
    httpserver: HTTPServer, do: Do, config: Mapping[str, Any], method: str, path: str, query: str, body: bytes
) -> None:
    """E.6: base_url + path with params and query; a body for all but GET."""
    httpserver.expect_request("", method=method).respond_with_data("ok")
    do("http_client", {"base_url": httpserver.url_for("/"), **config})
    sent = httpserver.log[-1][0]
    assert (sent.method, sent.path, sent.query_string.decode(), sent.get_data()) == (
        method,
        path,
        query,
        body,
    )


@pytest.mark.parametrize("params", [{}, {"id": ".."}, {"id": "."}, {"id": ""}])
def test_a_parameter_cannot_lead_elsewhere(do: Do, params: Mapping[str, Any]) -> None:
    """Law 6: missing ones and path steps are refused before anything is sent."""
    outcome = do("http_client", {"url": "http://127.0.0.1:1/u/{id}/x", "params": params})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.effect) == ("http.request", "none")


@pytest.mark.parametrize("templated", [None, frozenset({"url"}), frozenset({"path"}), frozenset({"query"})])
def test_a_url_from_data_reaches_no_private_address(
    httpserver: HTTPServer, do: Do, templated: frozenset[str] | None
) -> None:
    """Law 6: whichever part data had a hand in, and when nobody knows."""
    outcome = do("http_client", {"url": httpserver.url_for("/a")}, templated=templated)
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "http.refused_address"
    assert httpserver.log == []


def test_a_body_from_data_says_nothing_about_the_url(httpserver: HTTPServer, do: Do) -> None:
    """The workflow wrote the URL out."""
    httpserver.expect_request("/a").respond_with_data("ok")
    config = {"url": httpserver.url_for("/a"), "method": "POST", "body": "x"}
    assert isinstance(do("http_client", config, templated=frozenset({"body"})), Done)


def test_E6_R4_a_file_gets_the_answer(httpserver: HTTPServer, do: Do, tmp_path: Path) -> None:
    """E.6 R4."""
    httpserver.expect_request("/a").respond_with_data(b"\x00\xff", content_type="image/png")
    outcome = do("http_client", {"url": httpserver.url_for("/a"), "output_file": "new/a.png"})
    file = tmp_path / "new" / "a.png"
    assert file.read_bytes() == b"\x00\xff"
    assert list(file.parent.iterdir()) == [file]
    assert outcome.output == {"file_path": str(file), "size": 2, "content_type": "image/png"}  # type: ignore[union-attr]


def test_E6_R4_a_file_that_is_there_needs_no_call(httpserver: HTTPServer, do: Do, tmp_path: Path) -> None:
    """`skip_if_exists` is on by default."""
    (tmp_path / "a").write_text("old")
    config = {"url": httpserver.url_for("/a"), "output_file": "a"}
    outcome = do("http_client", config)
    assert outcome.output == {"file_path": str(tmp_path / "a"), "size": 3, "cached": True}  # type: ignore[union-attr]
    httpserver.expect_request("/a").respond_with_data("new")
    do("http_client", {**config, "skip_if_exists": False})
    assert (tmp_path / "a").read_text() == "new"


@pytest.mark.parametrize("path", ["../a", "/etc/a", "sub/../../a", "link/a", ".", "a\0"])
def test_a_file_stays_inside_the_working_directory(
    httpserver: HTTPServer, do: Do, tmp_path: Path, path: str
) -> None:
    """Law 6: by any road, links included; nothing is fetched."""
    (tmp_path / "link").symlink_to("/tmp")
    outcome = do("http_client", {"url": httpserver.url_for("/a"), "output_file": path})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("http.file", "logical")
    assert httpserver.log == []


def test_a_file_that_cannot_be_written_is_a_failure(httpserver: HTTPServer, do: Do, tmp_path: Path) -> None:
    """The call was done all the same."""
    (tmp_path / "a").write_text("a file, not a folder")
    httpserver.expect_request("/a").respond_with_data("x")
    outcome = do("http_client", {"url": httpserver.url_for("/a"), "output_file": "a/b"})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.effect) == ("http.file", "done")
    assert outcome.fault.rule_id == "step/http_client/download_error"


def test_transforms_see_the_response(httpserver: HTTPServer, do: Do, context: ScriptedContext) -> None:
    """E.6: `response` in both; ours chain, so transform_js sees what transform made."""
    httpserver.expect_request("/a").respond_with_json({"a": 1})
    context.render_with = lambda text, names: str(names["response"]["a"] + 1)
    context.evaluate_with = lambda source, kind, names: Value([names["response"], names["output"]])
    config = {"url": httpserver.url_for("/a"), "transform": "t", "transform_js": "j"}
    assert do("http_client", config).output == [2, 2]  # type: ignore[union-attr]


def test_a_failing_transform_is_a_logical_failure(
    httpserver: HTTPServer, do: Do, context: ScriptedContext
) -> None:
    """C.6."""
    httpserver.expect_request("/a").respond_with_json({})
    context.evaluate_with = lambda *given: Failure("error", "no")
    outcome = do("http_client", {"url": httpserver.url_for("/a"), "transform_js": "x"})
    assert isinstance(outcome, Failed)
    assert outcome.fault.rule_id == "step/http_client/transform_js_error"
    assert (outcome.fault.fault_class, outcome.effect) == ("logical", "done")


@pytest.mark.parametrize(
    ("config", "effects"),
    [
        ({}, "reads"),
        ({"method": "head"}, "reads"),
        ({"method": "POST"}, "mutates"),
        ({"method": "DELETE"}, "mutates"),
        ({"output_file": "a"}, "mutates"),
    ],
)
def test_C8_what_a_call_does_outside(config: Mapping[str, Any], effects: str) -> None:
    """C.8: anything but a read mutates, and so does a file."""
    assert PROVIDER.effects_of(PROVIDER.config(url="http://x/", **config)) == effects


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"url": "http://x", "base_url": "http://x"},
        {"url": "http://x", "method": "GET /"},
        {"url": "http://x", "auth": {"type": "oauth2_client_credentials"}},
        {"url": "http://x", "auth": {"type": "bearer"}},
        {"url": "http://x", "auth": {"type": "bearer", "token": ""}},
        {"url": "http://x", "auth": {"type": "bearer", "token": "t", "password": "p"}},
        {"url": "http://x", "auth": {"type": "basic", "username": "a:b", "password": "p"}},
        {"url": "http://x", "auth": {"type": "header", "name": "X Y", "value": "v"}},
        {"url": "http://x", "rate_limit": {"key": "k"}},
        {"url": "http://x", "rate_limit": {"requests": 0, "per": "second"}},
        {"url": "http://x", "rate_limit": {"requests": 1, "per": "fortnight"}},
        {"url": "http://x", "rate_limit": {"requests": 1, "per": "2d"}},
    ],
)
def test_a_wrong_config_is_refused(do: Do, config: Mapping[str, Any]) -> None:
    """At load; what isn't there is never ignored."""
    with pytest.raises(ValidationError):
        do("http_client", config)
