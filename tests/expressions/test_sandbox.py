"""The sandbox: what expressions see, what comes back, and what it survives (engine spec B, expressions.md)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.expressions.conftest import NOW_MS, Evaluate

from gonogo.errors import Bug
from gonogo.expressions.names import HELPERS, KNOWN_NAMES
from gonogo.expressions.process import Child
from gonogo.expressions.results import Failure, MemoryOp, Value
from gonogo.expressions.sandbox import Limits, Request, Sandbox


class Counting(Mapping[str, Any]):
    """Entries that note which of them were asked for."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self._entries = entries
        self.asked: list[str] = []

    def __getitem__(self, key: str) -> Any:
        self.asked.append(key)
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


TRUTH = [
    ('""', False), ('"0"', True), ('"false"', True), ('" "', True), ("0", False), ("-0", False), ("NaN", False),
    ("1", True), ("null", False), ("output", False), ("[]", True), ("({})", True), ("[0]", True), ("true", True),
    ("false", False), ("env.TEXT", True), ("env.ZERO", True), ("env.NONE", False), ("'1' == 1", True),
    ("'1' === 1", False), ("null == env.missing", True), ("0 || 'x'", True), ("1 && ''", False),
]  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), TRUTH)
def test_truth_is_javascripts(evaluate: Evaluate, source: str, expected: bool) -> None:
    """EXP-2, B.6: one table for every construct."""
    env = {"TEXT": "false", "ZERO": "0"}
    assert evaluate(source, "condition", env=env) == Value(value=expected)


@pytest.mark.parametrize(
    "source",
    [
        "${{ outputs.a.ok }} == false",
        "{{ outputs.a.ok }} == 'x'",
        "{{ 'false' }}",
        "outputs.a.ok == false '",
        "ok ok",
        "",
        "   ",
    ],
)
def test_EXP_1_templates_and_broken_text_are_never_true(evaluate: Evaluate, source: str) -> None:
    """EXP-1: refused with a place; templates with the words that say so."""
    result = evaluate(source, "condition", outputs={"a": {"ok": False}})
    assert isinstance(result, Failure)
    assert result.kind == "syntax"
    assert (result.line, "{{" in source) == (1, "expression, not template" in result.message)


def test_every_known_name_is_null_when_it_is_not_given(evaluate: Evaluate) -> None:
    """B.2 D: a reference never throws by absence alone."""
    for name in sorted(KNOWN_NAMES - {"memory"}):
        assert evaluate(f"{name} === null", "condition") == Value(value=True), name


def test_every_helper_is_a_function(evaluate: Evaluate) -> None:
    """names.py and helpers.js list the same helpers."""
    listed = ", ".join(f"typeof {name}" for name in sorted(HELPERS))
    assert evaluate(f"[{listed}]") == Value(value=["function"] * len(HELPERS))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("contains('Hello', 'ELL')", True),
        ("contains(['a', 'b'], 'b')", True),
        ("contains(['ab'], 'b')", False),
        ("contains([1, 2], 2)", True),
        ("contains(null, 'a')", False),
        ("startsWith('Hello', 'he')", True),
        ("endsWith('Hello', 'LO')", True),
        ("[length('abc'), length([1]), length({ a: 1, b: 2 }), length(5), length(null)]", [3, 1, 2, 0, 0]),
        ("[any([], x => 1), all([], x => 0), none([], x => 1), count([], x => 1)]", [False, True, True, 0]),
        ("[any(1, x => 1), all(1, x => 1), none(1, x => 1), count(1, x => 1)]", [False, False, False, 0]),
        ("[any([1, 2], x => x > 1), count([1, 2, 3], x => x > 1)]", [True, 2]),
        ("hasIssue([{ severity: 'error' }], 'severity', 'error')", True),
        ("hasIssue('none', 'severity', 'error')", False),
        ("countIssues([{ n: 1 }, { n: '1' }, { n: 1 }], 'n', 1)", 2),
        ("countIssues(null, 'n', 1)", 0),
        ("hasFileMatching([{ file: 'src/a.py' }], 'src/')", True),
        ("hasFileMatching([{ file: 'src/a.py' }], '*.py')", False),
        ("escapeXml('<a b=\"c\">&')", "&lt;a b=&quot;c&quot;&gt;&amp;"),
        ("atob(btoa('gonogo'))", "gonogo"),
        ("[always(), success(), failure()]", [True, True, False]),
    ],
)
def test_helpers_follow_B_5(evaluate: Evaluate, source: str, expected: Any) -> None:
    """B.5: helper semantics."""
    assert evaluate(source) == Value(value=expected)


