"""Mutants: what somebody might write by mistake, one syntax node changed at a time.

Texts for people are left alone (anything with a space in it, docstrings, annotations): nothing is decided by them.
What is run, and how, is `running.py`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
SUMS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
TEXT_MAX = 90
"""Characters of a statement that a mutant is named by."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. `name` tells it from all others of its module, without line numbers, which move.

    `top` is the name at the module's top that the change is in, `inside` whether it is within a function's body.
    `plant` changes the module's tree, for good.
    """

    module: str
    name: str
    top: str
    inside: bool
    lines: tuple[int, int]
    plant: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Place:
    """A field of a node that could hold something else: `parent.field`, or `parent.field[index]`."""

    parent: ast.AST
    field: str
    index: int | None
    statement: ast.stmt
    scope: tuple[str, ...]
    inside: bool

    def put(self, node: object) -> None:
        """Change the tree."""
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def mutants_of(module: str, tree: ast.Module) -> list[Mutant]:
    """Every mutant of a module, in the order of its text."""
    found: list[Mutant] = []
    seen: Counter[str] = Counter()
    for place, node in _places(tree):
        for before, after, new in _changes(place, node):
            told = f"`{'.'.join(place.scope)}`: `{before}` → `{after}`"
            context = _headline(place.statement)
            told = told if before == context or len(before) >= TEXT_MAX else f"{told} in `{context}`"
            seen[told] += 1
            name = told if seen[told] == 1 else f"{told} ({seen[told]})"
            start = getattr(node, "lineno", place.statement.lineno)
            end = _last_line(node) or start
            found.append(
                Mutant(module, name, place.scope[0], place.inside, (start, end), _planter(place, new))
            )
    return found


def _planter(place: Place, new: object) -> Callable[[], None]:
    def plant() -> None:
        place.put(new)
        ast.fix_missing_locations(place.statement)

    return plant


def _last_line(node: ast.AST) -> int | None:
    """The last line of what is run of a node: of a compound statement its first line only."""
    if isinstance(node, ast.If | ast.While | ast.For | ast.With):
        return getattr(node, "lineno", None)
    return getattr(node, "end_lineno", None)


def _headline(statement: ast.stmt) -> str:
    return _text(statement).removesuffix(":")


# --- where


def _places(tree: ast.Module) -> Iterator[tuple[Place, ast.AST]]:
    for index, statement in enumerate(tree.body):
        yield from _statements(tree, "body", index, statement, (), inside=False)


def _statements(
    parent: ast.AST, field: str, index: int, statement: ast.stmt, scope: tuple[str, ...], *, inside: bool
) -> Iterator[tuple[Place, ast.AST]]:
    own = scope or (_assigned(statement),)
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        own = (*scope, statement.name)
    if isinstance(statement, ast.FunctionDef):
        for default in _defaults(statement):
            yield from _within(default, statement, own, inside=False)
    elif not _is_left_alone(statement):
        yield Place(parent, field, index, statement, own, inside), statement
        yield from _within_fields(statement, statement, own, inside=inside)
    for name in ("body", "orelse", "finalbody"):
        for number, child in enumerate(getattr(statement, name, ())):
            if isinstance(child, ast.stmt):
                deeper = inside or isinstance(statement, ast.FunctionDef)
                yield from _statements(statement, name, number, child, own, inside=deeper)


def _assigned(statement: ast.stmt) -> str:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return next((target.id for target in targets if isinstance(target, ast.Name)), "module")


def _defaults(statement: ast.FunctionDef) -> list[Place]:
    scope = (statement.name,)
    arguments = statement.args
    found = [
        Place(arguments, "defaults", n, statement, scope, False) for n, _ in enumerate(arguments.defaults)
    ]
    found += [
        Place(arguments, "kw_defaults", n, statement, scope, False)
        for n, default in enumerate(arguments.kw_defaults)
        if default is not None
    ]
    return found


def _is_left_alone(statement: ast.stmt) -> bool:
    """Imports, docstrings, names for types, and what only a type checker runs."""
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.ClassDef):
        return True
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True
    text = ast.unparse(statement)
    return "TYPE_CHECKING" in text or (
        isinstance(statement, ast.Assign) and ("Literal[" in text or "TypeVar(" in text)
    )


def _within(
    place: Place, statement: ast.stmt, scope: tuple[str, ...], *, inside: bool
) -> Iterator[tuple[Place, ast.AST]]:
    held = getattr(place.parent, place.field)
    node = held if place.index is None else held[place.index]
    yield Place(place.parent, place.field, place.index, statement, scope, inside), node
    if not isinstance(node, ast.JoinedStr):
        yield from _within_fields(node, statement, scope, inside=inside)


def _within_fields(
    node: ast.AST, statement: ast.stmt, scope: tuple[str, ...], *, inside: bool
) -> Iterator[tuple[Place, ast.AST]]:
    """The expressions inside of a node."""
    for field, value in ast.iter_fields(node):
        if field == "annotation":
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.expr | ast.comprehension | ast.keyword):
                place = Place(node, field, index, statement, scope, inside)
                yield from _within(place, statement, scope, inside=inside)


# --- what

Change = tuple[str, str, object]


def _changes(place: Place, node: ast.AST) -> Iterator[Change]:
    make = _CHANGES.get(type(node))
    if make is not None:
        for new in make(node):
            ast.copy_location(new, node)
            yield (*_told(node, new), new)
    if place.field == "test" and isinstance(node, ast.expr):
        if not isinstance(node, ast.Compare | ast.UnaryOp):
            yield _text(node), f"not ({_text(node)})", ast.UnaryOp(ast.Not(), node)
        if isinstance(place.parent, ast.If) and not place.parent.orelse:
            yield _text(node), "False", ast.Constant(False)


def _told(node: ast.AST, new: ast.AST) -> tuple[str, str]:
    if isinstance(node, ast.Call) and isinstance(new, ast.Call) and len(new.keywords) < len(node.keywords):
        return _text(next(one for one in node.keywords if one not in new.keywords)), "(left out)"
    return _text(node), "(left out)" if isinstance(new, ast.Pass) else _text(new)


def _text(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(node)).strip().splitlines()[0]
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX // 2]}…{text[-TEXT_MAX // 2 :]}"


def _compare(node: ast.Compare) -> Iterator[ast.AST]:
    for index, operator in enumerate(node.ops):
        other = COMPARISONS[type(operator)]()
        yield ast.Compare(node.left, [*node.ops[:index], other, *node.ops[index + 1 :]], node.comparators)


def _bool(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    for index in range(len(node.values)):
        rest = [*node.values[:index], *node.values[index + 1 :]]
        yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _unary(node: ast.UnaryOp) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.Not):
        yield node.operand


def _binary(node: ast.BinOp) -> Iterator[ast.AST]:
    other = SUMS.get(type(node.op))
    if other is not None:
        yield ast.BinOp(node.left, other(), node.right)


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
    elif isinstance(value, str) and " " not in value:
        yield ast.Constant(f"other{value}")


def _joined(node: ast.JoinedStr) -> Iterator[ast.AST]:
    texts = [str(part.value) for part in node.values if isinstance(part, ast.Constant)]
    if texts and not any(" " in text for text in texts):
        yield ast.JoinedStr([ast.Constant("other"), *node.values])


def _conditional(node: ast.IfExp) -> Iterator[ast.AST]:
    yield node.body
    yield node.orelse


def _call(node: ast.Call) -> Iterator[ast.AST]:
    if isinstance(node.func, ast.Name) and node.func.id in NAMES:
        yield ast.Call(ast.Name(NAMES[node.func.id], ast.Load()), node.args, node.keywords)
    for index in range(len(node.keywords)):
        yield ast.Call(node.func, node.args, [*node.keywords[:index], *node.keywords[index + 1 :]])


def _comprehension(node: ast.comprehension) -> Iterator[ast.AST]:
    for index in range(len(node.ifs)):
        rest = [*node.ifs[:index], *node.ifs[index + 1 :]]
        yield ast.comprehension(node.target, node.iter, rest, node.is_async)


def _return(node: ast.Return) -> Iterator[ast.AST]:
    if node.value is not None and not isinstance(node.value, ast.Constant):
        yield ast.Return(ast.Constant(None))


def _assign(node: ast.Assign) -> Iterator[ast.AST]:
    if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
        yield ast.Pass()


def _augmented(node: ast.AugAssign) -> Iterator[ast.AST]:
    other = SUMS.get(type(node.op))
    if other is not None:
        yield ast.AugAssign(node.target, other(), node.value)
    yield ast.Assign([node.target], node.value)
    yield ast.Pass()


def _leave_out(node: ast.AST) -> Iterator[ast.AST]:
    yield ast.Pass()


def _jump(node: ast.AST) -> Iterator[ast.AST]:
    yield ast.Break() if isinstance(node, ast.Continue) else ast.Continue()


_CHANGES: dict[type, Callable[..., Iterator[ast.AST]]] = {
    ast.Compare: _compare,
    ast.BoolOp: _bool,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Constant: _constant,
    ast.JoinedStr: _joined,
    ast.IfExp: _conditional,
    ast.Call: _call,
    ast.comprehension: _comprehension,
    ast.Return: _return,
    ast.Assign: _assign,
    ast.AugAssign: _augmented,
    ast.Expr: _leave_out,
    ast.Raise: _leave_out,
    ast.Delete: _leave_out,
    ast.Continue: _jump,
    ast.Break: _jump,
}
