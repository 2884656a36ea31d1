"""The keys of an ai step: what is asked, who is asked, in which order, at which price. Acts on nothing."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from gonogo.models.conversation import SchemaMode
from gonogo.provider import ConfigProblem
from gonogo.providers.ai.servers import SERVERS_MAX, McpServer, offered_as

Vendor = Literal["openai", "anthropic", "google", "mistral", "mock"]
BY_LIBRARY: frozenset[Vendor | None] = frozenset({"google", "mistral"})
"""Vendors whose own formats are left to a library, which the extra `ai` brings."""
_PARAMS = frozenset({"frequency_penalty", "presence_penalty", "seed", "stop_sequences", "top_p"})
PARAMS: Mapping[str, frozenset[str]] = {
    "google": _PARAMS
    | {
        "google_cached_content",
        "google_labels",
        "google_safety_settings",
        "google_thinking_config",
        "service_tier",
        "top_k",
    },
    "mistral": _PARAMS | {"mistral_prompt_cache_key", "parallel_tool_calls"},
}
"""`params` by vendor: what its library sends on, and neither the step says by a key nor leaves the question with. Any
other it would drop without a word.
"""
Word = Annotated[str, Meta(min_length=1, max_length=200)]
Money = Annotated[float, Meta(ge=0)]
Warmth = Annotated[float, Meta(ge=0, le=2)]
Many = Annotated[int, Meta(ge=1, le=10_000_000)]
Weight = Annotated[float, Meta(ge=0)]
DEADLINE_S = 600.0
ROUNDS_MAX = 50
TOOL_ROUNDS = 5


class Turn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message of a prompt that is a list."""

    text: Annotated[str, Meta(description="What is said; a template.")]
    role: Annotated[Literal["user", "assistant"], Meta(description="Who says it.")] = "user"


