"""http_client and http through the gate, against a server that misbehaves in every way it knows.

Waits are skipped and noted (`ScriptedContext.clock`); connections are real.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.servers import faulty
from tests.servers.faulty import FaultyServer, Script

from gonogo.gate import Bounds, BreakerPolicy, Policy, Target, Timers, rule
from gonogo.provider import Done, Failed, Outcome
from gonogo.testing import ScriptedContext

Do = Callable[..., Outcome]
ROWS: list[tuple[str, str, Script]] = [
    ("reset at once", "network", faulty.RESET_AT_ONCE),
    ("reset before headers", "network", faulty.RESET_BEFORE_HEADERS),
    ("reset amid headers", "network", faulty.RESET_AMID_HEADERS),
    ("reset mid body", "network", faulty.RESET_MID_BODY),
    ("closed before headers", "network", faulty.CLOSE_BEFORE_HEADERS),
    ("truncated", "network", faulty.TRUNCATED),
    ("truncated between chunks", "network", faulty.TRUNCATED_CHUNKED),
    ("truncated in a chunk", "network", faulty.TRUNCATED_IN_A_CHUNK),
    ("packed and cut off", "truncated-stream", faulty.gzip_cut_off()),
    ("garbage", "network", faulty.GARBAGE),
    ("a broken chunk", "network", faulty.GARBAGE_CHUNK_SIZE),
    ("truncated in a chunk", "network", faulty.TRUNCATED_IN_A_CHUNK),
    ("a length that is no number", "network", faulty.LENGTH_NO_NUMBER),
    ("two lengths", "network", faulty.TWO_LENGTHS),
    ("endless headers", "network", faulty.ENDLESS_HEADERS),
    ("an endless header", "network", faulty.ENDLESS_HEADER_LINE),
    ("500", "server-5xx", faulty.answer(500)),
    ("502", "server-5xx", faulty.answer(502)),
    ("503", "overloaded", faulty.answer(503)),
    ("529", "overloaded", faulty.answer(529)),
    ("408", "server-5xx", faulty.answer(408)),
    ("425", "server-5xx", faulty.answer(425)),
    ("429", "rate-limit", faulty.throttled("none")),
]
FINAL: list[tuple[str, Script]] = [
    ("400", faulty.answer(400)),
    ("401", faulty.answer(401)),
    ("403", faulty.answer(403)),
    ("404", faulty.answer(404)),
    ("413", faulty.answer(413)),
    ("422", faulty.answer(422)),
    ("a redirect to nowhere", faulty.answer(304)),
    ("an endless body", faulty.ENDLESS_BODY),
    ("endless chunks", faulty.ENDLESS_CHUNKS),
    ("events without end", faulty.ENDLESS_EVENTS),
    ("a bomb", faulty.gzip_bomb(64 << 20)),
    ("a redirect inside", faulty.redirect("http://169.254.169.254/latest/meta-data/")),
    ("a redirect to a file", faulty.redirect("file:///etc/hostname")),
]


def policy(**parts: Any) -> Policy:
    """The gate's own policy, with parts of it changed."""
    return Policy(**parts)


def kinds(outcome: Outcome) -> list[str]:
    """What each attempt came to, by the record."""
    assert isinstance(outcome, Done | Failed)
    return [each["kind"] for each in outcome.meta["gate"]["attempts"]]


