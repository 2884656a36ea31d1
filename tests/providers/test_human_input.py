"""human-input."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.provider import Done, Failed, Outcome, Parked
from gonogo.providers.human_input import ANSWER_BYTES_MAX, PROVIDER, clean
from gonogo.testing import ScriptedContext, call_for

Do = Callable[..., Outcome]


def answer(context: ScriptedContext, *texts: str | None) -> None:
    """What the person says."""
    context.answers = iter(texts)


def test_an_answer_is_the_output(do: Do, context: ScriptedContext) -> None:
    """E.9: `{text, ts}`, ts in milliseconds."""
    answer(context, "yes")
    outcome = do("human-input", {"prompt": "go on?"})
    assert isinstance(outcome, Done)
    assert outcome.output["text"] == "yes"
    assert outcome.output["ts"] > 1_700_000_000_000
    assert context.prompts == ["go on?"]


def test_nobody_there_parks_the_step(do: Do) -> None:
    """C.15: a wait, not a failure; what a person needs to answer is in it."""
    config = {"prompt": "go on?", "placeholder": "yes or no", "default": "no"}
    outcome = do("human-input", config, timeout_s=60.0)
    assert outcome == Parked(
        "go on?",
        {"multiline": False, "allow_empty": False, "placeholder": "yes or no"},
        timeout_s=60.0,
        default="no",
    )


def test_E9_an_empty_answer_is_a_logical_failure(do: Do, context: ScriptedContext) -> None:
    """E.9 D: fatal, logical."""
    answer(context, "  \n")
    outcome = do("human-input", {"prompt": "?"})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("human_input.empty", "logical")
    assert outcome.fault.rule_id == "step/human-input-error"


@pytest.mark.parametrize(
    ("config", "text"),
    [({"allow_empty": True}, ""), ({"default": "d"}, "d"), ({"allow_empty": True, "default": "d"}, "d")],
)
def test_an_empty_answer_may_be_allowed_or_replaced(
    do: Do, context: ScriptedContext, config: dict[str, object], text: str
) -> None:
    """`default` first, then `allow_empty`."""
    answer(context, "")
    assert do("human-input", {"prompt": "?", **config}).output["text"] == text  # type: ignore[union-attr]


class SilentContext(ScriptedContext):
    """A person who is there and says nothing."""

    async def answer(self, prompt: str, *, multiline: bool, secret: bool) -> str | None:
        """For ever."""
        await anyio.sleep_forever()
        return None


@pytest.mark.parametrize("default", [None, "d"])
def test_silence_ends_with_the_default_or_a_failure(default: str | None) -> None:
    """E.1: on timeout an error, or the default."""
    call = call_for(PROVIDER, {"prompt": "?", "default": default}, timeout_s=0.01)
    outcome = anyio.run(PROVIDER.run, call, SilentContext())
    if default is None:
        assert isinstance(outcome, Failed)
        assert outcome.fault.kind == "human_input.timeout"
    else:
        assert isinstance(outcome, Done)
        assert outcome.output["text"] == "d"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("aabbcc", "aabbcc"),
        ("a\x00b\x1b[31mc\x7f", "ab[31mc"),
        ("one\r\ntwo\tthree", "one\ntwo\tthree"),
        ("naïve 日本 🙂", "naïve 日本 🙂"),
        ("\ud800x", "?x"),
    ],
)
def test_E9_only_control_characters_go(said: str, kept: str) -> None:
    """E.9 D: no de-stuttering."""
    assert clean(said) == kept


def test_one_line_has_no_line_ends() -> None:
    """Unless `multiline`."""
    assert clean("a\nb\tc", multiline=False) == "a b c"


@given(st.text())
def test_a_clean_answer_stays_as_it_is(text: str) -> None:
    """Cleaning twice changes nothing."""
    assert clean(clean(text)) == clean(text)


def test_a_long_answer_is_cut_between_characters_and_told(do: Do, context: ScriptedContext) -> None:
    """E.9: 100 KB."""
    answer(context, "é" * ANSWER_BYTES_MAX)
    outcome = do("human-input", {"prompt": "?"})
    assert outcome.output["text"] == "é" * (ANSWER_BYTES_MAX // 2)  # type: ignore[union-attr]
    assert context.logged == [("warn", "the answer was cut to 102,400 bytes")]
