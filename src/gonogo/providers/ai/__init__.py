"""ai: asks a language model (spec E.11), of any server that speaks one of two wire formats, or of a script.

Everything that is asked goes through the gate: targets, retries, budgets, breakers and the record are its part. What a
model writes is data: an output like any other, never a command, a path, a template or an address.
"""

from __future__ import annotations

from gonogo.provider import Call, Context, Effects, Outcome, Provider
from gonogo.providers.ai.config import DEADLINE_S, Config


def effects(config: Config) -> Effects:
    """Asking changes nothing; a tool that may change things makes the step one that does."""
    own = any(tool.mutates for tool in config.tools.values())
    lent = any(tool.mutates for server in config.mcp_servers.values() for tool in server.tools.values())
    return "mutates" if own or lent else "reads"


async def run(call: Call, context: Context) -> Outcome:
    """Ask. What that takes is imported here, so that reading a file doesn't pay for it."""
    from gonogo.providers.ai.running import ask

    return await ask(call, context)


PROVIDER = Provider(
    name="ai",
    config=Config,
    run=run,
    effects=effects,
    templates=frozenset({"prompt", "system", "model", "url", "targets", "mock"}),
    references=frozenset({"url", "api_key", "headers", "targets", "mcp_servers"}),
    secrets=frozenset({"api_key", "auth.token", "auth.password", "auth.value"}),
    default_timeout_s=DEADLINE_S,
    own_timeout=True,
    gated=True,
    handles="shown",
    needs_for={"mcp_servers": {"mcp": "pip install 'gonogo[mcp]'"}},
    summary="asks a language model",
)
