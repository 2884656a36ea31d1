"""Keeps secrets out of every sink: journal, output, report, telemetry, error text.

By value: a known secret is masked as it is, in base64 (by itself or anywhere in a longer text), URL-encoded,
as a JSON string, as a Python literal and HTML-escaped. Its parts are masked likewise: each line of one with
several lines, and each text inside one that is JSON, so re-indented or picked-apart secrets are caught. By
structure: the password in `scheme://user:password@host` (and a long token in place of the user), private keys
in PEM form, and tokens whose issuers give them a fixed beginning.

What stands for a secret (`handles.py`) stays whole, whatever words it is made of.

Values and parts shorter than `LENGTH_MIN` characters are never masked: hiding every `a` or `true` ruins a log
and tells the secret anyway.

What this can't catch: secrets nobody named, pieces of a secret (a prefix, every other letter, a value cut at
a chunk's end), other encodings (hex, gzip, encryption, base64 of base64, letters in another case), numbers
inside a JSON secret, and text whose reader joins it later. So a secret belongs in the environment of the step
that needs it, and nowhere else.
"""

from __future__ import annotations

import json
import re
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, get_origin
from urllib.parse import quote, quote_plus

import msgspec
from msgspec import Struct

from gonogo.core.secrecy import HANDLE, SECRET_ENDINGS, STORE, is_secret_name, may_have_form, with_form_masked

__all__ = ["LENGTH_MIN", "MASK", "SECRET_ENDINGS", "STORE", "Redactor", "is_secret_name", "secrets_in"]

MASK = "***"
LENGTH_MIN = 6
"""Characters; shorter values and parts stay as they are."""
ALLOW = "GONOGO_ALLOW_ENV"
DENY = "GONOGO_DENY_ENV"
"""Variables that list names of others, separated by commas: those that hold no secret, and those that do."""

_DEPTH_MAX = 200
_encode = msgspec.json.Encoder().encode


def secrets_in(environment: Mapping[str, str]) -> dict[str, str]:
    """The secrets of an environment, by their names: what looks so and what is denied, without what is allowed."""
    allowed, denied = _listed(environment, ALLOW), _listed(environment, DENY)
    return {
        name: value
        for name, value in environment.items()
        if name in denied or (is_secret_name(name) and name not in allowed)
    }


def _listed(environment: Mapping[str, str], name: str) -> set[str]:
    return {part.strip() for part in environment.get(name, "").split(",") if part.strip()}


