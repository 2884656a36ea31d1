"""No secret in any sink (cases SEC-2 and SEC-4, architecture.md 2.11), and what expressions see of the environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from gonogo import app
from gonogo.core.events import RunStarted
from gonogo.core.plan import Plan, Step
from gonogo.hosts.base import LogLine, RunResult
from gonogo.hosts.environment import fill_in, visible
from gonogo.journal.handles import shortened
from gonogo.journal.jsonl import JsonlRuns
from gonogo.provider import Call, Context, Done, Effects, Outcome, Provider
from gonogo.providers.noop import Config
from gonogo.providers.table import Table

KEY = "line-one-abcdef\nline-two-ghijkl\nline-three-mnopqr"
DOCUMENT = '{"user": "somebody-known", "inner": {"word": "swordfish-9"}}'
ODD = """it's "100%" secret"""


def test_expressions_see_the_environment_without_secrets() -> None:
    """B.11: names that hold secrets are left out, with their values."""
    assert visible({"HOME": "/h", "API_TOKEN": "t"}) == {"HOME": "/h"}


@pytest.mark.parametrize(
    ("text", "filled", "missing"),
    [
        ("$A ${A} ${{ env.A }} ${{env.lower}}", "1 1 1 2", ()),
        ("$B-$a-$1-$$", "$B-$a-$1-$$", ("B",)),
        ("${B:-x} $AB", "${B:-x} $AB", ("AB",)),
        ("no reference", "no reference", ()),
    ],
)
def test_references_are_filled_in_or_stay_as_written(
    text: str, filled: str, missing: tuple[str, ...]
) -> None:
    """E.1: `${{ env.X }}` of any name, `${X}` and `$X` of upper-case names."""
    assert fill_in(text, {"A": "1", "lower": "2"}) == (filled, missing)


def test_what_a_template_gives_is_no_reference() -> None:
    """SEC-1: marks stand in for references while the template is rendered."""
    filled, _ = fill_in("$A {{ t }}", {"A": "{{ x }}"}, lambda marked: marked.replace("{{ t }}", "$A"))
    assert filled == "{{ x }} $A"


def test_a_template_may_repeat_reorder_or_drop_references() -> None:
    """Each mark is its own reference, as often as the template gives it."""
    text = " ".join(f"${{N{number}}}" for number in range(12))
    environment = {f"N{number}": f"v{number}" for number in range(12)}
    filled, missing = fill_in(text, environment, lambda marked: " ".join(reversed(marked.split()[1:] * 2)))
    assert filled.split() == [f"v{number}" for number in (*range(11, 0, -1), *range(11, 0, -1))]
    assert missing == ()


@pytest.fixture
def everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[RunResult, str, list[LogLine]]]:
    """Run a workflow with secrets in the environment; give all that was written."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "DEPLOY_KEY": KEY,
        "CONFIG_SECRET": DOCUMENT,
        "ODD_PASSWORD": ODD,
        "SHORT_TOKEN": "a",
        "API_WORD": "swordfish-9",
    }.items():
        monkeypatch.setenv(name, value)

    def run(text: str) -> tuple[RunResult, str, list[LogLine]]:
        lines: list[LogLine] = []
        options = app.Options(runs=tmp_path / "runs", log=lines.append)
        result = app.start_run(app.loads(f'version: "1.0"\n{text}'), options=options)
        written = "".join(
            path.read_text() for path in sorted((tmp_path / "runs").rglob("*")) if path.is_file()
        )
        return result, written, lines

    return run


PARTS = [
    "line-one-abcdef",
    "line-two-ghijkl",
    "line-three-mnopqr",
    "somebody-known",
    "swordfish-9",
    "100%",
    "bGluZS10d28t",
]


def test_sec_2_no_part_of_a_secret_is_written(
    everything: Callable[[str], tuple[RunResult, str, list[LogLine]]],
) -> None:
    """SEC-2: raw, re-indented, one field, base64, in an error and in a URL; short secrets and braces stay."""
    result, written, lines = everything("""
