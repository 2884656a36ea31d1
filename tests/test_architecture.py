"""The house's rules, held by reading the source: arrows, purity of the core, state, lengths."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from tools import sizes

SOURCE = Path(__file__).resolve().parent.parent / "src" / "gonogo"

# room → what it may import besides itself; all may import errors. A room that isn't here may not exist.
ARROWS: dict[str, tuple[str, ...]] = {
    "errors": (),
    "engines": ("journal.postgres.address", "journal.postgres.bell"),
    "expressions": (),
    "core": ("expressions",),
    "gate": ("core.backoff", "core.faults", "core.plan", "expressions", "models.retry_after"),
    "provider": ("core", "expressions", "gate"),
    "journal": ("core",),
    "models": ("core.faults",),
    "config": ("core", "expressions", "gate", "provider"),
    "providers": ("provider", "core", "gate", "models"),
    "hosts": ("core", "expressions", "gate", "provider", "providers.table", "journal"),
    "report": ("journal", "core"),
    "testing": ("config", "hosts", "journal", "provider", "core", "expressions", "gate"),
    "cli": ("app", "config", "journal", "report", "hosts.base", "gonogo"),
    "app": (
        "core",
        "expressions",
        "gate",
        "provider",
        "journal",
        "config",
        "providers",
        "hosts",
        "engines",
        "report",
        "testing",
        "gonogo",  # its version
    ),
    "gonogo": ("app", "core", "config", "journal", "provider", "hosts", "report"),  # the embedding face
    "__main__": ("cli",),
}

# What the core may import from the standard library and beyond: things that compute and remember nothing.
PURE_LIBRARIES = frozenset(
    """
    __future__ abc bisect collections copy dataclasses enum fractions functools hashlib heapq itertools
    json math msgspec operator re shlex string types typing unicodedata
    """.split()
)
IMPURE_CALLS = frozenset(
    {"open", "print", "input", "eval", "exec", "compile", "__import__", "globals", "breakpoint"}
)
# Loading the core must not bring these in by a back door.
IMPURE_LIBRARIES = (
    "anyio",
    "asyncio",
    "httpx2",
    "liquid",
    "logging",
    "quickjs",
    "socket",
    "subprocess",
    "yaml",
)

MUTABLE_MAKERS = frozenset(
    """
    dict list set bytearray defaultdict deque Counter OrderedDict count cycle iter Lock RLock Event
    Semaphore local ContextVar WeakKeyDictionary WeakValueDictionary
    """.split()
)
MUTATING_METHODS = frozenset(
    """
    append appendleft add clear discard extend insert pop popitem remove reverse setdefault sort update
    """.split()
)
DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


# A context variable belongs to each task, not to the module: how a gate knows the gate around it.
CONTEXT_VARIABLES = frozenset({"gate/nesting.py"})


def modules(room: str = "") -> list[Path]:
    """Every module, or those of one room."""
    folder = SOURCE / room
    single = SOURCE / f"{room}.py"
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [single] if single.exists() else []


@lru_cache(maxsize=1000)
def tree_of(path: Path) -> ast.Module:
    """The module's syntax tree."""
    return ast.parse(path.read_text(), filename=str(path))


def dotted(path: Path) -> str:
    """A module's name below gonogo: `core.plan`, `core` for its `__init__`, and `gonogo` for gonogo's own."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__") or "gonogo"


NAMES = {dotted(path) for path in modules()}


def module_named(name: str) -> str | None:
    """The module that a dotted name from `gonogo` on lies in; None for another package's."""
    if name != "gonogo" and not name.startswith("gonogo."):
        return None
    parts = name.split(".")[1:]
    while parts and ".".join(parts) not in NAMES:
        parts.pop()
    return ".".join(parts) or "gonogo"


def named_by(node: ast.AST) -> list[str]:
    """Dotted names that a node imports, or would when handed to an importer."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value.partition(":")[0]
        named = re.fullmatch(r"gonogo(\.\w+)+(:\w+)?", node.value) and module_named(name) != "gonogo"
        return [name] if named else []  # "gonogo.yaml" is a file
    return []


def own_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every gonogo module that a module names, with the line; lazy imports and dotted strings count."""
    for node in ast.walk(tree_of(path)):
        for name in named_by(node):
            target = module_named(name)
            if target is not None:
                yield node.lineno, target  # type: ignore[attr-defined]


def room_of(name: str) -> str:
    """The room a module belongs to; gonogo's own `__init__` is the room `gonogo`."""
    return name.partition(".")[0]


def within(name: str, place: str) -> bool:
    """Whether a module is the place or lies in it."""
    return name == place or name.startswith(f"{place}.")


