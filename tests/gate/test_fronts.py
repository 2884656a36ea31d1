"""What a server answers for a gate call says what HTTP means by it, and nothing that the far side said (F20)."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from tests.gate.world import Http, Slow, World, answered, gate, play, policy, streams, world

from gonogo.errors import UsageError
from gonogo.gate import (
    Bounds,
    BreakerPolicy,
    BudgetExceeded,
    CircuitOpen,
    DeadlineExceeded,
    Exhausted,
    GateError,
    HttpAnswer,
    Misconfigured,
    NotRetryable,
    Policy,
    PreCheckFailed,
    RetryShare,
    StepFailed,
    Target,
    ValidationStuck,
    http_answer,
    rule,
)
from gonogo.gate.failures import CATEGORIES
from gonogo.gate.fronts import OF_KINDS
from gonogo.gate.taxonomy import ROWS
from tools import gate_page

ONCE = Bounds(attempts_per_target=1)
SECRET = "sk-live-0123456789"


def failure(given: Policy, there: World, gate_more: dict[str, Any] | None = None, **more: Any) -> GateError:
    """The error that a call ends with."""
    with pytest.raises(GateError) as caught:
        answered(given, there, gate_more, **more)
    return caught.value


def told(given: Policy, there: World, gate_more: dict[str, Any] | None = None, **more: Any) -> HttpAnswer:
    """What a server answers to a call that fails."""
    return http_answer(failure(given, there, gate_more, **more))


def by_class() -> dict[type[GateError], tuple[GateError, int]]:
    """One real call for each error there is, and its status."""
    open_breaker = policy("a", breaker=BreakerPolicy(failures=1), when_all_open="fail", bounds=ONCE)
    schema = policy("a", after=(rule("retry", {"error_kind": "schema-fail"}),))
    return {
        GateError: (
            failure(policy("a", after=(rule("fail-fast", {"error_kind": "ok"}, kind="no"),)), world(a=1)),
            502,
        ),
        PreCheckFailed: (
            failure(policy("a", before=(rule("fail-fast", {"attempt": {"gte": 0}}),)), world(a=1)),
            403,
        ),
        Exhausted: (failure(policy("a", bounds=ONCE), world(a=Http(500))), 502),
        NotRetryable: (failure(policy("a"), world(a=Http(400))), 422),
        BudgetExceeded: (
            failure(policy("a", bounds=Bounds(tokens_max=0)), world(a=1)),
            429,
        ),
        DeadlineExceeded: (failure(policy("a", bounds=Bounds(deadline_s=1.0)), world(a=Slow(5))), 504),
        CircuitOpen: (refused(open_breaker), 503),
        ValidationStuck: (failure(schema, world(a="x"), validate=lambda value: "wrong"), 502),
        Misconfigured: (failure(policy("a"), world(a=1), needs=frozenset({"vision"})), 500),
    }


def refused(given: Policy) -> GateError:
    """The second call through a gate whose only breaker the first one opened."""

    async def story() -> GateError:
        there, one = world(a=Http(500)), gate(given)
        for _ in range(2):
            with pytest.raises(GateError) as caught:
                await one.call(there.step())
        return caught.value

    return play(story)


def test_every_error_has_the_status_that_http_means_by_it() -> None:
    """Each class of the tree, by a call that ends so."""
    found = by_class()
    assert set(found) == set(CATEGORIES.values())
    assert {kind: type(error) for kind, (error, _) in found.items()} == {kind: kind for kind in found}
    assert {kind: http_answer(error).status for kind, (error, _) in found.items()} == {
        kind: status for kind, (_, status) in found.items()
    }


def test_every_kind_of_failure_has_a_status() -> None:
    """A new row of the taxonomy has to say what a client is told."""
    assert set(OF_KINDS) == set(ROWS)


@pytest.mark.parametrize("kind", [kind for kind, row in ROWS.items() if row.terminal != "yes"])
def test_what_nobody_could_serve_goes_by_the_last_failure(kind: str) -> None:
    """Exhausted and NotRetryable, as the table has it."""
    assert told(policy("a", bounds=ONCE), world(a=StepFailed(kind))).status == OF_KINDS[kind]


def test_a_refused_credential_of_this_server_is_no_fault_of_the_client() -> None:
    """No 401, 403 or 404 comes through."""
    statuses = {told(policy("a", bounds=ONCE), world(a=Http(status))).status for status in (401, 403, 404)}
    assert statuses == {502}


def test_an_open_breaker_says_until_when() -> None:
    """503 with Retry-After, in whole seconds."""
    breaker = BreakerPolicy(failures=1, cooldown_s=30.0, jitter=0.0)
    found = http_answer(refused(policy("a", breaker=breaker, when_all_open="fail", bounds=ONCE)))
    assert (found.status, found.headers["Retry-After"]) == (503, "30")
    assert found.body is not None
    assert found.body["retry_after_s"] == 30


def test_a_wait_that_time_did_not_allow_is_told_with_the_wait() -> None:
    """Not a gateway's timeout: the far side has said when."""
    there = world(a=Http(429, Retry_After="90"))
    found = told(policy("a", bounds=Bounds(deadline_s=10.0)), there)
    assert (found.status, found.headers["Retry-After"]) == (503, "90")


