"""Nested workflows: runs of their own beneath a run (spec C.17, E.10; case CON-2)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gonogo import app
from gonogo.core.events import RunStarted
from gonogo.errors import JournalError
from gonogo.hosts.base import RunResult
from gonogo.journal.jsonl import JsonlRuns
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.store import Runs


@pytest.fixture(params=["memory", "jsonl"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Runs:
    """Where the runs are kept."""
    return MemoryRuns() if request.param == "memory" else JsonlRuns(tmp_path / "runs")


@pytest.fixture
def run_files(kept: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunResult]:
    """Write files into a project, run main.yaml."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)

    def run(files: dict[str, str], safe_mode: bool = False, **given: object) -> RunResult:
        for name, text in files.items():
            (home / name).write_text(f'version: "1.0"\n{text}')
        options = app.Options(**{"runs": kept, **given})  # type: ignore[arg-type]
        return app.start_run(app.load(home / "main.yaml"), app.Start(safe_mode=safe_mode), options=options)

    return run


GREET = """
id: greet
inputs: [{name: whom, type: string}]
outputs: [{name: text, value: "{{ outputs.say }}"}]
steps:
  say: {type: script, content: "return 'hello ' + inputs.whom"}
"""


def child_ids(kept: Runs) -> list[str]:
    """Runs that have a parent."""
    return [each.run_id for each in app.list_runs(app.Options(runs=kept)) if each.parent is not None]


def test_a_child_gets_inputs_and_gives_its_outputs(run_files: Callable[..., RunResult], kept: Runs) -> None:
    """E.10 R1, R2: the child's declared outputs are the step's output; its journal names its parent."""
    result = run_files(
        {
            "main.yaml": "imports: [greet.yaml]\nsteps:\n"
            "  call: {type: workflow, workflow: greet, args: {whom: you}}\n",
            "greet.yaml": GREET,
        }
    )
    assert result.verdict == "GO"
    assert result.output("call") == {"text": "hello you"}
    (child,) = child_ids(kept)
    first = kept.read(child).records[0].event
    assert isinstance(first, RunStarted)
    assert first.parent is not None
    assert first.parent["run_id"] == result.run_id


def test_inputs_that_dont_fit_fail_the_step_and_start_no_child(
    run_files: Callable[..., RunResult], kept: Runs
) -> None:
    """E.10 R1: inputs are validated; the fault says which one and why."""
    result = run_files(
        {
            "main.yaml": "imports: [greet.yaml]\nsteps:\n"
            "  call: {type: workflow, workflow: greet, args: {whom: {expression: '5'}}}\n",
            "greet.yaml": GREET,
        }
    )
    assert result.verdict == "NO-GO"
    assert result.fault is not None
    assert "whom: " in result.fault.message
    assert child_ids(kept) == []


def test_a_failing_child_fails_its_step_with_its_class(run_files: Callable[..., RunResult]) -> None:
    """C.17 D: a child's failure is the parent step's, class and all."""
    result = run_files(
        {
            "main.yaml": "imports: [sub.yaml]\nsteps:\n  call: {type: workflow, workflow: sub}\n",
            "sub.yaml": 'id: sub\nsteps:\n  bad: {type: command, exec: "exit 3"}\n',
        }
    )
    assert result.verdict == "NO-GO"
    assert result.fault is not None
    assert (result.fault.kind, result.fault.cause) == ("workflow.failed", "command.exit")


def nested(levels: int) -> dict[str, str]:
    """Workflows that call each other, `levels` deep; each notes how many commands run at once."""
    count = (
        "n=$(ls busy.* 2>/dev/null | wc -l); test $n = 0 || touch over; touch busy.$$; sleep 0.02; rm busy.$$"
    )
    work = f'  work: {{type: command, exec: "{count}"}}\n  more: {{type: command, exec: "{count}"}}\n'
    files = {
        "main.yaml": f"max_parallelism: 1\nimports: [l1.yaml]\nsteps:\n  call: {{type: workflow, workflow: l1}}\n{work}"
    }
    for level in range(1, levels + 1):
        deeper = "" if level == levels else f"  call: {{type: workflow, workflow: l{level + 1}}}\n"
        imports = "" if level == levels else f"imports: [l{level + 1}.yaml]\n"
        files[f"l{level}.yaml"] = f"id: l{level}\n{imports}steps:\n{deeper}{work}"
    return files


def test_con_2_a_waiting_parent_holds_no_slot_its_children_need(run_files: Callable[..., RunResult]) -> None:
    """CON-2 (b): three levels deep under a limit of one, all finish and never two commands run at once."""
    result = run_files(nested(3))
    assert result.verdict == "GO"
    assert not Path("over").exists()


