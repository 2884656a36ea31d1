"""Secret outputs (semantics.md 14): later steps get them, also after a crash; journal, reports and logs never do."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace

from gonogo import app
from gonogo.core.events import AnswerGiven
from gonogo.core.plan import Edge, Need, Step
from gonogo.errors import UsageError
from gonogo.hosts import vault
from gonogo.hosts.base import LogLine, RunResult
from gonogo.journal.jsonl import JsonlRuns
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.postgres.runs import PostgresRuns
from gonogo.provider import Call, Context, Done, Outcome, Provider
from gonogo.providers.noop import Config
from gonogo.providers.table import built_in

TOKEN = "it's a tok-en no-body knows"
HEAD = 'version: "1.0"\nmax_parallelism: 1\n'
LOGIN = """
  login: {type: command, exec: cat login, secret_outputs: [token]}
"""
USES = (
    HEAD
    + "steps:"
    + LOGIN
    + """
  passes: {type: script, depends_on: login, content: "return {header: 'Bearer ' + outputs.login.token}"}
  uses:
    type: command
    exec: printf '%s|%s' {{ outputs.passes.header | shell_escape }} "$T" | sha256sum
    env: {T: "{{ outputs.login.token }}"}
    depends_on: passes
"""
)
SHORT = "[secret login.token]"


def hashed(text: str) -> str:
    """What sha256sum says of a text."""
    return subprocess.run(
        ["sha256sum"], input=text, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    (home / "login").write_text(json.dumps({"token": TOKEN, "user": "me"}))


def run(text: str, **options: Any) -> RunResult:
    """A run named r."""
    return app.start_run(app.loads(text), app.Start(run_id="r"), app.Options(**options))


def written(folder: Path = Path(".gonogo"), *, but: str = "sealed") -> bytes:
    """All that stands in files, the sealed store aside."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != but)


def test_a_later_step_is_given_the_secret_itself() -> None:
    """In a template, in a variable, and by way of a script that only handed it on."""
    assert run(USES).output("uses") == hashed(f"Bearer {TOKEN}|{TOKEN}")


def test_nothing_but_the_sealed_store_holds_it() -> None:
    """Not the journal, not what the run says on its way, not what it gives."""
    lines: list[LogLine] = []
    result = run(USES, log=lines.append)
    told = written() + repr(lines).encode() + repr(result).encode()
    assert b"tok-en" not in told
    assert b"tok-en" in Path(".gonogo/runs/r/sealed").read_bytes()


def test_the_sealed_store_is_for_its_owners_eyes() -> None:
    """Mode 0600, whatever the process's mask is."""
    before = os.umask(0)
    try:
        run(USES)
    finally:
        os.umask(before)
    assert Path(".gonogo/runs/r/sealed").stat().st_mode & 0o777 == 0o600


def test_a_run_without_secret_outputs_has_no_sealed_store() -> None:
    """Nothing is made that nobody needs."""
    run(HEAD + "steps: {one: {type: noop}}")
    assert not Path(".gonogo/runs/r/sealed").exists()


def test_the_record_of_a_call_shows_where_a_secret_went() -> None:
    """Rendered inputs are part of the record, secrets as handles."""
    run(USES)
    inputs = [record.event.inputs for record in app.open_run("r") if getattr(record.event, "inputs", None)]
    assert len(inputs) == 1
    assert "'Bearer [secret login.token " in inputs[0]["exec"]


def test_an_expression_sees_a_handle() -> None:
    """It can compare it and hand it on, and learns nothing of the secret, not even its length."""
    result = run(
        HEAD
        + "steps:"
        + LOGIN
        + """
  asks:
    type: script
    depends_on: login
    content: return [outputs.login.token === outputs.login.token, outputs.login.token.length, outputs.login.user]
    if: outputs.login.token
"""
    )
    assert result.output("asks") == [True, len("[secret login.token ]") + 32, "me"]


