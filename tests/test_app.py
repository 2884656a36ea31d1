"""The embedding face, and the failures that a person meets before a run starts."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gonogo
from gonogo import app
from gonogo.errors import ConfigError, JournalError, RunLocked, UsageError
from gonogo.journal.memory import MemoryInbox, MemoryRuns
from gonogo.provider import Call, Context, Done, Outcome, Provider
from gonogo.providers.noop import Config

TEXT = 'version: "1.0"\nsteps:\n  a: {type: script, content: "return inputs.n * 2"}\n'


def test_a_workflow_is_loaded_and_run_in_two_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`gonogo.load(...)`, `workflow.run(...)`, then verdict and outputs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gonogo.yaml").write_text(TEXT)
    workflow = gonogo.load()
    result = workflow.run(inputs={"n": 21})
    assert (result.verdict, result.output("a")) == ("GO", 42)
    assert (tmp_path / ".gonogo" / "runs" / result.run_id / "journal.jsonl").exists()
    assert gonogo.run(inputs={"n": 1}).output("a") == 2


def test_a_run_kept_in_memory_can_be_resumed(tmp_path: Path) -> None:
    """Programs that embed gonogo need no folder."""
    runs = MemoryRuns()
    parked = gonogo.loads('version: "1.0"\nsteps:\n  a: {type: human-input, prompt: "?"}\n').run(runs=runs)
    assert parked.verdict == "HOLD"
    assert gonogo.resume(parked.run_id, runs=runs).verdict == "HOLD"
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_file_raises_with_every_problem() -> None:
    """ConfigError carries them all."""
    with pytest.raises(ConfigError) as wrong:
        gonogo.loads("steps:\n  a: {type: nop}\n  b: {type: noop, depends_on: c}\n")
    assert len(wrong.value.problems) >= 3


def test_an_unknown_step_is_refused_before_anything_starts(tmp_path: Path) -> None:
    """Usage errors leave no run."""
    runs = MemoryRuns()
    with pytest.raises(UsageError, match="'b'"):
        gonogo.loads(TEXT).run(steps=("b",), runs=runs)
    assert runs.ids() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_runs_folder_that_cant_be_written_is_told_at_once(tmp_path: Path) -> None:
    """Fail early: nothing has run."""
    (tmp_path / "runs").mkdir(mode=0o500)
    with pytest.raises(JournalError, match="can't create"):
        gonogo.loads(TEXT).run(runs=tmp_path / "runs")


def test_a_file_in_the_way_of_the_runs_folder_is_told_at_once(tmp_path: Path) -> None:
    """Fail early: the message names the path."""
    (tmp_path / "runs").write_text("")
    with pytest.raises(JournalError, match="runs"):
        gonogo.loads(TEXT).run(runs=tmp_path / "runs")


def test_a_run_that_another_one_writes_is_locked() -> None:
    """Two hosts never write one run."""
    runs = MemoryRuns()
    parked = gonogo.loads('version: "1.0"\nsteps:\n  a: {type: human-input, prompt: "?"}\n').run(runs=runs)
    journal = runs.reopen(parked.run_id)
    with pytest.raises(RunLocked):
        gonogo.resume(parked.run_id, runs=runs)
    assert app.answer_run(parked.run_id, "a", "yes", options=app.Options(runs=runs)) is None
    journal.close()
    assert gonogo.resume(parked.run_id, runs=runs).verdict == "GO"


def test_an_answer_for_a_step_within_another_is_never_given_to_the_outer_one() -> None:
    """While the outer one waits for no run of its own, or not yet."""
    options = app.Options(runs=MemoryRuns())
    parked = app.start_run(
        app.loads('version: "1.0"\nsteps:\n  a: {type: human-input, prompt: "?"}\n'), None, options
    )
    with pytest.raises(UsageError, match="a waits for no run of its own just now"):
        app.answer_run(parked.run_id, "a.inner", "again", options=options)
    assert app.resume_run(parked.run_id, options).verdict == "HOLD"


def test_an_answer_that_would_be_cut_is_refused() -> None:
    """Its end might say the opposite."""
    options = app.Options(runs=MemoryRuns())
    parked = app.start_run(
        app.loads('version: "1.0"\nsteps:\n  a: {type: human-input, prompt: "?"}\n'), None, options
    )
    with pytest.raises(UsageError, match="the answer has 102,402 bytes; at most 102,400 are kept"):
        app.answer_run(parked.run_id, "a", "é" * 51_201, options=options)
    answered = app.answer_run(parked.run_id, "a", "é" * 51_200, options=options)
    assert answered is not None
    assert answered.verdict == "GO"


def test_a_disk_that_fills_up_stops_the_run_where_it_was(tmp_path: Path) -> None:
    """The run stops with the journal's error, and can be resumed when there is room."""
    script = (
        "import resource, sys\nfrom gonogo import app\nfrom gonogo.errors import JournalError\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "try:\n    app.start_run(app.load('gonogo.yaml'), app.Start(run_id='r'), app.Options(runs='runs'))\n"
        "except JournalError as error:\n    print(error.message); sys.exit(2)\n"
    )
    steps = "".join(f"  s{n}: {{type: script, content: \"return 'x'.repeat(900)\"}}\n" for n in range(40))
    (tmp_path / "gonogo.yaml").write_text(f'version: "1.0"\nmax_parallelism: 1\nsteps:\n{steps}')
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert (done.returncode, done.stderr) == (2, "")
    assert "File too large" in done.stdout
    assert app.resume_run("r", app.Options(runs=tmp_path / "runs")).verdict == "GO"


