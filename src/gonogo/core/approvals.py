"""Who may answer a wait for people, and when enough have: pure questions about a hold, for the core and for readers.

A name is what the answer says of its giver; that it is true is the business of whoever takes answers in. Names are
compared without regard to case, to spaces around them, to what can't be seen and to how Unicode writes a letter, so
that nobody counts twice by writing a name differently. Letters of other alphabets that look alike stay different.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from gonogo.core import lifecycle as life
from gonogo.core.decisions import Wait
from gonogo.core.fault_decisions import Held, Vote
from gonogo.core.scope import step_at
from gonogo.core.state import Node

WORDS = ("yes", "no")
"""What an approval takes."""

PROMPT_MAX = 200
NAME_MAX = 200
"""Characters of a name that counts: looking whether a pattern fits takes the product of the lengths."""
_UNSEEN = ("Cc", "Cf")
"""Unicode's categories of what has no looks of its own: controls, joiners, marks of direction."""
_BLANK = (
    ("\u034f", "\u034f"), ("\u115f", "\u1160"), ("\u17b4", "\u17b5"), ("\u180b", "\u180f"), ("\ufe00", "\ufe0f"),
    ("\U000e0100", "\U000e01ef"),
)  # fmt: skip
"""Letters and marks that show nothing either (Unicode's Default_Ignorable_Code_Point): fillers, variation selectors."""
_LIKE_SIGNS = str.maketrans(dict.fromkeys("＊﹡？﹖︖⁇⁈⁉", "\N{REPLACEMENT CHARACTER}"))
"""What normalising would make a `*` or `?` of, which would then stand for other signs."""


class Count(NamedTuple):
    """How far an approval is: `approved` of `quorum`, and whether somebody said no."""

    approved: int
    quorum: int
    denied: bool

    @property
    def is_decided(self) -> bool:
        """One no is enough, and so are as many yes as are asked for."""
        return self.denied or self.approved >= self.quorum


def refusal(hold: Held, by: str, text: str) -> str | None:
    """Why an answer to a hold isn't taken, as a key of `fault_decisions.UNTAKEN`; None when it is."""
    personal = bool(hold.approvers) or hold.quorum is not None
    if personal and not 0 < len(same(by)) <= NAME_MAX:
        return "unnamed"
    if hold.approvers and not is_listed(hold.approvers, by):
        return "not_listed"
    if hold.quorum is None:
        return None
    if any(same(vote.by) == same(by) for vote in hold.votes):
        return "counted"
    return None if word(text) in WORDS else "words"


def count(hold: Held) -> Count:
    """How far a hold is. One that is no approval needs one answer."""
    approved = sum(vote.text == "yes" for vote in hold.votes)
    return Count(approved, hold.quorum or 1, any(vote.text == "no" for vote in hold.votes))


def is_listed(approvers: tuple[str, ...], by: str) -> bool:
    """True when a name is one of the approvers, or fits a pattern of theirs."""
    name = same(by)
    return any(fits(same(approver), name) for approver in approvers)


def fits(pattern: str, name: str) -> bool:
    """True when a name fits a pattern: `*` stands for any text, `?` for one sign, all else for itself.

    Only the last star is ever gone back to, so the work is at most the product of the lengths.
    """
    at = here = 0
    star, tried = -1, 0
    while here < len(name):
        sign = pattern[at] if at < len(pattern) else ""
        if sign == "*":
            star, tried = at, here
            at += 1
        elif sign and sign in ("?", name[here]):
            at, here = at + 1, here + 1
        elif star >= 0:
            tried += 1
            at, here = star + 1, tried
        else:
            return False
    return not pattern[at:].strip("*")


def same(name: str) -> str:
    """A name as it is compared (Unicode's compatibility caseless match, D146, without what can't be seen)."""
    if name.isascii() and name.isprintable():
        return name.strip().lower()
    plain = unicodedata.normalize("NFKC", name.translate(_LIKE_SIGNS)).casefold()
    seen = "".join(sign for sign in plain if not _is_unseen(sign))
    return unicodedata.normalize("NFKC", seen).strip()


def _is_unseen(sign: str) -> bool:
    return unicodedata.category(sign) in _UNSEEN or any(first <= sign <= last for first, last in _BLANK)


def word(text: str) -> str:
    """A word as it is compared."""
    return text.strip().lower()


def past(node: Node) -> str:
    """Why a step takes no answer any more, or not yet, as a key of `fault_decisions.UNTAKEN`."""
    meta = node.result.meta if node.result is not None else node.meta
    by = (meta or {}).get("answered_by")
    fault = node.fault
    if by == "default" or (fault is not None and fault.kind == "human_input.timeout"):
        return "timeout"
    return "answered" if by is not None else "nothing"


def in_short(node: Node) -> Wait:
    """What a step waits for, for a list."""
    place = step_at(node.step, node.scope)
    hold = node.hold
    if node.status == life.IN_DOUBT or hold is None:
        return Wait(place, (node.reason or "")[:PROMPT_MAX], node.ended_at)
    prompt = hold.prompt[:PROMPT_MAX]
    return Wait(place, prompt, hold.since_s, hold.due_s, count(hold).approved, hold.quorum or 0)


def answers_of(votes: tuple[Vote, ...]) -> list[dict[str, str]]:
    """The votes as the step's output tells them."""
    return [{"by": vote.by, "text": vote.text} for vote in votes]
