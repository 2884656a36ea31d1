"""What the gate is accepted by, each with a test that carries its id by name or in its docstring.

X: defects of gates before this one. F.8: the acceptance list. S: faults of model servers and what a clean pass needs.
LLM, RET, SEC: cases of public reports, by the letters of what they try.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from tests.test_coverage_of_rules import texts

DEFECTS = {
    "X1": "cost and tokens are absent for rules",
    "X2": "an error loses its message on the way to rules and fallback",
    "X3": "the cause is a rebuilt error, and there are two classes of CircuitOpen",
    "X4": "the reason isn't in the record",
    "X5": "no word of switches, breakers, a lost fallback, the rule of a retry, single attempts",
    "X6": "an error that no rule matches is ok",
    "X7": "the record says which branch, not which rule",
    "X8": "rules are evaluated a second time",
    "X9": "the second vendor gets the first one's model",
    "X10": "the message is missing where a failure is told",
    "X11": "what was cleared stays",
    "X12": "breakers forget between calls",
    "X13": "retry-other calls the same target again",
    "X14": "a refusal by the breaker is for ever",
    "X15": "streams and schema retries don't go together",
    "X16": "a fallback that raises is asked fifty times",
    "X17": "ok for what was delivered is an error",
    "X18": "a cancelled call goes on calling",
    "X19": "failed attempts aren't billed",
    "X20": "the rejected answer isn't shown, feedback piles up",
    "X21": "the fallback's answer isn't validated",
    "X22": "a failure comes out as an empty text in one shape",
    "X23": "a target is named that wasn't called",
    "X24": "one kind of call goes through the gate, others go around it",
    "X31": "a breaker's state can't be handed in",
    "X32": "half-open lets everybody in",
    "X33": "a stream's success isn't counted when reading stops at its end",
    "X34": "no jitter, no growth, no hand on the breaker, no list",
    "A.2": "unknown keys and verbs are taken in silence",
    "E19": "what breaks on the way out vanishes in silence",
}
ACCEPTANCE = {
    "F.8.1": "every X has a test (this file)",
    "F.8.2": "sixteen scenarios, sixteen passes",
    "F.8.3": "ten callers at half-open are one call",
    "F.8.4": "two processes, one store: open is seen at once, a killed prober wedges nothing",
    "F.8.5": "cancel at every await: nothing is called afterwards",
    "F.8.6": "random policies, faults and cancels: ends, within bounds, with a whole record and true sums",
    "F.8.7": "replay gives the same decisions, another policy a difference",
    "F.8.8": "a redacted key is nowhere",
    "F.8.9": "doubts: unreachable, verb without target, unbounded retry, schema retry under pass-through",
}
CASES = {"LLM-1": "abcde", "LLM-2": "", "LLM-3": "abcde", "LLM-4": "abc", "RET-1": "", "RET-2": "", "RET-3": "",
         "RET-4": "abcdef", "SEC-1": "", "SEC-2": "", "SEC-3": "", "SEC-4": ""}  # fmt: skip

_ID = re.compile(r"(?<![A-Za-z0-9])(X\d+|F\.8\.\d|S\d\d|A\.2|E19)(?!\d)")
_CASE = re.compile(r"(?<![A-Za-z])(LLM|RET|SEC)[-_](\d)((?:[_, ]+(?:(?:and|to) )?[a-f](?![a-z0-9]))*)")


@cache
def carried() -> frozenset[str]:
    """Every id that some test carries."""
    found: set[str] = set()
    for text in texts():
        found.update(_ID.findall(text.replace("_", " ")))
        for kind, number, letters in _CASE.findall(text):
            found.add(f"{kind}-{number}")
            named = re.findall(r"(?<![a-z])([a-f])(?![a-z])", letters.replace("_", " "))
            if " to " in letters:
                named = [chr(code) for code in range(ord(named[0]), ord(named[-1]) + 1)]
            found.update(f"{kind}-{number} {letter}" for letter in named)
    return frozenset(found)


@pytest.mark.parametrize("defect", DEFECTS)
def test_F_8_1_every_defect_has_a_test_of_its_opposite(defect: str) -> None:
    """F.8.1."""
    assert defect in carried(), DEFECTS[defect]


@pytest.mark.parametrize("point", ACCEPTANCE)
def test_every_point_of_acceptance_has_a_test(point: str) -> None:
    """F.8."""
    assert point in carried(), ACCEPTANCE[point]


@pytest.mark.parametrize("number", range(1, 17))
def test_every_scenario_has_a_test(number: int) -> None:
    """G.3."""
    assert f"S{number:02}" in carried()


@pytest.mark.parametrize("case", CASES)
def test_every_part_of_a_case_has_a_test(case: str) -> None:
    """By its letters, where the report has several."""
    wanted = {case, *(f"{case} {letter}" for letter in CASES[case])}
    assert wanted - carried() == set()