@pytest.mark.parametrize(
    "step",
    [
        'type: log, message: "{{ outputs.login.token }}"',
        'type: human-input, prompt: "use {{ outputs.login.token }}?"',
    ],
)
def test_a_step_that_only_shows_texts_shows_where_it_came_from(step: str) -> None:
    """A log and a question are read by people, who get no secrets there."""
    lines: list[LogLine] = []
    run(HEAD + "steps:" + LOGIN + f"  shows: {{{step}, depends_on: login}}\n", log=lines.append)
    told = written() + repr(lines).encode()
    assert SHORT.encode() in told
    assert b"tok-en" not in told


def test_what_only_people_and_models_read_is_given_no_secret() -> None:
    """A comment at GitHub with a token in it would be an accident, and so would a prompt."""
    table = built_in()
    assert {
        name for name in ("log", "human-input", "ai", "github") if table.get(name).handles != "shown"
    } == set()


def test_what_a_script_logs_holds_no_tag() -> None:
    """Whoever reads it could write it somewhere."""
    lines: list[LogLine] = []
    text = '  says: {type: script, depends_on: login, content: "log(outputs.login.token); return 1"}\n'
    run(HEAD + "steps:" + LOGIN + text, log=lines.append)
    assert [line.text for line in lines if line.step == "says"] == [SHORT]


def test_a_secret_that_a_command_repeats_is_masked() -> None:
    """By value, as the second net."""
    result = run(
        HEAD
        + "steps:"
        + LOGIN
        + """
  echoes: {type: command, depends_on: login, exec: "printf %s {{ outputs.login.token | shell_escape }} | base64 -w0"}
"""
    )
    assert "***" in result.output("echoes")
    assert b"tok-en" not in written()


def test_a_whole_output_can_be_secret() -> None:
    """What prints a bare token has no paths."""
    result = run(
        HEAD
        + """
steps:
  prints: {type: command, exec: "echo s3cr3t-eno''ugh", secret_outputs: ["."]}
  uses: {type: command, depends_on: prints, exec: "echo {{ outputs.prints | shell_escape }} | wc -c"}
"""
    )
    assert result.output("prints").startswith("[secret prints ")
    assert result.output("uses") == 14
    assert b"s3cr3t-enough" not in written()


def test_a_secret_may_be_any_value() -> None:
    """A handle alone becomes the value again: its parts can be named, and null is no secret."""
    result = run(
        HEAD
        + """
steps:
  login:
    type: script
    content: "return {who: {name: 'robot-user', pin: 1234}, none: null}"
    secret_outputs: [who, none, missing]
  uses: {type: command, depends_on: login, exec: 'echo {{ outputs.login.who.pin | shell_escape }} | wc -c'}
"""
    )
    assert result.output("login")["none"] is None
    assert "missing" not in result.output("login")
    assert result.output("uses") == 5


def test_a_schema_error_shows_no_secret() -> None:
    """The schema judges the true output; what it says of it is masked."""
    run(
        HEAD
        + """
steps:
  login:
    type: script
    content: "return {token: 'private' + '-thing'}"
    secret_outputs: [token]
    schema: {type: object, properties: {token: {type: integer}}}
"""
    )
    assert b"private-thing" not in written()


def test_a_failed_step_shows_no_secret_that_it_wrote_as_its_output() -> None:
    """It printed its output, and then failed."""
    result = run(
        HEAD
        + r"""
steps:
  login:
    type: command
    exec: |
      printf '{"token": "%s-thing"}' private; exit 1
    secret_outputs: [token]
"""
    )
    assert result.verdict == "NO-GO"
    assert b"private-thing" not in written()
    assert "private-thing" not in repr(result)


UNREAD = "a word before it\n" + json.dumps({"token": TOKEN})


@pytest.mark.parametrize("parse", ["json", "auto", "text"])
def test_an_output_that_no_path_leads_into_is_secret_as_a_whole(parse: str) -> None:
    """A text that should have been JSON: nobody knows where in it the secret is."""
    Path("login").write_text(UNREAD)
    login = f"{{type: command, exec: cat login, parse: {parse}, secret_outputs: [token]}}"
    result = run(HEAD + f"steps: {{login: {login}}}")
    assert b"tok-en" not in written() + repr(result).encode()


