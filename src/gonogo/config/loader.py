"""`load` and `loads`: a file or text to a plan, with every problem, and the files it was made from."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from gonogo.config import merge
from gonogo.config.collect import Collector
from gonogo.config.compile import Setting, compile_document
from gonogo.config.drafts import Providers
from gonogo.config.expressions import CompileExpressions
from gonogo.config.files import Reader, as_document, named_files
from gonogo.config.nodes import Mapping, Scalar
from gonogo.config.schema.base import SAFETY, Safety
from gonogo.config.yaml import parse
from gonogo.core.plan import Plan
from gonogo.errors import Bug, ConfigError, Problem

IMPORTS_DEPTH_MAX = 10


class Loaded(Struct, frozen=True):
    """A usable plan, the warnings and notes about it, and every file read (the workflow file first)."""

    plan: Plan
    problems: tuple[Problem, ...]
    files: tuple[Path, ...]


def load(
    path: Path | str,
    *,
    providers: Providers,
    compile_expressions: CompileExpressions,
    strict: bool = False,
    safety: Safety | None = None,
) -> Loaded:
    """The plan of a workflow file. Raises ConfigError with every problem found.

    `compile_expressions` is asked once whether all JavaScript compiles (`Sandbox.prepare`); `strict` turns
    warnings that name a risk into errors, as `safety: strict` does. `safety` wins over what the files say.
    """
    file = Path(os.path.abspath(path))
    reader = Reader.for_file(file)
    work = _Work(reader, providers, compile_expressions, strict, safety)
    plan, problems = work.plan_of(reader.read(file, str(path)), file, ())
    return Loaded(plan, problems, tuple(dict.fromkeys(reader.files)))


def loads(
    text: str | bytes,
    *,
    providers: Providers,
    compile_expressions: CompileExpressions,
    strict: bool = False,
    safety: Safety | None = None,
    name: str = "<text>",
) -> Loaded:
    """The plan of a text; it can't name other files. For tests and editors. Raises ConfigError."""
    reader = Reader(Path("/"), Path("/"))
    work = _Work(reader, providers, compile_expressions, strict, safety)
    plan, problems = work.plan_of(as_document(parse(text, name, reader.problems), name), None, ())
    return Loaded(plan, problems, ())


class _Work:
    """One load. Imported workflow files become plans of their own, each compiled once per chain."""

    def __init__(
        self,
        reader: Reader,
        providers: Providers,
        compile_expressions: CompileExpressions,
        strict: bool,
        safety: Safety | None,
    ) -> None:
        self._reader = reader
        self._providers = providers
        self._compile = compile_expressions
        self._strict = strict
        self._safety = safety

    def plan_of(
        self,
        document: Mapping,
        file: Path | None,
        chain: tuple[Path, ...],
        around: Safety = "standard",
    ) -> tuple[Plan, tuple[Problem, ...]]:
        """The plan of one file with what it extends and imports. Raises ConfigError.

        `around` is the safety of the workflow that runs it, which holds where the file says nothing.
        """
        folder = file.parent if file else None
        chain = (*chain, Path(os.path.realpath(file))) if file else chain
        notes = Collector(document, strict=self._strict)
        merged = merge.finish(self._reader.with_parents(document, folder, notes, chain[-1:]))
        notes.root = merged
        notes.take(self._reader.problems)
        self._reader.problems.clear()
        safety = self._safety or _said_safety(merged) or around
        notes.strict, notes.relaxed = self._strict or safety == "strict", safety == "off"
        workflows = self._workflows(merged, folder, notes, chain, safety)
        default_name = file.name.lstrip(".").split(".")[0] if file else "workflow"
        setting = Setting(self._providers, self._compile, safety, default_name, workflows)
        plan = compile_document(merged, setting, notes)
        notes.refuse_if_failed()
        if plan is None:
            raise Bug("a workflow file gave neither a plan nor a problem")
        return plan, notes.sorted()

    def _workflows(
        self,
        document: Mapping,
        folder: Path | None,
        notes: Collector,
        chain: tuple[Path, ...],
        safety: Safety,
    ) -> dict[str, Plan]:
        """Imported workflow files by id, and those that steps name by path under that path."""
        made: dict[str, Plan] = {}
        for named in named_files(document, "imports", notes):
            read = self._read(named, "imports", folder, notes, chain, safety)
            if read is not None:
                _register(*read, made, notes)
        for named in _configs_of_steps(document):
            if named.text in made:
                continue
            read = self._read(named, "config", folder, notes, chain, safety)
            if read is not None:
                made[named.text] = read[1]
        return made

    def _read(
        self,
        named: Scalar,
        key: str,
        folder: Path | None,
        notes: Collector,
        chain: tuple[Path, ...],
        safety: Safety,
    ) -> tuple[Mapping, Plan] | None:
        """The workflow file that `named` means, seen from the folder of the file it is written in."""
        base = self._reader.shown_from.joinpath(named.source.file).parent if folder else None
        path = self._reader.resolve(named, base, notes, key)
        if path is None:
            return None
        if Path(os.path.realpath(path)) in chain or len(chain) > IMPORTS_DEPTH_MAX:
            message = f"these files run each other, or are more than {IMPORTS_DEPTH_MAX} deep"
            notes.add_at("error", f"{key}.cycle", message, named, (key,))
            return None
        try:
            document = self._reader.read(path)
            plan, problems = self.plan_of(document, path, chain, safety)
        except ConfigError as error:
            notes.take(error.problems)
            return None
        notes.take(problems)
        return document, plan


def _said_safety(document: Mapping) -> Safety | None:
    """What a file says of its safety; a word that is none is reported when the file is compiled."""
    said = getattr(document.get("safety"), "value", None)
    return next((word for word in SAFETY if word == said), None)


def _register(document: Mapping, plan: Plan, made: dict[str, Plan], notes: Collector) -> None:
    """Keep an imported plan under its id."""
    identity = getattr(document.get("id"), "value", None)
    if not isinstance(identity, str) or not identity:
        message = "a workflow file needs an id"
        notes.add_at("error", "imports.id", message, document, ("imports",), "add id: name")
    elif identity in made:
        message = f"two workflow files have the id {identity[:80]!r}"
        notes.add_at("error", "imports.twice", message, document, ("imports",))
    else:
        made[identity] = plan


def _configs_of_steps(document: Mapping) -> list[Scalar]:
    """The paths that steps of type workflow name under `config`."""
    steps = document.get("steps")
    nodes = [entry.node for entry in steps.entries.values()] if isinstance(steps, Mapping) else []
    found: list[Scalar] = []
    for node in nodes:
        kind = node.get("type") if isinstance(node, Mapping) else None
        path = node.get("config") if isinstance(node, Mapping) else None
        if isinstance(kind, Scalar) and kind.value == "workflow" and isinstance(path, Scalar) and path.value:
            found.append(path)
    return found
