"""A sandbox whose process starts before anything is known of the workflow, beside the loading of the file.

It compiles the file's expressions and then evaluates for the run, so that both together pay for one process. That
needs the run to have started, as its expressions see it, when the sandbox was made.
"""

from __future__ import annotations

import time
from typing import Self

from gonogo.app.parts import new_sandbox
from gonogo.errors import SandboxError
from gonogo.expressions.sandbox import Sandbox


class Ahead:
    """A context: what nobody has taken is closed at its end. `started_at_ms` is the moment it stands for."""

    def __init__(self) -> None:
        self.started_at_ms = int(time.time() * 1000)
        self.sandbox = new_sandbox(self.started_at_ms)
        self._taken = False

    def __enter__(self) -> Self:
        try:
            self.sandbox.start()
        except SandboxError:
            pass  # a workflow without JavaScript does without; any other is told by the next try
        return self

    def __exit__(self, *_: object) -> None:
        if not self._taken:
            self.sandbox.close()

    def take(self, started_at_ms: float) -> Sandbox:
        """The sandbox, for the first run that started then; another for every other. It's the run's to close."""
        if self._taken or started_at_ms != self.started_at_ms:
            return new_sandbox(started_at_ms)
        self._taken = True
        return self.sandbox