def test_success_and_failure_say_what_the_host_says(evaluate: Evaluate) -> None:
    """B.5 D: success is no failed dependency, failure is some."""
    status = {"$status": {"success": False, "failure": True}}
    assert evaluate("[always(), success(), failure()]", **status) == Value(value=[True, False, True])


@pytest.mark.parametrize(
    ("association", "expected"),
    [
        ("OWNER", [True, True, True, True, False, True]),
        ("MEMBER", [False, True, True, True, False, True]),
        ("COLLABORATOR", [False, False, True, True, False, False]),
        ("FIRST_TIMER", [False, False, False, False, True, False]),
        ("STRANGE", [False] * 6),
        (None, [False] * 6),
    ],
)
def test_permission_helpers_deny_when_unknown(
    evaluate: Evaluate, association: str | None, expected: list[bool]
) -> None:
    """B.5 D: the order of associations, and false for everything when none is known."""
    helpers = "[isOwner(), isMember(), isCollaborator(), isContributor(), isFirstTimer(), hasMinPermission('MEMBER')]"
    assert evaluate(helpers, **{"$association": association}) == Value(value=expected)


def test_an_event_equals_its_name_as_text(evaluate: Evaluate) -> None:
    """B.3 D: `event` is an object with name and event_name that compares equal to its name."""
    asked = "[event == 'pr_opened', event.name, event.event_name, event.action, `${event}`]"
    assert evaluate(asked, event={"name": "pr_opened", "action": "opened"}) == Value(
        value=[True, "pr_opened", "pr_opened", "opened", "pr_opened"]
    )


def test_history_is_reached_both_ways(evaluate: Evaluate) -> None:
    """B.5: outputs.history[x] is outputs_history[x], also under a computed name."""
    asked = "[outputs.history.a, outputs['his' + 'tory'].a, outputs_history['a']]"
    assert evaluate(asked, outputs={"a": 2}, outputs_history={"a": [1, 2]}) == Value(value=[[1, 2]] * 3)


def test_a_step_called_history_hides_nothing_else(evaluate: Evaluate) -> None:
    """The alias wins under `outputs.history`; the step's output stays in outputs_history."""
    assert evaluate("outputs_history.history", outputs={}, outputs_history={"history": [5]}) == Value(
        value=[5]
    )


def test_only_the_outputs_that_are_read_are_fetched(evaluate: Evaluate) -> None:
    """expressions.md: the mirror is filled lazily; untouched outputs cost nothing."""
    outputs = Counting({f"s{n}": {"n": n} for n in range(100)})
    assert evaluate("outputs.s3.n + outputs['s' + 4].n", outputs=outputs) == Value(value=7)
    assert set(outputs.asked) == {"s3", "s4"}


def test_listing_the_outputs_fetches_none(evaluate: Evaluate) -> None:
    """Object.keys and `in` need the keys alone."""
    outputs = Counting({"a": 1, "b": 2})
    assert evaluate("[Object.keys(outputs), 'a' in outputs, 'z' in outputs]", outputs=outputs) == Value(
        value=[["a", "b"], True, False]
    )
    assert outputs.asked == []


