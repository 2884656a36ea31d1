"""A strict reader of Prometheus's text exposition format, for tests of what gonogo writes in it."""

from __future__ import annotations

import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]Inf|NaN")
UNESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}

Read = dict[str, list[tuple[dict[str, str], float]]]


class StrictReader:
    """Reads the text exposition format (0.0.4) and accepts nothing else.

    Rules: lines end in a line feed, the last one too; HELP and TYPE once for a name and before its samples; all lines
    of a name together; no label twice, no series twice; in values only backslash, quote and line feed are escaped.
    """

    def __init__(self) -> None:
        self.help: dict[str, str] = {}
        self.types: dict[str, str] = {}
        self.samples: Read = {}
        self._current = ""

    def read(self, text: str) -> Read:
        """Samples by name."""
        assert text.endswith("\n"), "the last line has no end"
        for line in text[:-1].split("\n"):
            comment = re.fullmatch(r"# (HELP|TYPE) (\S+) (.+)", line)
            if comment is not None:
                self._comment(*comment.groups())
            else:
                self._sample(line)
        return self.samples

    def _comment(self, kind: str, name: str, told: str) -> None:
        self._enter(name)
        known = self.help if kind == "HELP" else self.types
        assert name not in known, f"{kind} twice for {name}"
        assert not self.samples.get(name), f"{kind} after samples of {name}"
        assert kind == "HELP" or told in ("counter", "gauge", "histogram", "summary", "untyped")
        assert re.fullmatch(r"(?:[^\\]|\\\\|\\n)*", told), f"a wrong escape in {told!r}"
        known[name] = told

    def _enter(self, name: str) -> None:
        assert NAME.fullmatch(name), f"not a metric's name: {name!r}"
        assert name == self._current or name not in {*self.help, *self.types, *self.samples}, (
            f"{name} is apart"
        )
        self._current = name

    def _sample(self, line: str) -> None:
        name = NAME.match(line)
        assert name is not None, f"neither sample nor comment: {line!r}"
        self._enter(name[0])
        rest = line[name.end() :]
        labels: dict[str, str] = {}
        if rest.startswith("{"):
            labels, rest = self._labels(rest[1:])
        assert rest.startswith(" "), f"no space before the value: {line!r}"
        assert NUMBER.fullmatch(rest[1:]), f"not a number: {rest[1:]!r}"
        of = self.samples.setdefault(name[0], [])
        assert labels not in [known for known, _ in of], f"a series twice: {line!r}"
        of.append((labels, float(rest[1:])))

    def _labels(self, text: str) -> tuple[dict[str, str], str]:
        labels: dict[str, str] = {}
        while not text.startswith("}"):
            name = LABEL_NAME.match(text)
            assert name is not None, f"not a label: {text!r}"
            assert name[0] not in labels, f"a label twice: {name[0]}"
            value = re.match(r'="((?:[^"\\\n]|\\\\|\\"|\\n)*)"', text[name.end() :])
            assert value is not None, f"a wrong value: {text!r}"
            labels[name[0]] = re.sub(r'\\[\\"n]', lambda found: UNESCAPED[found[0]], value[1])
            text = text[name.end() + value.end() :]
            assert text.startswith((",", "}")), f"neither comma nor end: {text!r}"
            text = text.removeprefix(",")
        return labels, text[1:]


def read(text: str) -> Read:
    """Samples by name. Raises AssertionError for a text that isn't right to the letter."""
    return StrictReader().read(text)
