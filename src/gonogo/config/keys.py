"""Unknown keys: what was probably meant, or where the key belongs. A key that does nothing is never accepted
(CLI-1).
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from gonogo.config.collect import nearest, shown
from gonogo.config.nodes import Path
from gonogo.config.schema import blocks, step, top
from gonogo.config.structs import keys_of

TOP, STEP = "", "step"

# Words people bring from other systems, by where they write them.
_USUAL_WORDS = {
    "retries": "on_fail: {retry: {max: …}}",
    "max_retries": "on_fail: {retry: {max: …}}",
    "attempts": "on_fail: {retry: {max: …}}",
    "needs": "depends_on",
    "requires": "depends_on",
    "condition": "if",
    "when": "if",
    "timeout_ms": "timeout",
    "timeout_s": "timeout (text like 30s)",
    "timeout_seconds": "timeout (text like 30s)",
    "foreach": "forEach",
    "for_each": "forEach",
    "severity": "criticality",
    "allow_failure": "continue_on_failure",
    "continue-on-error": "continue_on_failure",
    "jobs": "steps",
    "tasks": "steps",
    "checks": "steps",
    "approver": "approvers",
    "approvals": "quorum",
    "reminders": "remind",
    "on_timeout": "default, escalate or on_fail",
}
_NOT_OWN = frozenset(
    """
    step workflow name description value schema type default to file as time calls retries tokens money
    """.split()
)


@lru_cache(maxsize=1)
def nouns() -> dict[str, tuple[str, ...]]:
    """The keys of each noun, by the key it stands under; `step` and the empty text: step and file."""
    models: dict[str, type[Struct]] = {
        TOP: top.Document,
        STEP: step.Step,
        "routing": top.Routing,
        "limits": top.Limits,
        "budget": top.Budget,
        "tag_filter": top.TagFilter,
        "memory": top.Memory,
        "inputs": top.Input,
        "outputs": top.Output,
        "defaults": top.RoutingDefaults,
        "on_init": blocks.Init,
        "on_fail": blocks.Fail,
        "on_success": blocks.Success,
        "on_finish": blocks.Success,
        "retry": blocks.Retry,
        "backoff": blocks.Backoff,
        "exhausted": blocks.AfterRetries,
        "transitions": blocks.Transition,
        "run": blocks.RunItem,
        "failure_conditions": blocks.FailureCondition,
        "depends_on": step.Dependency,
        "remind": blocks.Remind,
        "escalate": blocks.Escalate,
    }
    return {name: keys_of(model) for name, model in models.items()}


def noun_of(path: Path) -> str:
    """The noun that the key at the end of `path` was written in, for paths within the engine's own keys."""
    if len(path) < 2:
        return TOP
    if path[0] == "steps" and len(path) == 3:
        return STEP
    known = nouns()
    for part in reversed(path[:-1]):
        if isinstance(part, str) and part in known:
            return part
    return STEP if path[0] == "steps" else TOP


def unknown_key(key: str, noun: str, own: tuple[str, ...]) -> tuple[str, str | None]:
    """Message and suggestion for a key that `noun` doesn't have; `own` are the keys it has."""
    message = f"unknown key {shown(key)}"
    elsewhere = _places(key, noun)
    if key not in own and key.replace("-", "_") in own:
        return message, f"did you mean {key.replace('-', '_')}?"
    if elsewhere:
        return message, elsewhere
    if key in _USUAL_WORDS and key not in own:
        return message, f"did you mean {_USUAL_WORDS[key]}?"
    near = nearest(key, own)
    if near:
        return message, f"did you mean {near}?"
    for other, keys in nouns().items():
        near = nearest(key, [known for known in keys if known not in _NOT_OWN]) if other != noun else None
        if near:
            return message, f"did you mean {near}, which {_belongs(other)}?"
    return message, "remove it, or start it with x- to keep it for yourself"


def _places(key: str, noun: str) -> str | None:
    """Where `key` is right, when it isn't right in `noun`."""
    if key in _NOT_OWN:
        return None
    places = [
        other for other, keys in nouns().items() if other != noun and key in keys and other != "on_finish"
    ]
    if not places:
        return None
    above = [place for place in places[:2] if place not in (TOP, STEP)]
    if len(above) == 2:
        return f"it belongs under {above[0]}: or {above[1]}:"
    return "it " + " or ".join(_belongs(place) for place in places[:2])


def _belongs(noun: str) -> str:
    if noun == TOP:
        return "belongs at the top level"
    if noun == STEP:
        return "belongs directly under a step"
    return f"belongs under {noun}:"
