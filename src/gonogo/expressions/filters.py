"""Liquid filters beyond the standard set (engine spec B.11): plain functions of JSON values.

The input comes first, arguments follow; an undefined variable arrives as None. `CONTEXT_FILTERS` also get the
names of the rendering first. A filter that can't do its work raises ValueError. Parsing and limits are left
to `liquid_room.py`.
"""

from __future__ import annotations

import base64 as base64_codec
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Names = Mapping[str, Any]

LABEL_CHARACTERS_MAX = 50
NAMESPACE = "$namespace"
RANKS = ("NONE", "FIRST_TIMER", "FIRST_TIME_CONTRIBUTOR", "CONTRIBUTOR", "COLLABORATOR", "MEMBER", "OWNER")

_NOT_IN_LABELS = re.compile(r"[^\w:/.\- ]+", re.ASCII)
_BLANKS = re.compile(r" {2,}")
_PATH_PART = re.compile(r"[^.\[\]]+")


def as_text(value: Any) -> str:
    """How a value is written into a template: text as it is, nothing for null, JSON for objects, lists joined."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return to_json(value)
    if isinstance(value, (list, tuple)):
        return "".join(as_text(item) for item in value)
    if isinstance(value, range):
        return f"{value.start}..{value.stop - 1}"
    return str(value)


def parse_json(value: Any) -> Any:
    """JSON text as a value; null for text that is no JSON, other values as they are."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, parse_constant=lambda _: None)
    except ValueError:
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (Sequence, range)):
        return list(value)
    return as_text(value)


def to_json(value: Any, indent: Any = None) -> str:
    """A value as JSON text, on one line unless `indent` says how many spaces."""
    spaces = min(indent, 8) if isinstance(indent, int) and indent > 0 else None
    separators = (",", ": ") if spaces else (",", ":")
    return json.dumps(value, ensure_ascii=False, indent=spaces, separators=separators, default=_plain)


def base64(value: Any) -> str:
    """Base64 of the text as UTF-8."""
    return base64_codec.b64encode(as_text(value).encode()).decode()


def base64_decode(value: Any) -> str:
    """The text that base64 stands for; bytes that are no UTF-8 show as replacement characters."""
    return base64_codec.b64decode(as_text(value), validate=False).decode(errors="replace")


def safe_label(value: Any) -> str:
    """A label a code host takes: letters, digits and `: / . _ -` and spaces, at most 50 characters."""
    kept = _BLANKS.sub(" ", _NOT_IN_LABELS.sub("", as_text(value)))
    return kept.strip()[:LABEL_CHARACTERS_MAX].strip()


def safe_label_list(value: Any) -> list[str]:
    """Labels made safe, empty ones and repetitions left out, in order."""
    given = value if isinstance(value, (list, tuple)) else [value]
    return list(dict.fromkeys(label for label in map(safe_label, given) if label))


def unescape_newlines(value: Any) -> str:
    r"""`\n`, `\r` and `\t` written as two characters become the real ones."""
    return as_text(value).replace("\\r", "\r").replace("\\n", "\n").replace("\\t", "\t")


def json_escape(value: Any) -> str:
    """Text made fit to stand between the quotes of a JSON string."""
    return json.dumps(as_text(value), ensure_ascii=False)[1:-1]


def shell_escape(value: Any) -> str:
    """Text as one single-quoted word of a POSIX shell, whatever is in it."""
    return "'" + _for_shell(value).replace("'", "'\"'\"'") + "'"


def shell_escape_double(value: Any) -> str:
    """Text made fit to stand between double quotes of a POSIX shell."""
    return re.sub(r'([\\"$`])', r"\\\1", _for_shell(value))


def _for_shell(value: Any) -> str:
    text = as_text(value)
    if "\0" in text:
        raise ValueError("a NUL character can't be passed to a shell")
    return text


def _rank(association: Any) -> int:
    return (
        RANKS.index(association.upper())
        if isinstance(association, str) and association.upper() in RANKS
        else -1
    )


def has_min_permission(association: Any, level: Any) -> bool:
    """Whether an author association is `level` or above; unknown ones never are."""
    wanted, had = _rank(level), _rank(association)
    return 0 <= wanted <= had


