"""What this machine and Python cost by themselves, each measured in a fresh process, so that figures can be compared.

python -m bench.floor loop      seconds of CPU of three million turns of an empty loop
python -m bench.floor events    seconds of CPU for each event of a loop that only writes one JSON line an event
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time

import msgspec

TURNS = 3_000_000
EVENTS = 20_000


class Line(msgspec.Struct):
    """About the size and shape of what the journal holds of a no-op step."""

    seq: int
    at: float
    event: dict[str, object]
    decisions: tuple[dict[str, object], ...]


def loop_s() -> float:
    """An empty loop."""
    start = time.process_time()
    for _ in range(TURNS):
        pass
    return time.process_time() - start


async def _events(descriptor: int) -> None:
    running = asyncio.get_running_loop()
    done = running.create_future()
    encoder = msgspec.json.Encoder()

    def turn(seq: int) -> None:
        decisions: tuple[dict[str, object], ...] = (
            {"type": "go", "step": f"s{seq}", "attempt": 1, "key": "a" * 32},
            {"type": "settle", "step": f"s{seq}"},
        )
        line = Line(
            seq, time.time(), {"type": "done", "call": seq, "output": None, "duration_ms": 0.1}, decisions
        )
        os.write(descriptor, encoder.encode(line) + b"\n")
        if seq == EVENTS:
            done.set_result(None)
        else:
            running.call_soon(turn, seq + 1)

    turn(1)
    await done


def event_s() -> float:
    """A loop that does nothing but take turns and write."""
    with tempfile.TemporaryFile() as file:
        start = time.process_time()
        asyncio.run(_events(file.fileno()))
        return (time.process_time() - start) / EVENTS


if __name__ == "__main__":
    print(loop_s() if sys.argv[1:] == ["loop"] else event_s())
