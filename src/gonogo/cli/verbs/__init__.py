"""The table of verbs, and what `gonogo --help` prints. One module a verb, each with its options and a `COMMAND`.

Nothing slow is imported here: `--help` needs nothing else.
"""

from __future__ import annotations

from types import MappingProxyType

VERBS = MappingProxyType(
    {
        "init": "Write a working gonogo.yaml to start from.",
        "run": "Run the workflow and print the verdict.",
        "validate": "Find every mistake in a workflow file; run nothing.",
        "plan": "Show what would run for this event, and why; run nothing.",
        "runs": "List the runs, newest first.",
        "show": "Show one run: steps, reasons, issues, what it waits for.",
        "resume": "Go on with a run after a crash, a failure or a hold.",
        "answer": "Answer what a run waits for, and go on.",
        "cancel": "Ask a run to stop.",
        "worker": "Carry runs that were given to an engine (DBOS, Temporal).",
        "workers": "List the workers of a store, and what waits for one.",
        "breakers": "List, isolate or reset the breakers of outbound calls.",
        "schema": "Print the JSON schema of workflow files, for editors.",
        "providers": "List the step types and their keys.",
        "doctor": "Check that everything a run needs is there.",
    }
)
"""Every verb with what it does, in the order of `--help`."""

_HELP = """\
Usage: gonogo [OPTIONS] COMMAND [ARGS]...

  Runs workflows of YAML under fault management: GO, NO-GO or HOLD.

Options:
  --version  Show the version and end.
  --help     Show this message and end.

Commands:
{verbs}

Exit codes: 0 GO, 1 NO-GO, 2 wrong command line or workflow file, 3 HOLD,
70 a bug in gonogo, 130 interrupted. More on each verb: gonogo VERB --help
"""


def help_text() -> str:
    """What `gonogo --help` prints."""
    width = max(map(len, VERBS))
    return _HELP.format(verbs="\n".join(f"  {name:<{width}}  {does}" for name, does in VERBS.items()))
