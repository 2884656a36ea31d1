"""The guide's principles and its recap of safe defaults: pure expressions, safe sides, bounds, isolation, an audit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.guide.conftest import Play
from tests.guide.stage import Fails

from gonogo.core import decisions as d
from gonogo.journal.replay import replay

# --- Pure expressions

FORBIDDEN = (
    "Math.random()",
    "fetch('http://localhost/')",
    "require('fs')",
    "process.exit(1)",
    "setTimeout(() => 1, 1)",
)


@pytest.mark.parametrize("expression", FORBIDDEN)
def test_an_expression_reaches_nothing_outside(play: Play, expression: str) -> None:
    """Principle 1, G13: no randomness, network, files, processes or timers: refused at load, or an error."""
    from gonogo.errors import ConfigError

    text = f"steps: {{a: {{type: noop, assume: {json.dumps(expression)}}}}}"
    try:
        ran = play(text)
    except ConfigError:
        return
    assert (ran.why("a"), ran.stage.calls) == (("skipped", "assume"), [])
    assert ran.judged("assume")[0].error


def test_the_clock_stands_still(play: Play) -> None:
    """Principle 1: the time an expression sees is the run's start, however often it is asked."""
    ran = play("steps: {a: {type: script, content: 'return [Date.now(), now, new Date().getTime()]'}}")
    assert len(set(ran.output("a"))) == 1


def test_an_expression_has_little_time(play: Play) -> None:
    """Principle 1, G13: one that doesn't end is cut; the step is skipped on the safe side, the others are judged."""
    ran = play(
        "steps: {a: {type: noop, assume: '(() => { while (true) {} })()'}, b: {type: noop, assume: 'true'}}"
    )
    assert (ran.why("a"), ran["b"].outcome) == (("skipped", "assume"), "passed")


# --- Safe sides


@pytest.mark.parametrize(
    ("construct", "outcome", "reason"),
    [
        ("if: {error}", "skipped", "if_condition"),
        ("assume: {error}", "skipped", "assume"),
        ("guarantee: {error}", "failed", None),
        ("criticality: internal, fail_if: {error}", "failed", None),
        ("fail_if: {error}", "passed", None),
    ],
)
def test_an_error_takes_the_safe_side_and_is_told(
    play: Play, construct: str, outcome: str, reason: str | None
) -> None:
    """Principle 2 and the recap, G25, G26, H43, H47: skip or fail closed; a record and an issue either way."""
    keys = construct.format(error="outputs.gone.at.all")
    ran = play(f"steps: {{a: {{type: noop, {keys}}}, gone: {{type: noop, if: 'false'}}}}")
    assert ran.why("a") == (outcome, reason)
    assert [one.error is not None for one in ran.decisions(d.Judged, "a")] == [True]
    assert ran["a"].issues


# --- Bounds


@pytest.mark.parametrize(
    "keys",
    [
        "on_success: {goto: a}",
        "fail_if: 'true', on_fail: {goto: a}",
        "fail_if: 'true', on_fail: {retry: {max: 99, retry_on: [logical]}}",
        "on_success: {transitions: [{when: 'true', to: a}]}",
        "on_success: {run_js: \"return ['a']\"}",
        "fail_if: 'true', on_fail: {retry: {max: 99, retry_on: [logical]}, goto: a}",
    ],
)
def test_no_loop_is_endless(play: Play, keys: str) -> None:
    """Principle 3, law 2: whatever sends a step round, the run ends, and says what bounded it."""
    ran = play(f"steps: {{a: {{type: noop, criticality: info, continue_on_failure: false, {keys}}}}}")
    assert 1 < len(ran.stage.calls) <= 60
    assert ran.verdict == "NO-GO"


# --- Isolation


def test_a_failure_stays_where_it_is(play: Play) -> None:
    """Principle 4: what doesn't depend on it runs; what does is skipped unless its edge permits."""
    ran = play(
        """
steps:
  bad: {type: noop}
  far: {type: noop}
  farther: {type: noop, depends_on: far}
  near: {type: noop, depends_on: bad}
  allowed: {type: noop, depends_on: [{step: bad, on_failure: continue}]}
""",
        {"bad": Fails()},
    )
    told = {name: ran[name].outcome for name in ("far", "farther", "near", "allowed")}
    assert told == {"far": "passed", "farther": "passed", "near": "skipped", "allowed": "passed"}


# --- Audit

AUDITED = """
steps:
  a: {type: script, content: "return {n: 2}", if: filesCount > 0, guarantee: output.n > 1, on_success: {run: [b]}}
  b: {type: noop, assume: outputs.a.n === 3}
"""


def test_every_decision_is_in_the_journal_with_cause_and_time(play: Play, tmp_path: Path) -> None:
    """Principle 5, G14: what was judged, on which values, with which result, when; routes and skips, too."""
    ran = play(AUDITED, context={"files": [{"filename": "x"}]})
    told = {(one.step, one.construct): (one.result, one.evidence) for one in ran.decisions(d.Judged)}
    assert told[("a", "if")] == (True, {"filesCount": 1})
    assert told[("a", "guarantee")][1] == {"output.n": 2}
    assert told[("b", "assume")] == (False, {"outputs.a.n": 2})
    assert [one.target for one in ran.decisions(d.Routed)] == ["b"]
    times = [record.event.at for record in ran.records]
    assert times == sorted(times)


def test_a_journal_decides_again_alike(play: Play) -> None:
    """Principle 1 and the snapshots: the records alone give the same decisions."""
    ran = play(AUDITED, context={"files": [{"filename": "x"}]})
    assert list(replay(ran.records)) == []


# --- Schemas


@pytest.mark.parametrize("kind", ["ai, prompt: Hm?", "command, exec: echo", "script, content: '1'", "noop"])
def test_a_schema_holds_for_every_type(play: Play, kind: str) -> None:
    """The guide's last note, H5, H6: an object is a JSON Schema whatever the type; its own rule, and a failure."""
    text = f"steps: {{a: {{type: {kind}, schema: {{type: object, required: [n]}}}}}}"
    assert play(text, {"a": {"n": 1}})["a"].outcome == "passed"
    ran = play(text, {"a": {"m": 1}})
    assert (ran["a"].outcome, ran.rules("a")) == ("failed", ["contract/schema_validation_failed"])


def test_a_schema_that_is_a_text_judges_nothing(play: Play) -> None:
    """The guide's last note, H5: it names a renderer."""
    assert play("steps: {a: {type: noop, schema: code-review}}", {"a": 7}).verdict == "GO"


def test_the_older_name_of_schema_still_works_and_is_noted(play: Play) -> None:
    """The guide's last note: `output_schema` is kept for older files."""
    from tests.guide.test_twins import load

    text = "steps: {a: {type: noop, output_schema: {type: string}}}"
    assert play(text, {"a": 7})["a"].outcome == "failed"
    assert [problem.code for problem in load(text).problems] == ["key.older"]
