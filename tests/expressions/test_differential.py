"""The sandbox agrees with JavaScript: recorded results of Node 20 for every expression of the corpus."""

from __future__ import annotations

import json
from pathlib import Path

from tests.expressions.corpus import DATA, grown, picked

from gonogo.expressions.results import Failure, Result, Value
from gonogo.expressions.sandbox import Request, Sandbox

RECORDED = json.loads(Path(__file__).with_name("corpus.json").read_text(encoding="utf-8"))

EXCEPTIONS = {
    "Math.cbrt(27)": "the engine's cube root is off by one unit in the last place",
}
"""Where the sandbox differs from Node, and why."""


def shown(result: Result) -> str:
    """A result as the recorder writes it."""
    if isinstance(result, Failure):
        if result.kind == "result":
            return "refused"
        name = result.message.split(":", 1)[0]
        if result.kind == "syntax":
            return "error:SyntaxError"
        return f"error:{name}" if name.endswith("Error") and " " not in name else "error:?"
    if result.undefined:
        return "undefined"
    return "json:" + json.dumps(result.value, ensure_ascii=False, separators=(",", ":"))


def same(recorded: str, result: Result) -> bool:
    """Whether a result is the recorded one; what an error says may differ, its class may not."""
    got = shown(result)
    if recorded.startswith("json:") and got.startswith("json:"):
        return bool(json.loads(recorded[5:]) == json.loads(got[5:]))
    return recorded == got or (got == "error:?" and recorded in ("error:thrown", "error:Error"))


def test_the_recorded_corpus_is_the_one_the_generator_makes() -> None:
    """Results belong to the expressions that are tested: same texts, same order."""
    assert [source for source, _, _ in RECORDED] == [*picked(), *grown()]


def test_values_agree_with_the_recorded_ones(sandbox: Sandbox) -> None:
    """Every expression of the corpus but the named exceptions has the value that Node gives it."""
    results = sandbox.evaluate([Request(source, "value", DATA) for source, _, _ in RECORDED])
    different = {
        source: (recorded, shown(result))
        for (source, recorded, _), result in zip(RECORDED, results, strict=True)
        if not same(recorded, result)
    }
    assert different.keys() == EXCEPTIONS.keys(), different


def test_conditions_agree_with_the_recorded_truth(sandbox: Sandbox) -> None:
    """EXP-2: JavaScript's truthiness decides, for every expression of the corpus."""
    results = sandbox.evaluate([Request(source, "condition", DATA) for source, _, _ in RECORDED])
    different = {
        source: (truth, result)
        for (source, _, truth), result in zip(RECORDED, results, strict=True)
        if truth in ("true", "false") and source not in EXCEPTIONS and result != Value(value=truth == "true")
    }
    assert different == {}