class Redactor:
    """Masks a set of secrets in texts and JSON values. `secrets` maps names to values; only values are looked for."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._secrets: set[str] = set()
        self._all_needles: set[str] = set()
        self._needles: tuple[str, ...] = ()
        self._needles_in_json: tuple[str, ...] = ()
        self._numbers: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self.add_all((secrets or {}).values())

    def add(self, name: str, value: str) -> None:
        """Know one more secret from now on. A name's older values stay known."""
        self.add_all((value,))

    def add_all(self, values: Iterable[str]) -> None:
        """Know these secrets from now on."""
        new = set(values) - self._secrets
        found = {needle for value in new for needle in _needles(value)} - self._all_needles
        self._secrets |= new
        if found:
            self._all_needles |= found
            self._look_for(found)

    def text(self, text: str) -> str:
        """The text with every secret masked; the same object when there is none."""
        if _holds_any(text, self._needles):
            text = self._compiled().sub(_mask, text)
        if may_have_form(text):
            text = with_form_masked(text, _keep_user)
        return text

    def value(self, value: Any) -> Any:
        """A JSON value with secrets masked in its texts and keys, at any depth; the same object when there are none.

        Values that aren't JSON are masked as far as they are made of JSON's types; other parts are left
        alone.
        """
        try:
            if not self._suspicious(_encode(value).decode()):
                return value
        except (TypeError, ValueError, RecursionError):
            pass  # no JSON as a whole: look at each part
        return self._masked(value, 0)

    def finds(self, value: Any) -> bool:
        """Whether a secret stands, as it is, in something that can be written as JSON."""
        if not self._needles:
            return False
        written = _encode(value).decode()
        return _holds_any(written, tuple(_encode(secret)[1:-1].decode() for secret in self._whole()))

    def exchanged(self, value: Any, by: Callable[[str], str]) -> Any:
        """A JSON value with what `by` gives in place of each secret that stands in a text of it as it is; keys stay.

        The same object where there is none.
        """
        if not self.finds(value):
            return value
        longest_first = sorted(self._whole(), key=len, reverse=True)
        pattern = re.compile("|".join([f"(?:{HANDLE})", *map(re.escape, longest_first)]))
        return _exchanged(value, lambda text: pattern.sub(lambda m: m[0] if m[1] else by(m[0]), text))

    def _whole(self) -> list[str]:
        return [secret for secret in self._secrets if len(secret) >= LENGTH_MIN]

    def _look_for(self, new: Iterable[str]) -> None:
        """Plain searches for each needle come first: on text without secrets they beat one pattern tenfold."""
        self._needles = _without_longer(new, self._needles)
        self._needles_in_json = tuple(_encode(needle)[1:-1].decode() for needle in self._needles)
        self._numbers = self._numbers.union(needle for needle in new if needle.isdecimal())
        self._pattern = None

    def _compiled(self) -> re.Pattern[str]:
        """Made when something is found for the first time: most runs never show a secret."""
        if self._pattern is None:
            longest_first = sorted(self._all_needles, key=len, reverse=True)
            self._pattern = re.compile("|".join([f"(?:{HANDLE})", *map(re.escape, longest_first)]))
        return self._pattern

    def _suspicious(self, written: str) -> bool:
        """Whether the JSON of a value may hold a secret: searches in C instead of a walk."""
        return _holds_any(written, self._needles_in_json) or may_have_form(written)

    def _masked(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int):
            return MASK if not isinstance(value, bool) and str(value) in self._numbers else value
        if not isinstance(value, dict | list | tuple | Struct):
            return value
        if depth > _DEPTH_MAX:
            return MASK
        if isinstance(value, dict):
            return self._masked_object(value, depth)
        if isinstance(value, Struct):
            return self._masked_struct(value, depth)
        parts = [self._masked(part, depth + 1) for part in value]
        if _same(parts, value):
            return value
        return tuple(parts) if isinstance(value, tuple) else parts

    def _masked_struct(self, value: Struct, depth: int) -> Struct:
        free = [
            field.name for field in msgspec.structs.fields(value) if get_origin(field.type) is not Literal
        ]
        before = {name: getattr(value, name) for name in free}
        masked = {name: self._masked(part, depth + 1) for name, part in before.items()}
        return value if _same(masked.values(), before.values()) else msgspec.structs.replace(value, **masked)

    def _masked_object(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        """Masked keys that would be equal are numbered, so that none is lost."""
        masked: dict[Any, Any] = {}
        for key, part in value.items():
            name = shown = self.text(key) if isinstance(key, str) else key
            while name in masked:
                name = f"{shown} ({len(masked) + 1})"
            masked[name] = self._masked(part, depth + 1)
        return value if _same(masked, value) and _same(masked.values(), value.values()) else masked


def _exchanged(value: Any, by: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return by(value)
    if isinstance(value, dict):
        return {key: _exchanged(part, by) for key, part in value.items()}
    return [_exchanged(part, by) for part in value] if isinstance(value, list | tuple) else value


def _holds_any(text: str, needles: tuple[str, ...]) -> bool:
    """A loop, because it is twice as fast as `any` with a generator, and this is on the way of every output."""
    for needle in needles:  # noqa: SIM110
        if needle in text:
            return True
    return False


def _same(new: Iterable[Any], old: Iterable[Any]) -> bool:
    return all(one is other for one, other in zip(new, old, strict=True))


def _keep_user(match: re.Match[str]) -> str:
    """In a URL, who it was may stay; what proved it goes."""
    found = match[0]
    user, colon, _ = found.partition(":")
    return f"{user}:{MASK}" if colon and not found.startswith("-") else MASK


def _mask(found: re.Match[str]) -> str:
    """A handle says nothing of its secret."""
    return MASK if found[1] is None else found[0]


def _without_longer(new: Iterable[str], kept: tuple[str, ...]) -> tuple[str, ...]:
    """Those of both that contain no other one: a text without these holds none of the longer ones.

    `kept` went through this before.
    """
    added: list[str] = []
    for needle in sorted(new, key=lambda needle: (len(needle), needle)):
        if not _holds_any(needle, kept) and not any(short in needle for short in added):
            added.append(needle)
    return (*(needle for needle in kept if not any(short in needle for short in added)), *added)


def _needles(secret: str) -> Iterator[str]:
    """Every text that gives a secret away."""
    for part in _parts(secret):
        yield from (shape for shape in _shapes(part) if len(shape) >= LENGTH_MIN)


def _parts(secret: str) -> set[str]:
    """The secret itself, its lines, and the texts in it when it is JSON; those that are long enough."""
    found = {secret, secret.strip(), *(line.strip() for line in secret.splitlines())}
    try:
        found.update(_texts(msgspec.json.decode(secret)))
    except (ValueError, RecursionError):
        pass  # no JSON: nothing to pick apart
    lines = {line.strip() for text in found for line in text.splitlines()}
    return {part for part in found | lines if len(part) >= LENGTH_MIN}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _shapes(part: str) -> set[str]:
    """One text as other writers would write it."""
    plain = part.encode("utf-8", "surrogatepass")
    written = _in_json(part)
    urls = {quote(plain), quote(plain, safe=""), quote_plus(plain)}
    return {
        part,
        *written,
        *(again for text in written for again in _in_json(text)),
        *urls,
        *(re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), url) for url in urls),
        *_base64(plain),
        repr(part)[1:-1],
        _in_html(part),
    }


def _in_html(text: str) -> str:
    """As `html.escape` writes it; importing that costs every run some milliseconds."""
    for plain, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#x27;")):
        text = text.replace(plain, escaped)
    return text


def _in_json(text: str) -> set[str]:
    """Inside JSON's quotes: with letters as they are, and in plain ASCII; a writer may escape slashes."""
    shapes = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return shapes | {shape.replace("/", "\\/") for shape in shapes}


def _base64(plain: bytes) -> Iterator[str]:
    """Base64 at each of the three places a text can have in a longer one, both alphabets: what doesn't depend
    on neighbours.
    """
    for offset in range(3):
        coded = b2a_base64(b"\0" * offset + plain, newline=False).decode().rstrip("=")
        unsettled_end = (offset + len(plain)) % 3 != 0
        start = (0, 2, 3)[offset]
        core = coded[start : -1 if unsettled_end else None]
        if len(core) >= LENGTH_MIN:
            yield core
            yield core.replace("+", "-").replace("/", "_")
