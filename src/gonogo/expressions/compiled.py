"""The expressions a sandbox knows: what each reads, how it is compiled, and whether the child has it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from msgspec import Struct, field

from gonogo.expressions.analyse import Reading, analyse
from gonogo.expressions.names import CALL_NAMES, KNOWN_NAMES, LAZY_NAMES, PERMISSION_HELPERS, STATUS_HELPERS
from gonogo.expressions.results import Failure
from gonogo.expressions.shape import Shape, shape
from gonogo.expressions.syntax import ExpressionProblem

FUNCTIONS_MAX = 10_000
_NOTHING = Shape("", (), True)


class Compiled(Struct):
    """One expression text, called `name` by the child. `failure` is set once it can't be compiled.

    `parameters` are the data names it is given, `keys` the entries of lazy ones that it names. `reads_nothing`:
    there is no data to give at all.
    """

    number: int
    source: str
    name: str = ""
    reading: Reading = field(default_factory=Reading)
    shape: Shape = _NOTHING
    parameters: tuple[str, ...] = ()
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reads_status: bool = False
    reads_association: bool = False
    reads_nothing: bool = False
    failure: Failure | None = None
    sent: bool = False


class Functions:
    """The expressions seen so far, the longest unused dropped first. Not thread safe."""

    def __init__(self) -> None:
        self._by_source: OrderedDict[str, Compiled] = OrderedDict()
        self._next_number = 1
        self._dropped: list[str] = []

    def compiled(self, source: str, hints: Reading | None = None) -> Compiled:
        """The entry of `source`, made if need be. The child gets it with the next frame that uses it."""
        found = self._by_source.get(source)
        if found is not None:
            self._by_source.move_to_end(source)
            return found
        made = _read(self._next_number, source, hints)
        self._next_number += 1
        self._by_source[source] = made
        if len(self._by_source) > FUNCTIONS_MAX:
            _, oldest = self._by_source.popitem(last=False)
            self._dropped.append(str(oldest.number))
        return made

    def forget(self, source: str) -> None:
        """Have `source` compiled afresh when it is met again."""
        self._by_source.pop(source, None)

    def take_parts(self) -> list[str]:
        """The command that makes the child forget what was dropped here."""
        dropped, self._dropped = self._dropped, []
        return ["x", ",".join(dropped)] if dropped else []

    def forget_all(self) -> None:
        """The child is gone: everything has to be sent again."""
        self._dropped = []
        for entry in self._by_source.values():
            entry.sent = False


def _read(number: int, source: str, hints: Reading | None) -> Compiled:
    try:
        reading = analyse(source) if hints is None else hints
        shaped = shape(source)
    except ExpressionProblem as problem:
        failure = Failure("syntax", problem.message, problem.line, problem.column)
        return Compiled(number, source, failure=failure)
    read = frozenset(reading.names)
    # What can't be read for certain gets them all; rules of calls have names of their own.
    known = KNOWN_NAMES if CALL_NAMES.isdisjoint(read) else KNOWN_NAMES | CALL_NAMES
    names = known & read if shaped.trusted else known
    reads_status = not STATUS_HELPERS.isdisjoint(reading.names)
    reads_association = not PERMISSION_HELPERS.isdisjoint(reading.names)
    return Compiled(
        number=number,
        source=source,
        name=str(number),
        reading=reading,
        shape=shaped,
        parameters=tuple(sorted(names)),
        keys={name: _keys(reading, name) for name in LAZY_NAMES.intersection(names)},
        reads_status=reads_status,
        reads_association=reads_association,
        reads_nothing=not (names or reads_status or reads_association),
    )


def _keys(reading: Reading, name: str) -> tuple[str, ...]:
    return tuple(sorted({str(path[1]) for path in reading.paths if path[0] == name and len(path) > 1}))
