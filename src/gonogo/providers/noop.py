"""noop: does nothing. It is there to be routed to and to gather dependencies (spec E.5)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from gonogo.provider import Call, Context, Done, Outcome, Provider


class Config(BaseModel):
    """A noop has no keys of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")


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
    summary="does nothing; a place to route to",
)
