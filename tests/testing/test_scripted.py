"""A step type for other people's tests, which answers as told."""

from __future__ import annotations

import pytest

import gonogo
from gonogo.hosts.base import RunResult
from gonogo.provider import Call, Done, Failed, Fault, Parked
from gonogo.testing import ScriptedType

BUSY = Failed(Fault("model.busy", "transient", "model/busy", "busy"))
ASKS = """version: "1.0"
steps:
  ask:
    type: ai
    prompt: "{{ 1 | plus: 1 }}?"
    on_fail: { retry: { max: 2 } }
"""


def ran(text: str, *types: ScriptedType) -> RunResult:
    """A run with these step types, kept in memory."""
    return gonogo.loads(text, step_types=[one.provider for one in types]).run(runs=gonogo.MemoryRuns())


def test_answers_are_handed_out_in_order() -> None:
    """A failure, then an output; each call is there to be looked at, rendered."""
    model = ScriptedType("ai", keys=("prompt",), answers=[BUSY, {"text": "yes"}])
    result = ran(ASKS, model)
    assert (result.verdict, result.output("ask")) == ("GO", {"text": "yes"})
    assert [(call.step, call.attempt, call.config.prompt) for call in model.calls] == [
        ("ask", 1, "2?"),
        ("ask", 2, "2?"),
    ]


def test_answers_may_depend_on_the_call() -> None:
    """A function of the call, for lists and for several steps of the type."""

    def answer(call: Call) -> object:
        return f"{call.step} {call.scope}"

    text = """version: "1.0"
steps:
  list: { type: script, content: "return [1, 2]", forEach: true }
  each: { type: ai, depends_on: list, fanout: map }
"""
    assert ran(text, ScriptedType("ai", answers=answer)).output("each") == [
        "each list#1[0]",
        "each list#1[1]",
    ]


@pytest.mark.parametrize(
    ("answer", "verdict"), [(Done("fine", effect="none"), "GO"), (BUSY, "NO-GO"), (Parked("really?"), "HOLD")]
)
def test_an_answer_may_be_any_outcome(answer: object, verdict: str) -> None:
    """What a step type returns."""
    text = 'version: "1.0"\nsteps:\n  a: {type: ai}\n'
    assert ran(text, ScriptedType("ai", answers=[answer])).verdict == verdict


def test_a_call_that_is_not_scripted_is_a_bug() -> None:
    """It is told, whatever the workflow tolerates."""
    result = ran('version: "1.0"\nsteps:\n  a: {type: ai}\n', ScriptedType("ai"))
    assert result.fault is not None
    assert result.fault.fault_class == "bug"
    assert "no answer for call 1 of ai" in result.fault.message


def test_keys_it_does_not_have_are_refused() -> None:
    """As with any step type: a slip of the pen is found when the file is loaded."""
    with pytest.raises(gonogo.ConfigError, match="promt"):
        gonogo.loads(
            ASKS.replace("prompt", "promt"), step_types=[ScriptedType("ai", keys=("prompt",)).provider]
        )


def test_a_scripted_type_may_take_the_place_of_a_built_in_one() -> None:
    """A command that isn't run, and one that would change something."""
    command = ScriptedType("command", keys=("exec",), answers=["built"], effects="mutates")
    text = 'version: "1.0"\nsteps:\n  a: {type: command, exec: make all}\n'
    assert ran(text, command).output("a") == "built"
    assert command.calls[0].config.exec == "make all"
