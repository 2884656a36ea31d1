"""What a forEach step's output gives to fan out over (spec C.13)."""

from __future__ import annotations

import json
from typing import Any

from msgspec import UNSET


def items_of(output: Any) -> list[Any]:
    """A list is its items; nothing and null are none; text holding a JSON list is that list; else one item."""
    if output is UNSET or output is None:
        return []
    if isinstance(output, list | tuple):
        return list(output)
    if isinstance(output, str) and output.lstrip().startswith("["):
        try:
            parsed = json.loads(output)
        except ValueError:
            return [output]
        if isinstance(parsed, list):
            return parsed
    return [output]
