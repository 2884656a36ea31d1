"""The last stages a provider may let its value go through: `transform` (Liquid), then `transform_js` (JavaScript)."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

from gonogo.provider import UNSET, Call, Context, Failure, MemoryOp, TemplateProblem
from gonogo.providers._output import json_or_text


class Transformed(Struct, frozen=True):
    """The value (UNSET for JavaScript's undefined) and the changes to memory that were asked for on the way."""

    value: Any
    memory: tuple[MemoryOp, ...] = ()


class TransformProblem(Exception):  # noqa: N818 - the name says what happened
    """A stage failed. `stage` is the config key: transform, transform_js or value_js."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(f"{stage}: {message}")
        self.stage = stage
        self.message = f"{stage}: {message}"


async def transform(
    call: Call, context: Context, value: Any, *, name: str = "output", key: str | None = None
) -> Transformed:
    """Apply `call.config.transform` and `transform_js`, whichever there are. Raises TransformProblem.

    Both see the value under `name`, and under `key` if given; the second sees what the first made of it.
    """
    if call.config.transform is not None:
        value = _rendered(call.config.transform, context, _names(call, value, name, key))
    if call.config.transform_js is None:
        return Transformed(value)
    return await compute("transform_js", call.config.transform_js, context, _names(call, value, name, key))


async def compute(stage: str, source: str, context: Context, names: Mapping[str, Any]) -> Transformed:
    """One JavaScript value. Raises TransformProblem with line and column."""
    result = await context.evaluate(source, "value", names)
    if isinstance(result, Failure):
        raise TransformProblem(stage, told(result))
    for line in result.logs:
        context.log("info", line)
    return Transformed(UNSET if result.undefined else result.value, result.memory)


def told(failure: Failure) -> str:
    """Message and place of a failed evaluation."""
    if failure.line is None:
        return failure.message
    column = f", column {failure.column}" if failure.column is not None else ""
    return f"{failure.message} (line {failure.line}{column})"


def _rendered(source: str, context: Context, names: Mapping[str, Any]) -> Any:
    try:
        return json_or_text(context.render(source, names))
    except TemplateProblem as problem:
        raise TransformProblem("transform", str(problem)) from problem


def _names(call: Call, value: Any, name: str, key: str | None) -> Mapping[str, Any]:
    shown = None if value is UNSET else value
    own = {name: shown} if key is None else {name: shown, key: shown}
    return ChainMap(own, cast("dict[str, Any]", call.names))  # never written, so any mapping will do
