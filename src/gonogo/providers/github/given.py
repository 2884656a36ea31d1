"""What a github step is to write: labels, a text, annotations, from value, values, value_js and body (spec E.8 rules 2
and 3). Only labels are cleaned; a body goes out as its template made it (I.1 row 24).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gonogo.provider import UNSET, Call, Context
from gonogo.providers._output import read_json
from gonogo.providers._transform import TransformProblem, compute
from gonogo.providers.github.config import Annotation, Config

BODY_CHARACTERS_MAX = 65_536
"""GitHub's limit for comments and reviews."""
MARK_CHARACTERS = 60
ANNOTATIONS_MAX = 5000
_SLASHES = re.compile(r"/{2,}")


class Unfit(Exception):  # noqa: N818 - the name says what happened
    """What was given can't be written. `kind` is the fault's."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


async def computed(call: Call, context: Context) -> Any:
    """The value of value_js; UNSET without one. Raises Unfit."""
    config: Config = call.config
    if config.value_js is None:
        return UNSET
    try:
        transformed = await compute("value_js", config.value_js, context, call.names)
    except TransformProblem as problem:
        raise Unfit("value", problem.message) from problem
    return transformed.value


async def labels_of(call: Call, context: Context) -> list[str]:
    """The labels, cleaned, each once; from the steps before when the step itself gives none. Raises Unfit."""
    config: Config = call.config
    value = await computed(call, context)
    given = value if value is not UNSET else config.values or config.value or []
    labels = _cleaned(_texts(given), context)
    if not labels and value is UNSET:
        labels = _cleaned(_found_before(call), context)
    return labels


async def body_of(call: Call, context: Context) -> str:
    """The text, as it was given. Raises Unfit."""
    config: Config = call.config
    value = await computed(call, context)
    if value is UNSET:
        value = config.body if config.body is not None else config.value
    if value is None:
        value = config.values if isinstance(config.values, str) else "\n".join(config.values)
    if not isinstance(value, str):
        raise Unfit("value", "value_js has to give a text, the body")
    if len(value) > BODY_CHARACTERS_MAX - MARK_CHARACTERS:
        limit = BODY_CHARACTERS_MAX - MARK_CHARACTERS
        raise Unfit(
            "too_long", f"the body has {len(value):,} characters, and GitHub takes {limit:,}; shorten it"
        )
    return value


async def annotations_of(call: Call, context: Context) -> list[dict[str, Any]]:
    """A check's annotations, as GitHub wants them. Raises Unfit."""
    config: Config = call.config
    value = await computed(call, context)
    given = config.annotations if value is UNSET else value
    try:
        if isinstance(given, str):
            given = read_json(given) if given.strip() else []
        found = msgspec.convert(given or [], list[Annotation])
    except ValueError as problem:  # msgspec.ValidationError is one
        raise Unfit("value", f"these aren't annotations: {str(problem)[:300]}") from problem
    if len(found) > ANNOTATIONS_MAX:
        raise Unfit(
            "too_many",
            f"{len(found):,} annotations; GitHub shows no more than a few, give at most {ANNOTATIONS_MAX:,}",
        )
    return [msgspec.to_builtins(_ended(one)) for one in found]


def _ended(one: Annotation) -> dict[str, Any]:
    """With an end, and the level, which are GitHub's to have."""
    found: dict[str, Any] = msgspec.to_builtins(one)
    return {**found, "end_line": one.end_line or one.start_line, "annotation_level": one.annotation_level}


def _texts(given: Any) -> list[str]:
    """Labels as a list: of one, of its JSON, of lines."""
    if isinstance(given, str):
        stripped = given.strip()
        if stripped.startswith("["):
            try:
                return _texts(read_json(stripped))
            except ValueError:
                pass
        return given.splitlines()
    if isinstance(given, list):
        return [text for one in given for text in (_texts(one) if isinstance(one, str) else [_plain(one)])]
    if given is None or given is UNSET:
        return []
    raise Unfit("value", "labels are texts: a list, its JSON, or one a line")


def _plain(one: Any) -> str:
    name = one.get("name") if isinstance(one, Mapping) else one
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise Unfit("value", "a label is a text")
    return str(name)


def _cleaned(texts: Iterable[str], context: Context) -> list[str]:
    """Without characters that have no place in a label (E.8 rule 2), each once."""
    found: dict[str, str] = {}
    for text in texts:
        kept = "".join(one for one in text.strip() if one.isalnum() or one in ":/- ")
        label = _SLASHES.sub("/", kept).strip()
        if label != text.strip():
            context.log("warn", f"the label {text.strip()[:100]!r} is written as {label!r}")
        if label:
            found.setdefault(label.lower(), label)
    return list(found.values())


def _found_before(call: Call) -> list[str]:
    """`labels`, `tags.label` and `tags["review-effort"]` of the outputs of what it depends on (E.8 rule 3)."""
    outputs = call.names.get("outputs")
    if not isinstance(outputs, Mapping):
        return []
    given = [outputs[name] for name in call.depends_on if name in outputs]
    found: list[str] = []
    for output in given:
        if isinstance(output, Mapping) and isinstance(output.get("labels"), str | list):
            found += _quietly(output["labels"])
    if found:
        return found
    for output in given:
        tags = output.get("tags") if isinstance(output, Mapping) else None
        if isinstance(tags, Mapping):
            found += _quietly(tags.get("label"))
            found += [f"review/effort:{one}" for one in _quietly(tags.get("review-effort"))]
    return found


def _quietly(value: Any) -> list[str]:
    """Labels in another step's output, which may be anything."""
    try:
        return _texts([value] if isinstance(value, int) and not isinstance(value, bool) else value)
    except Unfit:
        return []