def test_what_a_failed_step_wrote_is_hidden_where_it_cant_be_read() -> None:
    """Its own words on the failure stay."""
    Path("login").write_text(UNREAD)
    for end, told in (("echo no such role >&2; exit 1", "no such role"), ("exit 1", "exit code 1")):
        login = f"{{type: command, exec: 'cat login; {end}', secret_outputs: [token]}}"
        result = app.start_run(app.loads(HEAD + f"steps: {{login: {login}}}"), app.Start(), app.Options())
        assert b"tok-en" not in written() + repr(result).encode()
        assert told in str(result.output("login")["message"])


def test_an_error_that_is_thrown_over_a_secret_output_isnt_told() -> None:
    """It may quote what isn't sealed yet; its place is told."""
    for quoting in ("throw new Error(output.token)", "return JSON.parse(output.token)"):
        login = f"{{type: command, exec: cat login, transform_js: '{quoting}', secret_outputs: [token]}}"
        result = app.start_run(app.loads(HEAD + f"steps: {{login: {login}}}"), app.Start(), app.Options())
        assert result.verdict == "NO-GO"
        assert b"tok-en" not in written() + repr(result).encode()
        assert "line 1" in repr(result)


@pytest.mark.parametrize(
    ("path", "output", "absent"),
    [
        ("tokn", '{"token": 1}', True),
        ("a.*.pw", '{"a": [{"pw": 1}, {"pd": 2}]}', True),
        ("a.1", '{"a": [1]}', True),
        ("a.*.pw", '{"a": []}', False),
        ("a.pw", '{"a": null}', False),
        ("a.0", '{"a": [1]}', False),
    ],
)
def test_a_path_of_secret_outputs_that_leads_nowhere_is_told(path: str, output: str, absent: bool) -> None:
    """A path with a mistake in it seals nothing."""
    login = f"{{type: command, exec: cat login, secret_outputs: ['{path}']}}"
    Path("login").write_text(output)
    result = run(HEAD + f"steps: {{login: {login}}}")
    assert result.verdict == "GO"
    assert (b"look at secret_outputs" in written()) is absent


def test_in_safe_mode_no_path_is_missed() -> None:
    """Nothing was called, so there is no output to look into."""
    text = HEAD + "steps:" + LOGIN
    app.start_run(app.loads(text), app.Start(run_id="r", safe_mode=True), app.Options())
    assert b"look at secret_outputs" not in written()


FORGED = """
steps:
  login: {type: command, exec: cat login, secret_outputs: [token]}
  hostile: {type: command, depends_on: login, exec: "cat answer", parse: %s}
  uses: {type: command, depends_on: hostile, exec: "printf %%s {{ outputs.hostile%s | shell_escape }} > sent"}
"""


@pytest.mark.parametrize(
    ("parse", "path", "answer"),
    [
        ("text", "", "give me {}"),
        ("json", ".a[0]", '{{"a": ["{}"]}}'),
        ("json", ".x", '{{"x": {{"{}": 1}}}}'),
    ],
)
def test_a_handle_that_an_output_copied_means_nothing(parse: str, path: str, answer: str) -> None:
    """Whoever reads a journal may write a handle into an answer; it stays a text and opens no other step's secret."""
    Path("answer").write_text("[]")
    first = app.start_run(app.loads(HEAD + FORGED % ("auto", "")), app.Start(run_id="first"))
    handle = first.output("login")["token"]
    # The same run goes on: its own handle comes back in what a command gives.
    Path("answer").write_text(answer.format(handle))
    wish = app.Wish(steps=("hostile",), workflow=app.loads(HEAD + FORGED % (parse, path)).plan)
    result = app.run_again_from("first", wish)
    assert result.verdict == "GO", result.fault
    assert "tok-en" not in Path("sent").read_text()
    assert "[secret login.token]" in Path("sent").read_text()


SAYS = """
  asks: {type: human-input, prompt: "what?", depends_on: login}
  uses: {type: command, depends_on: asks, exec: "printf %s {{ outputs.asks.text | shell_escape }} > sent"}
"""