steps:
  raw: {type: command, exec: 'printf "%s\\n" "$DEPLOY_KEY" "$CONFIG_SECRET" "$ODD_PASSWORD"'}
  indented: {type: command, exec: 'printf "%s\\n" "$DEPLOY_KEY" | sed "s/^/    /"'}
  field: {type: command, exec: "echo sword''fish-9 { a }"}
  base64: {type: command, exec: 'printf "%s" "$DEPLOY_KEY" | base64'}
  error: {type: command, exec: 'echo "failed with $CONFIG_SECRET" >&2; exit 1'}
  url: {type: command, exec: "echo https://user:hunter22'secret'@example.com/x"}
  passed: {type: command, exec: 'test "$GIVEN" = "$DEPLOY_KEY"', env: {GIVEN: "${{ env.DEPLOY_KEY }}"}}
""")
    told = (
        written
        + "".join(line.text for line in lines)
        + repr([result.output(name) for name in result.state.nodes])
    )
    assert [part for part in [*PARTS, "hunter22secret"] if part in told] == []
    assert "*** { a }" in told
    assert result.state.nodes["passed"][""].outcome == "passed"


def test_an_expression_cant_read_a_secret(
    everything: Callable[[str], tuple[RunResult, str, list[LogLine]]],
) -> None:
    """B.11: `env` holds no secret, so a template or a script gets nothing."""
    result, _, _ = everything("""
steps:
  script: {type: script, content: "return [env.DEPLOY_KEY ?? null, typeof env.HOME]"}
  template: {type: script, content: "return 1", if: "!env.ODD_PASSWORD"}
""")
    assert result.output("script") == [None, "string"]
    assert result.output("template") == 1


def test_a_secret_written_into_the_workflow_is_masked_in_outputs(
    everything: Callable[[str], tuple[RunResult, str, list[LogLine]]],
) -> None:
    """A value under a secret name in `env` is known as a secret, too."""
    result, _, _ = everything("""
env: {SOME_TOKEN: "written-in-the-file"}
steps:
  show: {type: command, exec: "echo $SOME_TOKEN"}
""")
    assert result.output("show") == "***"


def test_secret_outputs_never_reach_the_journal(
    everything: Callable[[str], tuple[RunResult, str, list[LogLine]]],
) -> None:
    """Semantics 14: the core sees a handle of what `secret_outputs` names."""
    result, written, _ = everything("""
steps:
  login: {type: script, content: "return {user: 'me', parts: ['x', 'private-' + 'thing']}", secret_outputs: [parts.1]}
""")
    assert shortened(result.output("login")) == {"user": "me", "parts": ["x", "[secret login.parts.1]"]}
    assert written.count("private-thing") == 1, "in the sealed store alone"


async def _raises(call: Call, context: Context) -> Outcome:
    token = "line-two-ghijkl"
    raise RuntimeError(f"could not log in with {token}")


async def _exits(call: Call, context: Context) -> Outcome:
    raise SystemExit(3)


async def _nothing(call: Call, context: Context) -> Outcome:
    return "done"  # type: ignore[return-value]


async def _waits_inline(call: Call, context: Context) -> Outcome:
    import anyio

    await anyio.lowlevel.checkpoint()
    return Done()


def run_provider(
    tmp_path: Path, run: Callable[..., object], *, effects: Effects = "idempotent", **facts: object
) -> RunResult:
    """A run of one step of a type made for the test."""
    provider = Provider(**{"name": "mine", "config": Config, "run": run, **facts})  # type: ignore[arg-type]
    table = Table({}, aliases={}, planned=frozenset(), entries=list)
    table._loaded["mine"] = provider
    plan = Plan("test", {"one": Step("one", "mine", effects=effects)})
    return app.start_run(plan, options=app.Options(runs=JsonlRuns(tmp_path / "runs"), table=table))


def test_sec_4_an_exception_is_a_fault_without_locals_or_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 4, SEC-4: class bug, a short message with type and place, secrets masked."""
    monkeypatch.setenv("DEPLOY_KEY", KEY)
    fault = run_provider(tmp_path, _raises).fault
    assert fault is not None
    assert (fault.kind, fault.fault_class) == ("provider.bug", "bug")
    assert "RuntimeError at _raises" in fault.message
    assert fault.message.endswith("could not log in with ***")


