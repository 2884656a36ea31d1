"""Why each thing happened, in sentences with values: `explain`."""

from __future__ import annotations

from gonogo.core.events import CallFailed
from gonogo.core.faults import Fault
from gonogo.core.plan import Block, Edge, Expression, Need, Plan, Retry, Step, Target
from gonogo.expressions.analyse import analyse
from gonogo.journal.story import story

SOURCE = "branch == 'main'"
PLAN = Plan(
    "test",
    {
        "build": Step(
            "build", "noop", if_condition=0, on_fail=Block(retry=Retry(1, delay_s=2.0, jitter=0.0))
        ),
        "test": Step(
            "test", "noop", depends_on=(Need((Edge("build"),)),), on_fail=Block(run=(Target("fix"),))
        ),
        "fix": Step("fix", "noop"),
        "late": Step("late", "noop", on=("pr_closed",)),
    },
    expressions=(Expression(SOURCE, "condition", analyse(SOURCE)),),
)
BUSY = Fault(kind="http.status", fault_class="transient", rule_id="x/busy", message="busy")


def busy_once(command):
    """The first attempt at build fails, and test always does."""
    failing = (command.step, command.attempt) == ("build", 1) or command.step == "test"
    return CallFailed(call=command.call, fault=BUSY) if failing else None


def told(drive, step: str | None = None, **more) -> list[str]:
    """The sentences of a run on branch main."""
    records = drive(PLAN, busy_once, trigger={"name": "push"}, context={"branch": "main"}, **more)
    return [line.text for line in story(records, step)]


def test_a_step_tells_its_life_in_order(drive) -> None:
    """From the plan over its condition and its failed attempt to the outcome."""
    sentences = told(drive, "build")
    expected = [
        "planned",
        "if gave True",
        "started",
        "failed: busy",
        "retry 1 in 2 s",
        "started attempt 2",
        "passed",
    ]
    places = [sentences.index(sentence) for sentence in expected]
    assert places == sorted(places)


def test_a_judgement_shows_its_expression_and_what_it_read(drive) -> None:
    """architecture.md 2.4: every decision carries evidence."""
    records = drive(PLAN, busy_once, context={"branch": "main"})
    line = next(line for line in story(records, "build") if line.kind == "judged")
    assert (line.expression, line.evidence) == (SOURCE, {"branch": "main"})


def test_a_step_tells_who_asked_for_it(drive) -> None:
    """A remedy's story begins with the step that needed it."""
    sentences = told(drive, "fix")
    assert sentences[0] == "planned, but waits until something routes to it"
    assert "asked to run by test (on_fail, run)" in sentences


def test_a_step_left_out_tells_why(drive) -> None:
    """No step is missing without a word."""
    assert told(drive, "late") == ["left out: event_filter"]


def test_a_failed_step_tells_the_verdict_it_made(drive) -> None:
    """The end of the story."""
    assert told(drive, "test")[-1] == "verdict NO-GO: test"
    assert "verdict" not in told(drive, "build")[-1]


def test_the_story_of_a_run_is_the_story_of_all_its_steps(drive) -> None:
    """Nothing that a step tells is missing from the whole."""
    records = drive(PLAN, busy_once)
    whole = {(line.seq, line.step, line.kind) for line in story(records)}
    for step in ("build", "test"):
        own = {(line.seq, line.step, line.kind) for line in story(records, step) if line.step == step}
        assert own <= whole


def test_one_item_can_be_asked_about(drive) -> None:
    """A scope narrows the story."""
    plan = Plan(
        "test",
        {
            "list": Step("list", "noop", for_each=True),
            "work": Step("work", "noop", depends_on=(Need((Edge("list"),)),), fanout="map"),
        },
    )
    records = drive(plan, lambda command: [1, 2, 3] if command.step == "list" else None)
    scopes = {line.scope for line in story(records, "work", "list#1[1]") if line.step == "work"}
    assert scopes == {"list#1[1]"}