def may_import(source: str, target: str) -> bool:
    """The arrows, with the providers' own rule: they share what starts with an underscore, else nothing."""
    room = room_of(source)
    if target == "errors" or any(within(target, place) for place in ARROWS[room]):
        return True
    if room != room_of(target):
        return False
    if room != "providers" or source == "providers.table":
        return True
    # A provider of several files is a package of its own: its files may import each other.
    same_provider = source.split(".")[1:2] == target.split(".")[1:2]
    return target == "providers" or same_provider or target.startswith("providers._")


def test_every_import_follows_an_arrow() -> None:
    """No module imports a room that the table doesn't allow it, lazily or not."""
    wrong = [
        f"{path.relative_to(SOURCE.parent)}:{line} may not import gonogo.{target}"
        for path in modules()
        if room_of(dotted(path)) in ARROWS
        for line, target in own_imports(path)
        if not may_import(dotted(path), target)
    ]
    assert wrong == []


def test_every_room_is_in_the_table() -> None:
    """A new room comes with its arrows."""
    assert {room_of(name) for name in NAMES} - ARROWS.keys() == set()


@pytest.mark.parametrize(
    ("source", "target", "allowed"),
    [
        ("core.plan", "expressions.analyse", True),
        ("core.plan", "journal.records", False),
        ("expressions.sandbox", "core.plan", False),
        ("providers.http", "providers._http", True),
        ("providers.http", "providers.command", False),
        ("providers.table", "providers.command", True),
        ("providers._http", "providers.http", False),
        ("providers.ai.openai", "providers.ai.messages", True),
        ("models.reply", "core.faults", True),
        ("models.reply", "core.plan", False),
        ("gate.waits", "core.backoff", True),
        ("gate.machine", "core.machine", False),
        ("hosts.loop", "providers.table", True),
        ("hosts.loop", "providers.command", False),
        ("cli.run", "hosts.base", True),
        ("cli.run", "hosts.local", False),
        ("app", "cli.main", False),
        ("report.text", "errors", True),
    ],
)
def test_the_table_says_what_the_architecture_says(source: str, target: str, allowed: bool) -> None:
    """Spot checks of the arrows, so that a slip in the rule itself is seen."""
    assert may_import(source, target) is allowed


def test_an_import_inside_a_function_or_a_string_counts(tmp_path: Path) -> None:
    """Lazy imports and tables of dotted names are imports all the same."""
    module = tmp_path / "lazy.py"
    module.write_text("def late():\n    from gonogo import errors\n\nTABLE = ('gonogo.errors:Bug',)\n")
    assert list(own_imports(module)) == [(2, "errors"), (4, "errors")]


def library_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Top packages from elsewhere that a module imports, with the line."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in named_by(node):
                if module_named(name) is None:
                    yield node.lineno, name.split(".")[0]


@pytest.mark.parametrize(("room", "more"), [("core", ()), ("models", ("datetime",))])
def test_a_pure_room_imports_only_what_computes(room: str, more: tuple[str, ...]) -> None:
    """Law 1: no clock, randomness, I/O, logging, threads or environment in the core, nor in the wire formats, which
    read dates.
    """
    wrong = [
        f"{path.name}:{line} imports {library}"
        for path in modules(room)
        for line, library in library_imports(path)
        if library not in PURE_LIBRARIES.union(more)
    ]
    assert wrong == []


def impure_line(node: ast.AST) -> str | None:
    """What makes a node impure: a call that reaches outside, a cache, `global`."""
    if isinstance(node, ast.Global):
        return "global"
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name in {"lru_cache", "cache", "cached_property"} or (
            isinstance(node, ast.Name) and name in IMPURE_CALLS
        ):
            return name
    return None


@pytest.mark.parametrize("room", ["core", "models"])
def test_a_pure_room_opens_prints_and_caches_nothing(room: str) -> None:
    """Law 1: what it knows is in its arguments."""
    wrong = [
        f"{path.name}:{node.lineno} uses {impure_line(node)}"  # type: ignore[attr-defined]
        for path in modules(room)
        for node in ast.walk(tree_of(path))
        if impure_line(node)
    ]
    assert wrong == []


def test_loading_the_core_loads_nothing_that_acts() -> None:
    """The core stays pure through what it imports, too."""
    names = [f"gonogo.{dotted(path)}" for path in modules("core")]
    program = f"import sys, importlib\nfor n in {names!r}: importlib.import_module(n)\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert names
    assert sorted(set(loaded.stdout.split()) & set(IMPURE_LIBRARIES)) == []


def assigned(statement: ast.stmt) -> tuple[str, ast.expr, ast.expr | None] | None:
    """Name, value and annotation of a module's own assignment."""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        return statement.target.id, statement.value, statement.annotation
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id, statement.value, None
    return None


