"""What a run beneath wants to spend is asked of the runs above it, where one of them has a budget for that.

Each of them has its own core decide and its own journal tell: set aside first, settled when it is known what was spent.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from gonogo.core import events as e
from gonogo.core.plan import Budget


class Purse(Protocol):
    """A run that may be asked for what a run beneath it wants to spend."""

    @property
    def budget(self) -> Budget:
        """What the run may spend."""
        ...

    def now(self) -> float:
        """Seconds on the run's clock."""
        ...

    def masked(self, text: str) -> str:
        """A text as the run's records may hold it."""
        ...

    def ticket(self) -> int:
        """The number of a wish."""
        ...

    async def leave(self, event: e.AttemptAsked) -> str | None:
        """Ask the core; None is leave, a text says why not."""
        ...

    def post(self, event: e.AnyEvent, /) -> None:
        """Tell the core."""
        ...


class Loan(NamedTuple):
    """What those above have set aside: their ticket, and what those above them have."""

    ticket: int
    above: Loan | None = None


class Above:
    """The call that a run beneath belongs to, as a place to ask before spending."""

    def __init__(self, purse: Purse, call: int, above: Above | None) -> None:
        self._purse = purse
        self._call = call
        self._above = above

    @property
    def counts_calls(self) -> bool:
        """Whether this run or one above it has a budget of calls."""
        budget = self._purse.budget
        return budget.calls is not None or (self._above is not None and self._above.counts_calls)

    async def ask(self, who: str, *, tokens: int = 0, money: float = 0.0, calls: int = 0) -> Loan | str:
        """Have it set aside here and above, or hear what is short; then nothing is set aside."""
        higher: Loan | None = None
        if self._above is not None:
            asked = await self._above.ask(who, tokens=tokens, money=money, calls=calls)
            if isinstance(asked, str):
                return asked
            higher = asked
        budget = self._purse.budget
        counts = budget.calls is not None if calls else budget.tokens is not None or budget.money is not None
        if not counts:
            return Loan(0, higher)
        loan = Loan(self._purse.ticket(), higher)
        refusal = await self._purse.leave(
            e.AttemptAsked(
                at=self._purse.now(),
                call=self._call,
                ticket=loan.ticket,
                tokens=tokens,
                money=money,
                calls=calls,
                beneath=self._purse.masked(who),
            )
        )
        if refusal is None:
            return loan
        self.settle(Loan(0, higher))
        return refusal

    def settle(self, loan: Loan, tokens: int = 0, money: float = 0.0) -> None:
        """Tell what was really spent."""
        if self._above is not None and loan.above is not None:
            self._above.settle(loan.above, tokens, money)
        if loan.ticket:
            at = self._purse.now()
            self._purse.post(
                e.AttemptEnded(
                    at=at, call=self._call, ticket=loan.ticket, input_tokens=tokens, money=money, over=True
                )
            )