def test_part_of_a_second_is_rounded_up() -> None:
    """Never sooner than was asked for."""
    found = told(policy("a", bounds=ONCE), world(a=StepFailed("overloaded", retry_after_s=1.2)))
    assert (found.status, found.headers["Retry-After"]) == (503, "2")


def test_a_request_that_is_wrong_has_no_time_to_come_again() -> None:
    """Sending it later changes nothing."""
    found = told(policy("a"), world(a=StepFailed("bad-request", retry_after_s=5.0)))
    assert (found.status, "Retry-After" in found.headers) == (422, False)


def test_a_wait_without_end_is_no_retry_after() -> None:
    """A header holds whole seconds."""
    error = CircuitOpen("no", kind="circuit-open", retry_after_s=float("inf"))
    assert "Retry-After" not in http_answer(error).headers


def test_crowded_retries_pass_by_themselves() -> None:
    """503, where a budget that is spent is 429."""
    found = told(policy("a"), world(a=Http(500)), {"retries": RetryShare(floor=0, share=0.0)})
    assert (found.status, found.body and found.body["kind"]) == (503, "budget-exceeded")


@pytest.mark.parametrize("what", [Http(500), Slow(40), StepFailed("schema-fail", effect="done")])
def test_what_may_have_changed_something_asks_nobody_to_send_it_again(what: Any) -> None:
    """409 without Retry-After, whatever the failure was: a repeat could do it twice."""
    found = told(policy("a", "b"), world(a=what, b=1), effects="mutates")
    assert (found.status, "Retry-After" in found.headers) == (409, False)


def test_a_change_that_surely_did_not_happen_goes_by_its_failure() -> None:
    """A limit proves that nothing was done."""
    assert told(policy("a", bounds=ONCE), world(a=Http(429)), effects="mutates").status == 503


def test_a_gate_within_that_gave_up_speaks_for_the_one_around_it() -> None:
    """The inner error's status, not that of `inner-gate`."""

    async def story() -> GateError:
        there, inner, outer = world(a=Http(503)), gate(policy("a", bounds=ONCE)), gate(policy("o"))

        async def ask() -> Any:
            return await inner.call(there.step())

        with pytest.raises(GateError) as caught:
            await outer.call(ask)
        return caught.value

    error = play(story)
    assert (error.kind, http_answer(error).status) == ("inner-gate", 503)


def test_nothing_that_the_far_side_said_is_sent_on() -> None:
    """Neither messages nor kinds that a step made of them, nor names that could begin another header."""
    name = "a\r\nSet-Cookie: x"
    given = Policy(targets=(Target(name, endpoint=f"https://{SECRET}@far.test"),), bounds=ONCE, breaker=None)
    for what in (StepFailed(SECRET, SECRET), Http(500, x_key=SECRET), ValueError(SECRET)):
        found = told(given, World({name: [what]}))
        assert SECRET not in json.dumps([found.status, found.headers, found.body])
        assert found.body is not None
        assert found.body["kind"] in ROWS
    served = http_answer(answered(given, World({name: [1]})).record)
    assert not any("\r" in value or "\n" in value for value in served.headers.values())


