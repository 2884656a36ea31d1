"""What is kept of an unexpected error: where it happened, never what was in the variables (case SEC-4).

The file holds the traceback without locals, texts masked by value and by structure. The screen gets the error's
kind and an id only: an exception's message may hold anything.
"""

from __future__ import annotations

import os
import platform
import secrets
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from gonogo.cli.session import Session
from gonogo.errors import GonogoError

MESSAGE_MAX = 300
CHAIN_MAX = 10
_TALKATIVE = ("msgspec", "pydantic", "pydantic_core")
"""Their messages quote the values they were given; step types from outside may use pydantic."""


class Crash(Struct, frozen=True):
    """What to tell a person. `path` is None when no file could be written."""

    id: str
    summary: str
    path: Path | None


def write_crash(error: Exception, session: Session) -> Crash:
    """Keep the error in a file that only its owner can read."""
    from gonogo.journal.redact import Redactor, secrets_in

    identity = secrets.token_hex(4)
    redactor = Redactor({**secrets_in(session.environment), **session.secrets})
    text = redactor.text("\n".join(_lines(error, identity, session)))
    own = redactor.text(error.message) if isinstance(error, GonogoError) else None
    summary = own or f"unexpected {type(error).__name__} in {_place(error)}"
    return Crash(identity, summary, _write(f"error-{identity}.txt", text))


def _lines(error: Exception, identity: str, session: Session) -> Iterator[str]:
    yield f"gonogo error {identity}"
    yield f"python {platform.python_version()} on {platform.platform()}"
    yield f"verb {next((one for one in session.arguments if not one.startswith('-')), '')}"
    if session.journal:
        yield f"journal {session.journal}"
    for one in _chain(error):
        yield ""
        yield from (line.rstrip() for line in traceback.format_tb(one.__traceback__))
        yield f"{type(one).__module__}.{type(one).__qualname__}: {_message(one)}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it."""
    one: BaseException | None = error
    for _ in range(CHAIN_MAX):
        if one is None:
            return
        yield one
        if isinstance(one, BaseExceptionGroup):
            yield from one.exceptions[:CHAIN_MAX]
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _message(error: BaseException) -> str:
    if type(error).__module__.partition(".")[0] in _TALKATIVE:
        return "(message left out: it may quote values)"
    try:
        return str(error)[:MESSAGE_MAX]
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the error itself
        return "(no message)"


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "gonogo"
    last = frames[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _own_folder() -> Path:
    return Path(".gonogo") / "errors"


def _common_folder() -> Path:
    """Raises OSError: there may be none that can be written."""
    return Path(tempfile.gettempdir())


def _write(name: str, text: str) -> Path | None:
    """Into `.gonogo/errors`, else the system's folder for temporary files; None when neither can be written."""
    for place in (_own_folder, _common_folder):
        try:
            folder = place()
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = folder / name
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text + "\n")
            return path
        except OSError:
            continue
    return None
