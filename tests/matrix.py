"""What each construct does to a run, by the criticality of its step: one table for the tests and for the docs.

`tests/test_matrix.py` runs every cell through the engine, `tools/matrix.py` writes the table into
docs/concepts/fault-management.md. So the page can't promise what doesn't happen.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent
from typing import NamedTuple

CRITICALITIES = ("external", "internal", "policy", "info")

WORKFLOW = """
steps:
  it:
    criticality: {criticality}
{keys}
  behind: {{ type: noop, depends_on: it }}
  change:
    {{ type: noop, mutates: true, criticality: info, depends_on: [{{ step: it, on_failure: continue }}] }}
  publish:
    {{ type: noop, criticality: external, depends_on: [{{ step: it, on_failure: continue }}] }}
  fix: {{ type: script, start: routed, content: "return {{ fixed: true }}" }}
"""
BEHIND = ("behind", "change", "publish")


class Four(NamedTuple):
    """A text for each criticality."""

    external: str
    internal: str
    policy: str
    info: str


@dataclass(frozen=True, slots=True)
class Row:
    """A construct in one case. `keys`: what the step says in YAML. `step`: its outcome, its calls and the verdict;
    `behind`: what becomes of `behind`, `change` and `publish`.
    """

    construct: str
    case: str
    keys: str
    step: Four
    behind: Four

    def workflow(self, criticality: str) -> str:
        """The workflow of one cell."""
        return WORKFLOW.format(criticality=criticality, keys=indent(self.keys, "    "))


def critical(text: str, *, info: str) -> Four:
    """The same for all criticalities but info."""
    return Four(text, text, text, info)


def always(text: str) -> Four:
    """The same for all."""
    return critical(text, info=text)


WORKS = "type: script\ncontent: return 1\n"
THROWS = "type: script\ncontent: throw new Error('busy')\n"
NEEDS_FIX = "type: script\ncontent: if (!outputs.fix) throw new Error('broken'); return 1\n"

ALL_RUN = always("all run")
SKIP = critical("skipped, 0 calls, GO", info="skipped, 0 calls, GO")
SKIP_ON_ERROR = critical("skipped, 0 calls, NO-GO", info="skipped, 0 calls, GO")
BLOCKS = critical("all skipped", info="all run")
FAILS = critical("failed, 1 call, NO-GO", info="tolerated, 1 call, GO")
SUPPRESSES = Four(
    external="skipped / suppressed / suppressed",
    internal="skipped / suppressed / suppressed",
    policy="skipped / runs / suppressed",
    info="all run",
)
TOLERATED_SUPPRESSES = Four(
    external="runs / suppressed / suppressed",
    internal="runs / suppressed / suppressed",
    policy="runs / runs / suppressed",
    info="all run",
)

ROWS = (
    Row("(none)", "the call works", WORKS, always("passed, 1 call, GO"), ALL_RUN),
    Row("`if`", "false", WORKS + 'if: "false"', SKIP, BLOCKS),
    Row("`if`", "can't be evaluated", WORKS + 'if: "null.x"', SKIP_ON_ERROR, BLOCKS),
    Row("`assume`", "false", WORKS + 'assume: "false"', SKIP, BLOCKS),
    Row("`assume`", "can't be evaluated", WORKS + 'assume: "null.x"', SKIP_ON_ERROR, BLOCKS),
    Row(
        "`assume_mode: fail`",
        "`assume` false",
        WORKS + 'assume: "false"\nassume_mode: fail',
        critical("failed, 0 calls, NO-GO", info="tolerated, 0 calls, GO"),
        SUPPRESSES,
    ),
    Row("`guarantee`", "false", WORKS + 'guarantee: "false"', FAILS, SUPPRESSES),
    Row("`guarantee`", "can't be evaluated", WORKS + 'guarantee: "null.x"', FAILS, SUPPRESSES),
    Row(
        "`guarantee_mode: issue`",
        "`guarantee` false",
        WORKS + 'guarantee: "false"\nguarantee_mode: issue',
        always("passed, 1 call, GO"),
        ALL_RUN,
    ),
    Row("`schema`", "doesn't fit", WORKS + "schema: { type: array }", FAILS, SUPPRESSES),
    Row("`fail_if`", "true", WORKS + 'fail_if: "true"', FAILS, SUPPRESSES),
    Row(
        "`fail_if`",
        "can't be evaluated",
        WORKS + 'fail_if: "null.x"',
        critical("failed, 1 call, NO-GO", info="passed, 1 call, GO"),
        SUPPRESSES,
    ),
    Row(
        "`halt_execution`",
        "its condition true",
        WORKS + 'failure_conditions: { stop: { condition: "true", halt_execution: true } }',
        critical("failed, 1 call, NO-GO", info="tolerated, 1 call, NO-GO"),
        always("all skipped"),
    ),
    Row("(none)", "the call fails", THROWS, FAILS, SUPPRESSES),
    Row(
        "`continue_on_failure: true`",
        "the call fails",
        THROWS + "continue_on_failure: true",
        always("tolerated, 1 call, GO"),
        TOLERATED_SUPPRESSES,
    ),
    Row(
        "`retry: { max: 5 }`",
        "a transient fault each time",
        THROWS + "on_fail: { retry: { max: 5 } }",
        critical("failed, 3 calls, NO-GO", info="tolerated, 4 calls, GO"),
        SUPPRESSES,
    ),
    Row(
        "`retry_on: [transient, logical]`",
        "a logical fault each time",
        WORKS + 'fail_if: "true"\non_fail: { retry: { max: 5, retry_on: [transient, logical] } }',
        critical("failed, 1 call, NO-GO", info="tolerated, 4 calls, GO"),
        SUPPRESSES,
    ),
    Row(
        "`exhausted: continue`",
        "after the last retry",
        THROWS + "on_fail: { retry: { max: 1, exhausted: continue } }",
        always("tolerated, 2 calls, GO"),
        TOLERATED_SUPPRESSES,
    ),
    Row(
        "`exhausted: hold`",
        "after the last retry",
        THROWS + "on_fail: { retry: { max: 1, exhausted: hold } }",
        always("waiting, 2 calls, HOLD"),
        always("all wait"),
    ),
    Row(
        "`exhausted: { goto: fix }`",
        "after the last retry",
        THROWS + "on_fail: { retry: { max: 1, exhausted: { goto: fix } } }",
        critical("failed, 2 calls, NO-GO", info="tolerated, 2 calls, GO"),
        SUPPRESSES,
    ),
    Row("`escalate: fix`", "the call fails", THROWS + "on_fail: { escalate: fix }", FAILS, SUPPRESSES),
    Row(
        "`run` and `retry`",
        "the remedy helps",
        NEEDS_FIX + "on_fail: { run: [fix], retry: { max: 1 } }",
        always("passed, 2 calls, GO"),
        ALL_RUN,
    ),
    Row(
        "`run`",
        "without a retry",
        THROWS + "on_fail: { run: [fix] }",
        FAILS,
        SUPPRESSES,
    ),
    Row(
        "`goto`",
        "for ever",
        WORKS + "on_success: { goto: it }",
        critical("passed, 9 calls, NO-GO", info="passed, 11 calls, GO"),
        ALL_RUN,
    ),
    Row(
        "`loop_budget: 3`",
        "`goto` for ever",
        WORKS + "on_success: { goto: it }\nloop_budget: 3",
        critical("passed, 4 calls, NO-GO", info="passed, 4 calls, GO"),
        ALL_RUN,
    ),
    Row(
        "a call that may have been done",
        "fails",
        "type: command\nexec: exit 1",
        Four(
            external="in doubt, 1 call, HOLD",
            internal="failed, 1 call, NO-GO",
            policy="failed, 1 call, NO-GO",
            info="tolerated, 1 call, GO",
        ),
        Four("all wait", *SUPPRESSES[1:]),
    ),
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn in a fault's life: event `after` follows `before`, since `why`. `workflow`: a run in which it does."""

    before: str
    after: str
    why: str
    workflow: str


