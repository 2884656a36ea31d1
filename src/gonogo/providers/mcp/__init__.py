"""mcp: calls a tool of a server that speaks the Model Context Protocol, started here or reached over HTTP.

What a server says is data: an output like any other. What it says of its own tools (that one only reads, say) is a hint
by somebody unknown; whether a call changes things is the step's to say, and one that says nothing changes things.
"""

from __future__ import annotations

from gonogo.provider import Call, Context, Outcome, Provider
from gonogo.providers.mcp.config import DEFAULT_TIMEOUT_S, Config


async def run(call: Call, context: Context) -> Outcome:
    """Call the tool. What that takes is imported here, so that reading a file doesn't pay for it."""
    from gonogo.providers.mcp.calling import call_tool

    return await call_tool(call, context)


PROVIDER = Provider(
    name="mcp",
    config=Config,
    run=run,
    effects="mutates",
    templates=frozenset({"url", "headers", "methodArgs", "argsTransform"}),
    late_templates=frozenset({"transform"}),
    references=frozenset({"url", "headers", "auth"}),
    secrets=frozenset({"auth.token", "auth.password", "auth.value"}),
    expressions={"transform_js": "value"},
    default_timeout_s=DEFAULT_TIMEOUT_S,
    own_timeout=True,
    gated=True,
    needs={"mcp": "pip install 'gonogo[mcp]'"},
    summary="calls a tool of an MCP server",
)