@pytest.mark.parametrize("how", ["later", "at hand", "given"])
def test_a_handle_that_a_person_writes_means_nothing(how: str) -> None:
    """In an answer, whichever way it comes, and in an output that is given in place of a run."""
    first = run(HEAD + "steps:" + LOGIN + SAYS)
    copied = first.output("login")["token"]
    if how == "later":
        app.answer_run("r", "asks", copied)
    elif how == "at hand":
        app.run_again_from("r", app.Wish(steps=("asks",)), app.Options(message=copied))
    else:
        app.run_again_from("r", app.Wish(outputs={"asks": {"text": copied}}))
    assert Path("sent").read_text() == SHORT


@pytest.mark.parametrize("paths", ["text", '"."'])
@pytest.mark.parametrize("at_hand", [True, False])
def test_a_persons_answer_can_be_secret(paths: str, at_hand: bool) -> None:
    """At the terminal, and when it comes later: neither its giving nor the output shows it."""
    text = (
        HEAD
        + f"""
steps:
  asks: {{type: human-input, prompt: "the key?", secret_outputs: [{paths}]}}
  uses: {{type: command, depends_on: asks, exec: "printf %s {{{{ outputs.asks.text | shell_escape }}}} | sha256sum"}}
"""
    )
    result: RunResult | None = run(text, message="a spoken word") if at_hand else run(text)
    if not at_hand:
        result = app.answer_run("r", "asks", "a spoken word", by="ana")
    assert result is not None
    assert result.output("uses") == hashed("a spoken word")
    assert b"spoken" not in written()


def test_a_secret_answer_that_comes_too_late_is_masked() -> None:
    """It is in the record of its giving, and no step's output."""
    text = (
        HEAD
        + """
steps:
  asks: {type: human-input, prompt: "the key?", secret_outputs: [text]}
  later: {type: human-input, prompt: "well?"}
"""
    )
    run(text)
    app.answer_run("r", "asks", "a spoken word")
    JsonlRuns(".gonogo/runs").inbox("r").put(AnswerGiven(step="asks", text="a louder word"))
    app.answer_run("r", "later", "yes")
    assert b"spoken" not in written()
    assert b"louder" not in written()


def test_a_word_that_decides_is_never_sealed() -> None:
    """A vote isn't what the step gives."""
    text = (
        HEAD
        + """
steps: {asks: {type: human-input, prompt: "go?", secret_outputs: [text], approvers: [ana], quorum: 1}}
"""
    )
    run(text)
    result = app.answer_run("r", "asks", "yes", by="ana")
    assert result is not None
    assert result.verdict == "GO"


def test_a_handle_of_another_run_means_nothing() -> None:
    """Not even where a script made the text: each run has tags of its own."""
    other = app.start_run(app.loads(USES), app.Start(run_id="other"))
    handle = other.output("login")["token"]
    result = run(
        HEAD
        + "steps:"
        + LOGIN
        + f"""
  forges: {{type: script, depends_on: login, content: "return '{handle}'"}}
  uses: {{type: command, depends_on: forges, exec: "printf %s {{{{ outputs.forges | shell_escape }}}}"}}
"""
    )
    assert result.verdict == "HOLD"


CHILD = r"""
version: "1.0"
id: child
inputs: [{name: key}]
outputs: [{name: made, value: "{{ outputs.mint.token }}"}]
steps:
  mint:
    type: command
    exec: printf '{"token":"%s-made"}' {{ inputs.key | shell_escape }}
    secret_outputs: [token]
"""
PARENT = f"""
imports: [child.yaml]
steps:{LOGIN}
  calls: {{type: workflow, workflow: child, args: {{key: "{{{{ outputs.login.token }}}}"}}, depends_on: login}}
  uses:
    type: command
    depends_on: calls
    exec: printf %s {{{{ outputs.calls.made | shell_escape }}}} | sha256sum
"""


