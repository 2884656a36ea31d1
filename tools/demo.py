"""Judge this repository's last change with gonogo.yaml and show how the verdict came about.

Ends with 0 when gonogo gave a verdict and its exit code agrees with it, whatever the verdict: the demo shows
that gonogo decides, not that the change is good. Anything else (a bad config, a crash) ends with 1.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXIT_CODES = {"GO": 0, "NO-GO": 1, "HOLD": 3}


def base_arguments() -> list[str]:
    """`--base HEAD~1`; nothing where the last commit has no parent here (first commit, shallow clone)."""
    asked = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", "HEAD~1"], cwd=ROOT, capture_output=True, check=False
    )
    return ["--base", "HEAD~1"] if asked.returncode == 0 else []


def gonogo(*arguments: str) -> int:
    """Run the installed command of this virtualenv in the repository; the exit code."""
    command = [str(Path(sys.executable).parent / "gonogo"), *arguments]
    print(f"$ gonogo {' '.join(arguments)}", flush=True)
    # The workflow's own commands find this virtualenv's python3 first.
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    }
    return subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, env=environment, check=False
    ).returncode


def judge(result_file: Path) -> tuple[dict[str, Any], int]:
    """Run the workflow; the result it wrote (empty when it wrote none) and its exit code."""
    exit_code = gonogo("run", *base_arguments(), "--format", "json", "--out", str(result_file))
    if not result_file.exists():
        return {}, exit_code
    return json.loads(result_file.read_text()), exit_code


def main() -> int:
    """Run, check that verdict and exit code agree, show."""
    with tempfile.TemporaryDirectory() as folder:
        result, exit_code = judge(Path(folder) / "result.json")
    verdict = result.get("verdict")
    if verdict is None or EXIT_CODES.get(verdict) != exit_code:
        print(
            f"demo: gonogo ended with {exit_code} and verdict {verdict!r}: no verdict to show",
            file=sys.stderr,
        )
        return 1
    print()
    shown = gonogo("show", result["run_id"])
    print(f"\nverdict: {verdict}")
    return 0 if shown == exit_code or shown == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
