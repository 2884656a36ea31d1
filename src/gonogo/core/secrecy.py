"""What looks like a secret: names of variables that hold some, and texts whose form gives them away. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

__all__ = [
    "BLOBS",
    "HANDLE",
    "HANDLE_BEGINNING",
    "NOT_INHERITED",
    "OPENS_STORE",
    "SEAL_KEY",
    "SECRET_ENDINGS",
    "SECRET_HEADERS",
    "STORE",
    "is_inherited",
    "is_secret_name",
    "may_have_form",
    "with_form",
    "with_form_masked",
    "without_tags",
]

SECRET_ENDINGS = (
    "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "_KEY", "APIKEY", "CREDENTIAL", "CREDENTIALS",
    "_PAT", "_DSN",
)  # fmt: skip
"""Environment names that end so, in any case, hold secrets."""
STORE = "GONOGO_STORE"
"""The URL of the Postgres that keeps the runs: it may hold a password."""
SEAL_KEY = "GONOGO_SEAL_KEY"
"""The key that secret outputs are encrypted with there."""
BLOBS = "GONOGO_BLOBS"
"""The folder where large values of runs in that Postgres are."""
NOT_INHERITED = frozenset({STORE, SEAL_KEY, BLOBS})
"""What a command gets only if its step's `env` says so: it opens other runs."""
OPENS_STORE = "PGPASSWORD"
"""The same, where the store is named by its variable."""

HANDLE_BEGINNING = "[secret "
HANDLE = r"\[secret ([\w.-]{1,160}) ([0-9a-f]{32})\]"
"""What stands for a secret in state and records (gonogo.journal.handles): where it came from, and a tag."""
_FORMS = (
    r"(?<=://)[^\s/:@\"'<>\\]{0,256}:[^\s/@\"'<>\\]{1,1024}(?=@)"
    r"|(?<=://)[^\s/:@\"'<>\\.]{20,1024}(?=@)"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,255}|\bgithub_pat_[A-Za-z0-9_]{30,255}|\bglpat-[A-Za-z0-9_-]{20,255}"
    r"|\bxox[abposr]-[A-Za-z0-9-]{10,255}|\bsk-[A-Za-z0-9_-]{32,255}"
)
_TELLTALES = (
    "-----BEGIN ", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "sk-",
)  # fmt: skip
"""No form matches without one of these, or without both `://` and `@`."""


SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})
"""Headers of a request that let somebody in, in small letters."""


def is_inherited(name: str, environment: Collection[str]) -> bool:
    """Whether a command gets a variable of this environment by itself."""
    return name not in NOT_INHERITED and not (name == OPENS_STORE and STORE in environment)


def is_secret_name(name: str) -> bool:
    """Whether an environment variable of this name looks as if it held a secret."""
    return name == STORE or name.upper().endswith(SECRET_ENDINGS)


def may_have_form(text: str) -> bool:
    """Whether a text needs a closer look: a few searches in C."""
    for telltale in _TELLTALES:  # twice as fast as `any`, and this is on the way of every output
        if telltale in text:
            return True
    return "://" in text and "@" in text


def with_form_masked(text: str, mask: Callable[[re.Match[str]], str]) -> str:
    """The text with `mask` in place of what has the form of a secret. Most runs never come here."""
    return re.sub(_FORMS, mask, text, flags=re.DOTALL)


def with_form(text: str) -> list[str]:
    """Each part of a text that has the form of a secret."""
    return [found[0] for found in re.finditer(_FORMS, text, flags=re.DOTALL)] if may_have_form(text) else []


def without_tags(text: str) -> str:
    """A text in which handles say where a secret came from, and mean nothing any more."""
    return re.sub(HANDLE, r"[secret \1]", text) if HANDLE_BEGINNING in text else text