def test_what_starts_a_run_holds_no_handle() -> None:
    """Somebody wrote one into a pull request: that neither opens a secret nor stops the run."""
    text = f"see [secret login.token {'0' * 32}]"
    uses = """
  uses: {type: command, depends_on: login, exec: "printf %s {{ pr.body | shell_escape }}"}
"""
    start = app.Start(context={"pr": {"body": text}})
    result = app.start_run(app.loads(HEAD + "steps:" + LOGIN + uses), start)
    assert result.output("uses") == f"see {SHORT}"


def test_a_secret_goes_to_a_child_and_comes_back() -> None:
    """Each run seals it anew, so that each can go on without the other."""
    Path("child.yaml").write_text(CHILD)
    Path("main.yaml").write_text(HEAD + PARENT)
    result = app.start_run(app.load("main.yaml"))
    assert result.verdict == "GO", result.fault
    assert result.output("uses") == hashed(f"{TOKEN}-made")
    assert b"tok-en" not in written()


def test_a_secret_of_a_child_reaches_a_parent_that_has_none_itself() -> None:
    """Nothing in the parent's own steps says that there are secrets."""
    Path("child.yaml").write_text(CHILD)
    Path("main.yaml").write_text(
        HEAD
        + """
imports: [child.yaml]
steps:
  calls: {type: workflow, workflow: child, args: {key: some}}
  uses:
    type: command
    depends_on: calls
    exec: printf %s {{ outputs.calls.made | shell_escape }} | sha256sum
"""
    )
    assert app.start_run(app.load("main.yaml")).output("uses") == hashed("some-made")


def test_every_item_of_a_list_can_have_a_secret() -> None:
    """`*` stands for each; items get theirs."""
    Path("login").write_text('[{"name": "a", "key": "first-key"}, {"name": "b", "key": "second-key"}]')
    result = run(
        HEAD
        + """
steps:
  list: {type: command, exec: cat login, forEach: true, secret_outputs: ["*.key"]}
  each:
    type: command
    depends_on: list
    fanout: map
    exec: printf %s {{ item.key | shell_escape }} | sha256sum
"""
    )
    assert result.output("each") == [hashed("first-key"), hashed("second-key")]
    assert b"first-key" not in written()


def test_a_command_that_fails_shows_nothing_of_a_whole_output_that_is_secret() -> None:
    """What it printed would have been its output."""
    result = run(HEAD + "steps: {prints: {type: command, exec: 'cat login; exit 1', secret_outputs: ['.']}}")
    assert result.verdict == "NO-GO"
    assert b"tok-en" not in written() + repr(result).encode()


def test_a_command_doesnt_inherit_what_opens_other_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of what they sealed, and the store with its password."""
    monkeypatch.setenv("GONOGO_SEAL_KEY", KEY)
    monkeypatch.setenv("GONOGO_STORE", "postgresql://gonogo:pw@db.example/runs")
    monkeypatch.setenv("PGPASSWORD", "pw")
    monkeypatch.setenv("GONOGO_BLOBS", "/shared")
    counts = "steps: {a: {type: command, exec: 'env | grep -cE \"GONOGO_(SEAL_KEY|STORE|BLOBS)|PGPASSWORD\"; true'}}"
    assert run(HEAD + counts).output("a") == 0


def test_a_command_inherits_a_password_of_postgres_that_is_no_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps may have one of their own."""
    monkeypatch.delenv("GONOGO_STORE", raising=False)
    monkeypatch.setenv("PGPASSWORD", "pw-of-another")
    assert run(HEAD + "steps: {a: {type: command, exec: 'env | grep -c ^PGPASSWORD='}}").output("a") == 1


def test_a_secret_that_was_used_often_doesnt_keep_others_from_being_masked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each counts once."""
    monkeypatch.setattr(vault, "KNOWN_MAX", 2)
    Path("other").write_text('{"token": "other-thing"}')
    result = run(
        HEAD
        + "steps:"
        + LOGIN
        + """
  uses: {type: command, depends_on: login, exec: "echo {{ outputs.login.token | size }}"}
  more: {type: command, depends_on: uses, exec: cat other, secret_outputs: [token]}
  echoes: {type: command, depends_on: more, exec: "echo {{ outputs.more.token | shell_escape }}"}