def test_after_a_few_surprises_everything_is_sent(evaluate: Evaluate) -> None:
    """A loop over all outputs by computed names ends after a handful of tries."""
    outputs = {f"s{n}": n for n in range(50)}
    source = "let t = 0; for (let n = 0; n < 50; n++) t += outputs['s' + n]; t"
    assert evaluate(source, outputs=outputs) == Value(value=sum(range(50)))


def test_a_missing_output_can_not_be_caught_away(evaluate: Evaluate) -> None:
    """A `catch` around a read that has to wait for data doesn't hide the data."""
    source = "try { return outputs['a' + 'b'].n } catch { return 'caught' }"
    assert evaluate(source, outputs={"ab": {"n": 1}}) == Value(value=1)


def test_outputs_behave_as_an_object(evaluate: Evaluate) -> None:
    """Spread, entries, for-in and JSON work on the view."""
    source = """
      const seen = []; for (const k in outputs) seen.push(k)
      return [seen, {...outputs}, Object.entries(outputs).length, JSON.stringify(outputs), outputs.hasOwnProperty('a')]
    """
    assert evaluate(source, outputs={"a": 1, "b": [2]}) == Value(
        value=[["a", "b"], {"a": 1, "b": [2]}, 2, '{"a":1,"b":[2]}', True]
    )


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("NaN", "result", "NaN"),
        ("[1 / 0]", "result", "Infinity"),
        ("1n", "result", "BigInt"),
        ("({a: 1n})", "result", "BigInt"),
        ("always", "result", "call it"),
        ("Symbol('x')", "result", "symbol"),
        ("(async () => 1)()", "result", "promise"),
        ("new Map()", "result", "Map"),
        ("[new Set()]", "result", "Set"),
        ("const a = {}; a.a = a; return a", "result", "refers to itself"),
        ("missing.x", "error", "ReferenceError: missing is not defined"),
        ("output.a.b.c", "error", "at `output.a.b.c`"),
        ("throw new Error('mine')", "error", "mine"),
        ("throw 'text'", "error", "text"),
    ],
)
def test_what_is_no_result_says_why(evaluate: Evaluate, source: str, kind: str, words: str) -> None:
    """expressions.md, "Results": each refusal has its own words."""
    result = evaluate(source, output={"a": {}})
    assert isinstance(result, Failure)
    assert (result.kind, words in result.message) == (kind, True), result


def test_a_result_has_a_greatest_size() -> None:
    """Limits.result_bytes: a longer result is a failure of its own."""
    sandbox = Sandbox(now_ms=0.0, limits=Limits(result_bytes=1000))
    result = sandbox.evaluate([Request("'x'.repeat(2000)", "value", {})])[0]
    sandbox.close()
    assert isinstance(result, Failure)
    assert (result.kind, "at most" in result.message) == ("result", True)


def test_undefined_is_told_from_null(evaluate: Evaluate) -> None:
    """expressions.md, "Results": undefined is its own sentinel."""
    assert evaluate("undefined") == Value(undefined=True)
    assert evaluate("null") == Value()


def test_minus_zero_and_dates_come_back_as_javascript_shows_them(evaluate: Evaluate) -> None:
    """-0 keeps its sign, a Date is its ISO text."""
    assert str(evaluate("-0")) == str(Value(value=-0.0))
    assert evaluate("new Date(0)") == Value(value="1970-01-01T00:00:00.000Z")


def test_time_stands_still(evaluate: Evaluate) -> None:
    """B.9 D: Date and now show the run's recorded start."""
    assert evaluate("[Date.now(), new Date().getTime(), new Date(5).getTime()]") == Value(
        value=[NOW_MS, NOW_MS, 5]
    )


