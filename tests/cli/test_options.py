"""`K=V`, lists of words, and options that are what the contract lists."""

from __future__ import annotations

import click
import pytest

from gonogo.cli.group import Verbs
from gonogo.cli.options import REPORTS, pairs, words
from gonogo.errors import UsageError
from gonogo.report.formats import NAMES


def test_pairs_take_the_last_of_a_name_and_keep_equal_signs() -> None:
    """A value may hold `=`."""
    assert pairs(["A=1", "B=x=y", "A=2", "C="], "--env") == {"A": "2", "B": "x=y", "C": ""}


@pytest.mark.parametrize("text", ["A", "=1", ""])
def test_a_pair_without_a_name_or_sign_is_refused(text: str) -> None:
    """The message shows it."""
    with pytest.raises(UsageError, match="NAME=VALUE"):
        pairs([text], "--env")


def test_words_may_be_repeated_and_separated_by_commas() -> None:
    """Each once, in order."""
    assert words(["a,b", " c ", "a", ""]) == ("a", "b", "c")


def test_the_formats_are_those_of_the_reports() -> None:
    """One list in two rooms, because options are read before reports are imported."""
    assert REPORTS == NAMES


def test_run_has_the_options_of_the_contract_and_no_others() -> None:
    """Short names only where listed."""
    context = click.Context(Verbs())
    command = Verbs().get_command(context, "run")
    assert command is not None
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    names = {name for option in options for name in option.opts}
    assert {name for name in names if not name.startswith("--")} == {"-s", "-j", "-e", "-i", "-o", "-v", "-q"}
    assert {name[2:] for name in names if name.startswith("--")} == set(
        """
        step event payload base tags exclude-tags max-parallelism fail-fast safe-mode safety seed runs-dir store
        durability env input message format out verbose quiet no-color engine url queue detach
        """.split()
    )
