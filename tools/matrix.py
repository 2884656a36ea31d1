"""Write the behaviour matrix and the life of a fault into docs/concepts/fault-management.md, from the tables that tests
run cell by cell.

python -m tools.matrix            write it
python -m tools.matrix --check    say whether the page is up to date
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tests.matrix import CRITICALITIES, LIFE, ROWS, Four, Row

PAGE = Path(__file__).resolve().parent.parent / "docs" / "concepts" / "fault-management.md"
NOTE = "written by tools/matrix.py from tests/matrix.py"


def matrix() -> str:
    """Both halves of it: the step itself, then the steps behind it."""
    return (
        "**The step itself**: its outcome, its calls, the verdict.\n\n"
        f"{table(lambda row: row.step)}\n\n"
        "**The steps behind it**: `behind`, which needs it / `change`, which mutates / `publish`, which is external."
        "\n\n"
        f"{table(lambda row: row.behind)}"
    )


def table(half: Callable[[Row], Four]) -> str:
    """A row for each construct and case, a column for each criticality."""
    head = f"| Construct | Case | {' | '.join(CRITICALITIES)} |"
    lines = [f"| {row.construct} | {row.case} | {' | '.join(half(row))} |" for row in ROWS]
    return "\n".join([head, "|---" * (2 + len(CRITICALITIES)) + "|", *lines])


def life() -> str:
    """The life of a fault as a diagram."""
    states = dict.fromkeys(name for turn in LIFE for name in (turn.before, turn.after))
    named = [f'  state "{name}" as {as_id(name)}' for name in states if as_id(name) != name]
    turns = [
        f"  {as_id(turn.before)} --> {as_id(turn.after)}{f': {turn.why}' if turn.why else ''}"
        for turn in LIFE
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", *named, "  [*] --> detected", *turns, "```"])


def as_id(name: str) -> str:
    """A name that the diagram's language takes."""
    return name.replace(".", "_")


PARTS = {"matrix": matrix, "life": life}


def filled_in(page: str) -> str:
    """The page with what is written between its marks. Raises ValueError for a page without them."""
    for name, write in PARTS.items():
        page = between(page, f"<!-- {name}: {NOTE} -->", write(), f"<!-- /{name} -->")
    return page


def between(page: str, begin: str, text: str, end: str) -> str:
    """The page with the text in place of what is between two marks. Raises ValueError."""
    head, begun, rest = page.partition(begin)
    _, ended, tail = rest.partition(end)
    if not begun or not ended:
        raise ValueError(f"{PAGE.name} lacks the marks {begin} and {end}")
    return f"{head}{begin}\n\n{text}\n\n{end}{tail}"


def main() -> int:
    """Write the matrix, or compare it."""
    parser = argparse.ArgumentParser(description="Write the behaviour matrix into its page.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; 1 when the page is not up to date"
    )
    check = parser.parse_args().check
    page = PAGE.read_text()
    filled = filled_in(page)
    if filled == page:
        return 0
    print(f"{PAGE.name} {'is not up to date: run python -m tools.matrix' if check else 'written'}")
    if not check:
        PAGE.write_text(filled)
    return 1 if check else 0


if __name__ == "__main__":
    sys.exit(main())
