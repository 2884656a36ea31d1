"""Why a call that mutates is made once for one intent, whoever dies, stands still or wakes up (law 3).

1. Its intent is durable before it begins: the record of its start, or the claim of its ticket. Either is one statement,
   which does nothing for whoever isn't the run's host (its epoch) any more.
2. Who comes second finds the intent without an end, and makes no call: it says that the call is lost. That is a doubt.
3. Only a person's word ends a doubt, and only the one that the word was given about (`AnswerGiven.start`): given twice,
   it can't reach a later call, whose intent is another's.
4. What the first one says later is refused: a record by its epoch, an answer by its claim.

So one way is left: the first stands still behind 1, and wakes up behind 3. Therefore it asks once more whether the run
or the claim is still its own, right before the call, and before each attempt of a gate, which may wait for minutes
between two. A record says so, too, for as long as nobody can have been taken for dead since (`SURE_S`).

What remains is the time between that answer and the far side. Who stands still there, for as long as others need to
take it for dead and a person to look and to answer, can't be told from a call that is long on its way: the person
looked too early. No caller can shut that out; a far side that honours an idempotency key can.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from gonogo.core.commands import StartCall

Sure = Callable[[StartCall], Awaitable[None]]
"""Returns while a call is this process' to make. Raises Overtaken, or JournalError where the run is another's."""


class Overtaken(Exception):  # noqa: N818 - the name says what happened
    """Whoever was to make a call stood still, and somebody else has it now."""