def test_a_kind_that_the_policy_has_named_is_told() -> None:
    """Its author chose the word."""
    given = policy("a", after=(rule("fail-fast", {"error_kind": "content-filter"}, kind="filtered"),))
    found = told(given, world(a=StepFailed("content-filter")))
    assert (found.status, found.body and found.body["kind"]) == (422, "filtered")


def test_an_error_tells_its_attempts_and_what_settled_it() -> None:
    """The place is that of a decision in the record."""
    error = failure(policy("a", "b", bounds=ONCE), world(a=Http(500), b=Http(500)))
    found = http_answer(error)
    call, place = found.headers["Gonogo-Decision"].split("/")
    assert (found.headers["Gonogo-Attempts"], found.headers["Gonogo-Call"], call) == ("2", "s-1", "s-1")
    assert error.record is not None
    assert error.record.decisions[int(place)] == error.decision
    assert "Gonogo-Served" not in found.headers


def test_an_answer_tells_who_served() -> None:
    """200, with the same headers and no body of its own."""
    found = http_answer(answered(policy("a", "b"), world(a=Http(401), b="good")).record)
    assert (found.status, found.body) == (200, None)
    assert (found.headers["Gonogo-Served"], found.headers["Gonogo-Attempts"]) == ("b", "2")


def test_a_stream_under_way_tells_what_is_known_when_its_headers_leave() -> None:
    """And a part that a rule accepted is called one."""

    async def story() -> tuple[HttpAnswer, HttpAnswer]:
        there = streams(a=[["one ", "two", Http(500)]])
        given = policy("a", after=(rule("ok", {"delivered": True}),))
        async with gate(given).stream(there.step()) as stream:
            await anext(stream)
            early = http_answer(stream.record)
            async for _ in stream:
                pass
        return early, http_answer(stream.record)

    early, late = play(story)
    assert (early.status, early.headers["Gonogo-Served"], early.headers["Gonogo-Attempts"]) == (200, "a", "1")
    assert ("Gonogo-Partial" in early.headers, late.headers["Gonogo-Partial"]) == (False, "true")


def test_the_record_of_a_failed_call_is_no_answer() -> None:
    """It asks for the error, which knows more."""
    error = failure(policy("a", bounds=ONCE), world(a=Http(500)))
    assert error.record is not None
    with pytest.raises(UsageError, match="has no answer"):
        http_answer(error.record)


def test_an_error_made_by_hand_has_an_answer_too() -> None:
    """Without a record there are no headers about it."""
    assert http_answer(Misconfigured("no")) == HttpAnswer(
        500,
        {"Content-Type": "application/problem+json"},
        {"title": "Internal Server Error", "status": 500, "kind": "unknown"},
    )


@pytest.mark.parametrize(("fails", "status"), [(False, 200), (True, 422)])
def test_the_server_that_the_page_shows_answers(fails: bool, status: int) -> None:
    """As an ASGI server would ask it."""
    blocks = re.findall(r"```python\n(.*?)```", gate_page.PAGE.read_text(), flags=re.DOTALL)
    [block] = [each for each in blocks if "async def app" in each]
    sent: list[dict[str, Any]] = []

    async def ask(path: str) -> bytes:
        if fails:
            raise StepFailed("bad-request", "the far side's words")
        return path.encode()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    names: dict[str, Any] = {"ask": ask}
    exec(compile(block, "page", "exec"), names)
    asyncio.run(names["app"]({"path": "/x"}, None, send))
    assert (sent[0]["status"], b"far side" in sent[1]["body"]) == (status, False)
    assert dict(sent[0]["headers"])[b"gonogo-attempts"] == b"1"
