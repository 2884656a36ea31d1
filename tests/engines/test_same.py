"""One table of workflows on each host: in one process, by workers in one event loop, on DBOS and on Temporal. What
they decide is the same: verdict, outcomes, and the decisions about each step.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.engines.world import HEAD, World
from tests.hosts.fleet import fleet

import gonogo
from gonogo.core.state import State
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.records import Record
from gonogo.journal.restoring import state_of

LIST = 'list: {type: script, forEach: true, forEach_concurrency: 1, content: "return [1, 2, 3]"}'
WORKFLOWS = {
    "a chain": """
  a: {type: command, exec: "echo 1"}
  b: {type: script, depends_on: [a], content: "return outputs.a + 1"}
""",
    "a fan-out": f"""
  {LIST}
  each: {{type: command, depends_on: [list], exec: "echo {{{{ item | shell_escape }}}}"}}
  sum: {{type: script, fanout: reduce, depends_on: [each], content: "return outputs.each"}}
""",
    "an item that fails": f"""
  {LIST}
  each: {{type: command, depends_on: [list], exec: "test {{{{ item | shell_escape }}}} != 2"}}
  sum: {{type: script, fanout: reduce, depends_on: [each], content: "return 1"}}
""",
    "a retry": """
  a: {type: command, runs_on: here, exec: "exit 3", on_fail: {retry: {max: 2, backoff: {mode: fixed, delay_ms: 1}}}}
""",
    "a guarantee": """
  a: {type: command, exec: "echo 1", parse: json, guarantee: "output > 1"}
  b: {type: noop, depends_on: [a]}
""",
    "fail_if": """
  a: {type: command, exec: "echo 1", parse: json, fail_if: "output == 1"}
""",
    "a condition and a tolerated failure": """
  a: {type: command, criticality: info, exec: "exit 1"}
  b: {type: noop, if: "false", depends_on: [a]}
""",
    "goto": """
  a: {type: memory, operation: increment, key: n}
  b: {type: script, depends_on: [a], content: "return memory.get('n')", fail_if: "output < 3", on_fail: {goto: a}}
""",
    "a remedy": """
  a: {type: noop}
  mend: {type: log, depends_on: [a], message: mended}
  b: {type: command, depends_on: [a], exec: "exit 1", on_fail: {run: [mend]}}
""",
    "a question": """
  a: {type: human-input, prompt: well}
""",
    "a suppressed failure": """
  a: {type: command, exec: "exit 1"}
  b: {type: noop, depends_on: [a]}
  c: {type: noop, depends_on: [b]}
""",
}


def told(state: State, records: list[Record]) -> dict[str, Any]:
    """What was decided, without times and ids. Steps that don't depend on each other may take turns otherwise."""
    assert state.finished is not None
    decided: dict[str, list[str]] = {}
    for record in records:
        for decision in record.decisions:
            fields = msgspec.to_builtins(decision)
            step = f"{fields.get('step', '')}{fields.get('scope', '')}"
            what = [
                type(decision).__name__,
                fields.get("outcome"),
                fields.get("reason"),
                fields.get("attempt"),
            ]
            decided.setdefault(step, []).append(str(what))
    decided.pop("", None)
    outcomes = {
        f"{node.step}{node.scope}": (node.outcome, node.fault.kind if node.fault else None)
        for node in state.all_nodes()
    }
    return {"verdict": state.finished.verdict, "outcomes": outcomes, "decided": decided}


def in_one_process(text: str) -> dict[str, Any]:
    """What the local host comes to."""
    runs = MemoryRuns()
    run_id = gonogo.loads(HEAD + "steps:" + text).run(runs=runs).run_id
    records = list(runs.records(run_id))
    return told(state_of(records), records)


def in_one_loop(text: str) -> dict[str, Any]:
    """What two workers of a made-up engine come to."""

    async def main() -> dict[str, Any]:
        async with fleet("a", "b", labels={"b": ("here",)}) as made:
            run_id = await made.start("steps:" + text)
            state = await made.end(run_id)
            return told(state, list(made.runs.records(run_id)))

    return asyncio.run(main())


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workers_decide_as_one_process_does(name: str) -> None:
    """Where a call is performed is no matter of what is decided."""
    assert in_one_loop(WORKFLOWS[name]) == in_one_process(WORKFLOWS[name])


@pytest.mark.slow
def test_engines_decide_as_one_process_does(here: World) -> None:
    """All at once on two real workers."""
    here.worker("--label", "here")
    here.starting("--label", "here")
    ids = {name: here.submit("steps:" + text) for name, text in WORKFLOWS.items()}
    for name, run_id in ids.items():
        state = here.ended(run_id)
        assert (name, told(state, here.runs.records_after(run_id, -1))) == (
            name,
            in_one_process(WORKFLOWS[name]),
        )
