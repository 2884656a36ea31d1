"""human-input: asks a person (spec E.9). With somebody at hand the answer comes at once, else the step waits for one.

Where an answer comes from is the host's business. `clean` is what any answer goes through, also one that is
given to a parked step later. Nothing but control characters is taken out of it.
"""

from __future__ import annotations

import time
import unicodedata
from typing import Annotated, Any

import anyio
from msgspec import Meta, Struct

from gonogo.provider import Call, Context, Done, Failed, Outcome, Parked, Provider
from gonogo.providers._faults import fault

ANSWER_BYTES_MAX = 100 * 1024


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a human-input step. Its time limit is the step's `timeout`."""

    prompt: Annotated[str, Meta(min_length=1, description="The question.")]
    placeholder: Annotated[str | None, Meta(description="Example shown where one types.")] = None
    default: Annotated[str | None, Meta(description="Answer when nothing is typed or time runs out.")] = None
    allow_empty: Annotated[bool, Meta(description="Take an empty answer.")] = False
    multiline: Annotated[bool, Meta(description="Take several lines.")] = False
    secret: Annotated[
        bool, Meta(description="Hide the answer while it is typed. The journal keeps it like any answer.")
    ] = False


async def run(call: Call, context: Context) -> Outcome:
    """Ask who is at hand; park when nobody is; the default answers for silence."""
    config: Config = call.config
    with anyio.move_on_after(call.timeout_s):
        answer = await context.answer(config.prompt, multiline=config.multiline, secret=config.secret)
        return _parked(call) if answer is None else _answered(call, context, answer)
    if config.default is not None:
        return _done(config.default)
    message = f"nobody answered within {call.timeout_s:g} s"
    rule = "human-input-error"
    return Failed(fault(call, "human_input.timeout", rule, message, fault_class="transient"))


def clean(answer: str, *, multiline: bool = True) -> str:
    """Without control characters (line ends and tabs stay; on one line they are spaces), at most 100 KB of UTF-8."""
    kept = answer.encode("utf-8", "replace")[:ANSWER_BYTES_MAX].decode("utf-8", "ignore")
    kept = kept.replace("\r\n", "\n")
    if not multiline:
        kept = kept.replace("\n", " ").replace("\t", " ")
    return "".join(sign for sign in kept if sign in "\n\t" or unicodedata.category(sign) != "Cc").strip()


def _answered(call: Call, context: Context, answer: str) -> Outcome:
    config: Config = call.config
    text = clean(answer, multiline=config.multiline)
    if len(answer.encode("utf-8", "replace")) > ANSWER_BYTES_MAX:
        context.log("warn", f"the answer was cut to {ANSWER_BYTES_MAX:,} bytes")
    if text or config.allow_empty:
        return _done(text or config.default or "")
    if config.default is not None:
        return _done(config.default)
    message = "the answer is empty; give one, or set `default` or `allow_empty: true`"
    return Failed(fault(call, "human_input.empty", "human-input-error", message))


def _done(text: str) -> Done:
    return Done({"text": text, "ts": int(time.time() * 1000)}, content=text, effect="none")


def _parked(call: Call) -> Parked:
    config: Config = call.config
    details: dict[str, Any] = {"multiline": config.multiline, "allow_empty": config.allow_empty}
    if config.placeholder:
        details["placeholder"] = config.placeholder
    if config.secret:
        details["secret"] = True
    return Parked(config.prompt, details, call.timeout_s, config.default)


PROVIDER = Provider(
    name="human-input",
    config=Config,
    run=run,
    effects="reads",
    local_only=True,
    templates=frozenset({"prompt", "placeholder", "default"}),
    aliases=("human_input",),
    own_timeout=True,
    needs_names=False,
    handles="shown",
    summary="asks a person and waits for the answer",
)
