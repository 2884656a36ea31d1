"""Fault management through crashes: cut at any record, a run ends as it would have and repeats nothing (laws 1, 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.guide.conftest import Play, on_stage, play
from tests.guide.stage import Fails, Stage
from tests.whole import Ran

from gonogo.core import decisions as d
from gonogo.core.events import CallDone, CallFailed
from gonogo.journal.replay import replay
from gonogo.provider import Call

__all__ = ["play"]


def first_time(call: Call) -> Any:
    """Fails in its first execution, whatever attempt."""
    return Fails("logical") if call.execution == 1 else {}


def first_attempt(call: Call) -> Any:
    """Fails at its first attempt."""
    return Fails() if call.attempt == 1 else {}


def second_item(call: Call) -> Any:
    """Fails for the item 2."""
    return Fails("logical") if call.names["item"] == 2 else {}


FLOWS: dict[str, tuple[str, dict[str, Any]]] = {
    "suppressed, mended, done": (
        """
steps:
  check: {type: noop, criticality: internal}
  report:
    type: noop
    depends_on: [{step: check, on_failure: continue}]
    on_success: {goto_js: "return outputs_meta.check.failed ? 'check' : null"}
  act: {type: noop, mutates: true, depends_on: 'check|quick'}
  quick: {type: noop}
""",
        {"check": first_time},
    ),
    "retried, remedied, escalated": (
        """
steps:
  a: {type: noop, on_fail: {retry: {max: 1}, run: [mend], escalate: page}}
  mend: {type: noop, start: routed}
  page: {type: noop, start: routed}
  after: {type: noop, depends_on: a}
""",
        {"a": Fails()},
    ),
    "retried and well": (
        "steps: {a: {type: noop, on_fail: {retry: {max: 2}}}, b: {type: noop, depends_on: a}}",
        {"a": first_attempt},
    ),
    "undone backwards": (
        """
steps:
  book: {type: noop, compensate: unbook}
  pay: {type: noop, depends_on: book, compensate: refund}
  last: {type: noop, depends_on: pay}
  unbook: {type: noop}
  refund: {type: noop}
""",
        {"book": {"seat": 4}, "pay": {"sum": 9}, "last": Fails("logical")},
    ),
    "undone in items": (
        """
steps:
  list: {type: noop, forEach: true}
  book: {type: noop, fanout: map, depends_on: list, compensate: unbook}
  last: {type: noop, depends_on: book, fanout: reduce}
  unbook: {type: noop}
""",
        {"list": [1, 2, 3], "book": second_item, "last": Fails("logical")},
    ),
    "out of calls": (
        """
budget: {calls: 2}
max_parallelism: 1
steps:
  a: {type: noop}
  b: {type: noop, depends_on: a}
  c: {type: noop, depends_on: b}
  tidy: {type: noop, if: always(), depends_on: c}
""",
        {},
    ),
    "just enough calls": ("budget: {calls: 2}\nsteps: {a: {type: noop}, b: {type: noop, depends_on: a}}", {}),
    "a person decides": (
        "steps: {a: {type: noop, on_fail: {retry: {max: 1, exhausted: hold}}}, b: {type: noop, depends_on: a}}",
        {"a": Fails()},
    ),
    "goes elsewhere": (
        "steps: {a: {type: noop, on_fail: {retry: {max: 1, exhausted: {goto: b}}}}, b: {type: noop, start: routed}}",
        {"a": Fails()},
    ),
    "prepared": (
        """
steps:
  a: {type: noop, on_init: {run: [one, two]}, on_fail: {retry: {max: 1}}}
  one: {type: noop}
  two: {type: noop}
""",
        {"a": first_attempt},
    ),
    "badly prepared": (
        """
steps:
  a: {type: noop, on_init: {run: [one]}, on_fail: {run: [mend]}}
  one: {type: noop}
  mend: {type: noop}
""",
        {"one": Fails("logical")},
    ),
    "once only": (
        """
tag_filter: {include: [one_shot]}
steps:
  once: {type: noop, tags: [one_shot]}
  a: {type: noop, depends_on: once, on_success: {goto_js: "return loop < 2 ? 'once' : null"}}
""",
        {},
    ),
    "failing items": (
        """
steps:
  list: {type: noop, forEach: true}
  each: {type: noop, criticality: internal, fanout: map, depends_on: list, on_fail: {run: [mend], escalate: page}}
  mend: {type: noop, start: routed}
  page: {type: noop, start: routed}
  act: {type: noop, mutates: true, fanout: map, depends_on: [{step: each, on_failure: continue}]}
""",
        {"list": [1, 2], "each": second_item},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("flow", FLOWS)
def test_a_crash_at_any_record_changes_nothing_that_matters(play: Play, tmp_path: Path, flow: str) -> None:
    """I.2 property crash-resume, G12, G16, G24, G27: verdict, outcomes and fault events are the uninterrupted run's."""
    text, answers = FLOWS[flow]
    whole = play(text, answers, run_id="whole")
    assert ("undone" in flow) == bool(whole.decisions(d.Undone))
    journal = next((tmp_path / "runs").rglob("*.jsonl"))
    lines = journal.read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines)):
        journal.write_bytes(b"".join(lines[:cut]))
        stage = Stage(answers)
        kept = on_stage(Ran(whole.result, whole.runs, whole.folder, []), stage)
        ended = {
            record.event.call for record in kept.records if isinstance(record.event, CallDone | CallFailed)
        }
        lost = [one for one in kept.decisions(d.Started, "act") if one.call not in ended]
        again = kept.resumed()
        assert list(replay(again.records)) == []
        if lost:
            assert again.verdict == "HOLD"
            continue
        assert (cut, again.verdict, again.outcomes) == (cut, whole.verdict, whole.outcomes)
        assert told(again) == told(whole)
        assert calls(again) == calls(whole)


def calls(ran: Ran) -> list[tuple[str, str, int, int]]:
    """Every call that was meant, whether or not it had to be repeated because it was lost."""
    starts = [one for one in ran.decisions(d.Started) if not one.again]
    return sorted((one.step, one.scope, one.execution, one.attempt) for one in starts)


def told(ran: Ran) -> list[tuple[str, str, str, int]]:
    """What was told of faults."""
    return [(one.event, one.step, one.scope, one.fault) for one in ran.decisions(d.FaultEvent)]


@pytest.mark.parametrize("flow", FLOWS)
def test_a_journal_with_faults_decides_again_alike(play: Play, flow: str) -> None:
    """Law 1: a replay of the recorded events has no difference."""
    text, answers = FLOWS[flow]
    assert list(replay(play(text, answers).records)) == []
