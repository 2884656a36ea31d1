"""Both wire formats under one face."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.models.wires import NOW_S

from gonogo.models.conversation import Ask, Message
from gonogo.models.events import Broken
from gonogo.models.formats import FormatName, format_named
from gonogo.models.reply import NoAnswer


@pytest.mark.parametrize(("name", "path"), [("openai", "/chat/completions"), ("anthropic", "/messages")])
def test_a_format_asks_and_reads(name: FormatName, path: str) -> None:
    """Request, key, whole answer and stream."""
    wire = format_named(name)
    assert wire.request("http://h/v1", Ask("m", (Message("user", "x"),))).url == f"http://h/v1{path}"
    assert "k" in "".join(wire.key_headers("k").values())
    assert isinstance(wire.read(500, {}, b"", NOW_S), NoAnswer)
    assert isinstance(wire.reader({}, NOW_S).end()[0], Broken)


def test_only_the_format_that_is_asked_for_is_loaded() -> None:
    """The start of a run pays for no other."""
    program = (
        "import sys; from gonogo.models.formats import format_named; format_named('openai');"
        "print('gonogo.models.anthropic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