def test_large_and_odd_values_cross_unharmed(evaluate: Evaluate) -> None:
    """expressions.md, "Traps": 32 bits, NUL, half surrogates and long texts."""
    odd = {"big": 2**53 - 1, "huge": 2**70, "nul": "a\0b", "half": "\ud83d", "long": "x" * 300_000, "f": 1.5}
    assert evaluate("output", output=odd) == Value(value={**odd, "huge": float(2**70)})
    assert evaluate("output.long + output.nul + 'y'.repeat(2000)", output=odd) == Value(
        value=odd["long"] + odd["nul"] + "y" * 2000  # type: ignore[operator]
    )


def test_errors_say_line_and_column_in_the_users_text(evaluate: Evaluate) -> None:
    """The wrapper's line and what was put in for the value are taken off again; columns count characters."""
    result = evaluate("const a = 'é😀'; const b = null\nlet x = 1; x; b.y.z")
    assert isinstance(result, Failure)
    assert (result.line, result.column) == (2, 15)
    broken = evaluate("const a = 1\nreturn a +* 2")
    assert isinstance(broken, Failure)
    assert (broken.kind, broken.line) == ("syntax", 2)


def test_a_condition_may_only_read_memory(evaluate: Evaluate) -> None:
    """B.10 D: E1 and E2 are read-only."""
    memory = {"$namespace": "d", "d": {"n": 1}, "other": {"m": 2}}
    reading = "memory.get('n') === 1 && memory.has('m', 'other') && memory.list().length === 1"
    reading += " && memory.getAll().n === 1"
    assert evaluate(reading, "condition", memory=memory) == Value(value=True)
    for call in ("set('n', 2)", "append('n', 2)", "increment('n')", "delete('n')", "clear()"):
        assert isinstance(evaluate(f"memory.{call}; true", "condition", memory=memory), Failure), call


def test_memory_changes_are_wishes_seen_by_later_reads(evaluate: Evaluate) -> None:
    """B.10 D: writes are recorded in order and visible in the same evaluation only."""
    memory = {"$namespace": "d", "d": {"n": 1, "l": 5}}
    source = """
      memory.set('a', { b: 1 }); memory.increment('n', 2); memory.append('l', 6); memory.delete('a')
      memory.set('x', 1, 'other')
      return [memory.get('n'), memory.get('l'), memory.has('a'), memory.get('x', 'other'), memory.list('other')]
    """
    result = evaluate(source, "value", memory=memory)
    assert result == Value(
        value=[3, [5, 6], False, 1, ["x"]],
        memory=(
            MemoryOp(op="set", key="a", value={"b": 1}, namespace="d"),
            MemoryOp(op="increment", key="n", value=2, namespace="d"),
            MemoryOp(op="append", key="l", value=6, namespace="d"),
            MemoryOp(op="delete", key="a", namespace="d"),
            MemoryOp(op="set", key="x", value=1, namespace="other"),
        ),
    )
    assert evaluate("memory.get('n')", memory=memory) == Value(value=1)


def test_clear_empties_one_namespace_or_all(evaluate: Evaluate) -> None:
    """E.4: clear() without a namespace clears everything."""
    memory = {"$namespace": "d", "d": {"n": 1}, "o": {"m": 1}}
    one = evaluate("memory.clear('d'); return [memory.list(), memory.list('o')]", memory=memory)
    assert one == Value(value=[[], ["m"]], memory=(MemoryOp(op="clear", namespace="d"),))
    every = evaluate("memory.clear(); return [memory.list(), memory.list('o')]", memory=memory)
    assert every == Value(value=[[], []], memory=(MemoryOp(op="clear"),))


def test_increment_refuses_what_is_no_number(evaluate: Evaluate) -> None:
    """E.4: a non-number amount or existing value is an error."""
    assert isinstance(evaluate("memory.increment('t')", memory={"$namespace": "d", "d": {"t": "x"}}), Failure)
    assert isinstance(evaluate("memory.increment('t', 'x')"), Failure)


