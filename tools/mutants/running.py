"""Runs mutants: each in a child of one process that has loaded code and tests once; the first test that fails ends it.

A mutant is tried by the tests that run its lines, quick ones first, then by simulated runs that do. A child puts the
changed code into the functions that are already loaded, so a mutant costs what its tests cost. POSIX alone.
"""

from __future__ import annotations

import ast
import importlib
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from tools.mutants.making import Mutant, mutants_of

ROOT = Path(__file__).resolve().parent.parent.parent
CORE = ROOT / "src" / "gonogo" / "core"
Write = Callable[[str], object]
MEMORY_BYTES_MAX = 3_000_000_000
PATIENCE = 20
"""A trial may use so many times the processor time that it used on the code as it is, and two seconds."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A test or a simulated run. `passes` is true when it finds nothing wrong."""

    name: str
    passes: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Watched:
    """What a trial did on the code as it is: how long it took, and which lines it ran, as (module, line)."""

    seconds: float
    lines: frozenset[tuple[str, int]]
    passes: bool


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a mutant. `killed_by` is a trial, or what the operating system had to do; None: it lives."""

    mutant: Mutant
    killed_by: str | None
    tried: int


def load(names: Sequence[str]) -> list[tuple[ast.Module, Mutant]]:
    """The mutants of these modules of the core, each with the tree it changes."""
    found = []
    for name in names:
        tree = ast.parse((CORE / f"{name}.py").read_text())
        found += [(tree, mutant) for mutant in mutants_of(name, tree)]
    return found


# --- watching


def watch(trials: Sequence[Trial], names: Sequence[str]) -> list[Watched]:
    """Run each trial once, in a child, and see which lines of these modules it runs."""

    def work(write: Write) -> None:
        for trial in trials:
            write(_watch(trial, names))

    answers = _in_child(work)
    found = [_watched(text) for text in answers.splitlines()]
    if len(found) != len(trials):
        raise RuntimeError(f"{trials[len(found)].name} ends the process that watches it")
    return found


def _watch(trial: Trial, names: Sequence[str]) -> str:
    files = {str(CORE / f"{name}.py"): name for name in names}
    lines: set[tuple[str, int]] = set()

    def local(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            lines.add((files[frame.f_code.co_filename], frame.f_lineno))
        return local

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        return local if frame.f_code.co_filename in files else None

    begun = time.process_time()
    passes = trial.passes()
    seconds = time.process_time() - begun
    sys.settrace(trace)
    try:
        trial.passes()
    finally:
        sys.settrace(None)
    told = " ".join(f"{name}:{line}" for name, line in sorted(lines))
    return f"{seconds:.6f} {int(passes)} {told}\n"


def _watched(text: str) -> Watched:
    seconds, passes, *lines = text.split()
    places = frozenset((name, int(line)) for name, _, line in (place.partition(":") for place in lines))
    return Watched(float(seconds), places, passes == "1")


# --- trying


@dataclass(frozen=True, slots=True)
class Bench:
    """What mutants are tried with. Of the simulated runs that run its lines a mutant gets `runs_max`."""

    tests: Sequence[tuple[Trial, Watched]]
    runs: Sequence[tuple[Trial, Watched]]
    runs_max: int

    def trials_of(self, mutant: Mutant) -> list[tuple[Trial, Watched]]:
        """The trials that run a mutant's lines, or all when it is outside of functions.

        Those named after its module come first, since they are the most likely to notice.
        """

        def place(pair: tuple[Trial, Watched]) -> tuple[bool, float]:
            return f"test_{mutant.module}." not in pair[0].name, pair[1].seconds

        tests = sorted(self._reaching(self.tests, mutant), key=place)
        return [*tests, *list(self._reaching(self.runs, mutant))[: self.runs_max]]

    def _reaching(
        self, trials: Sequence[tuple[Trial, Watched]], mutant: Mutant
    ) -> Iterator[tuple[Trial, Watched]]:
        first, last = mutant.lines
        lines = {(mutant.module, line) for line in range(first, last + 1)}
        return (pair for pair in trials if not mutant.inside or lines & pair[1].lines)


def fates(mutants: Sequence[tuple[ast.Module, Mutant]], bench: Bench, jobs: int) -> Iterator[Fate]:
    """Try every mutant, `jobs` at a time, and tell of each as it ends."""
    waiting = list(reversed(mutants))
    running: dict[int, tuple[int, Mutant, int]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            tree, mutant = waiting.pop()
            trials = bench.trials_of(mutant)
            reader, pid = _fork(partial(_try, tree, mutant, trials))
            running[reader] = pid, mutant, len(trials)
        for reader in select.select(list(running), [], [])[0]:
            pid, mutant, tried = running.pop(reader)
            yield Fate(mutant, _end_of(reader, pid), tried)


def _try(tree: ast.Module, mutant: Mutant, trials: list[tuple[Trial, Watched]], write: Write) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    mutant.plant()
    put_in(mutant, compile(tree, str(CORE / f"{mutant.module}.py"), "exec"))
    for trial, watched in trials:
        signal.setitimer(signal.ITIMER_PROF, 2 + PATIENCE * watched.seconds)
        if not _passes(trial):
            write(trial.name)
            return


def _passes(trial: Trial) -> bool:
    try:
        return trial.passes()
    except Exception:  # noqa: BLE001 - whatever a mutant does to the code that tries it: it was noticed
        return False


def put_in(mutant: Mutant, code: CodeType) -> None:
    """Make the loaded module behave as the changed one: new code in its functions, new values under its names."""
    loaded = importlib.import_module(f"gonogo.core.{mutant.module}")
    changed = ModuleType(loaded.__name__)
    changed.__file__ = loaded.__file__
    exec(code, changed.__dict__)  # noqa: S102 - it is our own source, one node changed
    before, after = loaded.__dict__[mutant.top], changed.__dict__[mutant.top]
    functions = _functions(before), _functions(after)
    if mutant.inside or functions[0].keys() == {""}:
        for name, function in functions[0].items():
            new = functions[1][name]
            function.__code__ = new.__code__
            function.__defaults__, function.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
    else:
        _replace_everywhere(mutant.top, before, after)


def _functions(thing: object) -> dict[str, FunctionType]:
    """A function, or the functions and properties of a class by name."""
    if isinstance(thing, FunctionType):
        return {"": thing}
    members = vars(thing).items() if isinstance(thing, type) else ()
    plain = {name: value.fget if isinstance(value, property) else value for name, value in members}
    return {name: value for name, value in plain.items() if isinstance(value, FunctionType)}


def _replace_everywhere(name: str, before: object, after: object) -> None:
    for module in list(sys.modules.values()):
        if vars(module).get(name) is before:
            setattr(module, name, after)


# --- children


def _in_child(work: Callable[[Write], object]) -> str:
    reader, pid = _fork(work)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return text


def _fork(work: Callable[[Write], object]) -> tuple[int, int]:
    """A child that works and writes; `reader` has what it wrote."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return reader, pid
    code = 1
    try:
        with os.fdopen(writer, "w") as stream:
            work(stream.write)
        code = 0
    except BaseException:  # noqa: BLE001 - a child must never come back into the caller's code
        traceback.print_exc()
    finally:
        os._exit(code)


def _end_of(reader: int, pid: int) -> str | None:
    with os.fdopen(reader) as stream:
        killed_by = stream.read()
    _, status = os.waitpid(pid, 0)
    if killed_by:
        return killed_by
    if os.WIFSIGNALED(status):
        return f"signal {signal.Signals(os.WTERMSIG(status)).name}"
    if os.WEXITSTATUS(status):
        return "it can't be loaded"
    return None
