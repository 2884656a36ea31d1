"""The text exposition of metrics, read back by a strict reader of the format's own rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exposition import LABEL_NAME, NAME, read

from gonogo.journal.metrics import FAMILIES, Family, Metric, Sample
from gonogo.report.exposition import exposition

TWO_LABELS = Family("gonogo_faults_total", "Faults.", ("step", "kind"))


def one(*values: str, value: float = 1) -> str:
    """The text of one sample of two labels."""
    return exposition([Metric(TWO_LABELS, (Sample(values, value),))])


def test_a_family_has_help_type_and_a_line_for_each_sample() -> None:
    """The format, to the letter."""
    metric = Metric(
        TWO_LABELS, (Sample(("build", "command.exit"), 2), Sample(("test", "step.timeout"), 0.25))
    )
    assert exposition([metric]) == (
        "# HELP gonogo_faults_total Faults.\n"
        "# TYPE gonogo_faults_total counter\n"
        'gonogo_faults_total{step="build",kind="command.exit"} 2\n'
        'gonogo_faults_total{step="test",kind="step.timeout"} 0.25\n'
    )


def test_a_family_without_labels_has_no_braces() -> None:
    """A plain name and its value."""
    told = exposition(
        [Metric(Family("gonogo_run_duration_seconds", "Time.", (), "gauge"), (Sample((), 1.5),))]
    )
    assert told.splitlines()[-1] == "gonogo_run_duration_seconds 1.5"


def test_help_texts_keep_to_one_line() -> None:
    """Backslash and line feed are escaped there, quotes aren't."""
    told = exposition([Metric(Family("gonogo_x_total", 'a "b"\nc\\d'), ())])
    assert told.splitlines()[0] == r'# HELP gonogo_x_total a "b"\nc\\d'
    assert read(told) == {}


@pytest.mark.parametrize("value", ["a\\b", 'say "x"', "two\nlines", "\\n", "}", 'x",kind="y', "ümläut ✓", ""])
def test_label_values_come_back_as_they_were(value: str) -> None:
    """Backslash, quote and line feed are escaped; nothing in a value can end it or begin a new label."""
    assert read(one(value, "k"))["gonogo_faults_total"] == [({"step": value, "kind": "k"}, 1.0)]


def test_nothing_a_run_says_reaches_a_terminal_as_a_command() -> None:
    """An escape sequence in a name is shown, not sent (law 6)."""
    told = one("\x1b[31mred\r", "k")
    assert "\x1b" not in told
    assert read(told)["gonogo_faults_total"][0][0]["step"] == "\\x1b[31mred "


@given(
    st.lists(
        st.tuples(st.text(), st.text(), st.floats(min_value=0, allow_nan=False, allow_infinity=False)),
        max_size=5,
        unique_by=lambda sample: sample[:2],
    )
)
def test_any_texts_and_numbers_are_well_formed(samples: list[tuple[str, str, float]]) -> None:
    """Whatever the names are, each line is one sample and its number is the one that was counted."""
    shown = {(first, second): value for first, second, value in samples}
    told = exposition([Metric(TWO_LABELS, tuple(Sample(key, value) for key, value in shown.items()))])
    lines = [line for line in told.split("\n") if line.startswith("gonogo_faults_total{")]
    assert [float(line.rpartition(" ")[2]) for line in lines] == list(shown.values())
    assert told.count("\n") == len(shown) + 2


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_names_follow_the_conventions(family: Family) -> None:
    """Prefix, `_total` for counters and for nothing else, seconds as the unit of time, names the format allows."""
    assert NAME.fullmatch(family.name)
    assert family.name.startswith("gonogo_")
    assert family.name.endswith("_total") is (family.kind == "counter")
    assert ("duration" in family.name) is ("seconds" in family.name)
    assert all(LABEL_NAME.fullmatch(label) for label in family.labels)
    assert family.help.endswith(".")
    assert len(set(family.labels)) == len(family.labels)


WRONG = (
    'a{x="1"} 1',
    'a{x="1",x="2"} 1\n',
    'a{x="1\\t"} 1\n',
    'a{x="1"} one\n',
    "a 1\nb 1\na 2\n",
    "a 1\na 2\n",
    "a 1\n# TYPE a counter\n",
    "# TYPE a number\n",
    "a  1\n",
)


@pytest.mark.parametrize("text", WRONG)
def test_the_reader_of_these_tests_is_strict(text: str) -> None:
    """A test that reads back proves nothing if the reader takes everything."""
    with pytest.raises(AssertionError):
        read(text)
