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
    from gonogo.app.workflow import Workflow, load, loads, resume, run
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
    from gonogo.hosts.base import RunResult

__version__ = "0.1.0"
__all__ = [
    "Bug", "ConfigError", "GonogoError", "Interrupted", "JournalError", "RunLocked", "RunResult", "SandboxError",
    "UsageError", "Workflow", "__version__", "load", "loads", "resume", "run",
]  # fmt: skip

_HOMES = {
    "RunResult": "gonogo.hosts.base",
    "Workflow": "gonogo.app.workflow",
    "load": "gonogo.app.workflow",
    "loads": "gonogo.app.workflow",
    "resume": "gonogo.app.workflow",
    "run": "gonogo.app.workflow",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'gonogo' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "gonogo.errors")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