def test_importing_gonogo_is_cheap() -> None:
    """`import gonogo` brings in nothing else."""
    program = (
        "import sys; before = set(sys.modules); import gonogo; print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert [name for name in loaded if name.startswith("gonogo")] == ["gonogo"]


def test_a_config_error_tells_every_problem_by_itself() -> None:
    """Who embeds gonogo sees a traceback and nothing else: place, what is wrong and what to write."""
    with pytest.raises(ConfigError) as refused:
        gonogo.loads('version: "1.0"\nsteps:\n  a: {type: comand}\n  b: {type: noop, dependson: a}\n')
    told = str(refused.value).splitlines()
    assert told[0] == "2 problems in the configuration"
    assert told[1].endswith(":3:13: unknown step type 'comand' (did you mean command?)")
    assert "depends_on" in told[2]


ASKS = 'version: "1.0"\nsteps:\n  a: {type: human-input, prompt: "Go on?"}\n'
ASKS_EACH = """version: "1.0"
steps:
  list: {type: script, content: "return ['x', 'y']", forEach: true}
  ask: {type: human-input, prompt: "{{ outputs.list }}?", depends_on: list, fanout: map}
"""


def test_a_program_answers_what_a_run_waits_for() -> None:
    """The prompt is in the run's view; the answer goes on with the run."""
    runs = MemoryRuns()
    held = gonogo.loads(ASKS).run(runs=runs)
    [waiting] = gonogo.read(held.run_id, runs=runs).waiting
    assert (held.waiting, waiting.step, waiting.prompt) == (("a",), "a", "Go on?")
    gone_on = gonogo.answer(held.run_id, "a", "yes", by="ada", runs=runs)
    assert gone_on is not None
    assert (gone_on.verdict, gone_on.output("a")["text"]) == ("GO", "yes")


APPROVAL = """version: "1.0"
steps:
  a: {type: human-input, prompt: "Go?", approvers: [ada, bob], quorum: 2, timeout: 1h, default: "no"}
"""


def test_a_program_lists_what_waits_and_approves_it() -> None:
    """From the last record of each run: how far an approval is."""
    runs = MemoryRuns()
    held = gonogo.loads(APPROVAL).run(runs=runs)
    gonogo.answer(held.run_id, "a", "yes", by="ada", runs=runs)
    [waiting] = gonogo.waiting(runs=runs)
    assert [(one.place, one.approved, one.quorum) for one in waiting.waits] == [("a", 1, 2)]
    with pytest.raises(gonogo.UsageError, match="has answered already"):
        gonogo.answer(held.run_id, "a", "yes", by="ada", runs=runs)
    with pytest.raises(gonogo.UsageError, match="not among the approvers"):
        gonogo.answer(held.run_id, "a", "yes", by="eve", runs=runs)
    approved = gonogo.answer(held.run_id, "a", "yes", by="bob", runs=runs)
    assert approved is not None
    assert (approved.verdict, gonogo.waiting(runs=runs)) == ("GO", [])


def test_a_program_wakes_the_runs_whose_timers_fell_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those alone; nothing is due twice."""
    runs, real = MemoryRuns(), time.time
    held = gonogo.loads(APPROVAL).run(runs=runs)
    assert gonogo.resume_due(runs=runs) == []
    monkeypatch.setattr(time, "time", lambda: real() + 3601)
    [woken] = gonogo.resume_due(runs=runs)
    assert (woken.run_id, woken.verdict, woken.output("a")["text"]) == (held.run_id, "GO", "no")
    assert gonogo.resume_due(runs=runs) == []


def test_an_answer_that_ended_the_run_isnt_said_to_have_come_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The journal has an answer a moment before the inbox forgets it."""
    monkeypatch.setattr(MemoryInbox, "done", lambda inbox, request_id: None)
    runs = MemoryRuns()
    held = gonogo.loads('version: "1.0"\nsteps:\n  a: {type: human-input, prompt: "?"}\n').run(runs=runs)
    gone_on = gonogo.answer(held.run_id, "a", "yes", runs=runs)
    assert gone_on is not None
    assert gone_on.verdict == "GO"


def test_an_item_is_answered_by_its_place() -> None:
    """`RunResult.waiting` names step and scope; that is what `answer` takes."""
    runs = MemoryRuns()
    result = gonogo.loads(ASKS_EACH).run(runs=runs)
    while result.waiting:
        answered = gonogo.answer(result.run_id, result.waiting[0], result.waiting[0][-2], runs=runs)
        assert answered is not None
        result = answered
    assert result.verdict == "GO"
    assert [answer["text"] for answer in result.output("ask")] == ["0", "1"]


def test_a_program_answers_at_once_where_somebody_is_there() -> None:
    """`ask` is given the question; the run needn't wait."""
    seen: list[gonogo.Question] = []

    async def ask(question: gonogo.Question) -> str | None:
        seen.append(question)
        return "yes"

    result = gonogo.loads(ASKS).run(runs=MemoryRuns(), ask=ask)
    assert (result.verdict, [question.prompt for question in seen]) == ("GO", ["Go on?"])


async def greet(call: Call, context: Context) -> Outcome:
    """Pretends to have said hello."""
    return Done({"text": f"hello from {call.step}"}, effect="none")


@pytest.mark.parametrize("name", ["greet", "ai", "command", "logger"])
def test_a_program_brings_step_types_of_its_own(name: str) -> None:
    """Beside the built-in ones, and in place of one of the same name: planned, built in, or another's alias."""
    workflow = gonogo.loads(
        f'version: "1.0"\nsteps:\n  a: {{type: {name}}}\n', step_types=[Provider(name, Config, greet)]
    )
    assert workflow.run(runs=MemoryRuns()).output("a") == {"text": "hello from a"}


def test_a_run_with_step_types_of_its_own_goes_on_with_them() -> None:
    """Who goes on hands them over again: a journal holds no code."""
    runs, types = MemoryRuns(), [Provider("greet", Config, greet)]
    text = f"{ASKS}  b: {{type: greet, depends_on: a}}\n"
    held = gonogo.loads(text, step_types=types).run(runs=runs)
    gone_on = gonogo.answer(held.run_id, "a", "yes", runs=runs, step_types=types)
    assert gone_on is not None
    assert gone_on.output("b") == {"text": "hello from b"}


def test_runs_go_on_side_by_side_in_one_event_loop() -> None:
    """Each blocking function has a twin that can be awaited."""
    runs = MemoryRuns()

    async def main() -> list[str]:
        held = await asyncio.gather(*(gonogo.loads(ASKS).run_async(runs=runs) for _ in range(3)))
        first = await gonogo.answer_async(held[0].run_id, "a", "yes", runs=runs)
        second = await gonogo.cancel_async(held[1].run_id, runs=runs)
        third = await gonogo.resume_async(held[2].run_id, runs=runs)
        assert first is not None
        assert second is not None
        return [first.verdict, second.verdict, third.verdict]

    assert asyncio.run(main()) == ["GO", "NO-GO", "HOLD"]


def test_a_cancelled_task_ends_its_run_in_good_order() -> None:
    """Law 7: the call is stopped, the journal has the end, and the task is cancelled as its program asked."""
    runs = MemoryRuns()
    started = asyncio.Event()

    async def main() -> None:
        workflow = gonogo.loads('version: "1.0"\nsteps:\n  a: {type: command, exec: sleep 30}\n')
        task = asyncio.create_task(workflow.run_async(runs=runs, sinks=(lambda record: started.set(),)))
        await started.wait()
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    view = gonogo.read(runs.ids()[0], runs=runs)
    assert (view.verdict, view.steps["a"].outcome) == ("NO-GO", "cancelled")


def test_a_blocking_function_refuses_to_block_an_event_loop() -> None:
    """It says which function to await instead; nothing has run."""
    runs = MemoryRuns()

    async def main() -> None:
        gonogo.loads(ASKS).run(runs=runs)

    with pytest.raises(UsageError, match="event loop") as refused:
        asyncio.run(main())
    assert "_async" in str(refused.value.advice)
    assert runs.ids() == []


def test_a_program_can_try_a_workflow_out() -> None:
    """In safe mode what mutates isn't called; the output tells what the call would have been given."""
    text = 'version: "1.0"\nsteps:\n  a: {type: command, exec: touch made, mutates: true}\n'
    tried = gonogo.loads(text).run(runs=MemoryRuns(), safe_mode=True)
    assert (tried.verdict, tried.output("a")["safe_mode"]) == ("GO", True)
    assert not Path("made").exists()


GIVES_UP = """version: "1.0"
steps:
  a: {type: command, exec: exit 1, on_fail: {retry: {max: 1, exhausted: hold}}}
"""


def test_a_choice_takes_its_own_words_only() -> None:
    """Another word is refused with those that it takes, and is not kept for later."""
    runs = MemoryRuns()
    held = gonogo.loads(GIVES_UP).run(runs=runs)
    with pytest.raises(UsageError, match="'maybe'") as refused:
        gonogo.answer(held.run_id, "a", "maybe", runs=runs)
    assert refused.value.advice == "it takes retry, accept or fail"
    gone_on = gonogo.answer(held.run_id, "a", " Accept ", runs=runs)
    assert gone_on is not None
    assert gone_on.verdict == "GO"


def test_what_a_program_hands_over_is_checked_before_anything_runs() -> None:
    """A GonogoError, not one of Python's."""
    workflow = gonogo.loads('version: "1.0"\ninputs: {n: {type: number}}\nsteps: {a: {type: noop}}\n')
    with pytest.raises(UsageError, match="n: expected plain data, found object"):
        workflow.run(inputs={"n": object()}, runs=MemoryRuns())
    with pytest.raises(UsageError, match="event is a mapping"):
        workflow.run(inputs={"n": 1}, event="manual", runs=MemoryRuns())  # type: ignore[arg-type]