class Tokens(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a scripted answer counts."""

    input: Annotated[int, Meta(ge=0, description="Tokens of the question.")] = 0
    output: Annotated[int, Meta(ge=0, description="Tokens of the answer.")] = 0


class Wish(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scripted wish to call a tool."""

    tool: Annotated[str, Meta(min_length=1, description="Name of the tool.")]
    arguments: Annotated[Mapping[str, Any], Meta(description="Its arguments.")] = field(
        name="with", default_factory=dict
    )


class Answer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One scripted answer: text, JSON, calls of tools, or a failure by its kind."""

    text: Annotated[str, Meta(description="The text.")] = ""
    json: Annotated[Any, Meta(description="A value, given as JSON text.")] = None
    calls: Annotated[list[Wish], Meta(description="Tools it wants to call: {tool: …, with: {…}}.")] = []
    fail: Annotated[str | None, Meta(description="Kind of failure, such as overloaded or refusal.")] = None
    retry_after_s: Annotated[Money | None, Meta(description="Seconds to wait, as a failure may ask.")] = None
    finish: Annotated[
        Literal["stop", "length", "content_filter", "refusal"], Meta(description="Why it ended.")
    ] = "stop"
    tokens: Annotated[Tokens | None, Meta(description="What it used.")] = None


class Mock(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answers instead of a model, one a request; the last one repeats."""

    answers: Annotated[list[str | Answer], Meta(min_length=1, description="In order; a text is an answer.")]


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a million tokens of a model cost, in the currency of the budget."""

    input: Annotated[float, Meta(ge=0, description="A million tokens of input.")]
    output: Annotated[float, Meta(ge=0, description="A million tokens of output.")]
    cached: Annotated[
        Money | None, Meta(description="A million of input from a cache; as input if absent.")
    ] = None
    cache_write: Annotated[
        Money | None, Meta(description="A million written to a cache; as input if absent.")
    ] = None


class Tool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the model may call: a step of the workflow, or a script; both see the arguments as `args`."""

    description: Annotated[str, Meta(min_length=1, description="Tells the model what it is for.")]
    parameters: Annotated[
        Mapping[str, Any], Meta(description="JSON Schema of the arguments, an object.")
    ] = {}
    step: Annotated[str | None, Meta(description="Step of the workflow to run; or script.")] = None
    script: Annotated[str | None, Meta(description="JavaScript to run; its value is the answer.")] = None
    mutates: Annotated[
        bool, Meta(description="Allow a step that changes things outside; then this step changes things.")
    ] = False

    def __post_init__(self) -> None:
        """One thing to run, with arguments that have names."""
        if (self.step is None) == (self.script is None):
            raise ValueError("a tool is a `step` or a `script`, one of them")
        if self.parameters.get("type", "object") != "object":
            raise ConfigProblem("parameters", "the arguments of a tool are an object; say `type: object`")


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is asked, and how: the same keys for the step and for each of its targets."""

    provider: Annotated[
        Vendor | None,
        Meta(description="Wire format: openai or anthropic; google or mistral with the extra `ai`; or mock."),
    ] = None
    model: Annotated[Word | None, Meta(description="The model's name.")] = None
    url: Annotated[str | None, Meta(description="Base URL of the server; the vendor's own if absent.")] = None
    api_key: Annotated[
        str | None, Meta(description="The key, as a reference: ${{ env.NAME }}. It is in no record.")
    ] = None
    headers: Annotated[Mapping[str, str], Meta(description="More headers to send.")] = {}
    params: Annotated[
        Mapping[str, Any], Meta(description="More keys of the request (top_p, seed), sent as they are.")
    ] = {}
    temperature: Annotated[Warmth | None, Meta(description="How freely it writes.")] = None
    max_tokens: Annotated[Many | None, Meta(description="Most tokens of the answer.")] = None
    dialect: Annotated[
        Literal["current", "older"] | None,
        Meta(
            description="openai: older for servers that know max_tokens, not its newer name, and no stream_options."
        ),
    ] = None
    structured: Annotated[
        SchemaMode | None,
        Meta(
            description="How a schema is told: native, json_object (openai), tool or prompt; native if absent, "
            "tool for mistral."
        ),
    ] = None
    mock: Annotated[Mock | None, Meta(description="Answers for provider: mock.")] = None


class Target(Asked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One server and model of a failover list; keys it doesn't say are the step's."""

    name: Annotated[Word | None, Meta(description="For rules and records.")] = None
    tier: Annotated[int, Meta(ge=0, description="Lower ones are asked first.")] = 0
    weight: Annotated[
        Weight | None, Meta(description="How often it is asked first, with reliability: {order: weighted}.")
    ] = None
    window_tokens: Annotated[
        Many | None, Meta(description="Its context, for prompts too long elsewhere.")
    ] = None


class Config(Asked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of an ai step. With the step's `schema` the answer is JSON that fits it, else text."""

    prompt: Annotated[str | list[Turn], Meta(description="What is asked: a template, or messages.")]
    system: Annotated[str | None, Meta(description="How the model is to behave; a template.")] = None
    targets: Annotated[
        list[Target], Meta(max_length=20, description="Servers and models, asked in this order.")
    ] = []
    prices: Annotated[Mapping[str, Price], Meta(description="What a million tokens cost, by model.")] = {}
    stream: Annotated[bool, Meta(description="Show the answer as it comes; it stays the same.")] = False
    tools: Annotated[Mapping[str, Tool], Meta(description="What the model may call, by name.")] = {}
    mcp_servers: Annotated[
        Mapping[str, McpServer],
        Meta(
            max_length=SERVERS_MAX, description="MCP servers whose listed tools the model may call, by name."
        ),
    ] = {}
    tool_rounds: Annotated[
        int, Meta(ge=1, le=ROUNDS_MAX, description="How often it may call tools before it must answer.")
    ] = TOOL_ROUNDS
    session: Annotated[str | None, Meta(description="Step of type ai whose conversation goes on here.")] = (
        None
    )
    allow_private: Annotated[
        bool, Meta(description="Allow private addresses in a URL that comes from data.")
    ] = False
    max_response_bytes: Annotated[int, Meta(ge=1, description="Longest answer taken, in bytes.")] = (
        16 * 1024 * 1024
    )

    def __post_init__(self) -> None:
        """Something to ask, and somebody who is asked."""
        if not self.prompt:
            raise ConfigProblem("prompt", "there is nothing to ask; write a text or a list of messages")
        for place, one in enumerate(self.targets):
            _check_asked(self, one, f"targets[{place}]: ")
            if one.name == "fallback":
                raise ConfigProblem("targets", "'fallback' is the gate's own word; choose another name")
        if not self.targets:
            _check_asked(self, self, "")
        for name in self.tools:
            _check_tool_name(name)
        taken = set(self.tools)
        for name, server in self.mcp_servers.items():
            _check_server(name, server, taken)


def _check_asked(step: Asked, one: Asked, place: str) -> None:
    """Whoever is asked is known, and can be asked in this way."""
    vendor = one.provider or step.provider
    if vendor is None:
        raise ConfigProblem(
            "provider", f"{place}say who is asked: provider: openai, anthropic, google, mistral or mock"
        )
    if vendor == "mock" and one.mock is None and step.mock is None:
        raise ConfigProblem("mock", f"{place}provider: mock needs mock: {{answers: […]}}")
    if vendor != "mock" and one.model is None and step.model is None:
        raise ConfigProblem("model", f"{place}provider: {vendor} needs a model")
    structured = one.structured or step.structured
    if vendor in ("anthropic", "google") and structured == "json_object":
        raise ConfigProblem("structured", f"{place}{vendor} has no json_object; take native, tool or prompt")
    if vendor == "mistral" and structured in ("json_object", "native"):
        raise ConfigProblem("structured", f"{place}mistral has no {structured} here; take tool or prompt")
    if vendor in BY_LIBRARY and one.api_key is None and (step.api_key is None or step.provider != vendor):
        raise ConfigProblem("api_key", f"{place}{vendor} needs an api_key: ${{{{ env.NAME }}}}")
    strange = strange_params(vendor, {**step.params, **one.params})
    if strange is not None:
        raise ConfigProblem("params", f"{place}{strange}")
    if one.dialect is not None and vendor != "openai":
        raise ConfigProblem("dialect", f"{place}only provider: openai has dialects")


def strange_params(vendor: Vendor, params: Mapping[str, Any]) -> str | None:
    """What is wrong with the `params` for a vendor that a library speaks to."""
    known = PARAMS.get(vendor)
    strange = sorted(set(params) - known) if known is not None else ()
    if known is None or not strange:
        return None
    near = get_close_matches(strange[0], known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{vendor} takes no params '{strange[0][:80]}'; {hint}it takes {', '.join(sorted(known))}"


def _check_server(name: str, server: McpServer, taken: set[str]) -> None:
    """Its name is a part of its tools' names, which are each one's own."""
    if not (name.isascii() and name.replace("-", "_").isidentifier() and len(name) <= 30):
        raise ConfigProblem("mcp_servers", f"'{name[:80]}' is no name for a server: letters, digits, _ and -")
    for tool in server.tools:
        offered = offered_as(name, tool)
        if offered in taken:
            raise ConfigProblem("mcp_servers", f"two tools would be called '{offered}'; rename the server")
        taken.add(offered)


def _check_tool_name(name: str) -> None:
    if not (name.isascii() and name.replace("-", "_").isidentifier() and len(name) <= 64):
        raise ConfigProblem("tools", f"'{name[:80]}' is no name for a tool: letters, digits, _ and -")
    if name == "final_answer":
        raise ConfigProblem("tools", "'final_answer' is what answers by schema are called; choose another")
