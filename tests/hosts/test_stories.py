"""Whole runs through the local host, in memory and on disk alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gonogo import app
from gonogo.core.events import CallDone, CallFailed, Evaluated, RunStarted
from gonogo.core.plan import Plan
from gonogo.errors import UsageError
from gonogo.hosts.base import LogLine, Question, RunResult
from gonogo.journal.records import Record
from gonogo.journal.store import Runs

Go = Callable[..., RunResult]


def outcomes(result: RunResult) -> dict[str, str | None]:
    """Outcome by step."""
    return {name: nodes[""].outcome for name, nodes in result.state.nodes.items() if "" in nodes}


def records_of(runs: Runs, result: RunResult) -> list[Record]:
    """The journal of a run."""
    return runs.read(result.run_id).records


def test_a_chain_of_different_types_is_go(go: Go) -> None:
    """Commands, templates, scripts and contracts work together."""
    result = go("""
steps:
  count:
    type: command
    exec: |
      printf '{"n": 3}'
  say:
    type: log
    message: "n is {{ outputs.count.n }}"
    depends_on: count
    if: outputs.count.n > 2
  add:
    type: script
    content: return outputs.count.n + 1
    depends_on: say
    guarantee: output === 4
""")
    assert (result.verdict, result.exit_code) == ("GO", 0)
    assert set(outcomes(result).values()) == {"passed"}
    assert result.output("add") == 4


def test_a_failing_step_is_no_go_and_says_why(go: Go) -> None:
    """The fault of the first failure is the run's."""
    result = go("""
steps:
  bad: {type: command, exec: "exit 7"}
  after: {type: noop, depends_on: bad}
""")
    assert (result.verdict, result.exit_code, result.because) == ("NO-GO", 1, ("bad",))
    assert result.fault is not None
    assert result.fault.kind == "command.exit"
    assert outcomes(result)["after"] == "skipped"


def test_the_journal_alone_tells_the_run(go: Go, runs: Runs) -> None:
    """Records count from 0 without gaps, the first starts the run, times never go back."""
    result = go("steps:\n  a: {type: noop}\n  b: {type: noop, depends_on: a}\n")
    records = records_of(runs, result)
    assert [record.seq for record in records] == list(range(len(records)))
    assert isinstance(records[0].event, RunStarted)
    times = [record.event.at for record in records]
    assert times == sorted(times)


def test_rendered_inputs_are_in_the_attempts_record(go: Go, runs: Runs) -> None:
    """Semantics 13: what a template gave is part of the record; a value is never rendered twice (SEC-1)."""
    result = go('steps:\n  say: {type: log, message: "hello {{ inputs.who }}"}\n', inputs={"who": "{{ 7 }}"})
    done = [record.event for record in records_of(runs, result) if isinstance(record.event, CallDone)]
    assert done[0].inputs == {"message": "hello {{ 7 }}"}


def test_a_broken_template_fails_its_step_only(go: Go) -> None:
    """Semantics 13: rendering is bounded; the step fails before it was started."""
    result = go("""
steps:
  endless: {type: log, message: "{% for i in (1..1000000) %}x{% endfor %}"}
  other: {type: noop}
""")
    assert outcomes(result) == {"endless": "failed", "other": "passed"}
    assert result.fault is not None
    assert result.fault.kind == "template"


def test_an_environment_reference_is_filled_in_at_the_last_moment(go: Go, tmp_path: Path) -> None:
    """E.1: `${{ env.X }}`, `${X}` and `$X` in a step's env; an unset one stays, with a warning."""
    result = go(
        """
env: {SHARED: "from the workflow"}
steps:
  show:
    type: command
    exec: printf '%s|' "$A" "$B" "$C" "$D" "$SHARED"
    env: {A: "${{ env.HERE }}", B: "${HERE}", C: "$HERE!", D: "$NOT_SET_HERE"}
""",
        env={"HERE": "x"},
    )
    assert result.output("show") == "x|x|x!|$NOT_SET_HERE|from the workflow|"


