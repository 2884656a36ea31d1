"""Where a Postgres is, in a form that can be shown: the password is kept, and never printed."""

from __future__ import annotations

import re
from urllib.parse import unquote

from gonogo.errors import UsageError

__all__ = ["MASK", "Address", "is_address", "secrets_of"]

MASK = "***"
LENGTH_MIN = 4
"""Characters; a shorter password is masked in the URL alone, or it would ruin any text."""
_SCHEMES = ("postgresql://", "postgres://")
_SECRET_NAMES = ("password", "sslpassword", "passfile", "sslkey")
_PARAMETERS = re.compile(r"(?<=[?&])([^?&=]*)=([^&]*)")
_PASSWORD = re.compile(r"(?<=://)([^/?#@:]*):([^@/?#]*)@")
_PASSWORD_AT_MOST = re.compile(r"(?<=://)([^/?#@:]*):(.*)@", re.DOTALL)
"""What somebody wrote who didn't escape it ends anywhere before the last @."""
_CUT_AT = re.compile(r"[@/?#:]")
"""Where libraries cut such a password; they then tell of its pieces as of hosts, ports or databases."""


def is_address(text: str) -> bool:
    """Whether a text names a Postgres rather than a folder."""
    return text.startswith(_SCHEMES)


class Address:
    """A URL as libpq takes it. `str` and `repr` show it without its password."""

    __slots__ = ("_shown", "_url", "secrets")

    def __init__(self, url: str) -> None:
        """Raises UsageError for what is no such URL; the text isn't repeated, for it may hold a password."""
        if not is_address(url) or any(character.isspace() or character == "\0" for character in url):
            raise UsageError(
                "the store isn't a URL of Postgres",
                advice="write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
            )
        self._url = url
        self._shown, self.secrets = _taken_out(url)

    @property
    def url(self) -> str:
        """With the password: for connecting, and nothing else."""
        return self._url

    def with_parameter(self, name: str, value: str) -> Address:
        """The same place, which is shown as before: nobody wrote the parameter."""
        made = Address(f"{self._url}{'&' if '?' in self._url else '?'}{name}={value}")
        made._shown = self._shown
        return made

    def scrubbed(self, text: str) -> str:
        """A text of the server or its library, without the password should it be in there."""
        text = text.replace(self._url, self._shown)
        for secret in self.secrets:
            if len(secret) >= LENGTH_MIN:
                text = text.replace(secret, MASK)
        return text

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"Address({self._shown!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and other._url == self._url

    def __hash__(self) -> int:
        return hash(self._url)


def secrets_of(text: str) -> tuple[str, ...]:
    """The passwords in a text, if it is such a URL."""
    return _taken_out(text)[1] if is_address(text) else ()


def _taken_out(url: str) -> tuple[str, tuple[str, ...]]:
    """The URL with marks in place of passwords; and these, as written, as meant, and in pieces."""
    whole = [match[2] for pattern in (_PASSWORD, _PASSWORD_AT_MOST) for match in pattern.finditer(url)]
    pieces = [piece for secret in whole for piece in _CUT_AT.split(secret)]
    given = [match[2] for match in _PARAMETERS.finditer(url) if _is_secret(match)]
    shown = _PARAMETERS.sub(_hidden, _PASSWORD_AT_MOST.sub(rf"\1:{MASK}@", url, count=1))
    found = (secret for secret in (*whole, *pieces, *given) if secret)
    meant = {text for secret in found for text in (secret, unquote(secret))}
    return shown, tuple(sorted(meant, key=lambda text: (-len(text), text)))


def _hidden(parameter: re.Match[str]) -> str:
    return f"{parameter[1]}={MASK}" if _is_secret(parameter) else parameter[0]


def _is_secret(parameter: re.Match[str]) -> bool:
    """The names may be escaped, too."""
    return unquote(parameter[1]).lower() in _SECRET_NAMES
