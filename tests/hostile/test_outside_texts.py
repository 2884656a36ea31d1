"""Texts from outside through whole runs: into the shell, into expressions, and secrets on every way out."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.hostile.world import environment, gonogo, workflow

TITLES = [
    'x"; touch pwned; echo "',
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    "a\nb; touch pwned",
    "-rf",
    "{{ 7*7 }}",
    "${IFS}touch${IFS}pwned",
    r"\"; touch pwned #",
]
TOKEN = "s3cr3t-Value" + "-9911"
KEY = "-----BEGIN KEY-----\nabcdefghijkl\nmnopqrstuv12\n-----END KEY-----"
PASSWORD = json.dumps({"user": "alice-admin", "nested": {"pw": "hunter2-xyzzy"}})
ODD = 'a"b%c d&e/f?=xyz'
PRINTING = r"""
raw: {type: command, exec: "echo \"$API_TOKEN\"; echo \"$SSH_KEY\"; echo \"$DB_PASSWORD\"; echo \"$ODD_SECRET\""}
other: {type: command, exec: "printf %s \"xy$API_TOKEN\" | base64; printf %s \"$DB_PASSWORD\" | sed 's/,/,\\n  /g'"}
url: {type: command, exec: "echo https://user:$API_TOKEN@host/; echo a b {} $ONE_SECRET"}
error: {type: command, exec: "echo \"no: $API_TOKEN\" >&2; exit 3"}
values: {type: script, content: "return [env.API_TOKEN, JSON.stringify(env)]"}
text: {type: log, message: "{{ env.API_TOKEN }} {{ env | json }}"}
issue: {type: command, exec: "echo '{\"issues\": [{\"file\": \"a\", \"line\": 1, \"message\": \"'$API_TOKEN'\"}]}'"}
call: {type: http, url: "http://user:${API_TOKEN}@127.0.0.1:1/?k=${API_TOKEN}", body: "x"}
all: {type: command, exec: "env"}
"""
EXPRESSIONS = [
    "while (true) {}",
    "return 'x'.repeat(2 ** 30)",
    "return /^(a+)+$/.test('a'.repeat(40) + '!')",
    "return (function f() { return f() })()",
    "return new Promise(() => {})",
    "return outputs.constructor.constructor('return process')()",
    "Object.prototype.polluted = 1; return ({}).polluted",
    "let x = {}; x.x = x; return x",
    "let x = 1; for (let i = 0; i < 1e5; i++) x = [x]; return x",
    "throw new Error('x'.repeat(1e7))",
    "return this.constructor.constructor('return this')()",
]


def test_SEC_1_no_title_reaches_the_shell_as_code(tmp_path: Path) -> None:
    """Escaped, by env, as an item: the text itself arrives, and is never rendered a second time."""
    steps = r"""
titles: {type: script, forEach: true, content: "return JSON.parse(pr.body)"}
escaped: {type: command, parse: text, depends_on: titles, fanout: map, exec: "printf %s {{ item | shell_escape }}"}
by_env:
  {type: command, parse: text, depends_on: titles, fanout: map, env: {T: "{{ item }}"}, exec: "printf %s \"$T\""}
"""
    workflow(tmp_path, steps)
    pull = {"number": 1, "title": TITLES[0], "body": json.dumps(TITLES), "user": {"login": "x"}}
    pull |= {"head": {"ref": TITLES[1], "sha": "0" * 40}, "base": {"ref": "main"}}
    payload = {"action": "opened", "number": 1, "pull_request": pull, "repository": {"full_name": "a/b"}}
    (tmp_path / "payload.json").write_text(json.dumps(payload))
    how = gonogo("run", "--event", "pr_opened", "--payload", "payload.json", "--format", "json", cwd=tmp_path)
    steps_shown = json.loads(how.out)["steps"]
    assert steps_shown["escaped"]["output"] == TITLES
    assert steps_shown["by_env"]["output"] == TITLES
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize("quotes", ["", '"', "'"])
def test_SEC_1_what_can_not_be_made_safe_is_refused(tmp_path: Path, quotes: str) -> None:
    """With advice, and nothing runs."""
    command = json.dumps(f"touch ran; echo {quotes}{{{{ pr.title }}}}{quotes}")
    workflow(tmp_path, f"a: {{type: command, exec: {command}}}")
    how = gonogo("run", cwd=tmp_path)
    assert how.code == 2
    assert "pass it by env" in how.err
    assert not (tmp_path / "ran").exists()


def test_SEC_2_secrets_are_in_nothing_that_a_run_leaves(tmp_path: Path) -> None:
    """Streams, journal, blobs, reports: neither whole nor a field or line of one, raw, base64 or URL-encoded."""
    workflow(tmp_path, PRINTING)
    env = environment(API_TOKEN=TOKEN, SSH_KEY=KEY, DB_PASSWORD=PASSWORD, ODD_SECRET=ODD, ONE_SECRET="a")
    reports = [
        part for name in ("markdown", "junit", "sarif") for part in ("--format", name, "-o", f"r.{name}")
    ]
    how = gonogo("run", "-v", "--format", "json", *reports, cwd=tmp_path, env=env)
    assert how.code == 1
    assert "a b {} a" in how.said  # what is short or mere structure isn't masked
    left = [path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file()]
    everything = "\n".join([how.said, *left])
    coded = base64.b64encode(b"xy" + TOKEN.encode()).decode()[4:-4]
    for secret in (
        TOKEN,
        "abcdefghijkl",
        "mnopqrstuv12",
        "alice-admin",
        "hunter2-xyzzy",
        ODD,
        quote(ODD),
        coded,
    ):
        assert secret not in everything


@pytest.mark.slow
def test_EXP_4_hostile_expressions_cost_their_own_step_only(tmp_path: Path) -> None:
    """Each ends as an error of its step; a step after all of them is decided as ever."""
    hostile = [
        f"s{number}: {{type: script, content: {json.dumps(text)}}}" for number, text in enumerate(EXPRESSIONS)
    ]
    names = ", ".join(f"s{number}" for number in range(len(hostile)))
    good = f'good: {{type: noop, depends_on: [{names}], if: "always() && ({{}}).polluted === undefined"}}'
    workflow(tmp_path, "\n".join([*hostile, good]))
    how = gonogo("run", "--format", "json", cwd=tmp_path)
    assert how.left == ()
    steps = json.loads(how.out)["steps"]
    assert steps.pop("good")["outcome"] == "passed"
    assert {name for name, step in steps.items() if step["outcome"] == "passed"} <= {"s6", "s10"}