def test_log_is_kept_and_returns_undefined(evaluate: Evaluate) -> None:
    """B.5 D: what is logged comes back for the journal."""
    assert evaluate("log('a', 1, { b: [2] }, null); true", "condition") == Value(
        value=True, logs=('a 1 {"b":[2]} null',)
    )
    assert evaluate("log('x')") == Value(undefined=True, logs=("x",))


def test_prepare_reports_every_text_that_does_not_compile(sandbox: Sandbox) -> None:
    """Validation: all expressions in one frame, each with its own complaint."""
    found = sandbox.prepare(
        [("output.n > 1", "condition"), ("1 +", "condition"), ("return 1", "value"), ("", "condition")]
    )
    assert [each.kind if each else None for each in found] == [None, "syntax", None, "syntax"]


def test_results_keep_the_order_of_the_requests(sandbox: Sandbox) -> None:
    """Also when some don't compile, some wait for data and there are more than fit a frame."""
    sources = ["output", "1 +", "outputs['a' + output]", "output * 2"]
    requests = [
        Request(sources[n % 4], "value", {"output": n, "outputs": {f"a{n}": "found"}}) for n in range(2500)
    ]
    results = sandbox.evaluate(requests)
    assert len(results) == 2500
    for n, result in enumerate(results):
        expected = [n, None, "found", n * 2][n % 4]
        assert (result.value if isinstance(result, Value) else None) == expected


def test_one_object_is_sent_once(sandbox: Sandbox) -> None:
    """A big value is parsed and frozen once, however often it is read."""
    big = {"rows": [{"n": n} for n in range(20_000)]}
    first = sandbox.evaluate([Request("output.rows.length", "value", {"output": big})] * 50)
    assert first == [Value(value=20_000)] * 50
    assert sandbox.evaluate([Request("output.rows[9].n", "value", {"output": big})]) == [Value(value=9)]


def test_values_longest_unused_are_forgotten(sandbox: Sandbox) -> None:
    """Many large values in turn don't pile up in the child."""
    for n in range(40):
        value = {"text": "x" * 1_000_000, "n": n}
        assert sandbox.evaluate([Request("output.n", "value", {"output": value})]) == [Value(value=n)]


def test_memory_is_counted_on_top_of_the_data(sandbox: Sandbox) -> None:
    """Large outputs don't eat the evaluation's own allowance, and going over it is a failure of its own."""
    big = {"rows": ["x" * 100 for _ in range(100_000)]}
    grow = Request("output.rows.map(r => r + '!').length", "value", {"output": big}, 5.0)
    assert sandbox.evaluate([grow]) == [Value(value=100_000)]
    result = sandbox.evaluate([Request("'x'.repeat(1e9)", "value", {})])[0]
    assert isinstance(result, Failure)
    assert result.kind == "memory"


def test_threads_may_share_a_sandbox(sandbox: Sandbox) -> None:
    """Blocking calls may come from any thread."""
    wrong: list[object] = []

    def work(thread: int) -> None:
        for n in range(50):
            result = sandbox.evaluate(
                [Request("output.a + output.b", "value", {"output": {"a": thread, "b": n}})]
            )
            wrong.extend(result if result != [Value(value=thread + n)] else [])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_async_evaluation_lets_other_tasks_run(sandbox: Sandbox) -> None:
    """While a script spins, the event loop goes on."""
    turns: list[int] = []

    async def tick() -> None:
        while True:
            turns.append(1)
            await anyio.sleep(0.001)

    async def main() -> list[object]:
        async with anyio.create_task_group() as group:
            group.start_soon(tick)
            results = await sandbox.evaluate_async([Request("while (true);", "value", {}, 0.2)])
            group.cancel_scope.cancel()
        return list(results)

    result = anyio.run(main)[0]
    assert isinstance(result, Failure)
    assert result.kind == "limit"
    assert len(turns) > 5


