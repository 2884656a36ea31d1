"""Workflows of the fault-management guide, run whole with step types that answer as told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.guide.stage import Stage
from tests.whole import Ran, runner


class Played(Ran):
    """A run on a stage."""

    stage: Stage

    def resumed(self, **options: Any) -> Played:
        """Go on with it on the same stage."""
        return on_stage(super().resumed(table=self.stage.table(), **options), self.stage)

    def answered(self, step: str, text: str, **options: Any) -> Played:
        """Answer a step and go on, on the same stage."""
        return on_stage(super().answered(step, text, table=self.stage.table(), **options), self.stage)


def on_stage(ran: Ran, stage: Stage) -> Played:
    """A run and the stage it was played on."""
    played = object.__new__(Played)
    played.__dict__.update(ran.__dict__)
    played.stage = stage
    return played


Play = Callable[..., Played]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """`play(text, {step: answer}, event=…, files=…, env=…)`; see `tests.whole.runner` for the rest."""
    run_yaml = runner(tmp_path)

    def run(text: str, answers: dict[str, Any] | None = None, **given: Any) -> Played:
        stage = Stage(answers or {})
        return on_stage(run_yaml(text, table=stage.table(), **given), stage)

    return run
