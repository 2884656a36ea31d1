"""Calls under keys that the author gives (semantics 17, spec G12): none is made twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from gonogo import app
from gonogo.core.events import AnswerGiven, CallDone, CallFailed
from gonogo.core.faults import Fault
from gonogo.core.graph import Graph
from gonogo.core.plan import Plan, Step
from gonogo.core.state import Kept, State
from gonogo.hosts.base import RunResult
from gonogo.hosts.keys import Keys
from gonogo.journal.store import Runs

Go = Callable[..., RunResult]
PLACE = ("a", "k")
DONE = CallDone(call=1, output="made", key="k")
FAILED = CallFailed(call=1, fault=Fault("x", "transient", "x", "x"))


def lines(name: str = "made.txt") -> list[str]:
    """What the calls have left behind."""
    return Path(name).read_text().splitlines() if Path(name).exists() else []


ITEMS = """
steps:
  list: {{type: script, content: "return ['x', 'x', 'y']", forEach: true}}
  make:
    type: command
    exec: echo made | tee -a made.txt
    depends_on: list
    fanout: map
    forEach_concurrency: {slots}
    mutates: true
    criticality: external
    idempotency_key: "order-{{{{ item }}}}"
"""


def test_G_12_items_with_one_key_are_one_call(go: Go) -> None:
    """G12: the second item gets the first one's output, and says so."""
    result = go(ITEMS.format(slots=1))
    assert (result.verdict, lines()) == ("GO", ["made", "made"])
    assert result.output("make") == ["made", "made", "made"]
    metas = [node.meta or {} for scope, node in result.state.nodes["make"].items() if scope]
    assert [meta.get("replayed") for meta in metas] == [None, "order-x", None]


def test_G_12_items_with_one_key_at_the_same_time_are_one_call(go: Go) -> None:
    """G12, law 3: one waits for the other."""
    assert go(ITEMS.format(slots=3)).verdict == "GO"
    assert lines() == ["made", "made"]


def test_G_12_a_key_that_can_not_be_rendered_is_a_failure_before_the_call(go: Go) -> None:
    """G12: logical; nothing was called."""
    key = "idempotency_key: '{{ 1 | divided_by: 0 }}', mutates: true, criticality: external"
    result = go(f"steps: {{a: {{type: command, exec: 'echo x >> made.txt', {key}}}}}")
    fault = result.fault
    assert fault is not None
    assert (result.verdict, fault.fault_class, lines()) == ("NO-GO", "logical", [])


HELD = """
steps:
  a:
    type: command
    exec: echo made | tee -a made.txt
    mutates: true
    criticality: external
    idempotency_key: one
  ask:
    type: human-input
    prompt: well?
    depends_on: a
    on_success: {goto_js: "return outputs_history.a.length < 2 ? 'a' : null"}
"""


def test_G_12_a_resumed_run_knows_its_keys(go: Go, runs: Runs) -> None:
    """G12: after a hold, the same key is answered from the first part of the run."""
    parked = go(HELD)
    runs.inbox(parked.run_id).put(AnswerGiven(step="ask", text="go", request="r1"))
    result = app.resume_run(parked.run_id, app.Options(runs=runs))
    assert [output for _, output in result.state.history["a"]] == ["made", "made"]
    assert lines() == ["made"]


def test_a_failed_call_leaves_its_key_to_the_next() -> None:
    """A waiting call is made when the one before it failed; a third waits for it then."""

    async def story() -> list[object]:
        keys = Keys(State(Graph(Plan("p", {"a": Step("a", "noop")}))))
        seen: list[object] = [await keys.claim(PLACE)]
        second, third = asyncio.create_task(keys.claim(PLACE)), asyncio.create_task(keys.claim(PLACE))
        await asyncio.sleep(0)
        keys.release(PLACE, FAILED)
        seen.append(await second)
        await asyncio.sleep(0)
        assert not third.done()
        keys.release(PLACE, DONE)
        return [*seen, await third]

    assert asyncio.run(story()) == [None, None, DONE]


def test_a_waiting_call_that_is_stopped_takes_nobody_with_it() -> None:
    """The others still get the answer."""

    async def story() -> object:
        state = State(Graph(Plan("p", {"a": Step("a", "noop")})))
        keys = Keys(state)
        assert await keys.claim(PLACE) is None
        stopped, waiting = asyncio.create_task(keys.claim(PLACE)), asyncio.create_task(keys.claim(PLACE))
        await asyncio.sleep(0)
        stopped.cancel()
        await asyncio.sleep(0)
        keys.release(PLACE, DONE)
        state.answers[PLACE] = Kept("", DONE)
        assert keys.stored(PLACE) is DONE
        return await waiting

    assert asyncio.run(story()) == DONE


def test_law_3_a_key_is_used_up_before_the_state_has_the_answer() -> None:
    """A call that begins after another has returned, and before its event was looked at, isn't made."""

    async def story() -> object:
        keys = Keys(State(Graph(Plan("p", {"a": Step("a", "noop")}))))
        assert await keys.claim(PLACE) is None
        keys.release(PLACE, DONE)
        return await keys.claim(PLACE)

    assert asyncio.run(story()) == DONE
