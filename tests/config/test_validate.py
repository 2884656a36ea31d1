"""Keys, types and values of a file: what is wrong, where, and what to write instead."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from gonogo.errors import Problem
from gonogo.provider import Provider

HEAD = "version: '1'\nsteps:\n"


def one(problems: tuple[Problem, ...], code: str) -> Problem:
    """The only problem of a code."""
    (found,) = [problem for problem in problems if problem.code == code]
    return found


@pytest.mark.parametrize(
    ("step", "code", "word", "advice"),
    [
        ("fail_iff: output.n", "key.unknown", "'fail_iff'", "did you mean fail_if?"),
        ("garantee: output.n", "key.unknown", "'garantee'", "did you mean guarantee?"),
        ("depends-on: b", "key.unknown", "'depends-on'", "did you mean depends_on?"),
        ("retries: 3", "key.unknown", "'retries'", "on_fail: {retry: {max: …}}"),
        ("max_loops: 3", "key.unknown", "'max_loops'", "it belongs under routing:"),
        ("on_fail: {timeout: 3}", "key.unknown", "'timeout'", "it belongs directly under a step"),
        ("on_fail: {retry: {maximum: 3}}", "key.unknown", "'maximum'", "did you mean max?"),
        ("depends_on: nope", "reference.unknown", "'nope'", None),
        ("depends_on: deploi", "reference.unknown", "'deploi'", "did you mean deploy?"),
        ("on_fail: {goto: nope}", "reference.unknown", "'nope'", None),
        ("on_success: {run: [nope]}", "reference.unknown", "'nope'", None),
        ("on_success: {transitions: [{when: 'true', to: nope}]}", "reference.unknown", "'nope'", None),
        ("tag_filter: {}", "key.unknown", "'tag_filter'", "it belongs at the top level"),
        ("backoff: {}", "key.unknown", "'backoff'", "it belongs under retry:"),
        ("max_workflow_depth: 1", "key.unknown", "'max_workflow_depth'", "it belongs under limits:"),
        ("exec: ls", "key.unknown", "'exec'", None),
        ("needs: b", "key.unknown", "'needs'", "did you mean depends_on?"),
    ],
)
def test_CLI_1_a_misspelt_or_misplaced_key_is_refused_with_advice(
    refuse: Any, step: str, code: str, word: str, advice: str | None
) -> None:
    """CLI-1: file, line, the key, and the nearest valid key or the place it belongs."""
    problem = one(refuse(f"{HEAD}  deploy: {{type: noop}}\n  a:\n    type: noop\n    {step}\n"), code)
    assert problem.place is not None
    assert (problem.place.file, problem.place.line) == ("<text>", 6)
    assert word in problem.message
    assert advice is None or advice in (problem.suggestion or "")


def test_CLI_1_a_steps_key_at_the_top_level_is_refused(refuse: Any) -> None:
    """CLI-1: `assume` at top level."""
    problem = one(refuse(f"assume: 'true'\n{HEAD}  a: {{type: noop}}\n"), "key.unknown")
    assert problem.suggestion == "it belongs directly under a step"


def test_CLI_1_an_unknown_type_is_refused(refuse: Any) -> None:
    """CLI-1: a check of unknown type."""
    problem = one(refuse(f"{HEAD}  a: {{type: comand, exec: ls}}\n"), "type.unknown")
    assert problem.suggestion == "did you mean command?"


def test_a_type_of_a_later_version_is_not_called_unknown(refuse: Any) -> None:
    """The table knows what is planned."""
    problem = one(refuse(f"{HEAD}  a: {{type: claude-code, prompt: x}}\n"), "type.unavailable")
    assert "isn't available" in problem.message


def test_a_type_that_needs_what_is_not_installed_says_how_to_install_it(
    refuse: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the file is read, not when the step is called."""
    monkeypatch.setattr("gonogo.config.drafts.find_spec", lambda name: None)
    problem = one(refuse(f"{HEAD}  a: {{type: mcp, command: x, method: y}}\n"), "type.not_installed")
    assert problem.message == "a step of type mcp needs the package 'mcp', which isn't installed"
    assert problem.suggestion == "pip install 'gonogo[mcp]'"


