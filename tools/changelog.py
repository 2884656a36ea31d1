"""The changelog's fragments: one small file a change, joined into CHANGELOG.md at release.

    changes/<slug>.<added|changed|fixed|removed>.md

    changelog.py show                     the entry that the fragments make
    changelog.py check [--base REF]       does the change since REF (default: the last commit) bring one?
    changelog.py release VERSION DATE     write the entry into CHANGELOG.md, remove the fragments

A fragment is about what a user sees, in one to three sentences. A change under src/ brings one.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("added", "changed", "fixed", "removed")
NAME = re.compile(rf"^[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(KINDS)})\.md$")
LENGTH_MAX = 600
MARKER = "<!-- entries -->"


@dataclass(frozen=True, slots=True)
class Fragment:
    """One change as a user sees it: `kind` is one of KINDS, `text` is Markdown without a heading."""

    kind: str
    text: str


def read_fragments(folder: Path) -> list[Fragment]:
    """All fragments, by name, so that the entry is the same on every machine."""
    paths = sorted(path for path in folder.glob("*.md") if path.name != "README.md")
    return [Fragment(path.name.split(".")[-2], path.read_text().strip()) for path in paths]


def problems(folder: Path) -> list[str]:
    """What is wrong with the files in the folder, one line each."""
    found: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.name == "README.md":
            continue
        if not NAME.match(path.name):
            found.append(f"{path.name}: expected <slug>.<{'|'.join(KINDS)}>.md in lower case")
            continue
        text = path.read_text().strip()
        if not text:
            found.append(f"{path.name}: is empty; say what a user sees")
        if text.startswith("#"):
            found.append(f"{path.name}: has a heading; the release makes them")
        if len(text) > LENGTH_MAX:
            found.append(
                f"{path.name}: has {len(text)} characters, at most {LENGTH_MAX}; link to docs/ instead"
            )
    return found


def entry(fragments: list[Fragment], title: str) -> str:
    """The entry in Markdown: a heading, then the kinds in their order, a bullet for each fragment."""
    parts = [f"## {title}\n"]
    for kind in KINDS:
        texts = [fragment.text for fragment in fragments if fragment.kind == kind]
        if texts:
            bullets = "\n".join("- " + text.replace("\n", "\n  ") for text in texts)
            parts.append(f"### {kind.capitalize()}\n\n{bullets}\n")
    return "\n".join(parts)


def changed_files(base: str) -> list[str]:
    """Files that differ between `base` and HEAD; of a first commit, all of them."""
    known = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", base], cwd=ROOT, capture_output=True, check=False
    )
    command = ["git", "diff", "--name-only", base, "HEAD"] if known.returncode == 0 else ["git", "ls-files"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def lacks_fragment(files: list[str]) -> bool:
    """True when the product changed and neither a fragment nor the changelog did."""
    product = any(name.startswith("src/") for name in files)
    told = any(name.startswith("changes/") or name == "CHANGELOG.md" for name in files)
    return product and not told


def check(base: str) -> int:
    """Say whether the fragments are well-formed and the change since `base` brings one."""
    found = problems(ROOT / "changes")
    if lacks_fragment(changed_files(base)):
        found.append(
            f"src/ changed since {base} and changes/ did not: add changes/<slug>.<{'|'.join(KINDS)}>.md"
        )
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


def release(version: str, date: str) -> int:
    """Move the fragments into CHANGELOG.md under a heading of the version and its date."""
    folder, changelog = ROOT / "changes", ROOT / "CHANGELOG.md"
    found = problems(folder)
    fragments = read_fragments(folder)
    text = changelog.read_text()
    if found or not fragments or MARKER not in text:
        print("\n".join(found) or f"nothing to release, or CHANGELOG.md lacks {MARKER}", file=sys.stderr)
        return 1
    changelog.write_text(
        text.replace(MARKER, f"{MARKER}\n\n{entry(fragments, f'{version} ({date})').rstrip()}", 1)
    )
    for path in folder.glob("*.md"):
        if path.name != "README.md":
            path.unlink()
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(description="The changelog's fragments.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("show")
    verbs.add_parser("check").add_argument("--base", default="HEAD~1")
    releasing = verbs.add_parser("release")
    releasing.add_argument("version")
    releasing.add_argument("date")
    chosen = parser.parse_args(arguments)
    if chosen.verb == "check":
        return check(chosen.base)
    if chosen.verb == "release":
        return release(chosen.version, chosen.date)
    print(entry(read_fragments(ROOT / "changes"), "Unreleased"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
