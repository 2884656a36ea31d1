"""Every numbered rule, row and case that is due has a test that carries it, by name or in its docstring.

A rule is written `C.5 R2` or `C_5_R2`, a case `GAT-1` or `GAT_1`, a row of the tables G and H `G7` or `G_7`, a row of
the defects to beat `I.1 4`, a statement to verify `I.2 suppression` or `I.2 property merge`. What is not due yet is
listed with its reason; a rule that another text outranks is listed with what holds instead, and its test holds that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.rules import test_b_names, test_b_text, test_b_values, test_c_failures

TESTS = Path(__file__).parent

# How many numbered rules a section has; 0: it is held as a whole.
RULES = {
    "B.1": 0, "B.2": 0, "B.3": 0, "B.4": 0, "B.5": 0, "B.6": 0, "B.7": 0, "B.8": 3, "B.9": 0, "B.10": 0, "B.11": 0,
    "C.1": 0, "C.2": 10, "C.3": 5, "C.4": 7, "C.5": 5, "C.6": 0, "C.7": 8, "C.8": 0, "C.9": 11, "C.10": 8,
    "C.11": 11, "C.12": 7, "C.13": 11, "C.14": 5, "C.15": 3, "C.16": 0, "C.17": 0,
}  # fmt: skip

NOT_DUE = {
    "C.12 R1": "the peer's counting; ours is R4",
}
"""Rules without a test here, and why."""

OUTRANKED = {
    "B.4": "its numbered rules are the peer's; output is unchanged in every construct (its D)",
    "B.7": "its numbered rules are the peer's; a real parser reads statements (its D, semantics 26)",
    "B.9": "full JavaScript in the sandbox (semantics 26); Date stands still at `now`, randomness is an error (law 1)",
    "B.11": "no readfile tag (semantics 13); an unknown filter is refused at load (law 6)",
    "C.2 R9": "no barrier between levels (architecture, decision 2)",
    "C.3 R1": "as C.2 R9; the limit of slots holds",
    "C.3 R4": "session groups are never filled in the peer; `group` is for reports",
    "C.6": "a refused loop is NO-GO unless the step tolerates failure (semantics 21)",
    "C.11 R2": "a run target runs beside what is under way (semantics 7)",
    "C.11 R4": "there are no chat webhooks here",
    "C.14 R5": "fail_fast acts when a failure is final (semantics 4)",
}
"""Rules that a text of higher rank changes: their tests hold what is written here."""

SKIP_REASONS = ("if_condition", "assume", "dependency_failed", "forEach_empty", "fail_fast")
REASONS_NOT_DUE = {"policy_denied": "there is no policy engine yet"}

CASES = {
    "GAT": (1, 2, 3, 4), "YML": (1, 2, 3), "SUB": (1, 2, 3), "EXP": (1, 2, 3, 4), "UNI": (1, 2), "BIG": (1, 2),
    "FAN": (1, 2, 3), "RET": (1, 2, 3, 4), "LOOP": (1, 2), "TIM": (1, 2), "CAN": (1, 2, 3), "CON": (1, 2),
    "RES": (1, 2, 3), "LLM": (1, 2, 3, 4), "CLI": (1, 2), "SEC": (1, 2, 3, 4),
    "OBS": (1,),
}  # fmt: skip
"""UNI-2 is held for command output and HTTP bodies, BIG-2 for our own reports."""

CASES_NOT_DUE = {
    "CLI-3": "needs posting to the check-run API",
    "OBS-2": "needs telemetry",
}

ROWS = {"G": 38, "H": 48, "I.1 ": 24}
"""Tables whose rows are numbered: what was proposed (G), contradictions (H), defects to beat (I.1)."""

SEED = (
    "assume", "guarantee", "transitions", "suppression", "control-plane", "retry", "e2e", "acceptance",
    "property determinism", "property bounded", "property isolation", "property crash-resume", "property merge",
)  # fmt: skip
"""I.2: what the guide wants verified, by a word each."""

ROWS_NOT_DUE = {
    "H45": "about which of another project's lists to trust; the rows of G have tests",
}

WITHOUT_EFFECT = (
    "max_runs", "max_runs_per_check", "fail_fast", "max_parallelism", "reduce", "on_init", "timeout", "goto_event",
)  # fmt: skip
"""I.1 13: keys that had no effect, one case each."""

_ROW = re.compile(r"(?<![A-Za-z0-9.])([GH])[_ ]?(\d{1,2})(?!\d|\.\d)")
_DEFECT = re.compile(r"I[._]?1[ _](?:rows? )?(\d+(?:(?:, | and )\d+)*)")
_EXAMPLE = re.compile(r"[Ee]xamples? (\d+(?:(?:, | and | to )\d+)*)")
_SEED = re.compile(r"I[._]2[ _]((?:property )?[a-z0-9-]+)")
_SECTION = re.compile(r"(?<![A-Za-z])([BC])[._](\d+)((?:(?:[ _]|, |,? and )R-?\d+)*)")
_CASE = re.compile(r"(?<![A-Za-z])([A-Za-z]{2,4})[-_](\d+)(?!\d)")


@cache
def texts() -> tuple[str, ...]:
    """Name and docstring of every test there is."""
    return tuple(_texts())


def _texts() -> Iterator[str]:
    for path in sorted(TESTS.rglob("test_*.py")):
        if path == Path(__file__):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                yield " ".join(f"{node.name} {ast.get_docstring(node) or ''}".split())


@cache
def carried() -> frozenset[str]:
    """Rules and cases that some test carries."""
    found: set[str] = set()
    for text in texts():
        for letter, number, rules in _SECTION.findall(text):
            found.add(f"{letter}.{number}")
            found.update(f"{letter}.{number} R{rule}" for rule in re.findall(r"\d+", rules))
        found.update(f"{kind.upper()}-{number}" for kind, number in _CASE.findall(text))
        found.update(f"{table}{number}" for table, number in _ROW.findall(text))
        found.update(f"I.1 {row}" for rows in _DEFECT.findall(text) for row in re.findall(r"\d+", rows))
        found.update(f"I.2 {word}" for word in _SEED.findall(text))
    return frozenset(found)


def due() -> list[str]:
    """Every rule that must have a test."""
    every = [
        rule
        for section, count in RULES.items()
        for rule in ([f"{section} R{number}" for number in range(1, count + 1)] or [section])
    ]
    return [rule for rule in every if rule not in NOT_DUE]


@pytest.mark.parametrize("rule", due())
def test_every_rule_that_is_due_has_a_test(rule: str) -> None:
    """A rule without a test is a rule that nobody holds."""
    assert rule in carried()


@pytest.mark.parametrize(
    "case", [f"{kind}-{number}" for kind, numbers in CASES.items() for number in numbers]
)
def test_every_case_that_is_due_has_a_test(case: str) -> None:
    """By its id, in the name or the docstring of a test."""
    assert case in carried()


@pytest.mark.parametrize(
    "row",
    [
        row
        for table, count in ROWS.items()
        for number in range(1, count + 1)
        if (row := f"{table}{number}") not in ROWS_NOT_DUE
    ],
)
def test_every_row_that_is_due_has_a_test(row: str) -> None:
    """What was proposed, how contradictions were settled, which defects are not to come back."""
    assert row in carried()


@pytest.mark.parametrize("word", SEED)
def test_every_statement_to_verify_has_a_test(word: str) -> None:
    """I.2, each by its word."""
    assert f"I.2 {word}" in carried()


@pytest.mark.parametrize("key", WITHOUT_EFFECT)
def test_every_key_that_had_no_effect_has_a_test_of_its_effect(key: str) -> None:
    """I.1 13: one case each."""
    thirteenth = [
        text for text in texts() if any("13" in re.findall(r"\d+", rows) for rows in _DEFECT.findall(text))
    ]
    assert any(re.search(rf"(?<![a-z]){key}(?![a-z_])", text) for text in thirteenth)


@pytest.mark.parametrize("number", range(1, 21))
def test_every_example_of_the_guide_has_a_test(number: int) -> None:
    """`example 4`, `examples 17 and 18`: beside loading, each is run and its behaviour judged."""
    lists = [rows for text in texts() for rows in _EXAMPLE.findall(text)]
    assert any(str(number) in re.findall(r"\d+", rows) for rows in lists)


@pytest.mark.parametrize("reason", SKIP_REASONS)
def test_every_reason_to_skip_has_a_test(reason: str) -> None:
    """The table of C.5, row by row."""
    assert any("C.5" in text and reason in text for text in texts())


def test_the_tables_rows_are_all_there() -> None:
    """B.3 cell by cell, B.5 helper by helper, B.6 and C.6 row by row."""
    assert set(test_b_names.CONSTRUCTS) >= {
        "if",
        "assume",
        "guarantee",
        "fail_if",
        "failure_conditions",
        "when",
    }
    assert {"outputs", "event", "env", "files", "conversation", "association", "inputs"} <= set(
        test_b_names.CELLS
    )
    helpers = (
        "contains startsWith endsWith length status hasIssue countIssues hasFileMatching any all none count"
    )
    assert {*helpers.split(), "permissions", "log", "memory"} <= set(test_b_values.HELPERS)
    assert {"transform_js", "script", "memory value_js"} <= set(test_b_values.PROVIDER_ROWS)
    rows = "command exit, command timeout, command transform, command transform_js, script throw, memory operation, "
    more = "guarantee, schema, fail_if, failure_conditions, forEach undefined"
    assert set((rows + more).split(", ")) <= set(test_c_failures.ROWS)
    assert {408, 425, 429, 500} <= set(test_c_failures.STATUSES)
    assert len(test_b_text.DIALECT) >= 10
    constructs = ("if", "assume", "guarantee", "detector", "rule", "goto_js", "run_js")
    b6 = [text for text in texts() if text.startswith("test_B_6_")]
    assert all(any(word in text for text in b6) for word in constructs)


def test_what_is_not_due_is_not_claimed_to_be() -> None:
    """A rule is due, or it has a reason not to be; never both."""
    required = {f"{kind}-{number}" for kind, numbers in CASES.items() for number in numbers}
    assert not required & set(CASES_NOT_DUE)
    assert not carried() & set(ROWS_NOT_DUE)
    assert not set(OUTRANKED) & set(NOT_DUE)
    assert set(OUTRANKED) <= {*due(), *RULES}
    assert all({**NOT_DUE, **OUTRANKED, **CASES_NOT_DUE, **REASONS_NOT_DUE, **ROWS_NOT_DUE}.values())


def test_a_missing_rule_is_noticed() -> None:
    """The scan tells a rule that some test carries from one that none does."""
    assert "C.5 R2" in carried()
    assert "C.5 R99" not in carried()
    assert "GAT-99" not in carried()
    assert {"G1", "H48", "I.1 23", "I.2 property merge"} <= carried()
    assert not {"G39", "H49", "I.1 25", "I.2 property luck"} & carried()