def test_an_unset_reference_is_told(go: Go, logged: list[LogLine]) -> None:
    """E.1 D: unresolved is a warning."""
    go('steps:\n  show: {type: command, exec: "true", env: {D: "$NOT_SET_HERE"}}\n')
    assert [line.text for line in logged if line.level == "warn"] == [
        "NOT_SET_HERE is named, but isn't set; the text stays as written"
    ]


def test_an_unset_reference_is_an_error_under_strict_safety(go: Go) -> None:
    """E.1 D: under `safety: strict` an unresolved reference fails the step before it starts."""
    result = go(
        'safety: strict\nsteps:\n  show: {type: command, exec: "touch ran", env: {D: "$NOT_SET_HERE"}}\n'
    )
    assert result.verdict == "NO-GO"
    assert not Path("ran").exists()


def test_data_in_env_is_never_taken_for_a_reference(go: Go) -> None:
    """SEC-1: a value that a template gave is not looked at again."""
    result = go(
        "steps:\n"
        '  show: {type: command, exec: \'printf %s "$TITLE"\', env: {TITLE: "{{ pr.title }} by $WHO"}}\n',
        context={"pr": {"title": "$HOME ${{ env.PATH }} {{ 7 }}"}},
        env={"WHO": "me"},
    )
    assert result.output("show") == "$HOME ${{ env.PATH }} {{ 7 }} by me"


def test_a_schema_is_checked_before_dependents_see_the_output(go: Go) -> None:
    """C.7 R2: an output that doesn't fit fails the step; the message names the path."""
    result = go("""
steps:
  give:
    type: script
    content: "return {n: 'three'}"
    schema: {type: object, properties: {n: {type: integer}}}
""")
    assert result.fault is not None
    assert result.fault.kind == "contract.schema"
    assert result.fault.message.startswith("n: ")


def test_a_large_output_is_whole_for_those_who_read_it(go: Go, runs: Runs) -> None:
    """Architecture 2.7: above 256 KiB only the journal's line holds a reference; state and records have it all."""
    result = go("""
steps:
  big: {type: script, content: "return 'x'.repeat(300000)"}
  size: {type: script, content: "return outputs.big.length", depends_on: big}
""")
    assert result.output("size") == 300_000
    done = [record.event for record in records_of(runs, result) if isinstance(record.event, CallDone)]
    assert done[0].output == "x" * 300_000


def test_a_map_runs_over_a_large_list(go: Go) -> None:
    """The items of a fan-out are at hand whatever their size; each item is a run of the step."""
    result = go("""
max_parallelism: 8
steps:
  list: {type: script, forEach: true, content: "return Array.from({length: 40000}, (_, i) => 'item ' + i)"}
  some: {type: noop, depends_on: list, fanout: map, if: "false"}
""")
    assert result.verdict == "GO"


def test_fan_out_items_see_their_own_item(go: Go) -> None:
    """C.13 R2: `outputs[parent]` inside an item is the item."""
    result = go("""
max_parallelism: 4
steps:
  list: {type: script, forEach: true, content: "return [1, 2, 3, 4, 5]"}
  double: {type: script, depends_on: list, fanout: map, forEach_concurrency: 3, content: "return outputs.list * 2"}
""")
    assert result.output("double") == [2, 4, 6, 8, 10]


def test_a_timeout_ends_the_call_and_is_transient(go: Go, runs: Runs) -> None:
    """The host ends a call at its limit; whatever it does."""
    result = go('steps:\n  slow: {type: script, timeout: 50ms, content: "while (true) {}"}\n')
    assert result.fault is not None
    assert result.fault.transient
    (failed,) = [r.event for r in records_of(runs, result) if isinstance(r.event, CallFailed)]
    assert failed.effect == "none"


