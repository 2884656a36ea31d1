"""Workflow files to plans, and plans with what the command line says instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from gonogo.app.parts import built_in_table, new_sandbox
from gonogo.core.plan import Plan
from gonogo.errors import UsageError

if TYPE_CHECKING:
    from gonogo.app.ahead import Ahead
    from gonogo.config import Loaded
    from gonogo.config.schema.base import Safety
    from gonogo.expressions.sandbox import Sandbox
    from gonogo.providers.table import Table


def load(
    path: str | Path | None = None,
    *,
    strict: bool = False,
    safety: Safety | None = None,
    table: Table | None = None,
    ahead: Ahead | None = None,
) -> Loaded:
    """The plan of a workflow file; without a path the usual names are looked for, up to the git root.

    `safety` wins over what the files say, and `strict` turns warnings into errors whatever they say. The expressions
    are compiled by the sandbox of `ahead`, else by one that is made for it.

    Raises:
        ConfigError: with every problem found.
        UsageError: there is no such file.
    """
    from gonogo.config import find_config
    from gonogo.config import load as load_file

    if path is None:
        path = find_config(Path.cwd()).path
    with _Compiler(ahead.sandbox if ahead is not None else None) as compile_expressions:
        return load_file(
            path,
            providers=table or built_in_table(),
            compile_expressions=compile_expressions,
            strict=strict,
            safety=safety,
        )


def loads(
    text: str,
    *,
    strict: bool = False,
    safety: Safety | None = None,
    name: str = "<text>",
    table: Table | None = None,
) -> Loaded:
    """The plan of a text. Raises ConfigError."""
    from gonogo.config import loads as load_text

    with _Compiler() as compile_expressions:
        return load_text(
            text,
            providers=table or built_in_table(),
            compile_expressions=compile_expressions,
            strict=strict,
            safety=safety,
            name=name,
        )


class _Compiler:
    """The sandbox that was given, else one for as long as a file is loaded; started only if there is JavaScript."""

    def __init__(self, given: Sandbox | None = None) -> None:
        self._given = given
        self._sandbox = given

    def __enter__(self) -> Callable[[Sequence[tuple[str, Any]]], Sequence[Any]]:
        return self._prepare

    def __exit__(self, *exc: object) -> None:
        if self._sandbox is not None and self._sandbox is not self._given:
            self._sandbox.close()

    def _prepare(self, sources: Sequence[tuple[str, Any]]) -> Sequence[Any]:
        if not sources:
            return []
        if self._sandbox is None:
            self._sandbox = new_sandbox(0.0)
        return self._sandbox.prepare(sources)


def with_limits(
    plan: Plan,
    *,
    max_parallelism: int | None = None,
    fail_fast: bool | None = None,
    include_tags: tuple[str, ...] | None = None,
    exclude_tags: tuple[str, ...] | None = None,
) -> Plan:
    """The plan with what the command line says instead; the journal holds it like that.

    Raises UsageError for a wanted tag that no step has: a gate that leaves everything out would say GO.
    """
    if max_parallelism is not None:
        plan = replace(plan, limits=replace(plan.limits, max_parallelism=max_parallelism))
    if fail_fast is not None:
        plan = replace(plan, fail_fast=fail_fast)
    if include_tags is not None:
        _refuse_unknown_tags(plan, include_tags)
        plan = replace(plan, include_tags=include_tags)
    if exclude_tags is not None:
        plan = replace(plan, exclude_tags=exclude_tags)
    return plan


def _refuse_unknown_tags(plan: Plan, wanted: tuple[str, ...]) -> None:
    known = dict.fromkeys(tag for step in plan.steps.values() for tag in step.tags)
    for tag in wanted:
        if tag not in known:
            advice = f"there are: {', '.join(known)}" if known else "no step of this file has tags"
            raise UsageError(f"no step has the tag {tag!r}", advice=advice)