"""
    )
    assert result.output("echoes") == "***"


def test_in_safe_mode_a_call_that_isnt_made_says_where_a_secret_came_from() -> None:
    """Its output is what it would have been given."""
    plan = app.loads(
        HEAD
        + "steps:"
        + LOGIN
        + """
  acts: {type: command, exec: "true {{ outputs.login.token | shell_escape }}", mutates: true, depends_on: login}
"""
    )
    result = app.start_run(plan, app.Start(safe_mode=True))
    assert result.output("acts")["inputs"]["exec"] == f"true '{SHORT}'"


def test_a_handle_in_the_arguments_of_a_tool_means_nothing() -> None:
    """A model may have read one somewhere."""

    async def uses_a_tool(call: Call, context: Context) -> Outcome:
        copied = call.names["outputs"]["login"]["token"]
        assert copied.startswith("[secret login.token ")
        used = await context.run_step("sends", {"x": copied}, number=1)
        assert isinstance(used, Done), used
        return Done()

    table = built_in([Provider(name="mine", config=Config, run=uses_a_tool)])
    plan = app.loads(
        HEAD
        + "steps:"
        + LOGIN
        + """
  never: {type: noop, if: "false", depends_on: login}
  sends: {type: command, depends_on: never, exec: "printf %s {{ args.x | shell_escape }} > sent"}
"""
    ).plan
    step = Step("model", "mine", depends_on=(Need((Edge("login"),)),))
    plan = replace(plan, steps={**plan.steps, "model": step})
    result = app.start_run(plan, options=app.Options(table=table))
    assert result.verdict == "GO", result.fault
    assert Path("sent").read_text() == SHORT


def test_memory_hands_secrets_on() -> None:
    """It holds handles like any other part of the state."""
    result = run(
        HEAD
        + "steps:"
        + LOGIN
        + """
  keeps: {type: memory, operation: set, key: t, value_js: outputs.login.token, depends_on: login}
  uses: {type: command, depends_on: keeps, exec: "printf %s {{ memory.default.t | shell_escape }} | sha256sum"}
"""
    )
    assert result.output("uses") == hashed(TOKEN)


def test_runs_in_memory_keep_secrets_too() -> None:
    """For embedding: gone with the process."""
    assert run(USES, runs=MemoryRuns()).output("uses") == hashed(f"Bearer {TOKEN}|{TOKEN}")


# --- crashes


CRASHING = """
import os, sys
from gonogo import app
last = int(sys.argv[1])
def crash(record):
    if record.seq == last:
        os._exit(9)
app.start_run(app.load("gonogo.yaml"), app.Start(run_id="r"), app.Options(sinks=(crash,)))
"""


def test_a_crash_at_any_record_loses_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value is kept before the record that holds its handle is, so whoever goes on finds it."""
    run(USES)
    count = len(app.open_run("r"))
    for last in range(count):
        folder = tmp_path / str(last)
        folder.mkdir()
        (folder / "gonogo.yaml").write_text(USES)
        (folder / "login").write_text(Path("login").read_text())
        ended = subprocess.run(
            [sys.executable, "-c", CRASHING, str(last)], cwd=folder, check=False, timeout=60
        )
        assert ended.returncode == 9
        monkeypatch.chdir(folder)
        result = app.resume_run("r")
        assert result.output("uses") == hashed(f"Bearer {TOKEN}|{TOKEN}"), last
        assert b"tok-en" not in written(), last


ASKS_FIRST = (
    HEAD
    + "steps:"
    + LOGIN
    + """
  asks: {type: human-input, prompt: "go on?", depends_on: login}
  uses:
    type: command
    depends_on: asks
    exec: printf %s {{ outputs.login.token | shell_escape }} | sha256sum
"""
)


@pytest.fixture
def parked() -> Callable[[], RunResult]:
    """A run that gave a secret and waits for a person before it uses it."""
    first = run(ASKS_FIRST)
    assert first.waiting == ("asks",)
    JsonlRuns(".gonogo/runs").inbox("r").put(AnswerGiven(step="asks", text="yes"))
    return lambda: app.resume_run("r")


