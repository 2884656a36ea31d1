"""The list of mutants that live, each with the reason why that is all right: `tests/mutants/survivors.md`.

A heading names a module, a bullet a mutant, and the text beneath the bullets says why they live.
"""

from __future__ import annotations

from pathlib import Path

LIST = Path(__file__).resolve().parent.parent.parent / "tests" / "mutants" / "survivors.md"


def known(path: Path = LIST) -> dict[tuple[str, str], str]:
    """The reason of each survivor, by module and name. Raises ValueError for one without a reason."""
    found: dict[tuple[str, str], str] = {}
    module, waiting = "", list[str]()
    for line in path.read_text().splitlines() if path.exists() else ():
        text = line.strip()
        if text.startswith("## "):
            module = text.removeprefix("## ").removesuffix(".py")
        elif text.startswith("- `"):
            waiting.append(text.removeprefix("- "))
        elif text and module:
            found.update({(module, name): text for name in waiting})
            waiting.clear()
    if waiting:
        raise ValueError(f"{path.name} gives no reason for {waiting[0]}")
    return found
