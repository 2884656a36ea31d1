"""memory: reads and changes the run's named values (spec E.4). Changes are operations that the core applies
in order, so the output of a change is what the operation gave when it was applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from gonogo.provider import UNSET, Call, Context, Done, Failed, MemoryOp, Outcome, Provider
from gonogo.providers._faults import fault
from gonogo.providers._transform import Transformed, TransformProblem, compute, transform

_READS = frozenset({"get", "list"})
_TAKES_VALUE = frozenset({"set", "append"})


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a memory step. `value` is taken as it is; `value_js` computes it."""

    operation: Annotated[
        Literal["get", "set", "append", "increment", "delete", "clear", "list"],
        Meta(description="What to do."),
    ]
    key: Annotated[str | None, Meta(description="The entry; not needed by clear and list.")] = None
    value: Annotated[Any, Meta(description="What to write, as it stands.")] = UNSET
    value_js: Annotated[str | None, Meta(description="JavaScript that computes what to write.")] = None
    transform: Annotated[
        str | None, Meta(description="Template that makes the value (written or read) from `value`.")
    ] = None
    transform_js: Annotated[
        str | None, Meta(description="JavaScript that makes the value (written or read) from `value`.")
    ] = None
    namespace: Annotated[
        str | None, Meta(description="Part of the memory; the run's default when left out.")
    ] = None

    def __post_init__(self) -> None:
        """A key where one is needed, and one value to write."""
        if not self.key and self.operation not in ("clear", "list"):
            raise ValueError(f"memory {self.operation} needs a `key`")
        given = (self.value is not UNSET) + (self.value_js is not None)
        if self.operation in _TAKES_VALUE and not given:
            raise ValueError(f"memory {self.operation} needs a `value` or a `value_js`")
        if given == 2:
            raise ValueError("give `value` or `value_js`, not both")


class _Refused(Exception):  # noqa: N818 - the name says what happened
    """The operation can't be done with these values."""


async def run(call: Call, context: Context) -> Outcome:
    """Read at once, or hand the change to the core. Errors are logical (spec C.6)."""
    try:
        if call.config.operation in _READS:
            return await _read(call, context)
        return await _change(call, context)
    except (TransformProblem, _Refused) as problem:
        return Failed(fault(call, "memory.operation", "memory/operation_error", str(problem)))


async def _read(call: Call, context: Context) -> Done:
    space = _space(call)
    found: Any = list(space) if call.config.operation == "list" else space.get(str(call.config.key), UNSET)
    transformed = await transform(call, context, found, key="value")
    return Done(transformed.value, memory=transformed.memory, effect="none")


async def _change(call: Call, context: Context) -> Done:
    config: Config = call.config
    value = await _value(call, context)
    if config.operation == "increment":
        value = replace(value, value=_amount(value.value, _space(call).get(str(config.key))))
    operation = MemoryOp(
        config.operation,
        None if config.operation == "clear" else config.key,
        None if value.value is UNSET else value.value,
        config.namespace,
    )
    return Done(memory=(*value.memory, operation), yields_memory=config.operation != "clear", effect="none")


async def _value(call: Call, context: Context) -> Transformed:
    """The value to write: given or computed, then transformed; each stage sees the one before as `value`."""
    config: Config = call.config
    if config.value_js is None:
        given = Transformed(None if config.value is UNSET else config.value)
    else:
        given = await compute("value_js", config.value_js, context, call.names)
    transformed = await transform(call, context, given.value, name="value", key="output")
    return Transformed(transformed.value, given.memory + transformed.memory)


def _amount(amount: Any, existing: Any) -> int | float:
    if amount is None or amount is UNSET:
        amount = 1
    if not _is_number(amount):
        raise _Refused(f"increment needs a number as its amount, not {_kind(amount)}")
    if existing is not None and not _is_number(existing):
        raise _Refused(f"increment needs a number to add to, but the value is {_kind(existing)}")
    return float(amount) if isinstance(amount, float) else int(amount)


def _space(call: Call) -> Mapping[str, Any]:
    memory = call.names.get("memory") or {}
    namespace = call.config.namespace or memory.get("$namespace") or "default"
    found = memory.get(namespace)
    return found if isinstance(found, Mapping) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    names = {str: "text", bool: "a boolean", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), type(value).__name__)


PROVIDER = Provider(
    name="memory",
    config=Config,
    run=run,
    effects="idempotent",
    local_only=True,
    templates=frozenset({"key"}),
    late_templates=frozenset({"transform"}),
    expressions={"value_js": "value", "transform_js": "value"},
    default_fanout="reduce",
    handles="passed",
    summary="reads and changes the run's memory",
)