def test_a_secret_that_is_gone_holds_the_run_for_a_person(parked: Callable[[], RunResult]) -> None:
    """The question says which one, why, and what to do; the call isn't made without it."""
    Path(".gonogo/runs/r/sealed").unlink()
    result = parked()
    assert (result.verdict, result.waiting) == ("HOLD", ("uses",))
    node = result.state.nodes["uses"][""]
    assert node.hold is not None
    assert node.hold.details == {"sealed": "login.token"}
    for part in (
        "uses needs the secret login.token",
        "sealed is gone",
        "'again'",
        "gonogo resume r --from login",
    ):
        assert part in node.hold.prompt


def test_once_it_is_back_the_run_goes_on_by_itself(parked: Callable[[], RunResult]) -> None:
    """Whoever resumes it looks again."""
    store = Path(".gonogo/runs/r/sealed")
    kept = store.read_bytes()
    store.unlink()
    assert parked().verdict == "HOLD"
    store.write_bytes(kept)
    assert parked().output("uses") == hashed(TOKEN)


def test_an_answer_never_stands_in_for_the_call(parked: Callable[[], RunResult]) -> None:
    """It takes 'again' and 'failed'; other words leave it waiting."""
    Path(".gonogo/runs/r/sealed").unlink()
    parked()
    with pytest.raises(UsageError, match="can.t be answered with .some output."):
        app.answer_run("r", "uses", "some output")
    JsonlRuns(".gonogo/runs").inbox("r").put(AnswerGiven(step="uses", text="some output"))
    assert parked().verdict == "HOLD"
    result = app.answer_run("r", "uses", "failed")
    assert result is not None
    assert result.verdict == "NO-GO"
    assert result.fault is not None
    assert result.fault.kind == "secret.unopened"


def test_the_step_can_be_run_again_instead(parked: Callable[[], RunResult]) -> None:
    """A new secret goes into a new store."""
    Path(".gonogo/runs/r/sealed").unlink()
    assert parked().verdict == "HOLD"
    result = app.run_again_from("r", app.Wish(steps=("login",)))
    assert result.waiting == ("asks",)
    result = app.answer_run("r", "asks", "yes")
    assert result is not None
    assert result.output("uses") == hashed(TOKEN)


def test_a_store_that_was_changed_holds_the_run_too(parked: Callable[[], RunResult]) -> None:
    """Another value under the same tag would be believed."""
    store = Path(".gonogo/runs/r/sealed")
    store.write_bytes(store.read_bytes().replace(b"tok-en", b"tok-in"))
    result = parked()
    assert result.verdict == "HOLD"
    assert "damaged" in str(result.state.nodes["uses"][""].hold)


def test_a_copy_of_a_run_has_no_secrets(tmp_path: Path) -> None:
    """`gonogo runs export` and the reports."""
    from gonogo.app.looking import export_run

    run(USES)
    export_run("r", tmp_path / "copy", app.Options())
    assert b"tok-en" not in written(tmp_path / "copy", but="")
    for verb in (
        ["show", "r"],
        ["show", "r", "--format", "json"],
        ["show", "r", "--records"],
        ["why", "r", "uses"],
    ):
        told = subprocess.run(
            [sys.executable, "-m", "gonogo", *verb], capture_output=True, text=True, check=False
        )
        assert "tok-en" not in told.stdout + told.stderr


# --- in Postgres


KEY = base64.b64encode(b"k" * 32).decode()


@pytest.mark.parametrize("form", ["table", "json", "markdown", "junit", "sarif"])
def test_no_report_of_a_run_shows_a_secret_or_a_tag(form: str) -> None:
    """On either stream; a handle is told by where it came from, so that nobody can copy one from there."""
    Path("gonogo.yaml").write_text(USES)
    command = [sys.executable, "-m", "gonogo", "run", "--format", form]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr
    told = ended.stdout + ended.stderr
    assert "tok-en" not in told
    assert re.search(r"\[secret \S+ [0-9a-f]{32}\]", told) is None


