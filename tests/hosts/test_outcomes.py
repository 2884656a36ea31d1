"""What providers give becomes events that can be stored, whatever it is (case RES-3)."""

from __future__ import annotations

import datetime
import sys
from typing import Any

import pytest
from msgspec import UNSET

from gonogo.core.events import CallDone, CallFailed, CallParked
from gonogo.core.faults import Fault, Issue
from gonogo.core.graph import Graph
from gonogo.core.plan import Plan, Step
from gonogo.core.state import State
from gonogo.expressions.results import MemoryOp
from gonogo.hosts.outcomes import Outcomes, bug_in
from gonogo.hosts.schemas import Schemas
from gonogo.hosts.vault import Vault
from gonogo.journal.codec import encode_line
from gonogo.journal.memory import MemoryBlobs
from gonogo.journal.records import Record
from gonogo.journal.redact import Redactor
from gonogo.journal.sealing import MemorySeals
from gonogo.provider import Done, Failed, Outcome, Parked

STEP = Step("one", "noop")


class Hostile:
    """Its text can't be had."""

    def __repr__(self) -> str:
        raise ValueError("no")


def itself() -> list[Any]:
    """A list that contains itself."""
    made: list[Any] = []
    made.append(made)
    return made


def event_of(
    outcome: Outcome, step: Step = STEP, *, bytes_max: int = 1000
) -> CallDone | CallFailed | CallParked:
    """The event of an outcome, which can always be written."""
    redactor = Redactor({"S_TOKEN": "swordfish"})
    vault = Vault(State(Graph(Plan("test", {"one": STEP}))), MemorySeals(), redactor, resumed=True)
    outcomes = Outcomes(redactor, vault, MemoryBlobs(), Schemas(), bytes_max)
    event = outcomes.event(step, 1, 2.0, outcome, None)
    encode_line(Record(1, 0.0, event))
    return event


@pytest.mark.parametrize(
    "value",
    [
        {1, 2}, b"bytes", float("nan"), float("inf"), datetime.date(2026, 1, 1), itself(), sys.stdin, 10**5000,
        {1: "a"}, Hostile(), "x" * 2000,
    ],
    ids=["set", "bytes", "nan", "inf", "date", "itself", "file", "digits", "int keys", "hostile", "large"],
)  # fmt: skip
def test_res_3_what_cant_be_stored_fails_the_step(value: Any) -> None:
    """RES-3: the message names the step and the path inside the value; the effect of the call is kept."""
    event = event_of(Done({"items": [value]}))
    assert isinstance(event, CallFailed)
    assert event.fault.kind == "output.not_storable"
    assert event.fault.message.startswith("one gave what can't be stored: output")
    assert event.effect == "done"


def test_a_lone_surrogate_is_replaced_everywhere() -> None:
    """Bytes that were no text don't stop a journal."""
    odd = "a\ud800b"
    failed = Failed(
        Fault("k", "logical", "one/r", odd, cause=odd),
        odd,
        [Issue("r", odd, suggestion=odd)],
        {"m": odd},
        content=odd,
    )
    event = event_of(failed)
    assert isinstance(event, CallFailed)
    assert event.fault.message == event.output == event.content == event.issues[0].message == "a\ufffdb"


def test_every_part_of_an_outcome_is_masked() -> None:
    """Architecture 2.11: output, meta, issues, content, memory, fault, prompt."""
    word = "it is swordfish"
    issues = [Issue("r", word, file=word, suggestion=word, replacement=word)]
    done = event_of(Done({"a": [word]}, issues, {"m": word}, [MemoryOp("set", "k", word)], content=word))
    failed = event_of(Failed(Fault("k", "logical", "r", word, cause=word), word))
    parked = event_of(Parked(word, {"d": word}))
    assert "swordfish" not in repr((done, failed, parked))
    assert repr((done, failed, parked)).count("it is ***") == 13


def test_an_output_that_doesnt_fit_its_schema_is_told_with_paths() -> None:
    """C.7 R2: errors name the place; an absent output is judged as null."""
    step = Step("one", "noop", schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    wrong = event_of(Done({"n": "three"}), step)
    assert isinstance(wrong, CallDone)
    assert wrong.schema_errors == ('n: "three" is not of type "integer"',)
    absent = event_of(Done(), step)
    assert isinstance(absent, CallDone)
    assert absent.schema_errors == ('null is not of type "object"',)


def test_a_remote_schema_reference_is_refused() -> None:
    """Nothing is fetched to judge an output; what can't be judged doesn't pass."""
    step = Step("one", "noop", schema={"$ref": "http://127.0.0.1:9/schema.json"})
    event = event_of(Done({}), step)
    assert isinstance(event, CallDone)
    assert "not a JSON Schema" in event.schema_errors[0]


def test_nothing_stays_nothing() -> None:
    """An output that isn't there is UNSET, not null."""
    event = event_of(Done(effect="none"))
    assert isinstance(event, CallDone)
    assert event.output is UNSET


def test_an_exception_whose_text_cant_be_had_is_told_all_the_same() -> None:
    """Its type is enough."""

    class Silent(Exception):  # noqa: N818 - a stranger's
        def __str__(self) -> str:
            raise ValueError("no")

    assert bug_in("one", Silent()).message == "the step type raised Silent"
