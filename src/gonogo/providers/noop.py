"""noop: does nothing. It is there to be routed to and to gather dependencies (spec E.5)."""

from __future__ import annotations

from msgspec import Struct

from gonogo.provider import Call, Context, Done, Outcome, Provider


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A noop has no keys of its own."""


async def run(call: Call, context: Context) -> Outcome:
    """No output, no issues."""
    return Done(effect="none")


PROVIDER = Provider(
    name="noop",
    config=Config,
    run=run,
    effects="reads",
    default_fanout="reduce",
    inline=True,
    needs_names=False,
    handles="passed",
    summary="does nothing; a place to route to",
)
