"""What is decided about the attempts that calls make through their gates (semantics.md 23)."""

from __future__ import annotations

from gonogo.core.decision import About


class AttemptStarted(About, frozen=True, tag="attempt_started"):
    """An attempt may go out. What it may use is set aside until it ends; one that waited has its slot again."""

    call: int = 0
    ticket: int = 0
    number: int = 1
    target: str = ""
    beneath: str = ""

    def sentence(self) -> str:
        if self.beneath:
            return f"{self.beneath} may spend"
        return f"attempt {self.number} on {self.target}"


class AttemptRefused(About, frozen=True, tag="attempt_refused"):
    """An attempt may not go out: `limit` names the budget, of which `used` of `allowed` are spent or set aside."""

    call: int = 0
    ticket: int = 0
    target: str = ""
    limit: str = ""
    used: int | float = 0
    allowed: int | float = 0
    beneath: str = ""

    def sentence(self) -> str:
        what = self.beneath or f"another attempt on {self.target}"
        if not self.limit:
            return f"{what} isn't made: the run stops"
        name = self.limit.removeprefix("budget.")
        return f"{what} would pass the run's budget of {self.allowed:g} ({name}): {self.used:g} are used or set aside"


class Paused(About, frozen=True, tag="paused"):
    """A call waits in its gate, and others may have its slot meanwhile."""

    call: int = 0
    wait_s: float = 0.0

    def sentence(self) -> str:
        return f"waits {self.wait_s:.3g} s in its gate, and holds no slot meanwhile"
