"""How a run stands, in one word: the same wherever it is told, in reports, in lists and as data."""

from __future__ import annotations

__all__ = ["VERDICTS", "WORDS", "standing"]

VERDICTS = ("GO", "NO-GO", "HOLD")
WORDS = (*VERDICTS, "RUNNING", "QUEUED", "INTERRUPTED", "SET ASIDE")


def standing(
    verdict: str | None,
    *,
    interrupted: bool = False,
    running: bool = False,
    queued: bool = False,
    aside: str | None = None,
) -> str:
    """One of WORDS. INTERRUPTED: it was stopped by a signal, or has no verdict and nobody has it. QUEUED: nobody has
    begun with it. SET ASIDE: no worker goes on with it until somebody asks for that.
    """
    if interrupted:
        return "INTERRUPTED"
    if verdict in ("GO", "NO-GO"):
        return verdict
    if aside is not None:
        return "SET ASIDE"
    return verdict or ("RUNNING" if running else "QUEUED" if queued else "INTERRUPTED")
