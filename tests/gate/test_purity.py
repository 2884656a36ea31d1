"""The gate's thinking half is as pure as the core: no clock, randomness, I/O, logging, threads or environment (B10)."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
from tests.test_architecture import (
    IMPURE_LIBRARIES,
    PURE_LIBRARIES,
    SOURCE,
    impure_line,
    library_imports,
    tree_of,
)

PURE = """
    breaker checking circuit commands decisions doubting ending events evidence going guards lifecycle machine ordering
    pieces policy reading record replaying rules scopes signals state step summary taxonomy telling verdicts voices
    waits
""".split()
ACTING = """
    admission breakers budgets calling calls clock failures fronts gate hedging judging latencies ledger nesting
    observed processes sheets stores streaming virtual
""".split()
MORE = {"difflib"}  # near words


def test_every_module_is_on_one_side() -> None:
    """A new one has to say whether it thinks or acts."""
    names = {path.stem for path in (SOURCE / "gate").glob("*.py")} - {"__init__"}
    assert names == {*PURE, *ACTING}


@pytest.mark.parametrize("name", PURE)
def test_what_decides_imports_only_what_computes(name: str) -> None:
    """Law 1, for the gate."""
    path = SOURCE / "gate" / f"{name}.py"
    assert [library for _, library in library_imports(path) if library not in PURE_LIBRARIES | MORE] == []
    assert [impure_line(node) for node in ast.walk(tree_of(path)) if impure_line(node)] == []


def test_loading_what_decides_loads_nothing_that_acts() -> None:
    """Also through what it imports."""
    names = [f"gonogo.gate.{name}" for name in PURE]
    program = f"import sys, importlib\nfor n in {names!r}: importlib.import_module(n)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert sorted(loaded & set(IMPURE_LIBRARIES)) == []