def critical_step(keys: str) -> str:
    """A workflow in which others need the step, and what mutates behind it is suppressed."""
    return WORKFLOW.format(criticality="internal", keys=indent(keys, "    "))


def lonely_step(keys: str) -> str:
    """A workflow in which nobody needs the step."""
    return f"steps:\n  it:\n{indent(keys, '    ')}\n  fix: {{ type: noop, start: routed }}\n"


RETRIED = "on_fail: { retry: { max: 2 } }"
UNDONE = """
steps:
  done: { type: command, exec: 'true', mutates: true, compensate: fix }
  it: { type: script, depends_on: done, content: throw new Error('broken') }
  fix: { type: noop, start: routed }
"""

LIFE = (
    Turn("detected", "isolated", "others depend on it", critical_step(THROWS)),
    Turn("detected", "recovery.attempted", "", lonely_step(THROWS + RETRIED)),
    Turn("isolated", "recovery.attempted", "", critical_step(THROWS + RETRIED)),
    Turn("recovery.attempted", "recovery.attempted", "it failed again", critical_step(THROWS + RETRIED)),
    Turn(
        "recovery.attempted",
        "recovery.succeeded",
        "it passed",
        lonely_step(NEEDS_FIX.replace("!outputs.fix", "attempt === 1") + RETRIED),
    ),
    Turn("recovery.attempted", "recovery.failed", "nothing is left", critical_step(THROWS + RETRIED)),
    Turn("detected", "recovery.failed", "nothing is to be tried", lonely_step(THROWS)),
    Turn("isolated", "recovery.failed", "nothing is to be tried", critical_step(THROWS)),
    Turn(
        "recovery.failed", "escalated", "somebody is told", lonely_step(THROWS + "on_fail: { escalate: fix }")
    ),
    Turn("recovery.failed", "compensated", "the run ends NO-GO", UNDONE),
)
"""The life of a fault. Not every pair of events has a turn: what isn't here doesn't happen in the matrix's runs."""
