"""Write requirements/*.txt: every package pinned, with the hashes of all its files, for all our Pythons.

The files name no package index, so that they install from any mirror that serves the same bytes; the hashes
are what is trusted. Pins already in a file are kept unless `--upgrade` is given.

Run it as `make lock`. What goes into which file is pyproject.toml's say.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"

# file → what goes in, as arguments of `uv pip compile`. Later files are held to the pins of the first.
LOCKS: dict[str, tuple[str, ...]] = {
    "run.txt": ("pyproject.toml",),
    "build.txt": ("--group", "build", "--constraints", "requirements/run.txt"),
    "dev.txt": (
        "pyproject.toml",
        "--all-extras",
        "--group",
        "dev",
        "--group",
        "build",
        "--constraints",
        "requirements/run.txt",
        "--constraints",
        "requirements/build.txt",
    ),
    "model.txt": ("--group", "model", "--no-deps"),
    "lock.txt": ("--group", "lock"),
}

# One lock for all platforms and Pythons (markers choose), and nothing in it that tells where files came from.
OPTIONS = (
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-header",
    "--no-annotate",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-config",
    "--quiet",
)

PIN = re.compile(r"^[a-z0-9][a-z0-9.-]*==[^\s;]+( ; [^\\]+)? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def compile_lock(name: str, sources: tuple[str, ...], *, upgrade: bool) -> None:
    """Resolve one file with uv. Raises CalledProcessError when that fails; its words are on stderr."""
    extra = ("--upgrade",) if upgrade else ()
    target = f"requirements/{name}"
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        *sources,
        *OPTIONS,
        *extra,
        "--output-file",
        target,
    ]
    subprocess.run(command, check=True, cwd=ROOT)


def strange_lines(text: str) -> list[str]:
    """Lines that are neither a pin nor a hash: an index address, a path or a comment would be one."""
    return [line for line in text.splitlines() if not PIN.match(line) and not HASH.match(line)]


def main() -> int:
    """Write every lock; 0 when all of them hold pins and hashes alone."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--upgrade", action="store_true", help="take the newest release of everything")
    upgrade = parser.parse_args().upgrade
    FOLDER.mkdir(exist_ok=True)
    wrong = 0
    for name, sources in LOCKS.items():
        compile_lock(name, sources, upgrade=upgrade)
        text = (FOLDER / name).read_text()
        for line in strange_lines(text):
            wrong += 1
            print(f"requirements/{name}: neither a pin nor a hash: {line}", file=sys.stderr)
        print(f"requirements/{name}: {text.count('==')} packages, {text.count('--hash=')} hashes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
