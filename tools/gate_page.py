"""Write the parts of docs/concepts/gate.md that the code knows best: the picture of states, verbs, kinds, rules' names.

A part stands between `<!-- from the code: NAME -->` and `<!-- end -->`; a test fails when it differs from the code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from gonogo.gate.breaker import BreakerPolicy
from gonogo.gate.decisions import Decision
from gonogo.gate.fronts import CROWDED, MAY_HAVE_ACTED, OF_ERRORS, OF_KINDS, OTHERWISE, WAITS
from gonogo.gate.lifecycle import diagram
from gonogo.gate.policy import AFTER_VERBS, BEFORE_VERBS, Backoff, Bounds, Timers
from gonogo.gate.rules import OPERATORS
from gonogo.gate.scopes import NAMES
from gonogo.gate.taxonomy import ROWS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "concepts" / "gate.md"
_PART = re.compile(r"(<!-- from the code: ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)

_MEANINGS = {
    "continue": "no objection: call",
    "skip-target": "leave this target out of the call",
    "wait": "wait `wait_s`, then look again",
    "ok": "accept the answer (or, of a stream, the part that came)",
    "retry": "the same target again, after a wait",
    "retry-other": "the next target that may serve",
    "fallback": "ask the step's fallback, once",
    "fail-fast": "end the call with the rule's `kind`",
}
_SAME = {
    "no": "–",
    "yes": "yes",
    "once": "once",
    "wait": "after the wait asked for",
    "feedback": "with feedback",
}
_OTHER = {"no": "–", "yes": "yes", "larger": "with a larger window", "opt-in": "if `reroute` names it"}
_COUNTING = {"no": "–", "failure": "a failure", "cool": "rests", "isolate": "out for a while"}
_TERMINAL = {"no": "", "yes": "yes", "if-none": "without another target"}


def states() -> str:
    """The moves of a call."""
    return f"```mermaid\n{diagram()}\n```\n"


def verbs() -> str:
    """Every verb and where it may stand."""
    rows = [
        f"| `{verb}` | {_yes(verb in BEFORE_VERBS)} | {_yes(verb in AFTER_VERBS)} | {meaning} |"
        for verb, meaning in _MEANINGS.items()
    ]
    return _table("Verb", "before", "after", "what happens", rows=rows)


def kinds() -> str:
    """The taxonomy."""
    rows = [
        f"| `{row.kind}` | {row.meaning} | {_SAME[row.same]} | {_OTHER[row.other]} | {_COUNTING[row.counting]} "
        f"| {_TERMINAL[row.terminal]} | {row.effect} |"
        for row in ROWS.values()
    ]
    heads = ("Kind", "Seen as", "same target", "another target", "breaker", "ends the call", "did outside")
    return _table(*heads, rows=rows)


def names() -> str:
    """What rules see and compare with."""
    listed = ", ".join(f"`{name}`" for name in sorted(NAMES))
    operators = ", ".join(f"`{name}`" for name in OPERATORS)
    return f"Names: {listed}.\n\nOperators: {operators}.\n"


def numbers() -> str:
    """Every number of a policy with its default."""
    rows = []
    for part, values in (
        ("bounds", Bounds()),
        ("timers", Timers()),
        ("backoff", Backoff()),
        ("breaker", BreakerPolicy()),
    ):
        for field in values.__struct_fields__:
            value = getattr(values, field)
            if value is None or isinstance(value, int | float):
                rows.append(f"| `{part}.{field}` | {'off' if value is None else f'{value:g}'} |")
    return _table("Key", "Default", rows=rows)


def decisions() -> str:
    """What a record may hold."""
    rows = [
        f"| `{kind.__struct_config__.tag}` | {(kind.__doc__ or '').splitlines()[0]} |"
        for kind in Decision.__subclasses__()
    ]
    return _table("Decision", "Meaning", rows=rows)


def statuses() -> str:
    """What a server answers: first what the errors say themselves, then what kinds of failure say."""
    told = [
        ("any error of a call that changes things", MAY_HAVE_ACTED),
        ("`DeadlineExceeded`", WAITS),
        ("`BudgetExceeded`", CROWDED),
        *((f"`{error.__name__}`", row) for error, row in OF_ERRORS.items()),
    ]
    kinds: dict[int, list[str]] = {}
    for kind, status in OF_KINDS.items():
        kinds.setdefault(status, []).append(f"`{kind}`")
    rows = [f"| {name} | {status} | {why} |" for name, (status, why) in told]
    kinds[OTHERWISE].append("anything else")
    rows += [f"| others | {status} | after {', '.join(names)} |" for status, names in sorted(kinds.items())]
    return _table("Error", "Status", "When", rows=rows)


PARTS: dict[str, Callable[[], str]] = {
    "states": states,
    "verbs": verbs,
    "kinds": kinds,
    "names": names,
    "numbers": numbers,
    "decisions": decisions,
    "statuses": statuses,
}


def filled(text: str) -> str:
    """The page with every part as the code has it. Raises KeyError on a part that isn't there."""
    return _PART.sub(lambda found: f"{found[1]}{PARTS[found[2]]()}{found[3]}", text)


def _table(*heads: str, rows: list[str]) -> str:
    return "\n".join([f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *rows]) + "\n"


def _yes(value: bool) -> str:
    return "yes" if value else ""


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