def maker(value: ast.expr) -> str:
    """The last name of what a call calls: `defaultdict` of `collections.defaultdict(list)`."""
    if not isinstance(value, ast.Call):
        return ""
    called = value.func.value if isinstance(value.func, ast.Subscript) else value.func
    return (
        called.id
        if isinstance(called, ast.Name)
        else called.attr
        if isinstance(called, ast.Attribute)
        else ""
    )


def holds_state(name: str, value: ast.expr, annotation: ast.expr | None) -> bool:
    """Whether an assignment makes something to be filled: an empty container, a lock, no constant's name."""
    if name == "__all__":
        return False
    if maker(value) in MUTABLE_MAKERS:
        return True
    if not isinstance(value, DISPLAYS):
        return False
    empty = isinstance(value, ast.List | ast.Dict) and not (
        value.elts if isinstance(value, ast.List) else value.values
    )
    read_only = annotation is not None and "Mapping" in ast.unparse(annotation)
    return (empty and not read_only) or name.lstrip("_") != name.lstrip("_").upper()


def test_no_module_holds_state() -> None:
    """No module-level container that is there to be filled, no lock, counter or context variable."""
    wrong = [
        f"{path.relative_to(SOURCE)}:{statement.lineno} {found[0]}"
        for path in modules()
        for statement in tree_of(path).body
        if (found := assigned(statement)) and holds_state(*found)
        if str(path.relative_to(SOURCE)) not in CONTEXT_VARIABLES
    ]
    assert wrong == []


def changed_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names whose content a line changes in place: an item set or deleted, a mutating method called."""
    for node in ast.walk(tree):
        target: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            target = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            target = node.func.value if node.func.attr in MUTATING_METHODS else None
        if isinstance(target, ast.Name):
            yield node.lineno, target.id


def test_no_constant_is_changed() -> None:
    """What a module names at its top level stays as written; nobody says `global`."""
    wrong: list[str] = []
    for path in modules():
        tree = tree_of(path)
        constants = {found[0] for statement in tree.body if (found := assigned(statement))}
        wrong += [
            f"{path.name}:{line} changes {name}" for line, name in changed_names(tree) if name in constants
        ]
        wrong += [
            f"{path.name}:{node.lineno} global" for node in ast.walk(tree) if isinstance(node, ast.Global)
        ]
    assert wrong == []


def test_no_memo_grows_without_bound() -> None:
    """Law 2: a memo names its size (and the core has none)."""
    unbounded = re.compile(r"@(functools\.)?(cache\b|lru_cache\(maxsize=None|lru_cache$)", re.MULTILINE)
    assert [path.name for path in modules() if unbounded.search(path.read_text())] == []


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("_seen = {}", True),
        ("CACHE: dict[str, int] = {}", True),
        ("names = ['a']", True),
        ("LOCK = threading.Lock()", True),
        ("COUNTER = itertools.count()", True),
        ("TABLE = {'a': 1}", False),
        ("NOTHING: Mapping[str, int] = {}", False),
        ("NAMES = frozenset({'a'})", False),
        ("__all__ = ['a']", False),
    ],
)
def test_state_is_told_from_constants(line: str, state: bool) -> None:
    """The rule of `test_no_module_holds_state` on lines where the answer is plain."""
    found = assigned(ast.parse(line).body[0])
    assert found
    assert holds_state(*found) is state


def test_modules_are_short() -> None:
    """No module passes 500 lines; `python tools/sizes.py` shows those to look at again (over 400)."""
    assert [size for size in sizes.module_sizes() if size.lines > sizes.MODULE_LINES_MAX] == []


def test_most_functions_are_short() -> None:
    """Half of all functions fit in ten lines, nine of ten in thirty, all but 1.5 % in seventy, all in 120."""
    functions = sizes.function_sizes()
    longest = [size for size in functions if size.lines > sizes.FUNCTION_LINES_MAX]
    shares = [sizes.share_within(functions, lines) for lines in (10, 30, sizes.FUNCTION_LINES_LONG)]
    assert longest == []
    assert all(share >= least for share, least in zip(shares, (0.5, 0.9, 0.985), strict=True)), shares


def test_no_module_is_named_for_nothing() -> None:
    """A module is named for what it decides or does."""
    nothing = {"utils", "util", "helpers", "helper", "common", "misc", "shared", "stuff"}
    assert [name for name in NAMES if set(name.split(".")) & nothing] == []


def test_every_module_says_what_it_is_for() -> None:
    """A module opens with a docstring; an empty `__init__` may go without."""
    silent = [str(path.relative_to(SOURCE)) for path in modules() if path.read_text().strip()]
    assert [name for name in silent if ast.get_docstring(tree_of(SOURCE / name)) is None] == []