def test_slots_bound_a_run_and_its_children_together(run_files: Callable[..., RunResult]) -> None:
    """The limit is the whole tree's: with two slots, two children and their parent, at most two calls run."""
    count = "n=$(ls busy.* 2>/dev/null | wc -l); test $n -lt 2 || touch over; touch busy.$$; sleep 0.05; rm busy.$$"
    work = "".join(f'  w{n}: {{type: command, exec: "{count}"}}\n' for n in range(3))
    result = run_files(
        {
            "main.yaml": "max_parallelism: 2\nimports: [sub.yaml]\nsteps:\n"
            "  one: {type: workflow, workflow: sub}\n  two: {type: workflow, workflow: sub}\n",
            "sub.yaml": f"id: sub\nsteps:\n{work}",
        }
    )
    assert result.verdict == "GO"
    assert not Path("over").exists()


def test_workflows_nested_too_deep_are_refused(run_files: Callable[..., RunResult]) -> None:
    """C.12: depth has a limit (3)."""
    result = run_files(nested(4))
    assert result.verdict == "NO-GO"
    assert result.fault is not None
    assert "nested 3 deep" in result.fault.message


HOLDING = {
    "main.yaml": "imports: [ask.yaml]\nsteps:\n  call: {type: workflow, workflow: ask}\n"
    "  after: {type: noop, depends_on: call}\n",
    "ask.yaml": "id: ask\noutputs: [{name: said, value: '{{ outputs.person.text }}'}]\nsteps:\n"
    '  before: {type: command, exec: "echo x >> before.txt"}\n'
    "  person: {type: human-input, prompt: 'go on?', depends_on: before}\n",
}


@pytest.mark.parametrize("step", ["call", "call.person"])
def test_a_child_that_waits_parks_its_parent_and_goes_on_with_the_answer(
    run_files: Callable[..., RunResult], kept: Runs, step: str
) -> None:
    """RES-2: the answer reaches the same child; what it had done isn't done again."""
    parked = run_files(HOLDING)
    assert (parked.verdict, parked.waiting) == ("HOLD", ("call",))
    result = app.answer_run(parked.run_id, step, "yes", options=app.Options(runs=kept))
    assert result is not None
    assert result.run_id == parked.run_id
    assert result.verdict == "GO"
    assert result.output("call") == {"said": "yes"}
    assert Path("before.txt").read_text() == "x\n"
    assert len(child_ids(kept)) == 1


def test_an_answer_given_to_the_child_wakes_its_parent(
    run_files: Callable[..., RunResult], kept: Runs
) -> None:
    """Going on with a child is going on with the run around it."""
    parked = run_files(HOLDING)
    (child,) = child_ids(kept)
    result = app.answer_run(child, "person", "yes", options=app.Options(runs=kept))
    assert result is not None
    assert (result.run_id, result.verdict) == (parked.run_id, "GO")


def test_memory_of_a_child_is_its_own(run_files: Callable[..., RunResult]) -> None:
    """C.17 D: what a child remembers doesn't reach its parent."""
    result = run_files(
        {
            "main.yaml": "imports: [sub.yaml]\nsteps:\n  call: {type: workflow, workflow: sub}\n"
            "  look: {type: memory, operation: list, depends_on: call}\n",
            "sub.yaml": "id: sub\nsteps:\n  keep: {type: memory, operation: set, key: k, value: 1}\n",
        }
    )
    assert result.output("look") == []


def test_memory_shared_with_a_child_that_waits_comes_back_once(
    run_files: Callable[..., RunResult], kept: Runs
) -> None:
    """C.17: a parked child has given nothing back yet; when it goes on, all it changed comes at once."""
    parked = run_files(
        {
            "main.yaml": "imports: [sub.yaml]\nsteps:\n  call: {type: workflow, workflow: sub, memory: shared}\n"
            "  look: {type: memory, operation: get, key: n, depends_on: call}\n",
            "sub.yaml": "id: sub\nsteps:\n  one: {type: memory, operation: increment, key: n}\n"
            "  ask: {type: human-input, prompt: 'go on?', depends_on: one}\n"
            "  two: {type: memory, operation: increment, key: n, depends_on: ask}\n",
        }
    )
    assert (parked.verdict, parked.state.memory) == ("HOLD", {})
    result = app.answer_run(parked.run_id, "call", "yes", options=app.Options(runs=kept))
    assert result is not None
    assert result.output("look") == 2


def test_variables_given_for_the_run_win_over_the_childs_own(run_files: Callable[..., RunResult]) -> None:
    """What a child's commands get and what its expressions see is the same value."""
    result = run_files(
        {
            "main.yaml": "imports: [sub.yaml]\nsteps:\n  call: {type: workflow, workflow: sub}\n",
            "sub.yaml": 'id: sub\nenv: {STAGE: red}\nsteps:\n  say: {type: command, exec: "echo $STAGE"}\n'
            '  see: {type: script, content: "return env.STAGE"}\n',
        },
        env={"STAGE": "blue"},
    )
    assert result.output("call") == {"say": "blue", "see": "blue"}


