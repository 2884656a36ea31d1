"""When the far side wants to be asked again (B42, RET-4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.wires import NOW_S

from gonogo.models.retry_after import WAIT_S_MAX, Wait, retry_after

DATE = "Tue, 14 Nov 2023 22:13:20 GMT"
"""The moment NOW_S."""


def seconds(headers: dict[str, str], delay: object = None) -> float | None:
    """The wait alone."""
    return retry_after(headers, NOW_S, delay).seconds


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [
        ("3", 3.0),
        (" 3 ", 3.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("86400", 86400.0),
        ("Tue, 14 Nov 2023 22:13:23 GMT", 3.0),
        ("Tuesday, 14-Nov-23 22:13:23 GMT", 3.0),
        ("Tue Nov 14 22:13:23 2023", 3.0),
        ("Tue, 14 Nov 2023 22:13:10 GMT", 0.0),
    ],
)
def test_RET_4_both_forms_of_retry_after_are_read(text: str, wait_s: float) -> None:
    """Seconds and the three spellings of a date; a long wait is passed on, a moment that has passed is none."""
    assert retry_after({"retry-after": text}, NOW_S) == Wait(wait_s, "retry-after")


@pytest.mark.parametrize(
    "text", ["banana", "", "-1", "1e3", "NaN", "inf", "٣", "99999999", "1 2", "x" * 10_000, "\x1b[31m"]
)
def test_RET_4_a_wait_that_makes_no_sense_is_dropped_with_a_note(text: str) -> None:
    """(f): negative, absurd and unreadable ones; the note can be shown."""
    wait = retry_after({"retry-after": text}, NOW_S)
    assert wait.seconds is None
    assert len(wait.notes) == 1
    assert wait.notes[0].startswith("retry-after makes no sense: ")
    assert wait.notes[0].isprintable()


def test_a_date_counts_from_the_answers_own_date() -> None:
    """Our clock may be wrong by an hour; theirs is the one they counted with."""
    headers = {"date": "Tue, 14 Nov 2023 23:00:00 GMT", "retry-after": "Tue, 14 Nov 2023 23:00:07 GMT"}
    assert seconds(headers) == 7.0


def test_milliseconds_are_more_exact_than_seconds() -> None:
    """`retry-after-ms` wins where both are sent."""
    assert retry_after({"retry-after-ms": "250", "retry-after": "1"}, NOW_S) == Wait(0.25, "retry-after-ms")


def test_an_unreadable_form_gives_way_to_the_next() -> None:
    """With a note for the one that was dropped."""
    wait = retry_after({"retry-after-ms": "soon", "retry-after": "2"}, NOW_S)
    assert (wait.seconds, wait.from_) == (2.0, "retry-after")
    assert wait.notes == ("retry-after-ms makes no sense: soon",)


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("12ms", 0.012),
        ("1h2m3.5s", 3723.5),
        ("1d", 86400.0),
        ("7.66s", 7.66),
        ("30", 30.0),
    ],
)
def test_a_window_that_is_used_up_tells_its_reset(text: str, wait_s: float) -> None:
    """OpenAI's durations in x-ratelimit-reset-*."""
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": text}
    assert seconds(headers) == pytest.approx(wait_s)


def test_a_window_with_something_left_asks_for_nothing() -> None:
    """Its reset says when it is full again, not when it is free."""
    assert (
        retry_after({"x-ratelimit-remaining-tokens": "17", "x-ratelimit-reset-tokens": "6m0s"}, NOW_S)
        == Wait()
    )


def test_of_several_windows_used_up_the_last_reset_counts() -> None:
    """Asking before it would be in vain."""
    headers = {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "20s",
    }
    assert retry_after(headers, NOW_S) == Wait(20.0, "x-ratelimit-reset-tokens")


@pytest.mark.parametrize("reset", ["1700000042", "1700000042000", "42"])
def test_a_reset_may_be_a_moment_or_a_number_of_seconds(reset: str) -> None:
    """GitHub's seconds since 1970, milliseconds as of OpenRouter, or plain seconds."""
    assert seconds({"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset, "date": DATE}) == 42.0


def test_anthropics_resets_are_dates_of_rfc_3339() -> None:
    """With the name of the window in the middle."""
    headers = {
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2023-11-14T22:13:50Z",
    }
    assert retry_after(headers, NOW_S) == Wait(30.0, "anthropic-ratelimit-input-tokens-reset")


def test_a_delay_in_the_body_is_understood() -> None:
    """google.rpc.RetryInfo."""
    assert retry_after({}, NOW_S, "34.5s") == Wait(34.5, "retryDelay")
    assert retry_after({}, NOW_S, {"seconds": 3}).notes == ("retryDelay makes no sense: empty",)


HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "retry-after",
            "retry-after-ms",
            "date",
            "x-ratelimit-reset",
            "x-ratelimit-remaining",
            "x-ratelimit-reset-tokens",
        ]
    ),
    st.text(max_size=30) | st.integers().map(str) | st.floats().map(str) | st.datetimes().map(str),
)


@given(HEADERS, st.none() | st.text(max_size=20) | st.integers())
def test_whatever_a_server_says_the_wait_is_finite(headers: dict[str, str], delay: object) -> None:
    """Never negative, never above the limit, never an exception."""
    wait = retry_after(headers, NOW_S, delay)
    assert wait.seconds is None or 0 <= wait.seconds <= WAIT_S_MAX
