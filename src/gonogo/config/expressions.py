"""The table of a plan's expressions: each source once, with what it reads, checked for everything that can be known.

Names are checked here by reading the text; whether it compiles is asked of the sandbox once, for all of them.
Where a source is used several times its problems are reported at each use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import MappingProxyType

from msgspec import Struct

from gonogo.config.collect import Collector, nearest, shown
from gonogo.config.nodes import Scalar, place_of, walk
from gonogo.config.position import place_within
from gonogo.core.plan import Expression
from gonogo.expressions.analyse import (
    HELPERS,
    KNOWN_NAMES,
    ExpressionProblem,
    Kind,
    Reading,
    analyse,
    locate,
    unknown_names,
)
from gonogo.expressions.results import Failure

CompileExpressions = Callable[[Sequence[tuple[str, Kind]]], Sequence[Failure | None]]
TEMPLATE = "template"

_OPERATORS = MappingProxyType({"not": "write ! for not", "and": "write && for and", "or": "write || for or"})

_ENV_ALONE = re.compile(r"""\s*!?\s*env(?:\.([A-Za-z_]\w*)|\[\s*["'](\w+)["']\s*\])\s*;?\s*""")
_NO_WORDS = frozenset(("false", "0", "no", "off", "n"))


class Use(Struct, frozen=True):
    """Where an expression is written: its path, and the step it belongs to (None at the top level)."""

    path: tuple[str | int, ...]
    step: str | None
    construct: str


class Expressions:
    """Sources in order of first use; `add` gives the position that steps refer to."""

    def __init__(self, notes: Collector) -> None:
        self._notes = notes
        self._index: dict[tuple[str, str], int] = {}
        self._made: list[Expression] = []
        self._readings: dict[str, Reading] = {}
        self._asked: dict[tuple[str, Kind], list[Use]] = {}
        self.uses: list[tuple[Use, Reading]] = []

    def add(self, source: str, kind: Kind, use: Use) -> int:
        """The position of `source`; its problems are reported at `use`."""
        at = self._at(source, kind)
        reading = self.check(source, kind, use)
        if at == len(self._made):
            self._made.append(Expression(source, kind, reading))
        return at

    def add_template(self, source: str, reading: Reading | None) -> int:
        """The position of a template, whose text was checked already."""
        at = self._at(source, TEMPLATE)
        if at == len(self._made):
            self._made.append(Expression(source, TEMPLATE, reading))
        return at

    def _at(self, source: str, kind: str) -> int:
        return self._index.setdefault((source, kind), len(self._made))

    def check(self, source: str, kind: Kind, use: Use, also: frozenset[str] = frozenset()) -> Reading | None:
        """Report what is wrong with `source` without keeping it in the plan. None when it can't be read at all.

        `also` are names that it sees beside the usual ones.
        """
        try:
            reading = self._readings.get(source) or analyse(source)
        except ExpressionProblem as problem:
            self._report("expression.syntax", problem.message, use, problem.line, problem.column)
            return None
        self._readings[source] = reading
        self._asked.setdefault((source, kind), []).append(use)
        self._check_names(source, reading, use, also)
        self.uses.append((use, reading))
        return reading

    def _check_names(self, source: str, reading: Reading, use: Use, also: frozenset[str]) -> None:
        for name in unknown_names(reading):
            # Where the parser misses a name it puts an empty one; the syntax error says it better.
            if not name or name in also or self._notes.only_counted():
                continue
            line, column = locate(source, name)
            near = nearest(name, sorted(KNOWN_NAMES | HELPERS | also))
            guess = f"did you mean {near}?" if near else "outputs of steps are read as outputs.NAME"
            hint = _OPERATORS.get(name, guess)
            self._report("expression.name", f"unknown name {shown(name)}", use, line, column, hint)

    def _report(
        self, code: str, message: str, use: Use, line: int, column: int, suggestion: str | None = None
    ) -> None:
        if self._notes.only_counted():
            return
        node = walk(self._notes.root, use.path)
        place = place_within(node, line, column) if isinstance(node, Scalar) else place_of(node)
        self._notes.add_place("error", code, message, place, node.source, use.path, suggestion)

    def compile(self, compile_expressions: CompileExpressions) -> None:
        """Ask the sandbox about all sources in one go and report those that don't compile."""
        sources = list(self._asked)
        if not sources:
            return
        for source, failure in zip(sources, compile_expressions(sources), strict=True):
            if failure is None:
                continue
            for use in self._asked[source]:
                self._report(
                    "expression.syntax", failure.message, use, failure.line or 1, failure.column or 1
                )

    def reading(self, source: str) -> Reading | None:
        """What a source that was added reads; None when it can't be read."""
        return self._readings.get(source)

    def finished(self) -> tuple[Expression, ...]:
        """The table, as the plan holds it."""
        return tuple(self._made)


def env_read_alone(source: str) -> str | None:
    """NAME when a condition is nothing but `env.NAME`: every text but the empty one is true (EXP-2)."""
    found = _ENV_ALONE.fullmatch(source)
    return (found[1] or found[2]) if found else None


def looks_false(value: object) -> bool:
    """True for the texts people take for false."""
    return str(value).strip().lower() in _NO_WORDS