def test_overrides_change_the_childs_steps(run_files: Callable[..., RunResult]) -> None:
    """E.10: keys of inner steps can be replaced by the step that calls."""
    result = run_files(
        {
            "main.yaml": "imports: [sub.yaml]\nsteps:\n"
            "  call: {type: workflow, workflow: sub, overrides: {say: {content: 'return 2'}}}\n",
            "sub.yaml": "id: sub\nsteps:\n  say: {type: script, content: 'return 1'}\n",
        }
    )
    assert result.output("call") == 2


@pytest.mark.parametrize("keys", ["method: POST", "method: POST, url: 'http://127.0.0.1:9/{{ inputs.x }}'"])
def test_a_reading_step_that_is_overridden_to_send_something_is_withheld(
    run_files: Callable[..., RunResult], keys: str
) -> None:
    """G21, E.10: what a step does outside follows from the config it is called with, not the one it had."""
    result = run_files(
        {
            "main.yaml": "imports: [sub.yaml]\nsteps:\n"
            f"  call: {{type: workflow, workflow: sub, overrides: {{get: {{{keys}}}}}}}\n",
            "sub.yaml": "id: sub\nsteps:\n  get: {type: http_client, url: 'http://127.0.0.1:9/'}\n",
        },
        safe_mode=True,
    )
    assert (result.verdict, result.output("call")["safe_mode"]) == ("GO", True)


def test_an_override_that_changes_nothing_outside_leaves_the_authors_word(
    run_files: Callable[..., RunResult],
) -> None:
    """`mutates: false` holds on for a step that was given another address only."""
    result = run_files(
        {
            "main.yaml": "imports: [sub.yaml]\nsteps:\n"
            "  call: {type: workflow, workflow: sub, overrides: {get: {url: 'http://127.0.0.1:9/b'}}}\n",
            "sub.yaml": "id: sub\nsteps:\n"
            "  get: {type: http_client, method: POST, mutates: false, url: 'http://127.0.0.1:9/'}\n",
        },
        safe_mode=True,
    )
    assert result.verdict == "NO-GO"


@pytest.mark.parametrize(
    ("guard", "said"),
    [
        ("external", ""),
        ("internal", ""),
        ("policy", ""),
        ("internal", "    criticality: info\n"),
        ("internal", "    criticality: policy\n"),
        ("external", "    critical: true\n"),
    ],
)
def test_G_7_a_workflow_that_changes_things_is_kept_back_like_a_step_that_does(
    run_files: Callable[..., RunResult], guard: str, said: str, tmp_path: Path
) -> None:
    """G7, C.8: by what it runs, whatever is said of how critical the calling step is; no child is begun."""
    result = run_files(
        {
            "main.yaml": "imports: [sub.yaml]\nsteps:\n"
            f"  first: {{type: command, criticality: {guard}, mutates: false, exec: 'exit 1'}}\n"
            "  call:\n    type: workflow\n    workflow: sub\n"
            "    depends_on: [{step: first, on_failure: continue}]\n" + said,
            "sub.yaml": "id: sub\nsteps:\n  post: {type: command, mutates: true, exec: touch acted}\n",
        }
    )
    assert (result.state.nodes["call"][""].reason, result.verdict) == ("suppressed", "NO-GO")
    assert not (tmp_path / "home" / "acted").exists()


def test_a_child_whose_host_died_before_its_first_record_begins(
    run_files: Callable[..., RunResult], tmp_path: Path
) -> None:
    """An empty journal means that nothing was begun."""
    runs = JsonlRuns(tmp_path / "runs")
    parked = run_files(HOLDING, runs=runs)
    (child,) = [run_id for run_id in runs.ids() if run_id != parked.run_id]
    (tmp_path / "runs" / child / "journal.jsonl").write_bytes(b"")
    _cut_after_the_start_of_a_call(tmp_path / "runs" / parked.run_id / "journal.jsonl")
    again = app.resume_run(parked.run_id, app.Options(runs=runs))
    assert again.verdict == "HOLD"
    assert len(runs.read(child).records) > 1


def _cut_after_the_start_of_a_call(journal: Path) -> None:
    """As it is when the host dies while the call is under way."""
    lines = journal.read_bytes().splitlines(keepends=True)
    last = next(number for number, line in enumerate(lines) if b'"type":"started"' in line)
    journal.write_bytes(b"".join(lines[: last + 1]))


def test_a_childs_damaged_journal_is_told_as_that(
    run_files: Callable[..., RunResult], tmp_path: Path
) -> None:
    """Not as a run that is there already: going on with it is what was tried."""
    runs = JsonlRuns(tmp_path / "runs")
    parked = run_files(HOLDING, runs=runs)
    (child,) = [run_id for run_id in runs.ids() if run_id != parked.run_id]
    journal = tmp_path / "runs" / child / "journal.jsonl"
    journal.write_bytes(b"damage\n" + journal.read_bytes())
    with pytest.raises(JournalError, match="line 1") as told:
        app.resume_run(parked.run_id, app.Options(runs=runs))
    assert child in told.value.message
