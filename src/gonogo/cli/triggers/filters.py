"""Which filter programs a repository's settings name, and the settings that keep git from starting them.

To tell whether a file differs, git runs the file through its `filter` from the settings: any program at all. A
folder unpacked from elsewhere brings its own settings, and looking at a plan must run nothing. Computes only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

ASK = ("config", "--null", "--get-regexp", r"^(filter|lfs\.extension)\.")
"""What to ask git; the answer goes to `without_filters`."""
_LARGE_FILES = frozenset(
    {"git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs smudge --skip -- %f", "git-lfs filter-process",
     "git-lfs filter-process --skip", "true", "false", "1"}
)  # fmt: skip
"""The settings of Git LFS as its installer writes them. Without them its files would all count as changed."""


def without_filters(listing: bytes, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables for git that empty each filter in `listing`. They go on from those in `environment`: unlike `-c`,
    a variable can name a filter with `=` in its name (git-config(1), GIT_CONFIG_COUNT).
    """
    overrules = list(_overrules(_settings(listing)))
    if not overrules:
        return {}
    given = environment.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isascii() and given.isdigit() else 0
    variables = {"GIT_CONFIG_COUNT": str(first + len(overrules))}
    for number, (key, value) in enumerate(overrules, first):
        variables[f"GIT_CONFIG_KEY_{number}"] = key
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables


def _settings(listing: bytes) -> list[tuple[str, str]]:
    """(key, value) of `git config --null`: a line end between them, a zero byte behind."""
    pairs = (part.partition(b"\n") for part in listing.split(b"\0") if part)
    return [
        (key.decode("utf-8", "surrogateescape"), value.decode("utf-8", "replace")) for key, _, value in pairs
    ]


def _overrules(settings: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    extended = any(key.startswith("lfs.") for key, _ in settings)  # programs that git-lfs itself would start
    names = {key.rpartition(".")[0] for key, _ in settings if key.startswith("filter.")}
    for name in sorted(names):
        values = {value for key, value in settings if key.rpartition(".")[0] == name}
        if name == "filter.lfs" and not extended and values <= _LARGE_FILES:
            continue
        yield from (
            (f"{name}.clean", ""),
            (f"{name}.smudge", ""),
            (f"{name}.process", ""),
            (f"{name}.required", "false"),
        )
