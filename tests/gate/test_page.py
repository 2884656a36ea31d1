"""The page about the gate says what the code does."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from tests.gate.world import answered, world

from gonogo.gate import Gate, Policy, ValidationStuck
from gonogo.gate.lifecycle import MOVES, diagram
from tools import gate_page

TEXT = gate_page.PAGE.read_text()


def test_every_part_is_as_the_code_has_it() -> None:
    """After a change: `python -m tools.gate_page`."""
    assert gate_page.filled(TEXT) == TEXT
    assert set(re.findall(r"<!-- from the code: (\w+) -->", TEXT)) == set(gate_page.PARTS)


def test_the_picture_shows_every_move() -> None:
    """One arrow each, with its reason."""
    arrows = re.findall(r"^    (\w+) --> (\w+): .+$", diagram(), flags=re.MULTILINE)
    assert len(arrows) == sum(len(after) for after in MOVES.values())


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL))
def test_the_code_shown_can_be_run(block: str) -> None:
    """Each block makes a gate or a policy that passes its check."""
    names: dict[str, object] = {}
    imports = "from gonogo.gate import Bounds, Gate, Policy, Purse, Target, rule\n"
    made: list[object] = []
    source = imports + re.sub(r"^answer = await .*$", "", block, flags=re.MULTILINE)
    source = re.sub(r"^(Gate|Policy)\(", r"made = \1(", source, flags=re.MULTILINE)
    exec(compile(source, "page", "exec"), names)
    made = [thing for thing in names.values() if isinstance(thing, Gate | Policy)]
    assert made
    for thing in made:
        if isinstance(thing, Policy):
            assert Gate(thing).policy is thing


def test_the_recipe_for_a_local_model_does_what_it_says() -> None:
    """Twice wrong, then the larger one."""
    block = next(
        block
        for block in re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
        if '"local"' in block and "target_attempt" in block
    )
    names: dict[str, object] = {}
    exec(compile(block, "page", "exec"), names)
    made = names["gate"]
    assert isinstance(made, Gate)
    there = world(local=["bad", "bad too", "x"], cloud="good")
    found = answered(made.policy, there, validate=lambda value: None if value == "good" else f"{value}!")
    assert (found.value, there.called) == ("good", ["local", "local", "cloud"])


def test_the_recipe_for_schema_repair_does_what_it_says() -> None:
    """A wrong answer goes back with what was wrong about it; the same wrong one twice ends it, a right one is it."""
    [block] = [
        block
        for block in re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
        if "answer_of_the_model" in block
    ]
    told: list[tuple[object, object]] = []
    answers = iter(["no", "{}", "no", "no"])

    async def answer_of_the_model(rejected: object, feedback: object) -> str:
        told.append((rejected, feedback))
        return next(answers)

    names: dict[str, Any] = {"answer_of_the_model": answer_of_the_model}
    exec(compile(block, "page", "exec"), names)
    assert asyncio.run(names["gate"].call(names["triage"])) == "{}"
    assert told[0] == (None, None)
    assert told[1][0] == "no"
    assert "JSON alone." in str(told[1][1])
    assert "no JSON object" in str(told[1][1])
    with pytest.raises(ValidationStuck):
        asyncio.run(names["gate"].call(names["triage"]))
