"""What is found to be left running."""

from __future__ import annotations

import subprocess
import sys

from tests.hostile.world import adopting

PARENT = "import subprocess, sys; input(); print(subprocess.Popen(['sleep', '60']).pid, flush=True); input()"
LEAVES = "import subprocess; print(subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL).pid)"


def test_what_a_command_leaves_is_found_and_what_others_start_meanwhile_is_not() -> None:
    """A database server of other tests starts processes when it likes, and dies of their death."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        try:
            with adopting() as orphans:
                other.stdin.write("\n")
                other.stdin.flush()
                theirs = int(other.stdout.readline())
                said = subprocess.run([sys.executable, "-c", LEAVES], check=True, stdout=subprocess.PIPE)
                left = int(said.stdout)
                assert set(orphans.now()) == {left}
                assert orphans.after(0) == (f"{left} sleep 60 ",)
        finally:
            subprocess.run(["kill", str(theirs)], check=True)
            other.kill()
