"""command: what an ending means."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import ValidationError

from gonogo.provider import Done, Failed, Outcome
from gonogo.testing import ScriptedContext

Do = Callable[..., Outcome]


def test_the_output_is_what_it_printed(do: Do) -> None:
    """E.2 R4: JSON when it is JSON; the exit code is in the meta, never in the output."""
    outcome = do("command", {"exec": "echo '{\"a\": 1}'"})
    assert isinstance(outcome, Done)
    assert outcome.output == {"a": 1}
    assert outcome.meta["exit_code"] == 0


@pytest.mark.parametrize(
    ("printed", "output"),
    [("", ""), ("5", 5), ("[]", []), ('[{"a":1}]', [{"a": 1}]), ("hi there", "hi there")],
)
def test_I1_15_nothing_collapses(do: Do, printed: str, output: Any) -> None:
    """I.1 row 15 and E.2 R8 D."""
    assert do("command", {"exec": f"printf '%s' '{printed}'"}).output == output  # type: ignore[union-attr]


def test_text_is_content_too(do: Do) -> None:
    """E.2 R11."""
    assert do("command", {"exec": "echo hi"}).content == "hi"  # type: ignore[union-attr]


def test_parse_text_guesses_nothing(do: Do) -> None:
    """`parse: text`."""
    assert do("command", {"exec": "echo 5", "parse": "text"}).output == "5"  # type: ignore[union-attr]


def test_parse_json_fails_on_anything_else(do: Do) -> None:
    """`parse: json` must hold; the command was done all the same."""
    outcome = do("command", {"exec": "echo '{a: 1}'", "parse": "json"})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("command.output", "logical")
    assert (outcome.output, outcome.effect) == ("{a: 1}", "done")


def test_E2_R3_an_exit_code_is_a_failure_with_what_is_known(do: Do) -> None:
    """E.2 R3, H12: `exit_code` in output and meta; message from stderr."""
    outcome = do("command", {"exec": "echo out; echo broken >&2; exit 7"})
    assert isinstance(outcome, Failed)
    assert outcome.output == {
        "error": True,
        "exit_code": 7,
        "message": "broken",
        "stdout": "out",
        "text": "out",
    }
    assert outcome.meta["exit_code"] == 7
    assert outcome.fault.kind == "command.exit"
    assert outcome.fault.rule_id == "step/command/execution_error"
    assert (outcome.fault.message, outcome.fault.cause) == ("broken", "exit code 7")


def test_E2_R3_a_silent_failure_names_the_code(do: Do) -> None:
    """Without stderr the exit code is the message."""
    outcome = do("command", {"exec": "exit 3"})
    assert isinstance(outcome, Failed)
    assert outcome.fault.message == "the command failed: exit code 3"


def test_C6_a_failing_command_is_transient(do: Do) -> None:
    """C.9 R5: execution counts as transient, so `on_fail.retry` acts on it."""
    outcome = do("command", {"exec": "exit 1"})
    assert isinstance(outcome, Failed)
    assert outcome.fault.transient


def test_an_end_by_signal_is_named(do: Do) -> None:
    """The cause is the signal, not a number to look up."""
    outcome = do("command", {"exec": "kill -9 $$"})
    assert isinstance(outcome, Failed)
    assert outcome.fault.cause == "ended by SIGKILL"
    assert outcome.meta["signal"] == "SIGKILL"


def test_E1_a_timeout_keeps_the_output_so_far(do: Do) -> None:
    """E.1: `{error, timeout, message, text}`, transient."""
    outcome = do("command", {"exec": "echo so far; sleep 20"}, timeout_s=0.2)
    assert isinstance(outcome, Failed)
    message = "the command took longer than 0.2 s and was ended"
    assert outcome.output == {"error": True, "timeout": True, "message": message, "text": "so far\n"}
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("command.timeout", "transient")
    assert outcome.fault.rule_id == "step/command/timeout"
    assert outcome.effect == "unknown"


def test_SUB_1_a_process_left_behind_is_a_warning(do: Do, context: ScriptedContext) -> None:
    """SUB-1, fourth: success at once, with a warning in the log and in the meta."""
    outcome = do("command", {"exec": "sleep 30 & echo fine"})
    assert isinstance(outcome, Done)
    assert outcome.output == "fine"
    assert outcome.meta["warnings"] == ["1 process left running by the command, ended"]
    assert context.logged == [("warn", "1 process left running by the command, ended")]


def test_SUB_3_stdin_is_empty_unless_given(do: Do) -> None:
    """SUB-3."""
    assert do("command", {"exec": "cat; echo end"}).output == "end"  # type: ignore[union-attr]
    assert do("command", {"exec": "cat", "stdin": "from the config"}).output == "from the config"  # type: ignore[union-attr]


def test_BIG_1_large_data_is_refused_before_the_start(do: Do) -> None:
    """BIG-1: logical, nothing done, and the way out in the message."""
    for config, env in (({"exec": "echo " + "x" * 300_000}, {}), ({"exec": "true"}, {"D": "x" * 300_000})):
        outcome = do("command", config, env=env)
        assert isinstance(outcome, Failed)
        assert (outcome.fault.kind, outcome.fault.fault_class) == ("command.too_large", "logical")
        assert "`stdin:`" in outcome.fault.message
        assert outcome.effect == "none"


def test_BIG_1_stdin_takes_every_byte(do: Do) -> None:
    """BIG-1, step c."""
    assert do("command", {"exec": "wc -c", "stdin": "x" * 300_000}).output == 300_000  # type: ignore[union-attr]


def test_UNI_1_the_raw_bytes_can_be_had(do: Do) -> None:
    """UNI-1: text by the rule, the bytes beside it."""
    outcome = do("command", {"exec": r"printf 'caf\351\nlast line\n'"}, env={"LANG": "C"})
    assert isinstance(outcome, Done)
    assert outcome.output == "caf\ufffd\nlast line"
    assert base64.b64decode(outcome.meta["stdout_base64"]) == b"caf\xe9\nlast line\n"


def test_UNI_1_a_file_name_that_is_no_utf8_is_listed(do: Do, tmp_path: Path) -> None:
    """UNI-1: odd names in the working folder."""
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/n\xff")).touch()
    assert do("command", {"exec": "ls"}).output == "n\ufffd"  # type: ignore[union-attr]


def test_a_cut_output_stays_text(do: Do, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody guesses at JSON with a hole; the true size is in the meta."""
    outcome = do("command", {"exec": "head -c 9000000 /dev/zero | tr '\\0' 5"})
    assert isinstance(outcome, Done)
    assert outcome.meta["stdout_bytes"] == 9_000_000
    assert "of 9000000 bytes left out" in outcome.output


