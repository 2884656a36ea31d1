"""EXP-3: an expression can't get out, can't change what others see, and leaves nothing behind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.expressions.conftest import Evaluate

from gonogo.expressions.results import Failure, Value
from gonogo.expressions.sandbox import Request, Sandbox

OUTPUT = {"n": 1, "list": [2, 1], "nested": {"a": 1}}

REFUSED = [
    "''.__class__.__mro__",
    "output.constructor.constructor('return 1')()",
    "outputs.__proto__.x",
    "output.__proto__",
    "log.__globals__.x",
    "any.__self__.x",
    "output['__cl' + 'ass__'].x",
    "[].map.constructor",
    "[].map.constructor('return 1')()",
    "outputs.toString.call",
    "(function* () {}).constructor('yield 1')",
    "(async function () {}).constructor('return 1')",
    "(async function* () {}).constructor('return 1')",
    "Object.getPrototypeOf(function () {}).constructor('return 1')",
    "Reflect.construct(Object.getPrototypeOf(() => 1).constructor, ['return 1'])",
    "this.constructor.constructor('return 1')()",
    "globalThis.constructor.constructor('return 1')()",
    "Function('return 1')()",
    "new Function('return 1')()",
    "eval('1')",
    "(0, eval)('1')",
    "globalThis.eval('1')",
    "setTimeout(() => 1, 0)",
    "require('fs')",
    "process.exit()",
    "import('os')",
    "import.meta",
    "(async () => 1)()",
    "new Worker('x')",
    "new SharedArrayBuffer(8)",
    "new WeakRef({})",
    "console.log(1)",
    "performance.now()",
    "fetch('http://localhost')",
    "bash('ls')",
    "callTool('x')",
    "Math.random()",
    "output.n = 2",
    "output.list.push(3)",
    "output.list.sort()",
    "outputs.x = 1",
    "delete outputs.x",
    "outputs = {}; outputs",
    "Object.defineProperty(outputs, 'y', { value: 1 })",
    "Object.setPrototypeOf(outputs, null)",
    "Object.prototype.polluted = 1",
    "Array.prototype.map = () => 1",
    "Object.defineProperty(Array.prototype, 'x', { get() { return 1 } })",
    "Object.assign(JSON, { parse: () => 1 })",
    "JSON.stringify = () => '1'",
    "globalThis.contains = () => true",
    "globalThis.leak = 1",
    "contains.call = 1",
    "Object.freeze = x => x",
    "Symbol.iterator.description = 1; Symbol.prototype.leak = 1",
    "Error.prepareStackTrace = () => 1",
    "undeclared = 1",
    "(function () { return arguments.callee })()",
    "(function f() { return f.caller.x })()",
    "with (output) { n }",
]


@pytest.mark.parametrize("source", REFUSED)
def test_ways_out_fail(evaluate: Evaluate, source: str) -> None:
    """EXP-3, expressions.md "Escapes": refused when compiled or when run."""
    assert isinstance(evaluate(source, "value", output=OUTPUT, outputs={"x": {"n": 1}}), Failure)


@pytest.mark.parametrize(
    "source",
    [
        "1]) + (()=>[2",
        "1)}); (function(){ return(2",
        "1} function x() { return 2",
        "}, {",
        "}, function(){",
        "}), (class{m(){",
        "} m2(){",
        "};0;()=>{",
        "1 /*",
        "`",
        "*/ 1 /*",
    ],
)
def test_text_can_not_leave_its_wrapper(evaluate: Evaluate, source: str) -> None:
    """Text that closes what it is compiled in is a syntax error, whichever wrapper it aims at."""
    result = evaluate(source)
    assert isinstance(result, Failure)
    assert result.kind == "syntax"


@pytest.mark.parametrize(
    "source",
    [
        "Object.prototype.polluted = 1",
        "globalThis.leak = 1",
        "var leak = 1; leak",
        "function leak() {} leak()",
        "Reflect.defineProperty(Object.prototype, 'polluted', { value: 1 }); 1",
        "Reflect.set(globalThis, 'leak', 1); 1",
        "Object.getPrototypeOf([]).polluted = 1",
    ],
)
def test_nothing_stays_for_the_next_expression(evaluate: Evaluate, source: str) -> None:
    """What one expression does can't be seen by the next."""
    evaluate(source)
    assert evaluate("[typeof leak, 'polluted' in {}, [].polluted === undefined]") == Value(
        value=["undefined", False, True]
    )


def test_scripts_change_only_their_own_copies(evaluate: Evaluate) -> None:
    """Values given to expressions are plain copies: changing them changes nothing outside."""
    names = {"output": OUTPUT, "outputs": {"x": {"list": [3, 1]}}}
    changing = (
        "outputs.x.list.sort(); output.n = 9; outputs.y = 1; [outputs.x.list, output.n, Object.keys(outputs)]"
    )
    assert evaluate(changing, "script", **names) == Value(value=[[1, 3], 9, ["x", "y"]])
    looking = "[outputs.x.list, output.n, Object.keys(outputs)]"
    assert evaluate(looking, "script", **names) == Value(value=[[3, 1], 1, ["x"]])


@settings(max_examples=60, deadline=None)
@given(name=st.from_regex(r"_{1,2}[a-z]{1,10}(_{2})?", fullmatch=True))
def test_no_name_that_starts_with_an_underscore_is_readable(sandbox: Sandbox, name: str) -> None:
    """EXP-3: on data, functions and builtins alike."""
    holders = "output, outputs, log, contains, [], '', 1, Math, JSON, Object, globalThis, (() => 1), /a/"
    reading = f"h => {{ try {{ return h.{name} }} catch {{ return undefined }} }}"
    source = f"[{holders}].map({reading}).every(x => x === undefined)"
    names = {"output": OUTPUT, "outputs": {"x": 1}}
    assert sandbox.evaluate([Request(source, "condition", names)]) == [Value(value=True)]


def test_code_in_a_data_key_or_value_is_only_text(evaluate: Evaluate) -> None:
    """Data goes in as JSON: a key such as __proto__ is a plain key, and text is never compiled."""
    evil = {"__proto__": {"polluted": 1}, "constructor": "x", "a": "`${process.exit()}`"}
    assert evaluate(
        "[output.a.length, output.constructor, ({}).polluted === undefined]", output=evil
    ) == Value(value=[19, "x", True])
