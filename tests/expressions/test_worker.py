"""What the child does with a frame, run here without a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gonogo.expressions import worker
from gonogo.expressions.process import engine_path

JS = Path(worker.__file__).parent / "js"


class NoMarker:
    def set(self, index: int, limit_s: float) -> None:
        """Nobody watches."""


@pytest.fixture(scope="module")
def engine() -> worker.Engine:
    """The real engine with the real scripts."""
    scripts = [
        (JS / f"{name}.js").read_text(encoding="utf-8")
        for name in ("lockdown", "helpers", "mirror", "evaluate")
    ]
    return worker.Engine(engine_path(), scripts, "0.0", 64 << 20, "100000")


def ask(engine: worker.Engine, *parts: str, seconds: str = "2.0") -> list[str]:
    """The answer to one frame."""
    return worker.answer(engine, NoMarker(), [seconds, *parts])  # type: ignore[arg-type]


def test_commands_are_carried_out_in_order(engine: worker.Engine) -> None:
    """Values, functions, runs; forgetting both."""
    put = ("p", "1", '{"n":2}')
    compile_ = ("c", "7", "output", "output.n + 1", "")
    run = ("r", "7", "value", "1.0", '{"names":[1]}')
    assert ask(engine, *put, *compile_, *run) == ["", "", '{"v":3}']
    assert ask(engine, "d", "1", *run)[1].startswith('{"e":["TypeError"')
    assert ask(engine, "x", "7", *run) == ["", ""]


def test_a_late_frame_is_cut_after_its_first_run(engine: worker.Engine) -> None:
    """At least one run is done, so that every frame makes progress."""
    run = ("r", "8", "condition", "1.0", '{"names":[]}')
    assert ask(engine, "c", "8", "", "true", "", *run, *run, seconds="-1") == ["", "", "t", ""]


def test_both_complaints_about_a_text_come_back(engine: worker.Engine) -> None:
    """As an expression and as a body."""
    complaint = ask(engine, "c", "9", "", "const a = ;", "const a = ;")[1]
    assert len(complaint.split("\x01")) == 2


def test_an_endless_run_is_interrupted(engine: worker.Engine) -> None:
    """The engine's own limit, in CPU time."""
    answer = ask(
        engine, "c", "10", "", "while (true);", "while (true);", "r", "10", "value", "0.05", '{"names":[]}'
    )
    assert answer[2].startswith("!InternalError: interrupted")


def test_data_names_are_constants() -> None:
    """EXP-3: assigning to one is an error."""
    assert worker.head("a,b") == "(function($c0,$c1){'use strict';const a=$c0,b=$c1;"
    assert worker.head("") == "(function(){'use strict';"
