"""How a shell would read the places where a command's template puts data (SEC-1).

`shell_escape` makes one single-quoted word: right outside of quotes, and code again between quotes of any kind, in a
comment or in a here-document. `shell_escape_double` is right between double quotes only. This reads the text as a
POSIX shell does, as far as needed to tell these apart; where it can't tell, the place counts as unsafe. Whether a tag
has a filter at all is left to `expressions.template.unescaped`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from msgspec import Struct, field

_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_QUOTING = re.compile(r"\|\s*(shell_escape(?:_double)?)\s*-?(?:\}\}|%\})$")
_WORD = re.compile(r"\{%-?\s*(\w+)")
_OPENING = frozenset(("if", "unless", "for", "case", "capture", "tablerow", "comment", "raw", "ifchanged"))
_MIDDLE = frozenset(("else", "elsif", "when"))
# These words run text as code once more: quoting for one shell isn't enough.
_SECOND_READER = re.compile(
    r"""(?:^|[\s;&|("'`/\ue000\ue001])(?:eval|ssh|(?:ba|da|k|z|a)?sh\s+(?:-[^\s;&|\ue000\ue001]+\s+){0,20}-\w*c"""
    r"""|(?:python[\d.]*|perl|ruby|node|php)\s+(?:-[^\s;&|\ue000\ue001]+\s+){0,20}-\w*[cer])"""
    r"""(?=[\s"'\ue000\ue001]|$)"""
)
_HEREDOC = re.compile(r"<<(-?)[ \t]*(?:'([^'\n]*)'|\"([^\"\n]*)\"|\\?([^\s;&|<>()`]+))")
_VALUE = "\ue000"  # stands for an output tag while the text is read
_CONTROL = "\ue001"  # stands for any other tag
_SIGNS = re.compile(f"[{_VALUE}{_CONTROL}]")

_ADVICE = {
    "bare": "use shell_escape outside of quotes",
    "double": "use shell_escape_double between double quotes",
    "single": "write it outside of the quotes, with shell_escape",
}


class Misplaced(Struct, frozen=True):
    """A quoted value in a place where its filter doesn't protect. `offset` is the tag's in the text."""

    tag: str
    offset: int
    message: str
    advice: str


class _Place(Struct, frozen=True):
    """Where a value is: the offset of its sign, the kind of place, and where its command starts."""

    at: int
    kind: str
    command_start: int


class _Reader(Struct):
    """Reads a shell text, one character or operator at a time."""

    text: str
    controls: Iterator[str]
    at: int = 0
    stack: list[str] = field(default_factory=lambda: ["bare"])
    command_start: int = 0
    lost: bool = False
    in_case: bool = False
    heredocs: list[tuple[str, bool]] = field(default_factory=list)
    places: list[_Place] = field(default_factory=list)
    branches: list[tuple[tuple[str, ...], int]] = field(default_factory=list)

    def read(self) -> None:
        while self.at < len(self.text):
            mode = self.stack[-1]
            here = self.text[self.at]
            if here == _VALUE:
                self._value(mode)
            elif here == _CONTROL:
                self._control()
            elif mode in ("bare", "substitution", "group"):
                self._bare(here)
            elif mode == "double":
                self._double(here)
            else:
                self._other(mode, here)

    def _value(self, mode: str) -> None:
        if self.lost or self.text[max(self.at - 1, 0)] in "\\$":
            kind = "lost"
        else:
            kind = "bare" if mode in ("substitution", "group") else mode
        self.places.append(_Place(self.at, kind, self.command_start))
        self.at += 1

    def _control(self) -> None:
        """Branches of a template must leave the quoting as they found it, else nothing behind can be told."""
        word = next(self.controls)
        state = (tuple(self.stack), len(self.heredocs))
        if word in _OPENING:
            self.branches.append(state)
        elif word in _MIDDLE or word.startswith("end"):
            if not self.branches or self.branches[-1] != state:
                self.lost = True
            if word.startswith("end") and self.branches:
                self.branches.pop()
        self.at += 1

    def _push(self, mode: str, length: int) -> None:
        self.stack.append(mode)
        self.at += length

    def _pop(self, length: int = 1) -> None:
        if len(self.stack) > 1:
            self.stack.pop()
        else:
            self.lost = True
        self.at += length

    def _bare(self, here: str) -> None:
        if self._expansion(here):
            return
        if here == "\\":
            self._escape()
        elif here in "'\"":
            self._push("single" if here == "'" else "double", 1)
        elif here == "(":
            self._push("group", 1)
        elif here == ")":
            self.lost = self.lost or (len(self.stack) == 1 and not self.in_case)
            self.stack = self.stack[:-1] or ["bare"]
            self.at += 1
        elif here == "#" and self._at_word_start():
            self._push("comment", 1)
        elif here == "<" and self.text.startswith("<<", self.at):
            self._here_document()
        elif here == "\n":
            self._newline()
        else:
            self._plain(here)

    def _plain(self, here: str) -> None:
        if here in ";&|" and self.stack == ["bare"]:
            self.command_start = self.at + 1
        if here == "c" and self._at_word_start() and re.match(r"case\b", self.text[self.at : self.at + 5]):
            # There a case pattern's lone parenthesis can't be told from the end of the substitution.
            self.lost = self.lost or "substitution" in self.stack
            self.in_case = True
        self.at += 1

    def _expansion(self, here: str) -> bool:
        """`$(…)`, `${…}`, `$((…))`, `$'…'` and backquotes, in and out of double quotes."""
        if here == "`":
            self._push("backquote", 1)
            return True
        for opening, mode in (
            ("$((", "arithmetic"),
            ("$(", "substitution"),
            ("${", "parameter"),
            ("$'", "ansi"),
        ):
            if here == "$" and self.text.startswith(opening, self.at):
                if mode == "ansi" and self.stack[-1] == "double":
                    continue
                self._push(mode, len(opening))
                return True
        return False

    def _double(self, here: str) -> None:
        if self._expansion(here):
            return
        if here == "\\":
            self._escape()
        elif here == '"':
            self._pop()
        else:
            self.at += 1

    def _escape(self) -> None:
        """A backslash and what it escapes; a tag behind it is left for `_value` to refuse."""
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 1 if following in (_VALUE, _CONTROL, "") else 2

    def _other(self, mode: str, here: str) -> None:
        """Places where no filter protects; only their end matters."""
        if mode == "heredoc":
            self._heredoc_line()
        elif mode == "comment":
            if here == "\n":
                self.stack.pop()
            else:
                self.at += 1
        elif here == "\\" and mode != "single":
            self._escape()
        elif mode == "arithmetic":
            self.lost = self.lost or here in "'\"`("
            if self.text.startswith("))", self.at):
                self._pop(2)
            else:
                self.at += 1
        elif mode == "parameter":
            self.lost = self.lost or here in "'\"`$"
            if here == "}":
                self._pop()
            else:
                self.at += 1
        elif here == ("`" if mode == "backquote" else "'"):
            self._pop()
        else:
            self.at += 1

    def _at_word_start(self) -> bool:
        return self.at == 0 or self.text[self.at - 1] in " \t\n;&|()`"

    def _here_document(self) -> None:
        if self.text.startswith("<<<", self.at):
            self.at += 3
            return
        found = _HEREDOC.match(self.text, self.at)
        if found is None:
            self.lost = self.lost or not self.text[self.at + 2 : self.at + 3].isdigit()
            self.at += 2
            return
        word = found[2] if found[2] is not None else found[3] if found[3] is not None else found[4]
        self.lost = self.lost or any(sign in word for sign in (_VALUE, _CONTROL, "\\", "'", '"'))
        self.heredocs.append((word, found[1] == "-"))
        while tag := _SIGNS.search(
            self.text, self.at, found.end()
        ):  # data in the end mark: lost, as said above
            self.at = tag.start()
            if tag.group() == _VALUE:
                self._value("lost")
            else:
                self._control()
        self.at = found.end()

    def _newline(self) -> None:
        self.at += 1
        if self.stack == ["bare"]:
            self.command_start = self.at
        if self.heredocs:
            self._push("heredoc", 0)

    def _heredoc_line(self) -> None:
        """From a line's start to its end; a tag inside it stops the reading for `read` to see."""
        word, dash = self.heredocs[0]
        found = self.text.find("\n", self.at)
        end = found if found >= 0 else len(self.text)
        if self.text[self.at - 1] == "\n":
            line = self.text[self.at : end]
            if (line.lstrip("\t") if dash else line) == word:
                self.heredocs.pop(0)
                if not self.heredocs:
                    self.stack.pop()
                self.at = end + (1 if self.heredocs and found >= 0 else 0)
                return
        tag = _SIGNS.search(self.text, self.at, end)
        self.at = tag.start() if tag else end + 1


def misplaced(text: str) -> list[Misplaced]:
    """Values with a quoting filter that stand where it doesn't protect."""
    tags = list(_TAG.finditer(text))
    outputs = [tag for tag in tags if _is_output(tag.group())]
    controls = (_word(tag.group()) for tag in tags if not _is_output(tag.group()))
    reader = _Reader(_with_signs(text, tags), controls)
    reader.read()
    second_readers = [found.span() for found in _SECOND_READER.finditer(reader.text)]
    found: list[Misplaced] = []
    for tag, place in zip(outputs, reader.places, strict=True):
        quoting = _QUOTING.search(tag.group())
        if quoting is None:
            continue
        problem = _problem(quoting[1], place.kind)
        if problem is None and _read_again(place, second_readers):
            problem = "what it is passed to reads it as code once more", "pass it by env or stdin"
        if problem is not None:
            found.append(Misplaced(tag.group(), tag.start(), *problem))
    return found


def _read_again(place: _Place, second_readers: list[tuple[int, int]]) -> bool:
    """True when a second reader stands between the start of the value's command and the value."""
    first = bisect_left(second_readers, (place.command_start - 1, 0))
    return first < len(second_readers) and second_readers[first][1] <= place.at


def _problem(quoting: str, place: str) -> tuple[str, str] | None:
    right = "bare" if quoting == "shell_escape" else "double"
    if place == right:
        return None
    where = {
        "bare": "outside of quotes",
        "double": "between double quotes",
        "single": "between single quotes",
    }
    if place in where:
        return f"{quoting} doesn't protect {where[place]}", _ADVICE[place]
    return "no filter protects in this place of a shell's text", 'pass it by env and use "$NAME"'


def _with_signs(text: str, tags: list[re.Match[str]]) -> str:
    """The text with one character for each tag."""
    clean = text.replace(_VALUE, " ").replace(_CONTROL, " ")
    parts, at = [], 0
    for tag in tags:
        parts += [clean[at : tag.start()], _VALUE if _is_output(tag.group()) else _CONTROL]
        at = tag.end()
    return "".join([*parts, clean[at:]])


def _word(tag: str) -> str:
    found = _WORD.match(tag)
    return found[1] if found else ""


def _is_output(tag: str) -> bool:
    """Tags that write a value where they stand."""
    return tag.startswith("{{") or _word(tag) in ("echo", "cycle", "liquid")