SERVED = "provider: mock, mock: {answers: [x]}, prompt: hi, mcp_servers: {s: {command: x, tools: {t: {}}}}"


@pytest.mark.parametrize("type_", ["type: ai, ", ""])
def test_a_key_that_needs_what_is_not_installed_says_how_to_install_it(
    refuse: Any, monkeypatch: pytest.MonkeyPatch, type_: str
) -> None:
    """At the key: without it the type needs nothing more."""
    monkeypatch.setattr("gonogo.config.drafts.find_spec", lambda name: None)
    problem = one(refuse(f"{HEAD}  a: {{{type_}{SERVED}}}\n"), "type.not_installed")
    assert (
        problem.message == "a step of type ai with mcp_servers needs the package 'mcp', which isn't installed"
    )
    assert (problem.path, problem.suggestion) == ("steps.a.mcp_servers", "pip install 'gonogo[mcp]'")


def test_a_type_needs_nothing_for_a_key_that_a_step_has_not(
    load_text: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most ai steps start no server."""
    monkeypatch.setattr("gonogo.config.drafts.find_spec", lambda name: None)
    assert load_text(f"{HEAD}  a: {{type: ai, {SERVED.partition(', mcp')[0]}}}\n")


def test_a_step_without_a_type_gets_a_guess(refuse: Any) -> None:
    """A.4: the default type is ai."""
    assert one(refuse(f"{HEAD}  a: {{exec: ls}}\n"), "type.missing").suggestion == "add type: command"


def test_all_problems_are_listed_in_one_go(refuse: Any) -> None:
    """CLI-1: also those of one step, inside blocks, and of expressions."""
    problems = refuse(
        """
        fail_fas: true
        steps:
          a: {type: noop, fail_iff: x, if: outptus.a, on_fail: {timeout: 1, goto: zz, retry: {max: x}}}
          b: {type: nope, depends_on: [c, d], tags: [1]}
        version: 1
        """
    )
    assert [problem.code for problem in problems] == [
        "key.unknown",
        "key.unknown",
        "expression.name",
        "key.unknown",
        "reference.unknown",
        "value.type",
        "type.unknown",
        "reference.unknown",
        "reference.unknown",
        "value.type",
    ]


def test_problems_are_in_file_order(refuse: Any) -> None:
    """A person reads from the top."""
    lines = [
        problem.place.line for problem in refuse(f"{HEAD}  a: {{x: 1}}\n  b: {{y: 1}}\n  c: {{type: no}}\n")
    ]
    assert lines == sorted(lines)


def test_x_keys_are_free(load_text: Any) -> None:
    """CLI-1: at the top, in a step and in its blocks."""
    loaded = load_text(
        """
        x-owner: me
        steps:
          a: {type: noop, x-note: {any: thing}, on_success: {x-why: 1, goto_js: 'null'}}
        """
    )
    assert [problem for problem in loaded.problems if problem.code.startswith("key.")] == []


def test_YML_1_yes_is_no_boolean_and_true_is_suggested(refuse: Any) -> None:
    """YML-1: a type error that suggests `true`."""
    problem = one(refuse(f"{HEAD}  a: {{type: noop, continue_on_failure: yes}}\n"), "value.type")
    assert problem.message == "expected true or false, found the text 'yes'"
    assert problem.suggestion == "write true"


def test_YML_1_words_stay_as_written(load_text: Any) -> None:
    """YML-1: trigger list, tags and environment."""
    step = load_text(
        """
        steps:
          greet:
            type: command
            on: [pr_opened]
            tags: [on, off, yes, no, y, n, NO, Off]
            env: { COUNTRY: no, MODE: off, ANSWER: yes }
            exec: printf '%s' "$COUNTRY"
        """
    ).plan.steps["greet"]
    assert step.on == ("pr_opened",)
    assert step.tags == ("on", "off", "yes", "no", "y", "n", "NO", "Off")
    assert step.env == {"COUNTRY": "no", "MODE": "off", "ANSWER": "yes"}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("on: pr_opened", "expected a list"),
        ("on: [push]", "expected one of pr_opened"),
        ("forEach: 1", "expected true or false"),
        ("fanout: all", "expected one of map or reduce"),
        ("criticality: high", "expected one of external"),
        ("tags: ['a b']", "expected text of the form"),
        ("tags: [1]", "expected text, found the number 1"),
        ("timeout: soon", "expected a duration"),
        ("timeout: -1", "expected a duration"),
        ("timeout: true", "expected a duration"),
        ("forEach_concurrency: 0", "expected 1 to 10000"),
        ("schema: 5", "expected a JSON Schema"),
        ("env: {A: [1]}", "expected text, a number, true or false"),
        ("env: {A: }", "expected text, a number, true or false"),
        ("assume: ", "expected"),
        ("on_fail: {retry: {max: 1, retry_on: [timeout]}}", "expected one of transient or logical"),
        ("on_fail: {retry: {max: 1.5}}", "expected a whole number"),
        ("on_fail: {retry: {}}", "the key 'max' is missing"),
        ("on_success: {run: [{with: {a: 1}}]}", "expected either step or workflow"),
        ("start: later", "expected one of auto or routed"),
        ("group: 5", "expected text, found the number 5"),
    ],
)
def test_types_are_strict(refuse: Any, key: str, message: str) -> None:
    """A.6 D: every value is checked."""
    problems = refuse(f"{HEAD}  a:\n    type: noop\n    {key}\n")
    assert message in problems[0].message
    assert problems[0].place.line == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("routing: {max_loops: many}", "expected a whole number"),
        ("max_parallelism: 0", "expected 1 to 10000"),
        ("safety: high", "expected one of off, standard or strict"),
        ("mode: compat", "expected native"),
        ("tag_filter: {include: x}", "expected a list"),
        ("memory: {storage: disk}", "expected one of memory or file"),
        ("failure_conditions: {a: {message: x}}", "the key 'condition' is missing"),
    ],
)
def test_the_top_level_is_strict_too(refuse: Any, text: str, message: str) -> None:
    """A.3 D."""
    found = refuse(f"{text}\n{HEAD}  a: {{type: noop}}\n")[0].message
    assert message in found.replace("one of native", "native")


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("1500", 1.5), ("500ms", 0.5), ("30s", 30.0), ("5m", 300.0), ("1.5s", 1.5), ("2h", 7200.0)],
)
def test_durations_are_milliseconds_or_have_a_unit(load_text: Any, written: str, seconds: float) -> None:
    """H31: E.1 D."""
    plan = load_text(f"{HEAD}  a: {{type: noop, timeout: {written}}}\n").plan
    assert plan.steps["a"].timeout_s == pytest.approx(seconds)


def test_a_missing_version_is_an_error_with_the_fix(refuse: Any) -> None:
    """A.6."""
    problem = one(refuse("steps:\n  a: {type: noop, exek: 'version:'}\n"), "key.missing")
    assert problem.suggestion == 'add version: "1.0" at the top'


@pytest.mark.parametrize("text", ["version: '1'\n", "version: '1'\nsteps: {}\n", "version: '1'\nsteps: []\n"])
def test_a_file_without_steps_is_refused(refuse: Any, text: str) -> None:
    """A.6: neither checks nor steps."""
    assert len(refuse(text)) == 1


def test_a_version_may_be_a_number(load_text: Any) -> None:
    """`version: 1.0` means the text."""
    assert list(load_text("version: 1.0\nsteps: {a: {type: noop}}\n").plan.steps) == ["a"]


@pytest.mark.parametrize(
    "name",
    ["a/b", "a#1", "a[0]", "a@b", "a|b", '"a\\u0007"', '"a\\u202e"', '"\\u200b"', "' a'", "''", "k" * 101],
)
def test_step_names_that_would_break_a_scope_are_refused(refuse: Any, name: str) -> None:
    """Scopes are text like `list#1[3]/inner#1[0]`."""
    assert refuse(f"{HEAD}  {name}: {{type: noop}}\n")[0].code == "step.name"


@pytest.mark.parametrize("name", ["a.b", "a-b", "über", "a b", "k" * 100, "1"])
def test_other_step_names_are_fine(load_text: Any, name: str) -> None:
    """Text is text."""
    assert list(load_text(f"{HEAD}  {name}: {{type: noop}}\n").plan.steps) == [name]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("timeout: -1", "a duration from 0 to 366 days"),
        ("timeout: 0", "a duration of more than 0"),
        ("timeout: 9000h", "a duration from 0 to 366 days"),
        ("max_runs: 99999999999", "-1000000000 to 1000000000"),
        ("loop_budget: -1", "0 to 100000"),
        ("forEach_concurrency: -2", "1 to 10000"),
        ("forEach_concurrency: 1000000", "1 to 10000"),
        ("on_fail: {retry: {max: -1}}", "0 to 1000"),
        ("on_fail: {retry: {max: 5000}}", "0 to 1000"),
        ("on_fail: {retry: {max: 1, backoff: {delay_ms: -1}}}", "a duration from 0 to 366 days"),
        ("on_fail: {retry: {max: 1, backoff: {delay_ms: 25h}}}", "a delay from 0 to 24 hours"),
        ("on_fail: {retry: {max: 1, backoff: {max_delay_ms: 25h}}}", "a delay from 0 to 24 hours"),
        (
            "on_fail: {retry: {max: 1, backoff: {delay_ms: 2m}}}",
            "120 s, is more than max_delay_ms allows, 60 s",
        ),
        ("on_fail: {retry: {max: 1, backoff: {jitter: 1.5}}}", "0 to 1"),
        ("on_fail: {retry: {max: 1, backoff: {jitter: -0.5}}}", "0 to 1"),
    ],
)
def test_numbers_of_a_step_have_a_range_that_is_told(refuse: Any, text: str, said: str) -> None:
    """A.6, law 2: neither negative nor absurd, whatever the safety."""
    for top in ("", "safety: 'off'\n"):
        [problem] = refuse(f"{top}{HEAD}  a: {{type: noop, {text}}}\n")
        assert said in problem.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("routing: {max_loops: -1}", "0 to 100000"),
        ("limits: {max_workflow_depth: 1000}", "1 to 100"),
        ("limits: {max_items: 0}", "1 to 10000000"),
        ("max_parallelism: 99999", "1 to 10000"),
        ("budget: {time: 0}", "a duration of more than 0"),
        ("budget: {calls: -1}", "0 to 1000000000"),
        ("budget: {money: -0.5}", "0 to 1000000000"),
    ],
)
def test_numbers_of_a_file_have_a_range_that_is_told(refuse: Any, text: str, said: str) -> None:
    """A.6, law 2: the message says what is allowed."""
    [problem] = refuse(f"{text}\n{HEAD}  a: {{type: noop}}\n")
    assert said in problem.message


def test_keys_outside_of_our_scope_are_noted(warn: Any) -> None:
    """A.3, A.4: accepted, and it is said that they do nothing."""
    found = warn("slack: {a: 1}\ntask_x: 1\n" + HEAD + "  a: {type: noop, session_mode: clone}\n")
    assert [(note.code, note.severity) for note in found] == [("key.out_of_scope", "info")] * 3


def test_a_providers_own_keys_are_checked_with_their_places(refuse: Any) -> None:
    """Provider Config errors are problems like any other."""
    problem = one(refuse(f"{HEAD}  a: {{type: log, message: x, level: loud}}\n"), "value.invalid")
    assert problem.path == "steps.a.level"
    assert (problem.place.line, problem.place.column) == (3, 37)


def test_a_providers_types_are_strict(refuse: Any) -> None:
    """`include_metadata: yes` is text."""
    problem = one(refuse(f"{HEAD}  a: {{type: log, message: x, include_metadata: yes}}\n"), "value.type")
    assert problem.suggestion == "write true"


class Counted(Struct, frozen=True, forbid_unknown_fields=True):
    """A type whose number may be a template."""

    n: int


async def _never(call: Any, context: Any) -> Any:
    raise NotImplementedError


class OneType:
    """A table with one type."""

    def get(self, name: str) -> Provider:
        """Always the same."""
        return Provider(name=name, config=Counted, run=_never, templates=frozenset({"n"}))

    def names(self) -> tuple[str, ...]:
        """Its name."""
        return ("counted",)


def test_a_provider_key_that_holds_a_template_is_left_to_rendering(load_text: Any, refuse: Any) -> None:
    """Types are lenient where the value is template text, and only there."""
    text = f"{HEAD}  a: {{type: counted, n: '%s'}}\n"
    plan = load_text(text % "{{ outputs.a.n }}", providers=OneType()).plan
    assert plan.steps["a"].config == {"n": "{{ outputs.a.n }}"}
    assert "expected a whole number" in refuse(text % "three", providers=OneType())[0].message


@pytest.mark.parametrize(
    ("value", "codes"), [("b", []), ("self", []), ("nope", ["reference.unknown"]), ("true", ["key.needs"])]
)
def test_a_reused_session_names_a_step(load_text: Any, refuse: Any, value: str, codes: list[str]) -> None:
    """A.4: needs depends_on when true; a text must name a step."""
    text = f"{HEAD}  a: {{type: noop, reuse_ai_session: {value}}}\n  b: {{type: noop}}\n"
    if codes:
        assert [problem.code for problem in refuse(text)] == codes
    else:
        load_text(text)


@pytest.mark.parametrize("key", ["seed: x", "clock: virtual", "max_ai_concurrency: 2"])
def test_keys_of_the_file_that_do_not_act_yet_say_so(warn: Any, key: str) -> None:
    """A.7: never silent."""
    assert [problem.code for problem in warn(f"{key}\n{HEAD}  a: {{type: noop}}\n")] == ["key.not_yet"]


def test_YML_2_a_key_given_twice_hides_no_other_problem(refuse: Any) -> None:
    """YML-2: both lines, and everything else that is wrong with the file, also in what comes after it."""
    text = f"{HEAD}  a:\n    type: noop\n    type: log\n    retries: 3\n  b: {{type: command}}\n"
    problems = refuse(text)
    assert [problem.code for problem in problems] == ["yaml.duplicate", "key.unknown", "key.missing"]
    assert "on line 4 and on line 5" in problems[0].message


def test_a_tag_or_number_that_cannot_be_read_hides_no_other_problem(refuse: Any) -> None:
    """Told beside the rest."""
    text = f"{HEAD}  a: {{type: noop, group: !mine g, retries: 3}}\n  b: {{type: noop, x-n: .inf}}\n"
    assert [problem.code for problem in refuse(text)] == ["yaml.tag", "key.unknown", "yaml.value"]


@pytest.mark.parametrize(
    ("keys", "suggestion"),
    [
        ("type: command, exec: 5", 'write "5"'),
        ("type: noop, tags: fast", "write [fast]"),
        ("type: noop, max_runs: '3'", "write 3"),
        ("run: make", "write exec: in place of run:, and add type: command"),
        ("type: noop, goto: b", "it belongs under on_fail: or on_success:"),
    ],
)
def test_advice_says_what_to_do_with_the_words_it_gives(refuse: Any, keys: str, suggestion: str) -> None:
    """A value alone leaves open whether it is what was found or what is to be written."""
    (problem,) = refuse(f"{HEAD}  a: {{{keys}}}\n")
    assert problem.suggestion == suggestion


def test_steps_that_are_a_list_are_told_to_be_a_map(refuse: Any) -> None:
    """Other systems have lists of steps."""
    problem = one(refuse("version: '1.0'\nsteps:\n  - {name: a, run: ls}\n"), "value.type")
    assert "NAME: {type: command" in problem.suggestion


@pytest.mark.parametrize("given", ["3", "string", "[a]"])
def test_an_input_that_is_no_mapping_is_told_by_its_name(refuse: Any, given: str) -> None:
    """Not by a key that the author never wrote."""
    (problem,) = refuse(f"version: '1.0'\ninputs: {{n: {given}}}\nsteps: {{a: {{type: noop}}}}\n")
    assert "'n' needs a mapping" in problem.message


def test_an_input_with_nothing_behind_its_name_takes_anything(load_text: Any) -> None:
    """`inputs: {n: }`."""
    assert load_text("inputs:\n  n:\nsteps: {a: {type: noop}}\n").plan.inputs["n"]["required"] is True
