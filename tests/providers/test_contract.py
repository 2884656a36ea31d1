"""What every step type owes its host, the built-in ones and a stranger's alike (architecture.md 2, laws 6 and 7)."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest
from msgspec import Struct, ValidationError
from pytest_httpserver import HTTPServer
from tests.servers.mcp_servers import plain
from werkzeug import Request, Response

from gonogo.provider import (
    UNSET,
    Call,
    ChildResult,
    Context,
    Done,
    Failed,
    Failure,
    Outcome,
    Provider,
    Result,
    Value,
)
from gonogo.providers.table import Table, built_in
from gonogo.testing import ScriptedContext, call_for


class EchoConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a type that a package outside might bring."""

    text: str


async def echo(call: Call, context: Context) -> Outcome:
    """Gives back what it gets, a moment later."""
    await anyio.lowlevel.checkpoint()
    return Done({"text": call.config.text})


ECHO = Provider("echo", EchoConfig, echo, effects="reads", templates=frozenset({"text"}))


class EchoEntry:
    """Its entry point."""

    name = "echo"

    def load(self) -> object:
        """Import it."""
        return ECHO


def table() -> Table:
    """The built-in types, and one from outside."""
    built = built_in()
    modules = {name: f"gonogo.providers.{name.replace('-', '_')}" for name in built.names()}
    return Table(modules, aliases=built.aliases(), planned=built.planned(), entries=lambda: [EchoEntry()])


NAMES = (*built_in().names(), "echo")

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "command": {"exec": "echo '{\"a\": [1]}'"},
    "script": {"content": "1"},
    "memory": {"operation": "get", "key": "k"},
    "log": {"message": "hi"},
    "noop": {},
    "http_client": {"url": "SERVER/a"},
    "http": {"url": "SERVER/a", "body": {"x": 1}},
    "human-input": {"prompt": "go on?"},
    "workflow": {"workflow": "w"},
    "ai": {"provider": "openai", "model": "m", "url": "SERVER", "prompt": "hi"},
    "github": {"op": "pr.get", "repo": "o/r", "number": 1, "token": "t", "api_url": "SERVER"},
    "mcp": {**plain("plain"), "method": "echo", "methodArgs": {"a": 1}},
    "echo": {"text": "hi"},
}
SLOW: Mapping[str, Mapping[str, Any]] = {
    "command": {"exec": "(setsid sleep 37.41 &) ; sleep 37.42 & sleep 37.43"},
    "http_client": {"url": "SERVER/slow"},
    "http": {"url": "SERVER/slow", "body": ""},
    "ai": {"provider": "openai", "model": "m", "url": "SERVER/slow", "prompt": "hi", "stream": True},
    "github": {"op": "pr.get", "repo": "o/r", "number": 1, "token": "t", "api_url": "SERVER/slow"},
    "mcp": {**plain("stays", "37.44"), "method": "echo"},
}


@pytest.fixture(params=NAMES)
def provider(request: pytest.FixtureRequest) -> Provider:
    """Each type, through the same door."""
    return table().get(request.param)


