"""What a tool gave, as an output: structured content first, else its text as JSON, else its text. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gonogo.providers._output import json_or_text

Block = dict[str, Any]


def output_of(content: Sequence[Block], structured: Any) -> Any:
    """Blocks that aren't all text (an image, say) are the output themselves, when there is nothing structured."""
    if structured is not None:
        return structured
    if all(block.get("type") == "text" for block in content):
        return json_or_text(text_of(content))
    return list(content)


def text_of(content: Sequence[Block]) -> str:
    """The texts, one after the other, each on lines of its own."""
    return "\n".join(str(block.get("text", "")) for block in content if block.get("type") == "text")
