"""The child process from the outside: exchange, hang, death."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from gonogo.errors import SandboxError
from gonogo.expressions import process
from gonogo.expressions.process import Child, Died, Reply, engine_path

RUN = ["c", "1", "", "1 + 1", "", "r", "1", "value", "1.0", '{"names":[]}']
HANG = ["c", "1", "", "let s = 'a'.repeat(5e6); while (true) (s + 1).indexOf('b')", "", *RUN[5:]]
HANG[4] = HANG[3]


@pytest.fixture
def child() -> Iterator[Child]:
    """One that is given a tenth of a second of grace."""
    made = Child(now_ms=0.0, memory_bytes=64 << 20, result_bytes=1000, grace_s=0.1)
    yield made
    made.kill()


async def asynchronously(child: Child, parts: list[str], limits_s: list[float]) -> Reply:
    """As `exchange`, on an event loop."""
    child.send(parts, limits_s)
    return await child.reply_async()


def test_a_frame_goes_out_and_its_reply_comes_back(child: Child) -> None:
    """Blocking and not, the same."""
    assert child.exchange(["2.0", *RUN], [1.0]) == ["", "", '{"v":2}']
    assert anyio.run(asynchronously, child, ["2.0", *RUN], [1.0]) == ["", "", '{"v":2}']


def test_a_frame_larger_than_the_pipe_goes_through(child: Child) -> None:
    """Writing waits for the reader, both ways."""
    value = '"' + "x" * 3_000_000 + '"'
    parts = [
        "2.0",
        "p",
        "1",
        value,
        "c",
        "1",
        "output",
        "output.length",
        "",
        "r",
        "1",
        "value",
        "1.0",
        '{"names":[1]}',
    ]
    assert child.exchange(parts, [1.0])[-1] == '{"v":3000000}'  # type: ignore[index]
    assert anyio.run(asynchronously, child, parts, [1.0])[-1] == '{"v":3000000}'  # type: ignore[index]


def test_a_hang_is_killed_and_the_run_named(child: Child) -> None:
    """The engine can't interrupt its own natives; the client can."""
    assert child.exchange(["2.0", *HANG], [0.1]) == Died(run=0, hung=True, exit_code=-9)


def test_a_hang_is_killed_without_blocking_the_loop(child: Child) -> None:
    """The same, asynchronously."""
    assert anyio.run(asynchronously, child, ["2.0", *HANG], [0.1]) == Died(run=0, hung=True, exit_code=-9)


def test_a_dead_child_is_told(child: Child) -> None:
    """While nothing ran."""
    os.kill(child._process.pid, 9)
    assert child.exchange(["2.0", *RUN], [1.0]) == Died(run=None, hung=False, exit_code=-9)


def test_an_interrupt_from_the_terminal_is_the_clients_business(child: Child) -> None:
    """EXP-4: Ctrl-C reaches the whole group; the child goes on, and its client decides."""
    child.exchange(["2.0", *RUN], [1.0])
    os.kill(child._process.pid, 2)
    assert child.exchange(["2.0", *RUN], [1.0]) == ["", "", '{"v":2}']


def test_killing_lets_go_of_every_descriptor() -> None:
    """Many restarts leave nothing open."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("needs /proc")
    before = len(list(descriptors.iterdir()))
    for _ in range(3):
        made = Child(0.0, 64 << 20, 1000, 0.1)
        made.kill()
        made.kill()
    assert len(list(descriptors.iterdir())) == before


def test_a_missing_engine_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """expressions.md, "Traps" 5: the package and what to do."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SandboxError, match="quickjs-ng"):
        engine_path()


def test_a_wrong_engine_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file that is no engine ends the child with its own code."""
    wrong = tmp_path / "_quickjs.so"
    wrong.write_bytes(b"no engine")
    monkeypatch.setattr(process, "engine_path", lambda: str(wrong))
    made = Child(0.0, 64 << 20, 1000, 0.1)
    assert made.exchange(["2.0", *RUN], [1.0]) == Died(
        run=None, hung=False, exit_code=process.ENGINE_IS_WRONG
    )


def test_no_child_can_be_started_without_an_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said before anything runs."""
    monkeypatch.setattr("sys.executable", "")
    with pytest.raises(SandboxError, match=r"sys\.executable"):
        Child(0.0, 64 << 20, 1000, 0.1)
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    with pytest.raises(SandboxError, match="can't be started"):
        Child(0.0, 64 << 20, 1000, 0.1)


@pytest.mark.parametrize(
    "cells", [(float("nan"), float("nan")), (1e300, 1e300), (0.0, float("inf")), (-5.0, -1.0)]
)
def test_a_child_that_was_taken_over_can_not_hold_the_client(
    child: Child, cells: tuple[float, float]
) -> None:
    """Whatever stands in the shared page, the time left is finite and no more than loading and all runs may take."""
    child.exchange(["2.0", *RUN], [1.0])
    child._marker[0], child._marker[1] = cells
    assert child._left_s() <= process.LOADING_S + 1.0
