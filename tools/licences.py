"""Check that every locked package has a licence that lets gonogo be Apache-2.0 and be shipped with it.

Reads the metadata of the installed distributions, so run it in a virtualenv made from the lock. What is only used in
development may also be MPL-2.0: it binds the files it comes with, and none of them is shipped. LGPL-3.0 will do for
what a user installs by choice (an extra): it stays a library of its own, unchanged and replaceable.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PERMISSIVE = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSD",
        "ISC",
        "MIT",
        "MIT-0",
        "PSF-2.0",
        "Python-2.0",
        "Unlicense",
    }
)
NOT_SHIPPED = frozenset({"LGPL-3.0-only", "MPL-2.0"})

# Older metadata spells licences in many ways; what isn't here is refused, so that a person looks.
SPELLINGS = {
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license version 2.0, january 2004": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD",
    "bsd license": "BSD",
    "bsd 3-clause": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "dual license": "",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
    "the unlicense (unlicense)": "Unlicense",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a package says about its licence, and whether that will do."""

    package: str
    licence: str
    allowed: bool


def locked_names(lock: Path) -> list[str]:
    """Names of the packages pinned in a lock file."""
    return re.findall(r"^([a-z0-9][a-z0-9.-]*)==", lock.read_text(), flags=re.MULTILINE)


def licence_of(package: Distribution) -> str:
    """The licence as an SPDX expression, else as classifiers, a text field or the shipped file spell it."""
    expressions = package.metadata.get_all("License-Expression", [])
    if expressions:
        return str(expressions[0])
    classifiers = [
        value for value in package.metadata.get_all("Classifier", []) if value.startswith("License :: ")
    ]
    named = [value.rsplit(" :: ", 1)[1] for value in classifiers if not value.endswith("OSI Approved")]
    texts = [str(text) for text in package.metadata.get_all("License", [])] or licence_files(package)
    spelled = named or [title(text) for text in texts if text.strip()]
    known = [SPELLINGS.get(value.lower(), value) for value in spelled]
    return " OR ".join(value for value in known if value) or "unknown"


def title(text: str) -> str:
    """The first line of a licence, with the next one where that tells the version."""
    first, second = [*(line.strip() for line in text.strip().splitlines()[:2]), ""][:2]
    return f"{first} {second}" if second.startswith("Version ") else first


def licence_files(package: Distribution) -> list[str]:
    """The texts of the licence files that the package ships."""
    files = [
        file
        for file in package.files or []
        if file.name.upper().startswith(("LICENSE", "LICENCE", "COPYING"))
    ]
    return [file.read_text() for file in files]


def permits(expression: str, allowed: frozenset[str]) -> bool:
    """Whether an SPDX expression can be met with allowed licences: every AND part, one of each OR."""
    parts = re.split(r"\s+AND\s+", expression.replace("(", " ").replace(")", " ").strip())
    return all(any(choice.strip() in allowed for choice in re.split(r"\s+OR\s+", part)) for part in parts)


def judge(names: list[str], *, shipped: frozenset[str]) -> list[Verdict]:
    """Judge each named package that is installed here; a universal lock names some that are not."""
    verdicts: list[Verdict] = []
    for name in names:
        try:
            licence = licence_of(distribution(name))
        except PackageNotFoundError:
            continue
        allowed = PERMISSIVE if name in shipped else PERMISSIVE | NOT_SHIPPED
        verdicts.append(Verdict(name, licence, permits(licence, allowed)))
    return verdicts


def judge_lock(folder: Path) -> list[Verdict]:
    """Judge everything in requirements/dev.txt, as shipped where requirements/run.txt has it too."""
    shipped = frozenset(locked_names(folder / "run.txt"))
    return judge(locked_names(folder / "dev.txt"), shipped=shipped)


def main() -> int:
    """Print one line a package; 0 when all will do."""
    verdicts = judge_lock(ROOT / "requirements")
    for verdict in verdicts:
        print(f"{'ok ' if verdict.allowed else 'NO '} {verdict.package:24} {verdict.licence}")
    return 0 if verdicts and all(verdict.allowed for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
