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


def complaint(result: dict[str, Any], exit_code: int) -> str | None:
    """What is wrong with an answer of gonogo's, whatever the verdict; None when nothing is."""
    verdict = result.get("verdict")
    if verdict is None:
        return f"gonogo ended with {exit_code} and gave no verdict"
    if EXIT_CODES.get(verdict) != exit_code:
        return f"gonogo said {verdict} and ended with {exit_code}"
    faults = {name: step.get("fault") or {} for name, step in result.get("steps", {}).items()}
    bugs = [name for name, fault in faults.items() if fault.get("class") == "bug"]
    if bugs or not faults:
        return f"steps that broke: {', '.join(bugs)}" if bugs else "no step was judged"
    return None


def main() -> int:
    """Run, check the answer, show the run."""
    with tempfile.TemporaryDirectory() as folder:
        result, exit_code = judge(Path(folder) / "result.json")
    wrong = complaint(result, exit_code)
    if wrong is None:
        gonogo("show", result["run_id"])
        print(f"\nverdict: {result['verdict']}")
        print("make demo ends with 0 because there is a verdict; gonogo run ended with", exit_code)
        return 0
    print(f"demo: {wrong}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
