"""Measure the modules and functions of src/gonogo; tests/test_architecture.py holds the limits.

A function's length is its lines from `def` to its last one, docstring and inner functions included; an inner
function counts for itself as well. Run it to see the distribution and what is near a limit.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "gonogo"

MODULE_LINES_LOOK_AGAIN = 400
MODULE_LINES_MAX = 500
FUNCTION_LINES_LONG = 70
FUNCTION_LINES_MAX = 120


@dataclass(frozen=True, slots=True)
class Size:
    """Something with a length: `place` is `path` for a module and `path:line name` for a function."""

    place: str
    lines: int


def module_sizes(source: Path = SOURCE) -> list[Size]:
    """Every Python module, longest first."""
    sizes = [
        Size(str(path.relative_to(source.parent)), len(path.read_text().splitlines()))
        for path in sorted(source.rglob("*.py"))
    ]
    return sorted(sizes, key=lambda size: -size.lines)


def function_sizes(source: Path = SOURCE) -> list[Size]:
    """Every function and method, longest first."""
    sizes = [size for path in sorted(source.rglob("*.py")) for size in functions_in(path, source)]
    return sorted(sizes, key=lambda size: -size.lines)


def functions_in(path: Path, source: Path) -> Iterator[Size]:
    """The functions and methods of one module."""
    place = path.relative_to(source.parent)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield Size(f"{place}:{node.lineno} {node.name}", lines)


def share_within(sizes: list[Size], lines: int) -> float:
    """The share of sizes of at most so many lines; 1.0 for none at all."""
    return sum(size.lines <= lines for size in sizes) / len(sizes) if sizes else 1.0


def main() -> int:
    """Print the measures."""
    modules, functions = module_sizes(), function_sizes()
    print(f"{len(modules)} modules, {sum(size.lines for size in modules)} lines, {len(functions)} functions")
    for lines in (10, 30, FUNCTION_LINES_LONG):
        print(f"{share_within(functions, lines):6.1%} of functions within {lines} lines")
    for size in [size for size in modules if size.lines > MODULE_LINES_LOOK_AGAIN]:
        print(f"look again: {size.place} ({size.lines} lines)")
    for size in functions[:10]:
        print(f"long: {size.place} ({size.lines} lines)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
