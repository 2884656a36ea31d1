"""Which calls of a run go to other workers, and what takes them there.

Which those are is a matter of the plan alone, so that whoever takes the run over after a crash comes to the same. All
others stay where the run's loop is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from gonogo.core.plan import Step
from gonogo.journal.pool import Pool, Ticket
from gonogo.providers.table import Table, UnknownType

LONG_S = 60.0
"""A step that is given this long goes to a queue: its run may move to another worker meanwhile."""


class Leaving:
    """Whether this worker is about to end, and who wants to know: its runs go to others, without being cancelled.

    `asked`: whatever another worker can perform goes to one, and a run leaves once nothing of it is under way here.
    `now`: it leaves as it is; what is under way here is lost.
    """

    __slots__ = ("_ears", "asked", "now")

    def __init__(self) -> None:
        self.asked = False
        self.now = False
        self._ears: list[Callable[[], None]] = []

    def listen(self, then: Callable[[], None]) -> Callable[[], None]:
        """Have `then` called when something changes, until the answer is called."""
        self._ears.append(then)
        return lambda: self._ears.remove(then)

    def ask(self, *, now: bool = False) -> None:
        """The worker is to end."""
        self.asked = True
        self.now = now
        for ear in tuple(self._ears):
            ear()


class Spread(Struct, frozen=True):
    """How calls get to other workers. `dispatch` tells an engine of tickets that are in the pool.

    `listen` has a function called whenever something was left for a run, until the answer to it is called.
    """

    pool: Pool
    dispatch: Callable[[Sequence[Ticket]], None]
    listen: Callable[[str, Callable[[], None]], Callable[[], None]]
    leaving: Leaving = field(default_factory=Leaving)


def goes_away(step: Step, scope: str, table: Table, *, leaving: bool = False) -> bool:
    """Whether a call of this step may be performed by any worker: one of many, one that needs a label, or a long one;
    all that can be when its own worker is `leaving`.

    What keeps a key of its own stays: whether another call under it is under way is known to one process only.
    """
    try:
        provider = table.get(step.type)
    except UnknownType:
        return False
    if provider.inline or provider.local_only or step.idempotency_key is not None:
        return False
    limit_s = step.timeout_s if step.timeout_s != provider.default_timeout_s else None
    return leaving or bool(scope) or bool(step.runs_on) or (limit_s or 0.0) >= LONG_S