def is_first_timer(association: Any) -> bool:
    """Whether the author has contributed nothing before."""
    return _rank(association) in (RANKS.index("FIRST_TIMER"), RANKS.index("FIRST_TIME_CONTRIBUTOR"))


def _at_least(level: str) -> Callable[[Any], bool]:
    return lambda association: has_min_permission(association, level)


def get(value: Any, path: Any) -> Any:
    """The value at a dotted path such as `a.b[0]`, null where it ends early."""
    parts = [path] if isinstance(path, int) else _PATH_PART.findall(as_text(path))
    for part in parts:
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and str(part).isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def not_empty(value: Any) -> bool:
    """Whether there is something: no null, no false, no blank text, no empty list or object."""
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, (Mapping, list, tuple)):
        return len(value) > 0
    return value is not None and value is not False


def coalesce(value: Any, *others: Any) -> Any:
    """The first value that is not empty, else null."""
    return next((each for each in (value, *others) if not_empty(each)), None)


def _space(names: Names, namespace: Any) -> Mapping[str, Any]:
    memory = names.get("memory")
    if not isinstance(memory, Mapping):
        return {}
    name = memory.get(NAMESPACE, "default") if namespace is None else as_text(namespace)
    entries = memory.get(name)
    return entries if isinstance(entries, Mapping) else {}


def memory_get(names: Names, key: Any, namespace: Any = None) -> Any:
    """The remembered value under a key, null if there is none."""
    return _space(names, namespace).get(as_text(key))


def memory_has(names: Names, key: Any, namespace: Any = None) -> bool:
    """Whether something is remembered under a key."""
    return as_text(key) in _space(names, namespace)


def memory_list(names: Names, namespace: Any = None) -> list[str]:
    """The keys of a namespace; blank input means the default one."""
    return list(_space(names, namespace or None))


def chat_history(names: Names, _: Any, *steps: Any) -> list[dict[str, Any]]:
    """The outputs of steps as a conversation: first turns first, steps in the order named, the first one as `user`."""
    history = names.get("outputs_history")
    turns = [history.get(as_text(step)) or [] for step in steps] if isinstance(history, Mapping) else []
    said = []
    for turn in range(max(map(len, turns), default=0)):
        for position, step in enumerate(steps):
            if turn < len(turns[position]):
                role = "user" if position == 0 else "assistant"
                said.append({"step": as_text(step), "role": role, "text": _spoken(turns[position][turn])})
    return said


def _spoken(entry: Any) -> str:
    if isinstance(entry, Mapping):
        return as_text(next((entry[key] for key in ("text", "content", "message") if entry.get(key)), entry))
    return as_text(entry)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "parse_json": parse_json,
    "to_json": to_json,
    "json": to_json,
    "base64": base64,
    "base64_encode": base64,
    "base64_decode": base64_decode,
    "safe_label": safe_label,
    "safe_label_list": safe_label_list,
    "unescape_newlines": unescape_newlines,
    "json_escape": json_escape,
    "shell_escape": shell_escape,
    "shell_escape_double": shell_escape_double,
    "has_min_permission": has_min_permission,
    "is_owner": _at_least("OWNER"),
    "is_member": _at_least("MEMBER"),
    "is_collaborator": _at_least("COLLABORATOR"),
    "is_contributor": _at_least("CONTRIBUTOR"),
    "is_first_timer": is_first_timer,
    "get": get,
    "not_empty": not_empty,
    "coalesce": coalesce,
}

CONTEXT_FILTERS: Mapping[str, Callable[..., Any]] = {
    "memory_get": memory_get,
    "memory_has": memory_has,
    "memory_list": memory_list,
    "chat_history": chat_history,
}

READS: Mapping[str, str] = {
    "memory_get": "memory",
    "memory_has": "memory",
    "memory_list": "memory",
    "chat_history": "outputs_history",
}
"""Which name a filter reads besides its input and arguments."""

QUOTING = frozenset(("shell_escape", "shell_escape_double"))
NUMERIC = frozenset(
    ("size", "plus", "minus", "times", "divided_by", "modulo", "ceil", "floor", "abs", "at_least", "at_most")
)
"""Filters whose result is a number, harmless in a shell."""