def test_a_blocking_call_inside_a_busy_event_loop_is_refused(sandbox: Sandbox) -> None:
    """It would wait for itself."""

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(sandbox.evaluate_async, [Request("while (true);", "value", {}, 0.1)])
            await anyio.sleep(0.02)
            with pytest.raises(Bug, match="evaluate_async"):
                sandbox.evaluate([Request("1", "value", {})])

    anyio.run(main)


def test_async_batches_take_turns(sandbox: Sandbox) -> None:
    """Tasks that evaluate at once get their own results."""

    async def one(n: int, into: dict[int, object]) -> None:
        into[n] = (await sandbox.evaluate_async([Request("output + 1", "value", {"output": n})]))[0]

    async def main() -> dict[int, object]:
        into: dict[int, object] = {}
        async with anyio.create_task_group() as group:
            for n in range(20):
                group.start_soon(one, n, into)
        return into

    assert anyio.run(main) == {n: Value(value=n + 1) for n in range(20)}


@pytest.mark.parametrize(
    "answer",
    [
        '{"v":1}',
        "{",
        '{"n":[["outputs","a"]]}',
        '{"v":true,"m":[{"op":1}],"l":[]}',
        '{"v":true,"m":[],"l":[5]}',
        "[]",
    ],
)
def test_a_child_that_was_taken_over_can_only_fail(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    """Answers to a condition that the child's own code would never give are failures, and none goes on for ever."""
    with Sandbox(now_ms=0.0) as sandbox:
        sandbox.evaluate([Request("true", "condition", {})])
        monkeypatch.setattr(sandbox._child, "exchange", lambda parts, limits_s: ["", answer])
        result = sandbox.evaluate([Request("true", "condition", {"outputs": {}})])[0]
    assert isinstance(result, Failure)
    assert result.kind == "crash"


@pytest.mark.parametrize("reply", [[""], ["", ""], ["", "", "t", "t"]])
def test_a_child_that_answers_nothing_or_too_much_is_not_asked_for_ever(
    monkeypatch: pytest.MonkeyPatch, reply: list[str]
) -> None:
    """Too few answers, none for the run that is always made, too many: a failure, and compiling ends too."""
    with Sandbox(now_ms=0.0) as sandbox:
        monkeypatch.setattr(Child, "exchange", lambda child, parts, limits_s: list(reply))
        (result,) = sandbox.evaluate([Request("true", "condition", {})])
        assert isinstance(result, Failure)
        assert result.kind == "crash"
        sandbox.prepare([("1", "value"), ("2", "value")])


def test_cancelling_an_evaluation_leaves_the_sandbox_usable(sandbox: Sandbox) -> None:
    """The child is killed and started again; the next evaluation is right."""

    async def main() -> object:
        with anyio.move_on_after(0.05):
            await sandbox.evaluate_async([Request("while (true);", "value", {}, 30.0)])
        return (await sandbox.evaluate_async([Request("1 + 1", "value", {})]))[0]

    assert anyio.run(main) == Value(value=2)


def test_a_crash_of_the_child_costs_one_evaluation_at_most(sandbox: Sandbox) -> None:
    """A child that is killed from outside is started again."""
    assert sandbox.evaluate([Request("1", "value", {})]) == [Value(value=1)]
    child = sandbox._child
    assert child is not None
    os.kill(child._process.pid, signal.SIGKILL)
    assert sandbox.evaluate([Request("output", "value", {"output": {"a": 1}})]) == [Value(value={"a": 1})]


def test_a_closed_sandbox_leaves_no_process_and_can_start_again() -> None:
    """close() ends the child; it is safe to repeat."""
    sandbox = Sandbox(now_ms=0.0)
    sandbox.evaluate([Request("1", "value", {})])
    child = sandbox._child
    assert child is not None
    sandbox.close()
    sandbox.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child._process.pid, 0)
    assert sandbox.evaluate([Request("2", "value", {})]) == [Value(value=2)]
    sandbox.close()


