"""What a system takes as arguments and environment of a program, checked before it starts (case BIG-1)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping

ONE_TEXT_BYTES_MAX = 32 * 4096 - 1
"""Linux: MAX_ARG_STRLEN is 32 pages, one byte of it for the final NUL (execve(2))."""

_ALL_BYTES_MAX = 6 * 1024 * 1024
"""Linux: three quarters of the 8 MiB that `_STK_LIM` is, whatever the stack limit says."""
_RESERVE_BYTES = 4096
_POINTER_BYTES = 8

WAY_OUT = "pass large data by `stdin:` (or write it to a file)"


def too_large(exec_text: str, step_env: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """What can't be handed over, with its size, the limit and the way out; None when all fits.

    `step_env` is named first when everything together is too large, because that's what an author can change.
    """
    for field, text, extra in _texts(exec_text, environment):
        size = len(text.encode("utf-8", "surrogatepass")) + extra
        if sys.platform == "linux" and size > ONE_TEXT_BYTES_MAX:
            return f"{field} is {size:,} bytes; one text may have {ONE_TEXT_BYTES_MAX:,} at most: {WAY_OUT}"
    total = sum(
        len(text.encode("utf-8", "surrogatepass")) + extra + 1 + _POINTER_BYTES
        for _, text, extra in _texts(exec_text, environment)
    )
    limit = _total_limit()
    if total > limit:
        sizes = f"exec and env are {total:,} bytes together; {limit:,} is the limit"
        return f"{_largest(step_env)}{sizes}: {WAY_OUT}"
    return None


def _texts(exec_text: str, environment: Mapping[str, str]) -> Iterator[tuple[str, str, int]]:
    """Field, text, and bytes that come with it (a name and an equals sign)."""
    yield "exec", exec_text, 0
    for name, value in environment.items():
        yield f"env {name}", value, len(name.encode("utf-8", "surrogatepass")) + 1


def _total_limit() -> int:
    try:
        told = os.sysconf("SC_ARG_MAX")
    except (OSError, ValueError):
        return _ALL_BYTES_MAX
    return min(told, _ALL_BYTES_MAX) - _RESERVE_BYTES


def _largest(step_env: Mapping[str, str]) -> str:
    if not step_env:
        return ""
    name = max(sorted(step_env), key=lambda name: len(step_env[name]))
    return f"env {name} has {len(step_env[name]):,} characters; "
