"""Scopes: where in nested fan-outs a step runs.

A scope is text, so that it can be read in a journal and used as a key: "" is the run itself, `list#1[3]` item 3 of the
first execution of `list`, `list#1[3]/files#2[0]` an item within that item. Step names can't contain `/`, `#` or `[`.
"""

from __future__ import annotations

ROOT = ""


def child(scope: str, parent: str, execution: int, index: int) -> str:
    """The scope of one item of a fan-out over `parent`."""
    own = f"{parent}#{execution}[{index}]"
    return f"{scope}/{own}" if scope else own


def children(scope: str, parent: str) -> str:
    """How the scopes of all items of fan-outs over `parent` begin, whichever execution of it gave them."""
    return f"{scope}/{parent}#" if scope else f"{parent}#"


def depth(scope: str) -> int:
    """How many fan-outs a scope is nested in."""
    return scope.count("/") + 1 if scope else 0


def enclosing(scope: str) -> str:
    """The scope around this one; the root is its own."""
    return scope.rpartition("/")[0] if "/" in scope else ROOT


def prefix(scope: str, levels: int) -> str:
    """The outermost `levels` of a scope."""
    if levels == 0 or not scope:
        return ROOT
    if "/" not in scope:
        return scope
    return "/".join(scope.split("/")[:levels])


def outward(scope: str) -> list[str]:
    """The scope itself, then each one around it, the root last."""
    found = [scope]
    while scope:
        scope = enclosing(scope)
        found.append(scope)
    return found


def index_of(scope: str) -> int:
    """The item index of the innermost level."""
    return int(scope[scope.rindex("[") + 1 : -1])


def parent_of(scope: str) -> str:
    """The forEach step whose item the innermost level is."""
    return scope[scope.rfind("/") + 1 : scope.rindex("#")]


def execution_of(scope: str) -> int:
    """The execution of that step which gave the items."""
    return int(scope[scope.rindex("#") + 1 : scope.rindex("[")])


def parents(scope: str) -> tuple[str, ...]:
    """The forEach steps of all levels, outermost first."""
    return tuple(part[: part.rindex("#")] for part in scope.split("/")) if scope else ()


def levels_shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many outermost levels two paths of forEach steps have in common."""
    levels = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        levels += 1
    return levels


def order_key(scope: str) -> tuple[int, ...]:
    """Sorts items of one step by index, outermost first."""
    if not scope:
        return ()
    if "/" not in scope:
        return (index_of(scope),)
    return tuple(index_of(part) for part in scope.split("/"))


def step_at(step: str, scope: str) -> str:
    """A step in its scope, as people are told it and name it in turn: `step`, or `step@scope`."""
    return f"{step}@{scope}" if scope else step


def within(scope: str, outer: str) -> bool:
    """True when `scope` is `outer` or lies inside it."""
    return not outer or scope == outer or scope.startswith(outer + "/")
