"""Expressions of simulated plans: a small language looked up by its text, so that no JavaScript runs.

    true · false · fails · output is odd · of NAME is odd · runs of NAME < N · attempt < N · loop < N
    null · undefined · name NAME · names NAME NAME … · remember KEY

What each gives depends on the names in scope alone, as with real expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gonogo.expressions.analyse import Reading
from gonogo.provider import Failure, MemoryOp, Result, Value

Names = Mapping[str, Any]


def evaluate(source: str, names: Names) -> Result:
    """The result of one formula; a text that isn't one is a Failure, as a syntax error would be."""
    verb, *words = source.split()
    formula = _FORMULAS.get(verb)
    if formula is None:
        return Failure("syntax", f"no formula {source!r}")
    return formula(names, words)


def reading(source: str) -> Reading | None:
    """What a formula reads, as the analyser would say it."""
    verb, *words = source.split()
    if verb == "output":
        return Reading(("output",), (("output",),))
    if verb == "of":
        return Reading(("outputs",), (("outputs", words[0]),))
    if verb == "runs":
        return Reading(("outputs_meta",), (("outputs_meta", words[1], "runs"),))
    return None


def is_odd(value: Any) -> bool:
    """A number by itself, a list by its length, anything else isn't."""
    if isinstance(value, list):
        value = len(value)
    return isinstance(value, int) and value % 2 == 1


def _fails(names: Names, words: Sequence[str]) -> Result:
    return Failure("error", "told to fail")


def _output(names: Names, words: Sequence[str]) -> Result:
    return Value(is_odd(names["output"]))


def _output_of(names: Names, words: Sequence[str]) -> Result:
    return Value(is_odd(names["outputs"].get(words[0])))


def _runs(names: Names, words: Sequence[str]) -> Result:
    meta = names["outputs_meta"].get(words[1]) or {}
    return Value(int(meta.get("runs", 0)) < int(words[3]))


def _attempt(names: Names, words: Sequence[str]) -> Result:
    return Value(int(names["attempt"]) < int(words[1]))


def _loop(names: Names, words: Sequence[str]) -> Result:
    return Value(int(names["loop"]) < int(words[1]))


def _remember(names: Names, words: Sequence[str]) -> Result:
    return Value(True, memory=(MemoryOp("increment", words[0], 1),))


_FORMULAS: dict[str, Callable[[Names, Sequence[str]], Result]] = {
    "true": lambda names, words: Value(True),
    "false": lambda names, words: Value(False),
    "fails": _fails,
    "null": lambda names, words: Value(None),
    "undefined": lambda names, words: Value(None, undefined=True),
    "name": lambda names, words: Value(words[0]),
    "names": lambda names, words: Value(list(words)),
    "output": _output,
    "of": _output_of,
    "runs": _runs,
    "attempt": _attempt,
    "loop": _loop,
    "remember": _remember,
}