def test_can_1_a_provider_that_exits_cancels_the_run(tmp_path: Path) -> None:
    """CAN-1: SystemExit and KeyboardInterrupt from a step end the run in good order."""
    result = run_provider(tmp_path, _exits)
    assert result.interrupted
    assert result.state.nodes["one"][""].outcome == "cancelled"


@pytest.mark.parametrize(("run", "facts"), [(_nothing, {}), (_waits_inline, {"inline": True})])
def test_a_provider_that_breaks_its_contract_is_a_bug(
    tmp_path: Path, run: Callable[..., object], facts: dict[str, Any]
) -> None:
    """What isn't Done, Failed or Parked, or waits though it said it never does, is a fault of class bug."""
    fault = run_provider(tmp_path, run, **facts).fault
    assert fault is not None
    assert fault.fault_class == "bug"


class Broken(Struct):
    """Keys whose check is broken."""

    def __post_init__(self) -> None:
        """No ValueError, as it should be."""
        raise KeyError("no")


def test_a_step_type_whose_keys_cant_be_checked_is_a_bug_of_that_step(tmp_path: Path) -> None:
    """Law 4: nothing was called, so nothing is in doubt, and the run ends with a verdict."""
    result = run_provider(tmp_path, _exits, effects="mutates", config=Broken)
    assert (result.verdict, result.waiting) == ("NO-GO", ())
    assert result.fault is not None
    assert (result.fault.kind, result.fault.fault_class) == ("provider.bug", "bug")


def test_variables_given_for_a_run_hold_after_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-e` is in the first record; a resumed run has it without being told again."""
    monkeypatch.chdir(tmp_path)
    options = app.Options(runs=tmp_path / "runs", env={"STAGE": "blue"})
    plan = app.loads(
        'version: "1.0"\nsteps:\n  ask: {type: human-input, prompt: "go?"}\n'
        '  show: {type: command, exec: "echo $STAGE", depends_on: ask}\n'
    ).plan
    parked = app.start_run(plan, options=options)
    first = app.open_run(parked.run_id, options)[0].event
    assert isinstance(first, RunStarted)
    assert first.env["STAGE"] == "blue"
    result = app.answer_run(parked.run_id, "ask", "yes", options=app.Options(runs=tmp_path / "runs"))
    assert result is not None
    assert result.output("show") == "blue"


def test_a_variable_that_lets_somebody_in_by_a_header_is_hidden_whatever_it_is_called(
    everything: Callable[[str], tuple[RunResult, str, list[LogLine]]],
    httpserver: HTTPServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From expressions, from the first record, and where the far side repeats it."""
    monkeypatch.setenv("PLAIN", "let-me-in-please")
    httpserver.expect_request("/x").respond_with_handler(lambda request: Response(str(request.headers)))
    result, written, _ = everything(f"""
steps:
  call:
    type: http_client
    url: {httpserver.url_for("/x")}
    headers: {{authorization: "Bearer ${{{{ env.PLAIN }}}}"}}
  sees: {{type: script, content: "return env.PLAIN ?? 'nothing'"}}
""")
    assert "Bearer ***" in str(result.output("call"))
    assert result.output("sees") == "nothing"
    assert "let-me-in" not in written


def test_a_header_gets_its_secret_and_the_record_its_name(
    everything: Callable[[str], tuple[RunResult, str, list[LogLine]]], httpserver: HTTPServer
) -> None:
    """E.6 R1: references in a request are filled in at the last moment; the journal holds the reference."""
    seen: list[str] = []

    def answer(request: Request) -> Response:
        seen.append(request.headers.get("X-Auth", ""))
        return Response("fine")

    httpserver.expect_request("/x").respond_with_handler(answer)
    result, written, _ = everything(f"""
env: {{WHO: you}}
steps:
  call:
    type: http_client
    url: {httpserver.url_for("/x")}
    headers: {{X-Auth: "Bearer ${{API_WORD}} for {{{{ env.WHO }}}}"}}
""")
    assert result.output("call") == "fine"
    assert seen == ["Bearer swordfish-9 for you"]
    assert "swordfish-9" not in written
    assert "Bearer ${API_WORD} for you" in written