def test_retries_wait_on_the_runs_own_clock(go: Go) -> None:
    """C.9: a step that works at its second attempt is passed."""
    result = go("""
steps:
  flaky:
    type: command
    exec: test -e mark || { touch mark; exit 1; }
    on_fail: {retry: {max: 2, backoff: {delay: 10ms}}}
""")
    assert result.verdict == "GO"
    assert result.state.nodes["flaky"][""].attempts == 2


def test_questions_of_one_moment_are_one_batch(go: Go, runs: Runs) -> None:
    """Semantics 9: what is due at the same moment goes to the sandbox together."""
    result = go("""
steps:
  a: {type: noop, if: "1 > 0"}
  b: {type: noop, if: "2 > 0"}
  c: {type: noop, if: "3 > 0"}
""")
    batches = [r.event for r in records_of(runs, result) if isinstance(r.event, Evaluated)]
    assert [len(batch.results) for batch in batches] == [3]


def test_con_1_slots_are_given_back_after_every_ending(go: Go) -> None:
    """CON-1: eight ends under one slot; never more than one at once, none held at the end."""
    count = (
        "n=$(ls busy.* 2>/dev/null | wc -l); test $n = 0 || touch over; touch busy.$$; sleep 0.02; rm busy.$$"
    )
    result = go(f"""
max_parallelism: 1
steps:
  fine: {{type: command, exec: "{count}"}}
  fails: {{type: command, exec: "{count}; exit 1"}}
  late: {{type: command, exec: "sleep 5", timeout: 50ms}}
  wrong: {{type: command, exec: "{count}", cwd: "/nonexistent"}}
  error: {{type: noop, if: "outputs.fine.a.b"}}
  skipped: {{type: noop, if: "false"}}
  again: {{type: command, exec: "{count}; exit 1", on_fail: {{retry: {{max: 2, backoff: {{delay: 1ms}}}}}}}}
  killed: {{type: command, exec: "kill -9 $$"}}
""")
    assert not Path("over").exists()
    assert result.state.slots == 0
    assert len(outcomes(result)) == 8
    assert None not in outcomes(result).values()


def test_a_question_is_answered_by_the_message_first(go: Go) -> None:
    """`--message` answers the first human-input, the person at hand the next."""

    async def ask(question: Question) -> str | None:
        return f"asked: {question.prompt}"

    result = go(
        """
max_parallelism: 1
steps:
  first: {type: human-input, prompt: "one?"}
  second: {type: human-input, prompt: "two?", depends_on: first}
""",
        message="hello",
        ask=ask,
    )
    assert [result.output(name)["text"] for name in ("first", "second")] == ["hello", "asked: two?"]


def test_a_run_that_waits_is_hold_and_goes_on_with_an_answer(go: Go, runs: Runs) -> None:
    """Semantics 3: HOLD while a person is waited for; the answer is the step's output."""
    parked = go("""
steps:
  ask: {type: human-input, prompt: "go on?"}
  after: {type: noop, depends_on: ask}
""")
    assert (parked.verdict, parked.exit_code, parked.waiting) == ("HOLD", 3, ("ask",))
    result = app.answer_run(parked.run_id, "ask", "yes", by="me", options=app.Options(runs=runs))
    assert result is not None
    assert result.verdict == "GO"
    assert result.output("ask") == {"text": "yes", "by": "me"}


def test_an_answer_to_nobody_is_refused(go: Go, runs: Runs) -> None:
    """The person is told which steps wait."""
    parked = go('steps:\n  ask: {type: human-input, prompt: "go on?"}\n')
    with pytest.raises(UsageError, match="waits for nothing") as refused:
        app.answer_run(parked.run_id, "other", "yes", options=app.Options(runs=runs))
    assert refused.value.advice == "these wait: ask"


def test_a_hold_whose_time_is_over_takes_its_default(go: Go) -> None:
    """With patience the host waits for a hold's timer; its default answers."""
    result = go(
        'steps:\n  ask: {type: human-input, prompt: "go on?", timeout: 50ms, default: "no"}\n', patience_s=5.0
    )
    assert result.verdict == "GO"
    assert result.output("ask")["text"] == "no"


