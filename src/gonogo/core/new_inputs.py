"""The inputs of a run that goes on under a changed workflow: those that are added have their defaults, those that are
removed are gone.

What ran and stays was judged under the inputs of before, so it may read none of these. Where a text reads them all, or
doesn't say which, it reads each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gonogo.core.plan import Plan

_READ = re.compile(
    r"""\binputs\b(?=(?:\s*(?:\?\s*)?(?:\.\s*([\w$-]+)|\[\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*\]))?)"""
)


def renewed(given: Mapping[str, Any], before: Plan, plan: Plan) -> dict[str, Any]:
    """What the run's steps see from now on. What was given stays, though another default stands there now."""
    added = {
        name: plan.inputs[name]["default"] for name in _added(before, plan) if "default" in plan.inputs[name]
    }
    gone = before.inputs.keys() - plan.inputs.keys()
    return {**added, **{name: value for name, value in given.items() if name not in gone}}


def misfit(inputs: Mapping[str, Any], before: Plan, plan: Plan) -> str:
    """Why the run can't go on with the inputs of the changed plan; empty when it can. `inputs`: as `renewed`."""
    for name, declared in plan.inputs.items():
        if name in before.inputs:
            if declared != before.inputs[name]:
                return f"the input {name!r} is changed; a run keeps its own"
        elif "default" not in declared and declared.get("required", True):
            return f"the input {name!r} is new and has no default, so the run has no value for it"
        elif inputs.get(name) != declared.get("default"):
            return f"the input {name!r} is new, and the run was given one of that name before it was declared"
    return ""


def changed(before: Plan, plan: Plan) -> list[str]:
    """The names of the inputs that were added or removed."""
    return [*_added(before, plan), *(name for name in before.inputs if name not in plan.inputs)]


def first_read(texts: Iterable[str], names: Iterable[str]) -> str | None:
    """The first of these inputs that one of the texts reads."""
    read: set[str] = set()
    for text in texts:
        for match in _READ.finditer(text):
            read.add(next(filter(None, match.groups()), ""))
    return next((name for name in names if _is_among(name, read)), None)


def texts_in(value: Any) -> Iterator[str]:
    """The texts of plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_in(each)


def _added(before: Plan, plan: Plan) -> list[str]:
    return [name for name in plan.inputs if name not in before.inputs]


def _is_among(name: str, read: set[str]) -> bool:
    """JavaScript subtracts where a template has a longer name."""
    return any(each in ("", name) or each.startswith(f"{name}-") for each in read)
