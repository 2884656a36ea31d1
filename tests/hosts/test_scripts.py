"""Scripts in the loop: without a task of their own, never in the way of others, and ended when they are told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from gonogo import app
from gonogo.core.events import CallFailed
from gonogo.hosts.base import RunResult
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.records import Record

Go = Callable[..., RunResult]

COUNT = "memory.set('n', (memory.get('n') ?? 0) + 1); return memory.get('n')"


def test_scripts_that_read_memory_see_what_the_one_before_wrote(go: Go) -> None:
    """Semantics 15: three are ready at once, and no count is lost."""
    steps = "".join(f'  {name}: {{type: script, content: "{COUNT}"}}\n' for name in "abc")
    result = go(f"steps:\n{steps}")
    assert result.state.memory == {"default": {"n": 3}}
    assert [result.state.nodes[name][""].output for name in "abc"] == [1, 2, 3]


def test_items_that_read_memory_see_what_the_one_before_wrote(go: Go) -> None:
    """Semantics 15: in item order."""
    result = go(f"""
steps:
  list: {{type: script, content: "return [0, 1, 2, 3, 4]", forEach: true}}
  count: {{type: script, depends_on: list, fanout: map, forEach_concurrency: 5, content: "{COUNT}"}}
  seen: {{type: script, depends_on: count, fanout: reduce, content: "return outputs.count"}}
""")
    assert result.state.nodes["seen"][""].output == [1, 2, 3, 4, 5]


def test_a_script_that_ran_out_of_time_frees_the_sandbox(go: Go) -> None:
    """The step's own limit ends it, before the sandbox's would; the next script has the sandbox to itself."""
    result = go("""
steps:
  slow: {type: script, timeout: 50ms, content: "while (true) {}", continue_on_failure: true}
  next: {type: script, depends_on: slow, content: "return 7"}
""")
    slow, after = result.state.nodes["slow"][""], result.state.nodes["next"][""]
    assert slow.fault is not None
    assert (slow.fault.kind, after.output) == ("step.timeout", 7)


def test_a_script_that_hangs_ends_when_the_run_is_cancelled() -> None:
    """Law 7: it is told to stop, not waited for until its own limit speaks."""
    loaded = app.loads('version: "1.0"\nsteps: {hangs: {type: script, content: "while (true) {}"}}\n')
    seen: list[Record] = []

    async def cancelled() -> None:
        options = app.Options(runs=MemoryRuns(), sinks=(seen.append,))
        run = asyncio.create_task(app.start_run_async(loaded, None, options))
        while not seen:  # noqa: ASYNC110 - sinks are told without an event
            await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(cancelled())
    [ended] = [record.event for record in seen if isinstance(record.event, CallFailed)]
    assert ended.fault.kind == "run.cancelled"


def test_others_go_on_while_an_expression_hangs(go: Go) -> None:
    """The loop waits for the sandbox for a moment only: a command that takes less ends before."""
    result = go("""
steps:
  hangs: {type: script, timeout: 2s, content: "while (true) {}"}
  quick: {type: command, exec: "true"}
""")
    hung, quick = result.state.nodes["hangs"][""], result.state.nodes["quick"][""]
    assert quick.ended_at is not None
    assert hung.ended_at is not None
    assert quick.ended_at < hung.ended_at
    assert (quick.outcome, hung.outcome) == ("passed", "failed")


def test_a_script_may_throw_log_and_give_nothing(go: Go) -> None:
    """Each ends in one event, as with a task."""
    result = go("""
steps:
  throws: {type: script, content: "throw new Error('no')"}
  nothing: {type: script, content: "log('a line')"}
  wrong: {type: script, content: "return () => 1"}
""")
    outcomes = [result.state.nodes[name][""].outcome for name in ("throws", "nothing", "wrong")]
    assert outcomes == ["failed", "passed", "failed"]
