"""`load` and `loads`: a file or text to a plan, with every problem, and the files it was made from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gonogo.config import merge
from gonogo.config.collect import Collector
from gonogo.config.compile import Setting, compile_document
from gonogo.config.drafts import Providers
from gonogo.config.expressions import CompileExpressions
from gonogo.config.files import Reader, as_document, named_files
from gonogo.config.nodes import Mapping
from gonogo.config.yaml import parse
from gonogo.core.plan import Plan
from gonogo.errors import Bug, ConfigError, Problem

IMPORTS_DEPTH_MAX = 10


@dataclass(frozen=True, slots=True)
class Loaded:
    """A usable plan, the warnings and notes about it, and every file read (the workflow file first)."""

    plan: Plan
    problems: tuple[Problem, ...]
    files: tuple[Path, ...]


def load(
    path: Path | str, *, providers: Providers, compile_expressions: CompileExpressions, strict: bool = False
) -> Loaded:
    """The plan of a workflow file. Raises ConfigError with every problem found.

    `compile_expressions` is asked once whether all JavaScript compiles (`Sandbox.prepare`); `strict` turns
    warnings that name a risk into errors, as `safety: strict` does.
    """
    file = Path(os.path.abspath(path))
    reader = Reader.for_file(file)
    work = _Work(reader, providers, compile_expressions, strict)
    plan, problems = work.plan_of(reader.read(file, str(path)), file, ())
    return Loaded(plan, problems, tuple(dict.fromkeys(reader.files)))


def loads(
    text: str | bytes,
    *,
    providers: Providers,
    compile_expressions: CompileExpressions,
    strict: bool = False,
    name: str = "<text>",
) -> Loaded:
    """The plan of a text; it can't name other files. For tests and editors. Raises ConfigError."""
    reader = Reader(Path("/"), Path("/"))
    work = _Work(reader, providers, compile_expressions, strict)
    plan, problems = work.plan_of(as_document(parse(text, name), name), None, ())
    return Loaded(plan, problems, ())


class _Work:
    """One load. Imported workflow files become plans of their own, each compiled once per chain."""

    def __init__(
        self, reader: Reader, providers: Providers, compile_expressions: CompileExpressions, strict: bool
    ) -> None:
        self._reader = reader
        self._providers = providers
        self._compile = compile_expressions
        self._strict = strict

    def plan_of(
        self, document: Mapping, file: Path | None, chain: tuple[Path, ...]
    ) -> tuple[Plan, tuple[Problem, ...]]:
        """The plan of one file with what it extends and imports. Raises ConfigError."""
        folder = file.parent if file else None
        chain = (*chain, Path(os.path.realpath(file))) if file else chain
        notes = Collector(document, strict=self._strict)
        merged = merge.finish(self._reader.with_parents(document, folder, notes, chain[-1:]))
        notes.root = merged
        workflows = self._workflows(merged, folder, notes, chain)
        default_name = file.name.lstrip(".").split(".")[0] if file else "workflow"
        setting = Setting(self._providers, self._compile, self._strict, default_name, workflows)
        plan = compile_document(merged, setting, notes)
        notes.refuse_if_failed()
        if plan is None:
            raise Bug("a workflow file gave neither a plan nor a problem")
        return plan, notes.sorted()

    def _workflows(
        self, document: Mapping, folder: Path | None, notes: Collector, chain: tuple[Path, ...]
    ) -> dict[str, Plan]:
        made: dict[str, Plan] = {}
        for named in named_files(document, "imports", notes):
            # An import of an extended file is meant from that file's folder.
            base = self._reader.shown_from.joinpath(named.source.file).parent if folder else None
            path = self._reader.resolve(named, base, notes, "imports")
            if path is None:
                continue
            if Path(os.path.realpath(path)) in chain or len(chain) > IMPORTS_DEPTH_MAX:
                message = f"these files import each other, or more than {IMPORTS_DEPTH_MAX} deep"
                notes.add_at("error", "imports.cycle", message, named, ("imports",))
                continue
            self._import(path, made, notes, chain)
        return made

    def _import(self, path: Path, made: dict[str, Plan], notes: Collector, chain: tuple[Path, ...]) -> None:
        try:
            document = self._reader.read(path)
            plan, problems = self.plan_of(document, path, chain)
        except ConfigError as error:
            notes.found.extend(error.problems)
            return
        notes.found.extend(problems)
        given = document.get("id")
        identity = getattr(given, "value", None)
        if not isinstance(identity, str) or not identity:
            notes.add_at(
                "error", "imports.id", "a workflow file needs an id:", document, ("imports",), "add id: name"
            )
        elif identity in made:
            notes.add_at(
                "error",
                "imports.twice",
                f"two workflow files have the id {identity[:80]!r}",
                document,
                ("imports",),
            )
        else:
            made[identity] = plan
