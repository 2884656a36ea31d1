"""Make docs/start/run.svg: what a terminal shows of the run that docs/start/first-workflow.md ends its first part with.

    picture.py    run the page's third workflow on a terminal of its own and draw what it says

A picture and not a drawing: the text and colours are those of a real run. It names no font to fetch.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "start" / "first-workflow.md"
PICTURE = PAGE.parent / "run.svg"
WIDTH = 84
FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}"
height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


def workflow() -> str:
    """The third workflow that the page shows."""
    shown: list[str] = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    return shown[2]


def said(folder: Path) -> str:
    """What `gonogo run` writes to a terminal."""
    (folder / "gonogo.yaml").write_text(workflow())
    terminal, inner = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(WIDTH), "LINES": "40"}
    environment.pop("NO_COLOR", None)
    command = [str(Path(sys.executable).parent / "gonogo"), "run", "--quiet"]
    process = subprocess.Popen(command, cwd=folder, stdin=inner, stdout=inner, stderr=inner, env=environment)
    os.close(inner)
    parts = []
    try:
        while part := os.read(terminal, 65536):
            parts.append(part)
    except OSError:
        pass  # Linux says so when the other end is closed
    process.wait()
    os.close(terminal)
    return b"".join(parts).decode().replace("\r\n", "\n")


def main() -> int:
    """Run, draw, write."""
    from rich.console import Console
    from rich.text import Text

    with tempfile.TemporaryDirectory() as folder:
        text = said(Path(folder))
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ gonogo run\n") + Text.from_ansi(text.rstrip()))
    svg = console.export_svg(title="gonogo run", code_format=FORMAT, unique_id="run")
    PICTURE.write_text(re.sub(r"[ \t]+\n", "\n", svg))
    print(f"{PICTURE.relative_to(ROOT)}: {len(svg)} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
