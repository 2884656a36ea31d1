"""log: says something to the person who watches, and keeps it as the step's content (spec E.5)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gonogo.provider import Call, Context, Done, Outcome, Provider

OUTPUTS_NAMED_MAX = 20


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to say and how loud; the `include_` keys add facts to the content kept."""

    message: Annotated[str, Meta(description="What to say.")]
    level: Annotated[Literal["debug", "info", "warn", "error"], Meta(description="How loud.")] = "info"
    include_pr_context: Annotated[
        bool, Meta(description="Add number and title of the pull request to the content.")
    ] = True
    include_dependencies: Annotated[
        bool, Meta(description="Add the names of the outputs to the content.")
    ] = True
    include_metadata: Annotated[bool, Meta(description="Add step, scope and attempt to the content.")] = True


async def run(call: Call, context: Context) -> Outcome:
    """The message goes to the log alone; the facts around it only to the content."""
    config: Config = call.config
    context.log(config.level, config.message)
    content = "\n".join([config.message, *_facts(config, call)])
    return Done(content=content, effect="none")


def _facts(config: Config, call: Call) -> Iterator[str]:
    pr: Any = call.names.get("pr")
    if config.include_pr_context and isinstance(pr, dict) and pr.get("number") is not None:
        yield f"pull request: #{pr['number']} {pr.get('title') or ''}".rstrip()
    if config.include_dependencies:
        names = list(islice(call.names.get("outputs") or (), OUTPUTS_NAMED_MAX))
        if names:
            yield f"outputs: {', '.join(names)}"
    if config.include_metadata:
        where = f" in {call.scope}" if call.scope else ""
        yield f"step: {call.step}{where}, attempt {call.attempt}"


PROVIDER = Provider(
    name="log",
    config=Config,
    run=run,
    effects="reads",
    templates=frozenset({"message"}),
    aliases=("logger",),
    default_fanout="reduce",
    inline=True,
    handles="shown",
    summary="says something to the person who watches",
)
