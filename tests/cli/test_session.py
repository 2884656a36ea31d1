"""What stands on the command line, beyond what click tells."""

from __future__ import annotations

import pytest

from gonogo.cli.session import destinations


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], []),
        (["--format", "json"], [("json", None)]),
        (["--format=json", "--out=x"], [("json", "x")]),
        (["--format", "table", "--format", "json", "--out", "r.json"], [("table", None), ("json", "r.json")]),
        (["--format", "json", "-o", "a", "--format", "junit", "-ob"], [("json", "a"), ("junit", "b")]),
        (["-o", "a", "--format", "json"], [("json", "a")]),
        (["--out", "a"], [("table", "a")]),
        (["--format", "json", "-o", "-"], [("json", None)]),
        (["--", "--format", "json"], []),
        (["--format"], [("", None)]),
    ],
)
def test_a_file_belongs_to_the_format_before_it(
    arguments: list[str], expected: list[tuple[str, str | None]]
) -> None:
    """`--format` may repeat, each with its own `--out`."""
    assert destinations(arguments) == expected