@pytest.mark.parametrize(("kind", "script"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_passes_by_itself_is_tried_again(
    do: Do, context: ScriptedContext, kind: str, script: Script
) -> None:
    """One request an attempt (RET-2); the second answer is the step's."""
    context.policy = policy()
    with FaultyServer(script, faulty.answer()) as far:
        outcome = do("http_client", {"url": far.url})
        assert far.connections == 2
    assert isinstance(outcome, Done)
    assert kinds(outcome) == [kind, "ok"]
    assert len(context.clock.waits_s) == 1


@pytest.mark.parametrize("script", [row[1] for row in FINAL], ids=[row[0] for row in FINAL])
def test_what_another_try_would_not_mend_is_not_tried_again(
    do: Do, context: ScriptedContext, script: Script
) -> None:
    """SEC-3 among them: a redirect inside ends the call; no breaker opens for an answer about a request."""
    context.policy = policy()
    with FaultyServer(script) as far:
        outcome = do("http_client", {"url": far.url}, templated=frozenset())
        assert far.connections == 1
    assert isinstance(outcome, Failed)
    assert outcome.fault.fault_class == "logical"
    assert len(kinds(outcome)) == 1
    breakers = context.gates[0].breakers
    assert breakers is not None
    assert [each.state for each in breakers.listed()] in ([], ["closed"])


@pytest.mark.parametrize(
    ("form", "least_s", "most_s"),
    [
        ("none", 0.0, 0.6),
        ("seconds", 3.0, 3.4),
        ("date", 1.5, 3.4),
        ("date of a wrong clock", 3.0, 3.4),
        ("milliseconds", 3.0, 3.4),
        ("requests reset", 3.0, 3.4),
        ("tokens reset", 3.0, 3.4),
        ("reset at", 1.5, 3.4),
        ("garbage", 0.0, 0.6),
        ("negative", 0.0, 0.6),
        ("absurd", 0.0, 0.6),
    ],
)
def test_RET_4_a_server_that_limits_is_heeded_in_every_form(
    do: Do, context: ScriptedContext, form: str, least_s: float, most_s: float
) -> None:
    """RET-4: at least as long as it asks; what makes no sense counts as not said."""
    context.policy = policy()
    limited = faulty.throttled(form, 3, context.clock.wall())
    with FaultyServer(limited, faulty.answer()) as far:
        assert isinstance(do("http_client", {"url": far.url}), Done)
    [wait_s] = context.clock.waits_s
    assert least_s <= wait_s <= most_s


def test_RET_4_a_wish_of_a_day_is_not_waited_for(do: Do, context: ScriptedContext) -> None:
    """RET-4 (e): never slept; the fault says when."""
    context.policy = policy()
    with FaultyServer(faulty.throttled("a day")) as far:
        outcome = do("http_client", {"url": far.url})
    assert context.clock.waits_s == []
    assert isinstance(outcome, Failed)
    assert outcome.fault.retry_after_s == 86400


def test_a_storm_opens_the_breaker_and_the_next_call_is_not_made(do: Do, context: ScriptedContext) -> None:
    """Three attempts, then no request any more; the fault says when it may be asked again."""
    context.policy = policy(breaker=BreakerPolicy(failures=3), bounds=Bounds(deadline_s=5))
    with FaultyServer(*faulty.storm(50)) as far:
        outcome = do("http_client", {"url": far.url})
        assert far.connections == 3
    assert isinstance(outcome, Failed)
    assert outcome.fault.message == "the answer has status 503 after 3 attempts"
    assert outcome.fault.fault_class == "transient"
    assert any("closed → open" in each for each in outcome.meta["gate"]["decisions"])


@pytest.mark.parametrize(
    "script",
    [faulty.STALL_AT_ACCEPT, faulty.STALL_BEFORE_HEADERS, faulty.STALL_AFTER_HEADERS, faulty.STALL_MID_BODY],
)
def test_TIM_1_a_server_that_says_nothing_is_hung_up_on(
    do: Do, context: ScriptedContext, script: Script
) -> None:
    """TIM-1, LLM-4: the attempt is cut at its own limit, and the far side sees it; what it did, nobody knows."""
    context.policy = policy(timers=Timers(attempt_s=0.3))
    with FaultyServer(script) as far:
        outcome = do("http_client", {"url": far.url})
        assert far.until_hung_up()
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("http.timeout", "transient")
    assert (kinds(outcome)[0], outcome.effect) == ("timeout-total", "unknown")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("script", [faulty.RESET_BEFORE_HEADERS, faulty.answer(500), faulty.TRUNCATED])
def test_what_may_have_been_done_is_not_sent_again(
    do: Do, context: ScriptedContext, method: str, script: Script
) -> None:
    """Semantics 16: the side-effect guard; the outcome is in doubt."""
    context.policy = policy()
    with FaultyServer(script) as far:
        outcome = do("http_client", {"url": far.url, "method": method})
        assert far.connections == 1
    assert isinstance(outcome, Failed)
    assert outcome.effect == "unknown"


@pytest.mark.parametrize(
    "script", [faulty.throttled("seconds", 1), faulty.answer(503, b"", {"retry-after": "1"})]
)
def test_what_was_refused_is_sent_again_under_the_same_key(
    do: Do, context: ScriptedContext, script: Script
) -> None:
    """Semantics 16 and 17: a refusal did nothing; http alike."""
    context.policy = policy()
    with FaultyServer(script, faulty.answer()) as far:
        assert isinstance(do("http", {"url": far.url, "body": "x"}), Done)
        keys = [each.headers["idempotency-key"] for each in far.requests]
    assert keys == ["key-1", "key-1"]


def test_another_target_takes_over_with_its_own_address(do: Do, context: ScriptedContext) -> None:
    """A target's endpoint stands for `base_url`; the path stays."""
    with FaultyServer(faulty.answer(500)) as down, FaultyServer(faulty.answer()) as up:
        context.policy = policy(
            targets=(Target("main", endpoint=down.url), Target("spare", endpoint=up.url)),
            after=(rule("retry-other", {"error.status": 500}),),
        )
        outcome = do("http_client", {"base_url": down.url, "path": "/v1/things"})
        assert [each.target for each in up.requests] == ["/v1/things"]
    assert isinstance(outcome, Done)
    assert outcome.meta["gate"]["served"] == "spare"


def test_SEC_3_an_url_from_data_may_not_lead_inside(do: Do, context: ScriptedContext) -> None:
    """SEC-3: refused before anything is connected, and not tried again."""
    context.policy = policy()
    with FaultyServer() as far:
        outcome = do("http_client", {"url": far.url}, templated=frozenset({"url"}))
        assert far.connections == 0
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "http.refused_address"
    assert kinds(outcome) == ["bad-request"]


def test_SEC_3_redirects_are_limited_and_every_hop_is_checked(do: Do, context: ScriptedContext) -> None:
    """SEC-3: five hops, a loop, and a name that resolves to a private address."""
    context.policy = policy()
    with FaultyServer(faulty.redirect("/again")) as far:
        outcome = do("http_client", {"url": far.url})
        assert far.connections == 6
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "http.redirect"
    with FaultyServer() as inner, FaultyServer(faulty.redirect(f"http://localhost:{inner.port}/")) as far:
        outcome = do("http_client", {"url": far.url})
        assert inner.connections == 0
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "http.refused_address"
    assert "allow_private" in outcome.fault.message


def test_a_clean_call_that_may_be_made_once_leaves_no_record(do: Do) -> None:
    """Steps that say nothing stay as small as before."""
    with FaultyServer() as far:
        outcome = do("http_client", {"url": far.url})
    assert isinstance(outcome, Done)
    assert outcome.meta.keys() == {"status", "headers"}
