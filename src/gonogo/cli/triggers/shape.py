"""The shape of a change as expressions and templates see it (`files`, `pr`, …), within bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

FILES_MAX = 3000
"""Files of one change; GitHub's own lists end there too."""
PATCH_BYTES_MAX = 16 * 1024
"""UTF-8 bytes of one file's patch; the rest is cut at a line."""
PATCHES_BYTES_MAX = 256 * 1024
"""UTF-8 bytes of all patches: they are in the first record of the journal."""
TEXT_CHARACTERS_MAX = 64 * 1024
"""Characters of a title, body or comment."""


class ChangedFile(Struct, frozen=True):
    """One file of a change. `status`: added, modified, removed, renamed, copied or changed (type, mode).

    `patch` is None for binary files, and where there is none.
    """

    filename: str
    status: str
    additions: int = 0
    deletions: int = 0
    previous_filename: str | None = None
    patch: str | None = None

    def as_names(self) -> dict[str, Any]:
        """The file as an expression sees it."""
        named: dict[str, Any] = {
            "filename": self.filename,
            "status": self.status,
            "additions": self.additions,
            "deletions": self.deletions,
            "changes": self.additions + self.deletions,
        }
        if self.previous_filename is not None:
            named["previous_filename"] = self.previous_filename
        if self.patch is not None:
            named["patch"] = self.patch
        return named


def change_names(files: Sequence[ChangedFile]) -> dict[str, Any]:
    """`files`, `filesChanged` and `filesCount` of a change."""
    kept = files[:FILES_MAX]
    return {
        "files": [file.as_names() for file in with_capped_patches(kept)],
        "filesChanged": [file.filename for file in kept],
        "filesCount": len(files),
    }


def with_capped_patches(files: Iterable[ChangedFile]) -> list[ChangedFile]:
    """The files with each patch cut, and none once all together are too long."""
    left = PATCHES_BYTES_MAX
    kept = []
    for file in files:
        patch = capped_patch(file.patch, min(left, PATCH_BYTES_MAX))
        left -= len(patch.encode()) if patch else 0
        kept.append(
            ChangedFile(
                file.filename, file.status, file.additions, file.deletions, file.previous_filename, patch
            )
        )
    return kept


def capped_patch(patch: str | None, bytes_max: int) -> str | None:
    """The whole lines of a patch that fit into `bytes_max`; None when none does."""
    if patch is None or len(patch.encode()) <= bytes_max:
        return patch
    cut = patch.encode()[:bytes_max].decode("utf-8", "ignore")
    whole = cut[: cut.rfind("\n") + 1]
    return whole or None


def totals(files: Sequence[ChangedFile]) -> dict[str, int]:
    """`pr.totals`: lines added, removed and both."""
    added = sum(file.additions for file in files)
    removed = sum(file.deletions for file in files)
    return {"additions": added, "deletions": removed, "changes": added + removed}


def text(value: Any) -> str | None:
    """A text from outside, cut; None for anything else."""
    return value[:TEXT_CHARACTERS_MAX] if isinstance(value, str) else None


def readable(name: bytes) -> str:
    r"""A file name as text: bytes that aren't UTF-8 are shown as `\xe9` (the rule for all odd bytes)."""
    return name.decode("utf-8", "backslashreplace")