def test_a_parked_run_can_be_cancelled(go: Go, runs: Runs) -> None:
    """A cancel ends what waits; the verdict is NO-GO."""
    parked = go('steps:\n  ask: {type: human-input, prompt: "go on?"}\n')
    result = app.cancel_run(parked.run_id, by="me", options=app.Options(runs=runs))
    assert result is not None
    assert result.verdict == "NO-GO"
    assert outcomes(result) == {"ask": "cancelled"}


def test_a_run_that_is_over_stays_as_it_is(go: Go, runs: Runs) -> None:
    """Resuming a finished run writes nothing."""
    result = go("steps:\n  a: {type: noop}\n")
    before = len(records_of(runs, result))
    again = app.resume_run(result.run_id, app.Options(runs=runs))
    assert again.verdict == "GO"
    assert len(records_of(runs, result)) == before


def test_a_watcher_that_fails_changes_nothing(go: Go, logged: list[LogLine]) -> None:
    """Observers are told after the fact; that one broke is told once, however often it does (law 4)."""
    seen: list[int] = []

    def broken(record: Record) -> None:
        raise RuntimeError("no")

    result = go("steps:\n  a: {type: noop}\n", sinks=(broken, lambda record: seen.append(record.seq)))
    assert result.verdict == "GO"
    assert seen == list(range(len(seen)))
    assert [line.text for line in logged] == ["what watches the run broke: RuntimeError: no"]


def test_wrong_inputs_start_nothing(go: Go, runs: Runs) -> None:
    """E.10: inputs are checked against what the workflow declares, before there is a journal."""
    text = "inputs: [{name: n, type: integer}]\nsteps:\n  a: {type: noop}\n"
    with pytest.raises(UsageError, match="n: "):
        go(text, inputs={"n": "three"})
    with pytest.raises(UsageError, match="the workflow needs it"):
        go(text)
    assert runs.ids() == []


def test_declared_outputs_are_the_results(go: Go) -> None:
    """E.10 R2: `value` is a template that keeps its type, `value_js` JavaScript."""
    result = go("""
outputs:
  - {name: n, value: "{{ outputs.a.n }}"}
  - {name: m, value_js: "outputs.a.n + inputs.add"}
steps:
  a: {type: script, content: "return {n: 2}"}
""", inputs={"add": 5})  # fmt: skip
    assert result.outputs == {"n": 2, "m": 7}


def test_the_limits_of_the_command_line_are_in_the_journal(go: Go, runs: Runs) -> None:
    """Overrides are applied to the plan, so a journal needs nothing beside it."""
    loaded = app.loads('version: "1.0"\nsteps:\n  a: {type: noop}\n')
    plan: Plan = app.with_limits(loaded.plan, max_parallelism=7, fail_fast=True)
    result = app.start_run(plan, options=app.Options(runs=runs))
    first = records_of(runs, result)[0].event
    assert isinstance(first, RunStarted)
    assert (first.plan.limits.max_parallelism, first.plan.fail_fast) == (7, True)


def test_runs_are_listed_and_found(go: Go, runs: Runs) -> None:
    """By id, by its beginning, or as the last one."""
    first = go("steps:\n  a: {type: noop}\n", run_id="one-1", trigger={"name": "pr_opened"})
    second = go('steps:\n  a: {type: command, exec: "exit 1"}\n', run_id="two-2")
    options = app.Options(runs=runs)
    assert [(each.run_id, each.verdict, each.event) for each in app.list_runs(options)] == [
        (first.run_id, "GO", "pr_opened"),
        (second.run_id, "NO-GO", None),
    ]
    assert app.find_run("last", options) == second.run_id
    assert app.find_run("one", options) == first.run_id
    with pytest.raises(UsageError, match="no run"):
        app.find_run("three", options)