@pytest.fixture
def config_of(httpserver: HTTPServer) -> Iterator[Callable[..., dict[str, Any]]]:
    """A valid config of a type; the server that some of them need answers, or waits."""
    go_on = threading.Event()

    def late(_: Request) -> Response:
        go_on.wait(20)
        return Response()

    httpserver.expect_request("/a").respond_with_json({"a": 1})
    httpserver.expect_request("/chat/completions").respond_with_json(
        {"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}
    )
    httpserver.expect_request("/slow/chat/completions").respond_with_handler(late)
    httpserver.expect_request("/repos/o/r/pulls/1").respond_with_json({"number": 1})
    httpserver.expect_request("/slow/repos/o/r/pulls/1").respond_with_handler(late)
    httpserver.expect_request("/slow").respond_with_handler(late)

    def of(provider: Provider, configs: Mapping[str, Mapping[str, Any]] = CONFIGS) -> dict[str, Any]:
        config = {**configs.get(provider.name, CONFIGS[provider.name])}
        for key in {"url", "api_url"} & config.keys():
            config[key] = config[key].replace("SERVER", httpserver.url_for("").rstrip("/"))
        return config

    yield of
    go_on.set()


def willing_context(folder: Path) -> ScriptedContext:
    """A context in which everything works."""
    return ScriptedContext(
        answers=["yes"],
        children=[ChildResult("child", "GO", {"a": 1})],
        evaluate_with=lambda *given: Value({"v": 1}),
        working_directory=str(folder),
    )


class HangingContext(ScriptedContext):
    """A context in which nothing ever answers."""

    async def evaluate(self, source: str, kind: str, names: Mapping[str, Any]) -> Result:
        """For ever."""
        await anyio.sleep_forever()
        raise AssertionError

    async def answer(self, prompt: str, *, multiline: bool, secret: bool) -> str | None:
        """For ever."""
        await anyio.sleep_forever()
        return None

    async def run_child(
        self,
        workflow: str,
        *,
        inputs: Mapping[str, Any],
        overrides: Mapping[str, Any],
        shares_memory: bool = False,
    ) -> ChildResult:
        """For ever."""
        await anyio.sleep_forever()
        raise AssertionError


def test_its_config_is_frozen_and_knows_its_keys(provider: Provider, config_of: Callable[..., Any]) -> None:
    """A config is shared by all attempts, and a key that means nothing is an error."""
    config = provider.checked(config_of(provider))
    for name in type(config).__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(config, name, None)
    with pytest.raises(ValidationError):
        provider.checked({**config_of(provider), "no_such_key": 1})


def test_its_templates_and_expressions_are_fields(provider: Provider) -> None:
    """What the load-time checks look at exists; a template is rendered once, by the host or by itself."""
    fields = set(provider.config.__struct_fields__)
    assert provider.templates | provider.late_templates | set(provider.expressions) <= fields
    assert not provider.templates & provider.late_templates
    assert set(provider.expressions.values()) <= {"condition", "value", "script"}


def test_its_keys_are_not_the_engines(provider: Provider) -> None:
    """A step's keys are the engine's and the provider's; none may mean two things."""
    engine = {
        "type",
        "if",
        "assume",
        "guarantee",
        "fail_if",
        "depends_on",
        "timeout",
        "env",
        "on_fail",
        "schema",
    }
    assert not engine & set(provider.config.__struct_fields__)


def test_it_says_what_it_does_outside(provider: Provider, config_of: Callable[..., Any]) -> None:
    """One of three words for any config."""
    config = provider.checked(config_of(provider))
    assert provider.effects_of(config) in ("reads", "idempotent", "mutates")


def test_its_facts_are_of_the_right_kind(provider: Provider) -> None:
    """What tables and hosts rely on."""
    assert provider.default_fanout in ("map", "reduce")
    assert provider.default_timeout_s is None or provider.default_timeout_s > 0
    assert table().get(provider.name) is not None
    assert all(table().get(alias).name == provider.name for alias in provider.aliases)


def test_its_outcome_is_json(provider: Provider, config_of: Callable[..., Any], tmp_path: Path) -> None:
    """Outputs, metas and details go into a journal as they are."""
    call = call_for(provider, config_of(provider))
    outcome = anyio.run(provider.run, call, willing_context(tmp_path))
    assert isinstance(outcome, Done), outcome
    for value in (None if outcome.output is UNSET else outcome.output, dict(outcome.meta)):
        assert msgspec.json.decode(msgspec.json.encode(value)) == value


def test_it_changes_nothing_it_was_given(
    provider: Provider, config_of: Callable[..., Any], tmp_path: Path
) -> None:
    """Config, env and names belong to the host; so does the process environment."""
    names = {"outputs": {"a": [1]}, "memory": {"$namespace": "default", "default": {"k": [1]}}}
    env = {"A": "1"}
    call = call_for(provider, config_of(provider), names=names, env=env)
    before = copy.deepcopy((names, env, call.config, dict(os.environ)))
    anyio.run(provider.run, call, willing_context(tmp_path))
    assert (names, env, call.config, dict(os.environ)) == before


def test_I1_1_a_call_leaks_nothing_into_the_next(
    provider: Provider, config_of: Callable[..., Any], tmp_path: Path
) -> None:
    """I.1 row 1: the second of two equal calls gives the same, whatever came between."""

    def once(**changes: Any) -> Outcome:
        call = call_for(provider, config_of(provider), **changes)
        outcome: Outcome = anyio.run(provider.run, call, willing_context(tmp_path))
        return outcome

    first = once()
    once(names={"memory": {"default": {"k": "other"}}}, env={"X": "other"}, attempt=2, key="other")
    assert stable(once()) == stable(first)


def stable(outcome: Outcome) -> Outcome:
    """Without the time of an answer, how long it took, and the server's clock."""
    if isinstance(outcome, Done):
        outcome.meta.get("headers", {}).pop("date", None)
        dict.pop(outcome.meta, "gate", None)  # type: ignore[arg-type]
        if isinstance(outcome.output, dict):
            outcome.output.pop("ts", None)
    return outcome


def test_L7_a_cancelled_call_ends_and_leaves_nothing(
    provider: Provider, config_of: Callable[..., Any], tmp_path: Path
) -> None:
    """Law 7: whatever it waits for, it ends, and its processes with it. (Two seconds; more here for slow machines.)"""

    async def cancelled() -> None:
        call = call_for(provider, config_of(provider, SLOW))
        with anyio.fail_after(8):
            with anyio.move_on_after(0.15):
                await provider.run(call, HangingContext(working_directory=str(tmp_path)))

    anyio.run(cancelled)
    assert running("sleep 37.4") == []


def running(words: str) -> list[str]:
    """Command lines of living processes that hold these words."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if words in line:
            found.append(line)
    return found


FAILING: Mapping[str, Mapping[str, Any]] = {
    "command": {"exec": "exit 1"},
    "script": {"content": "x"},
    "memory": {"operation": "increment", "key": "k", "value": "x"},
    "http_client": {"url": "http://127.0.0.1:1/"},
    "http": {"url": "http://127.0.0.1:1/", "body": ""},
    "human-input": {"prompt": "?"},
    "workflow": {"workflow": "w"},
    "ai": {"provider": "anthropic", "model": "m", "url": "http://127.0.0.1:1", "prompt": "hi"},
    "github": {"op": "pr.get", "repo": "o/r", "number": 1, "token": "t", "api_url": "http://127.0.0.1:1"},
    "mcp": {"url": "http://127.0.0.1:1/mcp", "method": "echo"},
}


@pytest.mark.parametrize("name", FAILING)
def test_its_failures_are_typed(name: str, tmp_path: Path) -> None:
    """A fault names its kind and a rule of this step; nobody has to read its message."""
    context = ScriptedContext(
        answers=[""],
        children=[ChildResult("child", "NO-GO", {})],
        evaluate_with=lambda *given: Failure("error", "no"),
        working_directory=str(tmp_path),
    )
    provider = table().get(name)
    outcome = anyio.run(provider.run, call_for(provider, FAILING[name]), context)
    assert isinstance(outcome, Failed), outcome
    assert outcome.fault.kind.partition(".")[0] in (name.replace("-", "_"), "http")
    assert outcome.fault.rule_id.startswith("step/")
    assert outcome.fault.fault_class in ("transient", "logical")
    assert outcome.effect in ("none", "done", "unknown")


def test_a_stranger_that_raises_is_the_hosts_business(tmp_path: Path) -> None:
    """Providers catch what they know; the rest goes through, and the host makes a fault of class bug of it."""

    async def broken(call: Call, context: Context) -> Outcome:
        raise ZeroDivisionError

    call = call_for(ECHO, {"text": "x"})
    with pytest.raises(ZeroDivisionError):
        anyio.run(Provider("broken", EchoConfig, broken).run, call, ScriptedContext())
