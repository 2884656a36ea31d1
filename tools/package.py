"""Build the sdist and the wheel, and try the wheel as a stranger would: in a fresh virtualenv, from the lock.

Checks that the wheel holds every tracked file of src/gonogo (data files go missing silently otherwise) and
that the installed command helps, runs a workflow and starts a new one. Leaves the files in dist/.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"


def build() -> Path:
    """Build both into an empty dist/; the wheel's path."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "hatchling", "build"], cwd=ROOT, check=True)
    (wheel,) = DIST.glob("*.whl")
    return wheel


def missing_files(wheel: Path) -> list[str]:
    """Tracked files of src/gonogo that the wheel lacks."""
    command = ["git", "ls-files", "src/gonogo"]
    tracked = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    return [name for name in tracked if name.removeprefix("src/") not in packed]


WORKFLOW = """\
version: "1.0"
steps:
  first: {type: command, exec: "echo '[1,2]'", guarantee: "output.length === 2"}
  last: {type: log, depends_on: first, message: "{{ outputs.first | size }}"}
"""


def install(wheel: Path, folder: Path) -> Path:
    """Install the lock and the wheel into a fresh virtualenv in `folder`; the path of its `gonogo`."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    locked = ["--require-hashes", "--only-binary", ":all:", "-r", str(ROOT / "requirements" / "run.txt")]
    subprocess.run([*pip, *locked], check=True)
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
    return folder / "bin" / "gonogo"


def attempt(gonogo: Path, folder: Path) -> str:
    """Show the help, run a workflow, start one from a template and validate it; the help."""
    (folder / "gonogo.yaml").write_text(WORKFLOW)
    command = [str(gonogo), "--help"]
    text = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    subprocess.run([str(gonogo), "run"], cwd=folder, check=True)
    (folder / "gonogo.yaml").unlink()
    subprocess.run([str(gonogo), "init", "checks"], cwd=folder, check=True)
    subprocess.run([str(gonogo), "validate"], cwd=folder, check=True)
    return text


def main() -> int:
    """Build, look inside, try; 0 when the wheel is whole and its command works."""
    wheel = build()
    missing = missing_files(wheel)
    if missing:
        print(f"{wheel.name} lacks: {', '.join(missing)}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = attempt(install(wheel, folder / "venv"), folder)
    print(text)
    return 0 if text.startswith("Usage: gonogo") else 1


if __name__ == "__main__":
    sys.exit(main())
