"""What http_client shows to be let in, and how often it asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.servers import faulty
from tests.servers.faulty import FaultyServer

from gonogo.hosts.pacing import Pacer
from gonogo.provider import Done, Failed, Outcome
from gonogo.testing import ScriptedContext

Do = Callable[..., Outcome]


@pytest.mark.parametrize(
    ("auth", "name", "sent"),
    [
        ({"type": "bearer", "token": "t-1"}, "authorization", "Bearer t-1"),
        ({"type": "basic", "username": "ann", "password": "p:ü"}, "authorization", "Basic YW5uOnA6w7w="),
        ({"type": "header", "name": "X-Api-Key", "value": "k"}, "x-api-key", "k"),
    ],
)
def test_a_request_shows_what_lets_it_in(do: Do, auth: dict[str, str], name: str, sent: str) -> None:
    """E.6; it wins over a header of the same name."""
    with FaultyServer() as far:
        headers = {"AUTHORIZATION": "mine", "x-api-key": "mine"}
        assert isinstance(do("http_client", {"url": far.url, "headers": headers, "auth": auth}), Done)
        assert far.requests[0].headers[name] == sent


def test_SEC_3_another_origin_is_not_shown_it(do: Do) -> None:
    """SEC-3: neither in Authorization nor in a header of its own."""
    auth = {"type": "header", "name": "X-Api-Key", "value": "k-1"}
    with FaultyServer() as other, FaultyServer(faulty.redirect(other.url, 307)) as far:
        do("http_client", {"url": far.url, "auth": auth, "allow_private": True})
        assert far.requests[0].headers["x-api-key"] == "k-1"
        assert "x-api-key" not in other.requests[0].headers


@pytest.mark.parametrize("token", ["${{ env.NOT_SET }}", "${NOT_SET}", "$NOT_SET"])
def test_a_variable_that_is_not_set_lets_nobody_in(do: Do, token: str) -> None:
    """Nothing is sent in place of a secret."""
    with FaultyServer() as far:
        outcome = do("http_client", {"url": far.url, "auth": {"type": "bearer", "token": token}})
        assert far.connections == 0
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "http.auth"


def test_a_limited_call_is_repeated_as_its_rate_limit_says(do: Do, context: ScriptedContext) -> None:
    """E.6 R2, semantics 23: `rate_limit` is a policy; Retry-After is heeded, each request waits for its turn."""
    limit: dict[str, Any] = {
        "requests": 2,
        "per": "10s",
        "max_retries": 1,
        "initial_delay_ms": 5,
        "key": "shop",
    }
    with FaultyServer(faulty.throttled("seconds", 3)) as far:
        outcome = do("http_client", {"url": far.url, "rate_limit": limit})
        assert far.connections == 2
    assert isinstance(outcome, Failed)
    [wait_s] = context.clock.waits_s
    assert wait_s >= 3
    assert context.paced == [("shop", 2, 10.0)] * 2


def test_steps_of_one_server_share_their_turns_unless_they_have_a_key(
    do: Do, context: ScriptedContext
) -> None:
    """The origin is the key."""
    with FaultyServer() as far:
        do("http_client", {"url": f"{far.url}/a?token=x", "rate_limit": {"requests": 1, "per": "minute"}})
    assert context.paced == [(far.url, 1, 60.0)]


def test_turns_are_given_out_in_order_and_no_window_is_overdrawn() -> None:
    """Three in ten seconds: at 0, 0, 0, 10, 10, 10, 20…; another key has its own."""
    now = [100.0]
    pacer = Pacer(lambda: now[0])
    assert [pacer.take("a", 3, 10.0) for _ in range(7)] == [0, 0, 0, 10, 10, 10, 20]
    assert pacer.take("b", 1, 10.0) == 0
    now[0] = 125.0
    assert pacer.take("a", 3, 10.0) == 0
    now[0] = 200.0
    assert [pacer.take("a", 3, 10.0) for _ in range(4)] == [0, 0, 0, 10]


def test_a_pacer_remembers_no_more_keys_than_it_may() -> None:
    """Keys may come from data."""
    pacer = Pacer(lambda: 0.0)
    for number in range(3000):
        pacer.take(f"key {number}", 1, 1.0)
    assert len(pacer._turns) <= 1000