def test_the_environment_is_ours_under_the_steps(do: Do, monkeypatch: pytest.MonkeyPatch) -> None:
    """E.2 R2: process env, then config and step env."""
    monkeypatch.setenv("FROM_PROCESS", "p")
    monkeypatch.setenv("BOTH", "p")
    outcome = do("command", {"exec": 'echo "$FROM_PROCESS $BOTH $ONLY"'}, env={"BOTH": "s", "ONLY": "é"})
    assert outcome.output == "p s é"  # type: ignore[union-attr]


def test_SEC_1_a_value_in_env_is_never_code(do: Do, tmp_path: Path) -> None:
    """SEC-1: the advised way holds for each hostile value."""
    for value in (
        'x"; touch pwned; echo "',
        "$(touch pwned)",
        "`touch pwned`",
        "'; touch pwned; '",
        "-rf",
        "{{ 7*7 }}",
    ):
        outcome = do("command", {"exec": 'printf "%s" "$TITLE"', "parse": "text"}, env={"TITLE": value})
        assert outcome.output == value  # type: ignore[union-attr]
    assert not (tmp_path / "pwned").exists()


def test_a_command_can_name_its_intent(do: Do) -> None:
    """Semantics 17: the key is at hand for a far side that honours it."""
    assert do("command", {"exec": "echo $GONOGO_IDEMPOTENCY_KEY"}, key="k-7").output == "k-7"  # type: ignore[union-attr]


def test_cwd_starts_at_the_working_directory(do: Do, tmp_path: Path) -> None:
    """A relative `cwd` is below the folder gonogo was started in."""
    (tmp_path / "sub").mkdir()
    assert do("command", {"exec": "pwd", "cwd": "sub"}).output == str(tmp_path / "sub")  # type: ignore[union-attr]


def test_a_missing_cwd_starts_nothing(do: Do) -> None:
    """Logical: it won't be there the next time."""
    outcome = do("command", {"exec": "true", "cwd": "none"})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.fault_class, outcome.effect) == (
        "command.start",
        "logical",
        "none",
    )


def test_E2_R9_issues_are_taken_from_the_output(do: Do) -> None:
    """E.2 R9."""
    outcome = do("command", {"exec": """echo '{"issues": [{"message": "m", "line": 3}], "n": 1}'"""})
    assert isinstance(outcome, Done)
    assert outcome.output == {"n": 1}
    assert [(issue.message, issue.line) for issue in outcome.issues] == [("m", 3)]


def test_E2_R9_a_producer_of_items_keeps_its_issues(do: Do) -> None:
    """E.2 R9: not for forEach."""
    outcome = do("command", {"exec": """echo '{"issues": [{"message": "m"}]}'"""}, for_each=True)
    assert outcome.output == {"issues": [{"message": "m"}]}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "config", [{}, {"exec": ""}, {"exec": "true", "parse": "yaml"}, {"exec": "true", "shell": "x"}]
)
def test_a_wrong_config_is_refused(do: Do, config: dict[str, Any]) -> None:
    """At load, not at run."""
    with pytest.raises(ValidationError):
        do("command", config)


def test_a_command_that_is_silent_on_stderr_is_told_by_its_last_lines(do: Do) -> None:
    """Many test tools report on stdout alone."""
    outcome = do("command", {"exec": "echo F test_x; echo 3 failed, 2 passed; exit 1", "parse": "text"})
    assert isinstance(outcome, Failed)
    assert (
        outcome.fault.message
        == "the command failed: exit code 1; it said last: F test_x | 3 failed, 2 passed"
    )
