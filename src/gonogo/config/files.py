"""Finds workflow files, reads them and what they extend. Never leaves the project: the git root, else the
file's folder.

`extends` (alias `include`) is a path or a list of paths, from the folder of the file that names them; parents
are laid over each other from left to right, the file itself last. Remote files are refused (semantics.md 27).
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct, field

from gonogo.config import merge
from gonogo.config.collect import Collector, shown
from gonogo.config.nodes import Listing, Mapping, Node, Scalar
from gonogo.config.yaml import FILE_BYTES_MAX, parse
from gonogo.errors import ConfigError, Place, Problem, UsageError

NAMES = ("gonogo.yaml", "gonogo.yml", ".gonogo.yaml", ".gonogo.yml")
OLDER_NAMES = ("visor.yaml", "visor.yml", ".visor.yaml", ".visor.yml")
EXTENDS_DEPTH_MAX = 10
PATH_BYTES_MAX = 4096
FILES_MAX = 50
FILES_BYTES_MAX = 2 * FILE_BYTES_MAX  # of all files of one load together


class Found(Struct, frozen=True):
    """The workflow file to use; `note` says what is worth knowing about the choice."""

    path: Path
    note: str | None = None


def find_config(start: Path | str) -> Found:
    """The nearest workflow file from the folder `start` up to the git root. Raises UsageError when there is none."""
    folder = Path(os.path.abspath(start))
    root = project_root(folder)
    while True:
        for name in (*NAMES, *OLDER_NAMES):
            path = folder / name
            if path.is_file():
                older = (
                    f"{name} is read as a gonogo file; name it gonogo.yaml" if name in OLDER_NAMES else None
                )
                return Found(path, older)
        if folder == root or folder == folder.parent:
            break
        folder = folder.parent
    advice = "write one with `gonogo init`, or name a file"
    raise UsageError(f"no {NAMES[0]} here or above, up to {root}", advice=advice)


def project_root(folder: Path) -> Path:
    """The git root above `folder`; `folder` itself outside of git."""
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists():
            return candidate
    return folder


class Reader(Struct):
    """Reads the files of one load. `root`: nothing outside of it is read. `shown_from`: paths in messages
    start there. `problems`: what is wrong with the files read so far and leaves them readable.
    """

    root: Path
    shown_from: Path
    files: list[Path] = field(default_factory=list)
    bytes_read: int = 0
    problems: list[Problem] = field(default_factory=list)

    @staticmethod
    def for_file(path: Path) -> Reader:
        """A reader for a workflow file and what belongs to it."""
        folder = Path(os.path.realpath(path)).parent
        return Reader(Path(os.path.realpath(project_root(folder))), Path.cwd() if _cwd_exists() else folder)

    def label(self, path: Path) -> str:
        """The path as messages name it: relative where that is shorter."""
        try:
            return str(path.relative_to(self.shown_from))
        except ValueError:
            return str(path)

    def read(self, path: Path, label: str | None = None) -> Mapping:
        """One file as a tree, `checks` joined to `steps` but nothing extended. Raises ConfigError."""
        label = label or self.label(path)
        try:
            with path.open("rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise _refusal(
                "file.unreadable", f"{label} can't be read: {error.strerror or error}", label
            ) from None
        self.files.append(path)
        self.bytes_read += len(data)
        if self.bytes_read > FILES_BYTES_MAX or len(self.files) > FILES_MAX:
            message = f"more than {FILES_MAX} files or {FILES_BYTES_MAX} bytes to read"
            raise _refusal("file.many", message, label)
        return as_document(parse(data, label, self.problems), label)

    def inside(self, path: Path) -> bool:
        """True when `path`, its links followed, stays in the project."""
        return Path(os.path.realpath(path)).is_relative_to(self.root)

    def resolve(self, named: Scalar, folder: Path | None, notes: Collector, key: str) -> Path | None:
        """The file that `named` means, seen from `folder`; None (and a problem) when it can't be used."""
        text = str(named.value)
        refused: tuple[str, str | None] | None = None
        if "://" in text:
            refused = ("remote files are not read", "save a copy in the project and name its path")
        elif text == "default":
            refused = ("there is no bundled configuration", "name a file")
        elif folder is None:
            refused = ("a text that isn't a file can't name other files", None)
        elif "\0" in text or len(os.fsencode(text)) > PATH_BYTES_MAX:
            refused = (f"{shown(text)} can't be a path", None)
        elif not self.inside(folder / text):
            refused = (f"{shown(text)} is outside of the project", f"keep it below {self.root}")
        elif not os.path.isfile(folder / text):
            refused = (f"there is no file {shown(text)}", None)
        if refused is not None or folder is None:
            message, advice = refused or ("", None)
            notes.add_at("error", f"{key}.refused", message, named, (key,), advice)
            return None
        return Path(os.path.normpath(folder / text))

    def with_parents(
        self, document: Mapping, folder: Path | None, notes: Collector, chain: tuple[Path, ...] = ()
    ) -> Mapping:
        """`document` laid over everything it extends."""
        document = merge.unify_steps(document, notes)
        merged: Mapping | None = None
        for key, named in parent_names(document, notes):
            parent = self._parent(key, named, folder, notes, chain)
            if parent is not None:
                merged = parent if merged is None else merge.merge(merged, parent, notes)
        return document if merged is None else merge.merge(merged, document, notes)

    def _parent(
        self, key: str, named: Scalar, folder: Path | None, notes: Collector, chain: tuple[Path, ...]
    ) -> Mapping | None:
        path = self.resolve(named, folder, notes, key)
        if path is None:
            return None
        real = Path(os.path.realpath(path))
        if real in chain:
            ring = " -> ".join(self.label(one) for one in (*chain[chain.index(real) :], real))
            notes.add_at("error", f"{key}.cycle", f"these files extend each other: {ring}", named, (key,))
            return None
        if len(chain) > EXTENDS_DEPTH_MAX:
            message = f"more than {EXTENDS_DEPTH_MAX} files deep"
            notes.add_at("error", f"{key}.depth", message, named, (key,))
            return None
        try:
            document = self.read(path)
        except ConfigError as error:
            notes.take(error.problems)
            return None
        return self.with_parents(document, path.parent, notes, (*chain, real))


def parent_names(document: Mapping, notes: Collector) -> list[tuple[str, Scalar]]:
    """The paths under `extends` and `include`, with the key they stand under."""
    found: list[tuple[str, Scalar]] = []
    for key in ("extends", "include"):
        found.extend((key, named) for named in named_files(document, key, notes))
    return found


def named_files(document: Mapping, key: str, notes: Collector) -> list[Scalar]:
    """The texts under `key`: one or a list."""
    node = document.get(key)
    if node is None:
        return []
    items: list[Node] = node.items if isinstance(node, Listing) else [node]
    good: list[Scalar] = []
    for item in items:
        if isinstance(item, Scalar) and isinstance(item.value, str) and item.value:
            good.append(item)
        else:
            notes.add_at("error", "value.type", "expected the path of a file", item, (key,))
    return good


def as_document(node: Node | None, label: str) -> Mapping:
    """The top of a file, which must be a mapping. Raises ConfigError."""
    if isinstance(node, Mapping):
        return node
    if node is None:
        raise _refusal("yaml.empty", "the file is empty", label)
    raise _refusal("yaml.shape", "expected a mapping at the top of the file: version, steps, …", label)


def _refusal(code: str, message: str, label: str) -> ConfigError:
    return ConfigError((Problem(code, message, place=Place(label, 1, 1)),))


def _cwd_exists() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True