def test_a_long_batch_is_cut_into_frames_without_losing_results() -> None:
    """A frame that takes longer than batch_s is cut; the rest goes into the next."""
    sandbox = Sandbox(now_ms=0.0, limits=Limits(batch_s=0.0))
    assert sandbox.evaluate([Request(f"{n}", "value", {}) for n in range(20)]) == [
        Value(value=n) for n in range(20)
    ]
    sandbox.close()


def test_what_piles_up_in_the_engine_ends_with_its_process() -> None:
    """Promise jobs are never run and never freed; a process that holds many is replaced."""
    sandbox = Sandbox(now_ms=0.0, limits=Limits(memory_bytes=8 << 20))
    for _ in range(6):
        sandbox.evaluate([Request("while (true) Promise.resolve().then(() => 1)", "value", {}, 1.0)])
    assert sandbox.evaluate([Request("'x'.repeat(1e6).length", "value", {})]) == [Value(value=1_000_000)]
    sandbox.close()


def _run(code: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    source = str(Path(__file__).resolve().parents[2] / "src")
    env = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=env, timeout=60, **settings
    )


START = """
    import os, sys
    from gonogo.expressions.sandbox import Request, Sandbox
    sandbox = Sandbox(now_ms=0.0)
    ask = lambda: sandbox.evaluate([Request("1 + 1", "value", {})])[0].value
"""


def test_it_starts_without_a_working_directory_and_without_stdin(tmp_path: Path) -> None:
    """The parent's directory may be gone and its stdin closed."""
    gone = tmp_path / "gone"
    gone.mkdir()
    code = (
        START
        + f"""
    os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); os.close(0)
    print(ask())
    """
    )
    assert _run(code).stdout == "2\n"


def test_a_forked_child_gets_its_own_process() -> None:
    """expressions.md, "fork": respawn when the process id changed; the parent's child is left alone."""
    code = (
        START
        + """
    first = ask()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if ask() == 2 else 1)
    _, status = os.waitpid(pid, 0)
    print(first, os.waitstatus_to_exitcode(status), ask())
    """
    )
    assert _run(code).stdout == "2 0 2\n"


def _is_gone_in_time(pid: int) -> bool:
    """A minute is for machines that have other work; it is there on the spot, or after seconds of its own CPU time."""
    for _ in range(6000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        threading.Event().wait(0.01)
    return False


def test_the_child_ends_when_its_parent_is_killed() -> None:
    """No orphan is left: the child's stdin ends."""
    code = (
        START
        + """
    ask()
    print(sandbox._child._process.pid, flush=True)
    os.kill(os.getpid(), 9)
    """
    )
    assert _is_gone_in_time(int(_run(code).stdout))


def test_a_child_that_hangs_ends_when_its_parent_is_killed() -> None:
    """Nobody is there to kill it, and the engine can't interrupt its own natives: its timer does."""
    code = (
        START
        + """
    ask()
    print(sandbox._child._process.pid, flush=True)
    hang = "let s = 'a'.repeat(5e6); while (true) (s + 1).indexOf('b')"
    sandbox._child.send(["2.0", "c", "9", "", hang, hang, "r", "9", "value", "0.1", ""], [0.1])
    os.kill(os.getpid(), 9)
    """
    )
    assert _is_gone_in_time(int(_run(code).stdout))


def test_the_child_has_no_environment_and_few_rights(sandbox: Sandbox) -> None:
    """An empty environment, no core files, no processes, few descriptors."""
    sandbox.evaluate([Request("1", "value", {})])
    assert sandbox._child is not None
    proc = Path(f"/proc/{sandbox._child._process.pid}")
    if not proc.exists():
        pytest.skip("needs /proc")
    assert (proc / "environ").read_bytes().rstrip(b"\0") == b"TZ=UTC"
    limits = (proc / "limits").read_text()
    for line in ("Max file size             0", "Max core file size        0", "Max processes             0"):
        assert line in limits
