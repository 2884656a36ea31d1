"""The wire formats under one face, for those who take the format from a workflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from gonogo.models.conversation import Ask
from gonogo.models.reply import NoAnswer, Reply
from gonogo.models.streaming import StreamReader
from gonogo.models.writing import HttpCall

FormatName = Literal["openai", "openai-older", "anthropic"]
"""`openai-older`: of before `max_completion_tokens` and `stream_options`, as many servers that speak it still are."""
Read = Callable[[int, Mapping[str, str], bytes, float], Reply | NoAnswer]
"""Status, headers (lower-case names), body, and seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Format:
    """How to ask and how to read, whole or as a stream (the latter for a status 200 only)."""

    name: FormatName
    request: Callable[[str, Ask], HttpCall]
    key_headers: Callable[[str], dict[str, str]]
    read: Read
    reader: Callable[[Mapping[str, str], float], StreamReader]


def format_named(name: FormatName) -> Format:
    """A format by its name; only the one that is asked for is loaded."""
    if name == "openai":
        from gonogo.models import openai, openai_stream

        return Format(name, openai.request, openai.key_headers, openai.read, openai_stream.reader)
    if name == "openai-older":
        from gonogo.models import openai, openai_stream

        request = partial(openai.request, dialect=openai.OLDER)
        return Format(name, request, openai.key_headers, openai.read, openai_stream.reader)
    from gonogo.models import anthropic, anthropic_stream

    return Format(name, anthropic.request, anthropic.key_headers, anthropic.read, anthropic_stream.reader)