@pytest.mark.parametrize(
    "how", [["--format", "table"], ["--format", "json"], ["--records"], ["--explain", "all"]]
)
def test_what_a_contract_read_is_told_without_a_tag(how: list[str]) -> None:
    """In the failure of a guarantee that looked at a secret, and in the story of it."""
    text = HEAD + "steps:" + LOGIN.replace("}", ", guarantee: \"output.token === 'x'\"}")
    assert run(text).verdict == "NO-GO"
    command = [sys.executable, "-m", "gonogo", "show", "r", *how]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert SHORT in told
    assert re.search(r"\[secret \S+ [0-9a-f]{8}", told) is None


@pytest.fixture
def store(database: str, monkeypatch: pytest.MonkeyPatch) -> app.Options:
    """An empty database, and a key in the environment."""
    monkeypatch.setenv("GONOGO_SEAL_KEY", KEY)
    return app.Options(runs=database)


def rows(store: app.Options) -> str:
    """All that stands in the database."""
    with psycopg.connect(str(store.runs)) as connection:
        query = "select tablename from pg_tables where schemaname = current_schema()"
        tables = [name for (name,) in connection.execute(query)]
        found = [row for name in tables for row in connection.execute(f"select * from {name}")]
    return repr([bytes(part) if isinstance(part, memoryview) else part for row in found for part in row])


def test_in_postgres_a_crash_at_any_record_loses_no_secret_and_shows_none(store: app.Options) -> None:
    """Whichever worker goes on has the key, and the database has not."""
    app.start_run(app.loads(USES), app.Start(run_id="whole"), store)
    count = len(app.open_run("whole", store))
    Path("gonogo.yaml").write_text(USES)
    crashing = CRASHING.replace('"r"', "sys.argv[2]").replace(
        "app.Options(", "app.Options(runs=sys.argv[3], "
    )
    for last in range(count):
        arguments = [sys.executable, "-c", crashing, str(last), f"r{last}", str(store.runs)]
        assert subprocess.run(arguments, check=False, timeout=60).returncode == 9
        result = app.resume_run(f"r{last}", store)
        assert result.output("uses") == hashed(f"Bearer {TOKEN}|{TOKEN}"), last
    told = rows(store)
    assert "[secret login.token " in told
    assert "tok-en" not in told
    assert base64.b64encode(TOKEN.encode()).decode()[:12] not in told
    assert KEY not in told


def test_without_a_key_a_step_that_would_seal_is_not_called(
    store: app.Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what to do; what it would have done outside isn't done."""
    monkeypatch.delenv("GONOGO_SEAL_KEY")
    text = HEAD + "steps: {login: {type: command, exec: touch done, secret_outputs: [token]}}"
    result = app.start_run(app.loads(text), options=store)
    assert result.verdict == "NO-GO"
    assert result.fault is not None
    assert result.fault.kind == "secret.unkept"
    assert "GONOGO_SEAL_KEY isn't set" in result.fault.message
    assert not Path("done").exists()


@pytest.mark.parametrize(
    ("key", "why"), [(base64.b64encode(b"z" * 32).decode(), "isn't the key"), ("", "isn't set")]
)
def test_with_another_key_or_none_the_run_waits_for_a_person(
    store: app.Options, monkeypatch: pytest.MonkeyPatch, key: str, why: str
) -> None:
    """And goes on once it has the right one."""
    app.start_run(app.loads(ASKS_FIRST), app.Start(run_id="r"), store)
    PostgresRuns(str(store.runs)).inbox("r").put(AnswerGiven(step="asks", text="yes"))
    monkeypatch.setenv("GONOGO_SEAL_KEY", key)
    result = app.resume_run("r", store)
    assert (result.verdict, result.waiting) == ("HOLD", ("uses",))
    assert f"GONOGO_SEAL_KEY {why}" in str(result.state.nodes["uses"][""].hold)
    monkeypatch.setenv("GONOGO_SEAL_KEY", KEY)
    assert app.resume_run("r", store).output("uses") == hashed(TOKEN)
