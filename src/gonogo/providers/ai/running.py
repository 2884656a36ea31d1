"""One call of an ai step from its beginning to its outcome, whatever ends it."""

from __future__ import annotations

import anyio

from gonogo.errors import ConfigError
from gonogo.gate.failures import GateError
from gonogo.provider import Call, Context, Failed, Outcome
from gonogo.providers._faults import fault
from gonogo.providers.ai.conversation import NoSession
from gonogo.providers.ai.lent import NoServer
from gonogo.providers.ai.loading import load
from gonogo.providers.ai.outcomes import RULE, done, failed, gave_up
from gonogo.providers.ai.pricing import pricing_of
from gonogo.providers.ai.talk import Talk, TooManyRounds
from gonogo.providers.ai.tools import InDoubt

_GRACE_S = 0.5
"""The gate ends a request in time; what lies between requests ends here."""


async def ask(call: Call, context: Context) -> Outcome:
    """Done with the text, or with JSON that fits the step's schema; every other end is a fault with its kind."""
    try:
        await load(call.config)
    except ImportError as problem:
        told = f"{problem.name or 'a vendor library'} isn't installed: pip install 'gonogo[ai]'"
        return Failed(fault(call, "ai.not_installed", "ai/not_installed", told))
    pricing = await pricing_of(call.config)
    try:
        talk = Talk(call, context, pricing)
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
    except NoServer as problem:
        told = str(problem)
        return failed(talk, fault(call, problem.kind, "ai/mcp_server", told, fault_class=problem.fault_class))
    except ModuleNotFoundError as problem:
        told = f"the package '{problem.name}' isn't installed: pip install 'gonogo[mcp]'"
        return failed(talk, fault(call, "ai.not_installed", "ai/not_installed", told))
    except TooManyRounds as problem:
        return failed(talk, fault(call, "ai.tool_rounds", "ai/tool_rounds", str(problem)))
    except InDoubt as problem:
        of_call = fault(call, "ai.tool_in_doubt", "ai/tool_in_doubt", str(problem), fault_class="lost")
        return failed(talk, of_call, in_doubt=True)
