"""What fits into arguments and environment."""

from __future__ import annotations

import subprocess

import pytest

from gonogo.providers._arguments import ONE_TEXT_BYTES_MAX, too_large


def test_BIG_1_a_text_too_long_is_named_with_size_limit_and_way_out() -> None:
    """BIG-1: the field, the size, the limit, and the way that works."""
    told = too_large("x" * 300_000, {}, {})
    assert told is not None
    assert told.startswith("exec is 300,000 bytes; one text may have 131,071 at most")
    assert "`stdin:`" in told


def test_BIG_1_a_variable_too_long_is_named() -> None:
    """The name and the sign between count too."""
    assert too_large("true", {}, {"DATA": "x" * (ONE_TEXT_BYTES_MAX - 5)}) is None
    told = too_large("true", {}, {"DATA": "x" * (ONE_TEXT_BYTES_MAX - 4)})
    assert told is not None
    assert told.startswith("env DATA is 131,072 bytes")


def test_BIG_1_all_together_may_be_too_much() -> None:
    """The largest that the author can change is named first."""
    step = {f"V{number}": "x" * (100_000 + number) for number in range(80)}
    told = too_large("true", step, step)
    assert told is not None
    assert told.startswith("env V79 has 100,079 characters; exec and env are 8,")


@pytest.mark.parametrize(("size", "fits"), [(ONE_TEXT_BYTES_MAX, True), (ONE_TEXT_BYTES_MAX + 1, False)])
def test_the_limit_is_the_systems(size: int, fits: bool) -> None:
    """What we let through the system takes, and what we refuse it refuses."""
    text = ":" + " " * (size - 1)
    assert (too_large(text, {}, {}) is None) is fits
    try:
        subprocess.run(["/bin/sh", "-c", text], check=True, env={})
    except OSError:
        assert not fits
    else:
        assert fits
