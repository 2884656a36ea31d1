"""What one attempt of a stream has given so far: counted, hashed at the end, judged by its finish. Acts on nothing."""

from __future__ import annotations

import hashlib
from typing import Any

from gonogo.gate.events import NOTHING_USED, Usage
from gonogo.gate.signals import Classification, Signal, Test, classify
from gonogo.gate.step import Chunk

_GOOD_FINISHES = frozenset(
    "stop end_turn tool_calls tool_use function_call stop_sequence completed STOP".split()
)


class Pieces:
    """The pieces of one attempt. `held`: those the consumer doesn't have yet, with whether they are content."""

    __slots__ = (
        "_texts", "bad", "characters", "complete", "content", "count", "delivered", "finish", "held", "tokens", "tool",
        "usage",
    )  # fmt: skip

    def __init__(self, before: str = "") -> None:
        """`before` is what an earlier attempt gave and this one goes on from."""
        self._texts: list[str] = [before] if before else []
        self.held: list[tuple[Any, bool]] = []
        self.characters = len(before)
        self.count = 0
        self.bad = 0
        self.tokens = 0
        self.content = False
        self.complete = False
        self.delivered = bool(before)
        self.tool = False
        self.finish: str | None = None
        self.usage: Usage = NOTHING_USED

    def add(self, chunk: Chunk) -> bool:
        """Count a piece; whether it is content."""
        self.count += 1
        if chunk.bad:
            self.bad += 1
            return False
        text = chunk.text
        content = bool(text)
        if content:
            self._texts.append(text)
            self.characters += len(text)
        if chunk.tool:
            self.tool = content = True
        if content:
            self.content = True
        if chunk.tokens:
            self.tokens += chunk.tokens
        if chunk.usage is not None:
            self.usage = chunk.usage
        if chunk.finish is not None:
            self.finish = chunk.finish
            self.complete = True
        if chunk.end:
            self.complete = True
        return content

    def text(self) -> str:
        """All text so far."""
        if len(self._texts) > 1:
            self._texts = ["".join(self._texts)]
        return self._texts[0] if self._texts else ""

    def digest(self) -> str:
        """Names the text in the record, without holding it (F15)."""
        return hashlib.blake2b(self.text().encode("utf-8", "replace"), digest_size=8).hexdigest()

    def integrity(self) -> str:
        """Unreadable pieces are fine if what was counted is what the far side says it sent (F12a)."""
        whole = not self.bad or (self.tokens > 0 and self.tokens == self.usage.output_tokens)
        return "ok" if whole else "unverified"

    def finish_failure(self, tests: tuple[Test, ...]) -> Classification | None:
        """What a finish reason other than a good one means; one that nobody knows is taken as good."""
        if self.finish is None or self.finish in _GOOD_FINISHES:
            return None
        found = classify(Signal(finish=self.finish), tests)
        return None if found.kind == "unknown" else found
