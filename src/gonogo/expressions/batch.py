"""Requests on their way through the child, on the event loop: at once if that takes a moment, else in the background.

A reply mostly comes within some tens of µs. Waiting for it on the spot holds the loop up for less time than giving
way and coming back would cost; after `PATIENCE_S` the loop gets its turn. What is said to the child is left to
`sandbox.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence

from gonogo.expressions.process import Child, Reply
from gonogo.expressions.results import Result

PATIENCE_S = 1e-3
"""The longest that the event loop is held up."""

Frame = tuple[list[str], list[float]]
Conversation = Generator[Frame, Reply, list[Result]]


class Batch:
    """`results` is None as long as some are missing; then `finish` must be awaited, or `drop` called."""

    __slots__ = ("_child", "_conversation", "_over", "_running", "results")

    def __init__(
        self, conversation: Conversation, running: Callable[[], Child], over: Callable[[Batch, bool], None]
    ) -> None:
        """`running` gives the child; `over` is told when nothing more comes, and whether that is too early."""
        self.results: list[Result] | None = None
        self._conversation = conversation
        self._running = running
        self._over = over
        self._child: Child

    def go(self, reply: Reply | None = None) -> None:
        """Go on from a reply, or begin, for a moment. Raises SandboxError."""
        until_s = time.monotonic() + PATIENCE_S
        try:
            frame = self._conversation.send(reply)  # type: ignore[arg-type]  # None starts it
            while (reply := self._sent(frame).reply_at_once(until_s)) is not None:
                frame = self._conversation.send(reply)
        except StopIteration as ended:
            self.results = ended.value
            self._over(self, False)
        except BaseException:
            self.drop()
            raise

    async def finish(self) -> Sequence[Result]:
        """All results, in order. Cancelling it ends the child. Raises SandboxError."""
        try:
            while self.results is None:
                self.go(await self._child.reply_async())
        except BaseException:
            self.drop()
            raise
        return self.results

    def drop(self) -> None:
        """Give up, which ends the child; nothing to do once it is over."""
        if self.results is None:
            self._over(self, True)

    def _sent(self, frame: Frame) -> Child:
        self._child = self._running()
        self._child.send(*frame)
        return self._child
