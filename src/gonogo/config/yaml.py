"""Reads workflow files: YAML 1.2 scalars, a place for every key and value, and limits on everything.

The C parser of PyYAML makes the events (the pure one where it is missing); the tree is composed here, because
the composers at hand lose places, keep the last of two equal keys and follow YAML 1.1. Keys are always text,
as written.

Merge keys (`<<`): a key written in the mapping itself wins over any merged one; of several merged mappings
the earlier wins; merged keys come after the mapping's own, in their own order.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from yaml import YAMLError
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from gonogo.config.nodes import Entry, Listing, Mapping, Node, Scalar, Source, place_of
from gonogo.config.scalars import plain_value, tag_allowed, tagged_value
from gonogo.errors import ConfigError, Place, Problem

FILE_BYTES_MAX = 4 * 1024 * 1024
DEPTH_MAX = 64
# Nodes counted as if every alias and merge were written out. Far above any file a person keeps, and at some
# 200 bytes a node well within 100 MB.
NODES_MAX = 200_000
KEY_CHARS_MAX = 1024
_MERGE = "<<"
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")


def parse(data: bytes | str, file: str, problems: list[Problem] | None = None) -> Node | None:
    """The tree of one YAML document, None for an empty one. Raises ConfigError with every problem found.

    Problems that leave the rest readable (a key given twice, of which the first counts) are added to `problems`
    where that is given, so that the rest is checked, too.
    """
    source = Source(file, _decoded(data, file))
    _refuse_control_characters(source)
    composer = _Composer(source)
    try:
        node = composer.document()
    except YAMLError as error:
        raise ConfigError((*composer.problems, _syntax_problem(error, source))) from None
    except _StopReading:
        raise ConfigError(tuple(composer.problems)) from None
    if problems is not None:
        problems.extend(composer.problems)
    elif composer.problems:
        raise ConfigError(tuple(composer.problems))
    return node


def _decoded(data: bytes | str, file: str) -> str:
    size = len(data)
    if size > FILE_BYTES_MAX:
        _refuse(file, "yaml.size", f"the file has {size} bytes; at most {FILE_BYTES_MAX} are read")
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        _refuse(file, "yaml.encoding", "the file is UTF-16; save it as UTF-8")
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        byte = data[error.start]
        _refuse(
            file, "yaml.encoding", f"byte 0x{byte:02x} is not UTF-8; save the file as UTF-8", line, column
        )


def _refuse(file: str, code: str, message: str, line: int = 1, column: int = 1) -> NoReturn:
    raise ConfigError((Problem(code=code, message=message, place=Place(file, line, column)),))


def _refuse_control_characters(source: Source) -> None:
    found = _FORBIDDEN.search(source.text)
    if found is None:
        return
    before = source.text[: found.start()]
    line = before.count("\n") + 1
    column = found.start() - (before.rfind("\n") + 1) + 1
    name = f"U+{ord(found.group()):04X}"
    message = f"the character {name} is not allowed in YAML; write it as an escape in double quotes"
    problem = Problem(
        "yaml.character", message, place=Place(source.file, line, column), source=source.line(line)
    )
    raise ConfigError((problem,))


def _syntax_problem(error: YAMLError, source: Source) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    context, said = getattr(error, "context", None), getattr(error, "problem", None) or str(error)
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    text = source.line(line)
    suggestion = None
    if text is not None and text.lstrip(" ").startswith("\t"):
        said, suggestion = "a tab can't indent YAML", "indent with spaces"
    elif "mapping values are not allowed" in said:
        said = "a colon with a space behind it begins a value, which can't begin here"
        suggestion = "put the text in quotes, or look at how the lines above are indented"
    message = f"{context}, {said}" if context and suggestion is None else said
    code = "yaml.syntax"
    if "maximum nesting depth" in said:  # the C parser has a limit of its own for brackets
        code, message = "yaml.depth", f"nested deeper than {DEPTH_MAX} levels"
    return Problem(code, message, place=Place(source.file, line, column), source=text, suggestion=suggestion)


def _parser(text: str) -> Any:
    try:
        from yaml import CSafeLoader as Loader  # its parser is libyaml's
    except ImportError:
        from yaml import SafeLoader as Loader  # type: ignore[assignment]
    return Loader(text)


class _StopReading(Exception):  # noqa: N818 - it stops the composing after a problem that makes the rest meaningless
    pass


class _Composer:
    """Builds the tree from events. Problems that leave the rest readable are gathered in `problems`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self._next = _parser(source.text).get_event
        self._anchors: dict[str, Node] = {}
        self._open: set[str] = set()
        self._sizes: dict[int, int] = {}
        self._nodes = 0
        self._depth = 0

    def document(self) -> Node | None:
        self._next()  # the stream's start
        if isinstance(event := self._next(), StreamEndEvent):
            return None
        node = self._node(self._next())
        self._next()  # the document's end
        event = self._next()
        if isinstance(event, DocumentStartEvent):
            self._problem("yaml.documents", "a second document starts here; a file holds one", event)
        return node

    def _problem(self, code: str, message: str, event: Any, suggestion: str | None = None) -> None:
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        place = Place(self.source.file, line, column)
        text = self.source.line(line)
        self.problems.append(Problem(code, message, place=place, source=text, suggestion=suggestion))

    def _stop(self, code: str, message: str, event: Any, suggestion: str | None = None) -> None:
        self._problem(code, message, event, suggestion)
        raise _StopReading

    def _count(self, nodes: int, event: Any) -> None:
        self._nodes += nodes
        if self._nodes > NODES_MAX:
            self._stop("yaml.expansion", f"aliases and merges expand to more than {NODES_MAX} nodes", event)

    def _node(self, event: Any) -> Node:
        kind = type(event)
        if kind is ScalarEvent:
            return self._anchored(event, self._scalar(event))
        if kind is AliasEvent:
            return self._alias(event)
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._stop("yaml.depth", f"nested deeper than {DEPTH_MAX} levels", event)
        node = self._collection(event)
        self._depth -= 1
        return node

    def _collection(self, event: Any) -> Node:
        """A list or mapping; its size counts what its aliases stand for."""
        self._check_tag(event)
        before = self._nodes
        self._count(1, event)
        anchor = event.anchor
        if anchor:
            self._open.add(anchor)
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        if type(event) is SequenceStartEvent:
            node: Node = Listing(self._items(), self.source, line, column)
        else:
            node = Mapping({}, self.source, line, column)
            self._fill(node)
        if anchor:
            self._open.discard(anchor)
            self._sizes[id(node)] = self._nodes - before
        return self._anchored(event, node)

    def _anchored(self, event: Any, node: Node) -> Node:
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _check_tag(self, event: Any) -> None:
        if not tag_allowed(event.tag):
            self._problem("yaml.tag", f"tags are not used here: {event.tag[:80]!r}", event, "remove the tag")

    def _alias(self, event: Any) -> Node:
        name = event.anchor
        if name in self._open:
            self._stop("yaml.recursion", f"*{name} stands inside the value it names", event)
        node = self._anchors.get(name)
        if node is None:
            self._stop("yaml.alias", f"no anchor &{name} before this alias", event)
        assert node is not None
        self._count(self._sizes.get(id(node), 1), event)
        return node

    def _scalar(self, event: Any) -> Scalar:
        self._count(1, event)
        text: str = event.value
        mark = event.start_mark
        value: Any = text
        if not text.isascii() and _FORBIDDEN.search(text):
            self._problem("yaml.character", "a lone surrogate or non-character", event)
            text = value = _FORBIDDEN.sub("\ufffd", text)
        try:
            if event.tag is not None:
                self._check_tag(event)
                value = tagged_value(event.tag, text) if tag_allowed(event.tag) else text
            elif event.implicit[0]:
                value = plain_value(text)
        except ValueError as error:
            self._problem("yaml.value", str(error), event)
        return Scalar(value, text, event.style or "", self.source, mark.line + 1, mark.column + 1)

    def _items(self) -> list[Node]:
        items: list[Node] = []
        while type(event := self._next()) is not SequenceEndEvent:
            items.append(self._node(event))
        return items

    def _fill(self, mapping: Mapping) -> None:
        merges: list[tuple[Any, Node]] = []
        merge_seen: Any = None
        while type(event := self._next()) is not MappingEndEvent:
            if type(event) is ScalarEvent and event.value == _MERGE and event.implicit[0]:
                if merge_seen is not None:
                    self._duplicate(_MERGE, merge_seen.start_mark.line + 1, event)
                merge_seen = event
                merges.append((event, self._node(self._next())))
                continue
            key = self._key(event)
            mark = event.start_mark
            entry = Entry(key, self.source, mark.line + 1, mark.column + 1, self._node(self._next()))
            if (first := mapping.entries.get(key)) is not None:
                self._duplicate(key, first.line, event)
                continue
            mapping.entries[key] = entry
        for event, node in merges:
            self._merge(mapping, event, node)

    def _key(self, event: Any) -> str:
        kind = type(event)
        node = self._alias(event) if kind is AliasEvent else None
        if kind is ScalarEvent:
            node = self._anchored(event, self._scalar(event))
        if not isinstance(node, Scalar):
            braces = self.source.line(event.start_mark.line + 1)
            quote = 'put the text in quotes: "{{ … }}"' if braces is not None and "{{" in braces else None
            self._stop("yaml.key", "a key must be text, not a list or a mapping", event, quote)
        assert isinstance(node, Scalar)
        if len(node.text) > KEY_CHARS_MAX:
            self._problem("yaml.key", f"a key of {len(node.text)} characters; at most {KEY_CHARS_MAX}", event)
        return node.text

    def _duplicate(self, key: str, first_line: int, event: Any) -> None:
        line = event.start_mark.line + 1
        message = f"the key {key[:80]!r} is given twice, on line {first_line} and on line {line}"
        self._problem("yaml.duplicate", message, event, "keep one of them")

    def _merge(self, mapping: Mapping, event: Any, node: Node) -> None:
        parts = node.items if isinstance(node, Listing) else [node]
        for part in parts:
            if not isinstance(part, Mapping):
                at = place_of(part)
                self._problem("yaml.merge", f"<< takes a mapping or a list of them (line {at.line})", event)
                continue
            for key, entry in part.entries.items():
                mapping.entries.setdefault(key, entry)


__all__ = ["DEPTH_MAX", "FILE_BYTES_MAX", "KEY_CHARS_MAX", "NODES_MAX", "parse"]
