"""ai: asks a language model (spec E.11), of any server that speaks one of two wire formats, or of a script.

Everything that is asked goes through the gate: targets, retries, budgets, breakers and the record are its part. What a
model writes is data: an output like any other, never a command, a path, a template or an address.
"""

from __future__ import annotations

import anyio

from gonogo.errors import ConfigError
from gonogo.gate.failures import GateError
from gonogo.provider import Call, Context, Effects, Failed, Outcome, Provider
from gonogo.providers._faults import fault
from gonogo.providers.ai.config import Config
from gonogo.providers.ai.conversation import NoSession
from gonogo.providers.ai.outcomes import RULE, done, failed, gave_up
from gonogo.providers.ai.talk import Talk, TooManyRounds
from gonogo.providers.ai.tools import InDoubt
from gonogo.providers.ai.ways import DEADLINE_S

_GRACE_S = 0.5
"""The gate ends a request in time; what lies between requests ends here."""


def effects(config: Config) -> Effects:
    """Asking changes nothing; a tool that may change things makes the step one that does."""
    return "mutates" if any(tool.mutates for tool in config.tools.values()) else "reads"


async def run(call: Call, context: Context) -> Outcome:
    """Done with the text, or with JSON that fits the step's schema; every other end is a fault with its kind."""
    try:
        talk = Talk(call, context)
    except NoSession as problem:
        return Failed(fault(call, "ai.session", "ai/session", str(problem)))
    except ConfigError as problem:
        return Failed(fault(call, "ai.policy", "ai/policy", str(problem)))
    limit_s = None if call.timeout_s is None else call.timeout_s + _GRACE_S
    with anyio.move_on_after(limit_s):
        return await _ended(call, talk)
    message = f"there was no answer within {call.timeout_s:g} s"
    of_call = fault(call, "ai.timeout", RULE, message, fault_class="transient")
    return failed(talk, of_call, in_doubt=talk.tools.changing)


async def _ended(call: Call, talk: Talk) -> Outcome:
    try:
        return done(call, talk, await talk.answer())
    except GateError as error:
        return gave_up(call, talk, error)
    except TooManyRounds as problem:
        return failed(talk, fault(call, "ai.tool_rounds", "ai/tool_rounds", str(problem)))
    except InDoubt as problem:
        of_call = fault(call, "ai.tool_in_doubt", "ai/tool_in_doubt", str(problem), fault_class="lost")
        return failed(talk, of_call, in_doubt=True)


PROVIDER = Provider(
    name="ai",
    config=Config,
    run=run,
    effects=effects,
    templates=frozenset({"prompt", "system", "model", "url", "targets", "mock"}),
    references=frozenset({"url", "api_key", "headers", "targets"}),
    secrets=frozenset({"api_key"}),
    default_timeout_s=DEADLINE_S,
    own_timeout=True,
    gated=True,
    summary="asks a language model",
)
