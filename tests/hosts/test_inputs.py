"""Inputs of a run against what the workflow declares (E.10 R1)."""

from __future__ import annotations

from typing import Any

import pytest

from gonogo.core.plan import Plan
from gonogo.hosts.inputs import checked

DECLARED = {
    "size": {"schema": {"type": "integer"}, "required": True},
    "label": {"schema": {}, "default": "x"},
}


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"size": 1}, ()),
        ({}, ("size: expected a value, the workflow needs it",)),
        ({"size": 1, "lable": 2}, ("lable: the workflow has no such input (did you mean label?)",)),
        ({"size": 1, "zzz": 2}, ("zzz: the workflow has no such input (it has size, label)",)),
    ],
)
def test_E_10_an_input_that_is_not_declared_is_refused_with_what_was_meant(
    given: dict[str, Any], wrong: tuple[str, ...]
) -> None:
    """E.10 R1: where the workflow declares inputs."""
    assert checked(Plan("w", {}, inputs=DECLARED), given)[1] == wrong


def test_E_10_a_workflow_that_declares_none_takes_any() -> None:
    """E.10 R1: as they come."""
    assert checked(Plan("w", {}), {"any": 1}) == ({"any": 1}, ())
