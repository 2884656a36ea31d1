"""Hostile expressions: each ends as a failure of its own, and the next evaluation on the same sandbox is right."""

from __future__ import annotations

import resource

import pytest

from gonogo.expressions.results import Failure, Value
from gonogo.expressions.sandbox import Request, Sandbox

LIMIT_S = 0.25
DATA = {"output": {"n": 1, "text": "a" * 40 + "!"}, "outputs": {"x": {"ok": True}}}

HOSTILE = {
    "endless loop": "while (true);",
    "endless loop that catches": "while (true) { try { while (true); } catch (e) {} finally {} }",
    "endless for": "for (;;) {}",
    "endless generator": "for (const x of (function* () { while (true) yield 1 })()) {}",
    "endless recursion through a getter": "const o = { get a() { return this.a } }; return o.a",
    "recursion": "(function f() { return f() + 1 })()",
    "mutual recursion that catches": "(function f() { try { return f() } catch (e) { return f() } })()",
    "huge repeat": "'x'.repeat(1e9)",
    "push for ever": "const a = []; while (true) a.push('x'.repeat(1000) + a.length)",
    "doubling text": "let s = 'x'; while (true) s += s",
    "doubling list": "let a = [1]; while (true) a = [...a, ...a]",
    "huge typed array": "new Uint8Array(4e9)",
    "huge buffer": "new ArrayBuffer(2 ** 40)",
    "deep JSON": "JSON.parse('['.repeat(1e6) + ']'.repeat(1e6))",
    "deep stringify": "let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return JSON.stringify(a)",
    "deep result": "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a",
    "200,000 parentheses": "(" * 120_000 + "1" + ")" * 120_000,
    "nested brackets": "[" * 60_000 + "]" * 60_000,
    "pattern that never ends": "/(a+)+$/.test(output.text)",
    "pattern with alternatives": "/^(a|aa)+$/.test(output.text)",
    "pattern with back reference": "/(a*)*\\1b/.test('a'.repeat(5000))",
    "pattern in replace": "output.text.replace(/(a+)+$/, '')",
    "sparse sort": "const a = []; a.length = 4e9; a.sort()",
    "sparse join": "const a = []; a.length = 4e9; a.join()",
    "sparse indexOf": "const a = []; a.length = 4e9; a.indexOf(1)",
    "list-like without end": "Array.prototype.join.call({ length: 2 ** 53 - 1 })",
    "list-like with a hidden length": "Array.prototype.indexOf.call({ length: { valueOf: () => 2 ** 52 } }, 1)",
    "long text search": "const s = 'a'.repeat(5e6); let n = 0; while (true) n += (s + n).indexOf('b')",
    "splice in a loop": "const a = Array.from({ length: 2e6 }, (_, i) => i); while (true) a.splice(1, 1)",
    "BigInt squaring": "let b = 3n; while (true) b = b * b",
    "BigInt power": "(2n ** 4000000000n) > 1n",
    "Array.from without end": "Array.from({ length: 4e9 })",
    "proxy that never stops": "const p = new Proxy({}, { get: () => p }); let q = p; while (true) q = q.a",
    "toString that loops": "`${{ toString() { while (true); } }}`",
    "toJSON that loops": "({ toJSON() { while (true); } })",
    "padding": "'x'.padEnd(2 ** 30 - 1)",
    "flat without end": "const a = []; a.push(a); return a.flat(Infinity)",
    "cycle as a result": "const a = {}; a.a = a; return a",
    "million keys": "const o = {}; for (let i = 0; ; i++) o['k' + i] = i",
    "endless log": "while (true) log('x'.repeat(1e5))",
    "endless memory writes": "while (true) memory.set('k' + Math.floor(1), 'x')",
    "promise jobs": "while (true) Promise.resolve().then(() => 1)",
    "thrown thing without text": "throw { get message() { while (true); }, toString() { while (true); } }",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_expression_fails_and_the_next_one_is_right(sandbox: Sandbox, name: str) -> None:
    """EXP-4 and expressions.md, "Hostile cases": it ends, as a failure, and harms nothing that follows."""
    hostile = Request(HOSTILE[name], "value", DATA, LIMIT_S)
    assert isinstance(sandbox.evaluate([hostile])[0], Failure)
    assert sandbox.evaluate([Request("outputs.x.ok && output.n + 1", "value", DATA, LIMIT_S)]) == [
        Value(value=2)
    ]


def test_a_hang_in_a_batch_costs_only_its_own_evaluation(sandbox: Sandbox) -> None:
    """The others of the batch get their results, before and after the one that had to be killed."""
    sources = [
        "output.n",
        HOSTILE["long text search"],
        "output.n + 1",
        HOSTILE["endless loop"],
        "output.n + 2",
    ]
    results = sandbox.evaluate([Request(source, "value", DATA, LIMIT_S) for source in sources])
    assert [result.value if isinstance(result, Value) else result.kind for result in results] == [
        1,
        "limit",
        2,
        "limit",
        3,
    ]


def test_the_client_stays_small(sandbox: Sandbox) -> None:
    """Memory that an expression uses up is the child's: the client grows by less than 5 MB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in ("push for ever", "doubling text", "huge repeat", "million keys"):
        sandbox.evaluate([Request(HOSTILE[name], "value", DATA, LIMIT_S)])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 5 * 1024
