"""gonogo: fault management for automation. Every step is GO, NO-GO or HOLD, and a journal says why.

    import gonogo

    workflow = gonogo.load("gonogo.yaml")
    result = workflow.run(inputs={"name": "x"}, runs=".gonogo/runs")
    print(result.verdict, result.output("build"))

Names are imported when they are used, so that `import gonogo` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gonogo.app.options import Summary
    from gonogo.app.workflow import (
        Workflow,
        answer,
        answer_async,
        cancel,
        cancel_async,
        load,
        loads,
        read,
        resume,
        resume_async,
        resume_due,
        resume_due_async,
        run,
        waiting,
    )
    from gonogo.errors import (
        Bug,
        ConfigError,
        GonogoError,
        Interrupted,
        JournalError,
        RunLocked,
        SandboxError,
        UsageError,
    )
    from gonogo.hosts.base import Question, RunResult
    from gonogo.journal.memory import MemoryRuns
    from gonogo.journal.view import RunView

__version__ = "0.1.0"
__all__ = [
    "Bug", "ConfigError", "GonogoError", "Interrupted", "JournalError", "MemoryRuns", "Question", "RunLocked",
    "RunResult", "RunView", "SandboxError", "Summary", "UsageError", "Workflow", "__version__", "answer",
    "answer_async", "cancel", "cancel_async", "load", "loads", "read", "resume", "resume_async", "resume_due",
    "resume_due_async", "run", "waiting",
]  # fmt: skip

_HOMES = {
    "gonogo.app.workflow": (
        "Workflow", "answer", "answer_async", "cancel", "cancel_async", "load", "loads", "read", "resume",
        "resume_async", "resume_due", "resume_due_async", "run", "waiting",
    ),
    "gonogo.app.options": ("Summary",),
    "gonogo.hosts.base": ("Question", "RunResult"),
    "gonogo.journal.memory": ("MemoryRuns",),
    "gonogo.journal.view": ("RunView",),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'gonogo' has no attribute {name!r}")
    from importlib import import_module

    home = next((home for home, names in _HOMES.items() if name in names), "gonogo.errors")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
