"""Expressions whose results must agree with JavaScript's own: corners picked by hand, 1,000 grown from a grammar.

`record_results.py` runs them in Node and keeps the results in `corpus.json`; `test_differential.py` needs only
that file.
"""

from __future__ import annotations

import random
from typing import Any

SEED = 20_260
GROWN = 1_000

DATA: dict[str, Any] = {
    "output": {
        "n": 3,
        "zero": 0,
        "name": "lint",
        "empty": "",
        "flag": True,
        "off": False,
        "nothing": None,
        "list": [3, 1, 2],
        "words": ["beta", "alpha", "gamma"],
        "items": [
            {"id": 1, "level": "error", "n": 4.5, "tags": ["a", "b"]},
            {"id": 2, "level": "warning", "n": -2, "tags": []},
            {"id": 3, "level": "error", "n": 0, "tags": ["b"]},
        ],
        "nested": {"a": {"b": {"c": 7}}, "list": [[1, 2], [3, [4]]]},
        "text": "Hello, wörld 😀!",
    },
    "env": {"MODE": "false", "COUNT": "0", "EMPTY": "", "NAME": "prod"},
    "inputs": {"limit": 10, "names": ["x", "y"], "opt": None},
    "item": {"key": "k1", "value": 42},
    "index": 2,
}

_TRUTH = [
    '""',
    '"0"',
    '"false"',
    '" "',
    "0",
    "-0",
    "NaN",
    "1",
    "null",
    "undefined",
    "[]",
    "({})",
    "[0]",
    "true",
    "false",
]
_PAIRS = ['""', '"1"', "0", "1", "null", "undefined", "[]", "[1]", "true", "NaN"]


def _truth_and_equality() -> list[str]:
    truth = [f"{value} ? 'yes' : 'no'" for value in _TRUTH]
    loose = [f"{left} == {right}" for at, left in enumerate(_PAIRS) for right in _PAIRS[at:]]
    return truth + loose


PICKED_EXPRESSIONS = """
0.1 + 0.2
1 / 0
-1 / 0
0 / 0
1 / 3
5 % 3
-5 % 3
5 % -3
2 ** 10
(-2) ** 2
2 ** 3 ** 2
7 / 2 | 0
-7 >> 1
-7 >>> 28
1 << 31
~5
5 & 3 | 8 ^ 1
'5' * '2'
'5' + 2
5 + '2'
'5' - 2
+'12.5'
+''
+' 12 '
+'12px'
-'3'
[] + []
[] + {}
[1,2] + [3]
true + true
null + 1
undefined + 1
'b' + 'a' + +'a' + 'a'
1 + null
'a' < 'b'
'10' < '9'
'10' < 9
null >= 0
null > 0
undefined == 0
NaN !== NaN
[2] > 1
'B' < 'a'
typeof null
typeof undefined
typeof missingName
typeof (() => 1)
typeof 1n
typeof Symbol.iterator
void 0
(1, 2, 3)
null ?? 'default'
0 ?? 'default'
'' || 'default'
0 || null || 'x'
1 && 'last'
0 && 'never'
!!'' === false
output?.nested?.a?.b?.c
output.missing?.a.b.c
output.missing?.[0]
output.missing?.()
output.nested?.['a']
output.missing.a
output.nothing.a
output.n.toFixed(2)
output.name()
output?.missing ?? output.n
output.list.map(x => x * 2)
output.list.filter(x => x > 1).length
output.list.reduce((sum, x) => sum + x, 0)
[].reduce((a, b) => a + b)
output.list.reduceRight((a, b) => a + '-' + b)
[...output.list].sort()
[10, 9, 1].sort()
[10, 9, 1].sort((a, b) => a - b)
[3, undefined, 1].sort()
output.words.slice().sort().reverse()
output.list.concat([4, [5]])
output.nested.list.flat()
output.nested.list.flat(Infinity)
output.words.flatMap(w => [w, w.length])
output.list.indexOf(2)
output.list.includes(NaN)
[NaN].includes(NaN)
[NaN].indexOf(NaN)
output.list.at(-1)
output.list[-1]
output.list['1']
output.list.length = 0
output.list.push(9)
output.list.join('-')
[null, undefined, 1].join()
[1, [2, [3]]].toString()
output.items.find(i => i.level === 'warning').id
output.items.find(i => i.id > 9)
output.items.findIndex(i => i.n === 0)
output.items.findLast(i => i.level === 'error').id
output.items.every(i => i.id)
output.items.some(i => i.tags.includes('b'))
output.items.map(({id, tags: [first = 'none']}) => id + first)
output.items.map(({level, ...rest}) => Object.keys(rest).length)
output.items.filter(({level}) => level === 'error').map(i => i.id)
Array.from({length: 3}, (_, i) => i * i)
Array.from('héllo')
Array.of(7)
Array.isArray(output.list)
new Array(3).length
new Array(3).fill(0)
[...Array(3).keys()]
[,1,,2].length
[1, 2, 3, 4].splice(1, 2)
[1, 2, 3].copyWithin(0, 1)
[3, 1].toSorted()
[1, 2, 3].with(1, 9)
[1, 2, 3].lastIndexOf(3)
[..."ab"].entries().next().value
Object.keys(output.nested)
Object.entries(inputs).length
Object.values(env)
Object.fromEntries([['a', 1], ['b', 2]])
Object.assign({}, item, {extra: 1})
({...item, key: 'other'})
({a: 1, ['b' + 1]: 2, 'c-d': 3})
({a: 1, a: 2})
({2: 'b', 1: 'a', x: 'c'})
({get size() { return 4 }}).size
({toString() { return 'custom' }}) + ''
({valueOf() { return 3 }}) * 2
'n' in output
'toString' in {}
Object.hasOwn(output, 'n')
output.hasOwnProperty('n')
delete output.n
output.n = 5
output.newField = 1
Object.isFrozen(output.nested)
JSON.stringify({a: [1, undefined, () => 1], b: undefined})
JSON.stringify('é\\n"')
JSON.stringify({a: 1, b: [2]}, null, 2)
JSON.stringify(NaN)
JSON.stringify({d: new Date(0)})
JSON.parse('{"a":[1,2,{"b":null}]}')
JSON.parse('{bad}')
JSON.parse('1e3')
JSON.parse('[1]', (k, v) => typeof v === 'number' ? v + 1 : v)
`a${1 + 1}b${'c'}`
`${output.list}`
`line\\nbreak`
`${{}}`
String.raw`a\\n${1}`
'abc'.toUpperCase()
'straße'.toUpperCase()
'ABC'.toLowerCase().split('')
'a,b,,c'.split(',')
'a,b,c'.split(',', 2)
'abc'.split('')
' trim '.trim()
'abc'.slice(-2)
'abc'.substring(2, 0)
'abc'.substr(1)
'abc'.charAt(5)
'abc'[1]
'abc'.at(-1)
'abc'.codePointAt(0)
'5'.padStart(3, '0')
'5'.padEnd(3, 'ab')
'ab'.repeat(3)
'ab'.repeat(-1)
'a-b-c'.replace('-', '+')
'a-b-c'.replaceAll('-', '+')
'a-b-c'.replace(/-/g, '+')
'abc'.replace(/(b)/, '[$1]')
'abc'.replace(/b/, m => m.toUpperCase())
'2024-05-06'.match(/(\\d+)-(\\d+)/).slice(1)
'2024-05-06'.match(/(?<year>\\d{4})/).groups.year
'aXbX'.match(/X/g)
'abc'.match(/z/)
'abc'.search(/c/)
[...'a1b2'.matchAll(/\\d/g)].map(m => m.index)
/^[a-z]+$/i.test('ABC')
/a.c/s.test('a\\nc')
/\\u{1F600}/u.test(output.text)
/(?<=\\$)\\d+/.exec('cost $42')[0]
/a{2,3}/.exec('caaaat')[0]
/[/
'abc'.includes('b', 2)
'abc'.startsWith('b', 1)
'abc'.endsWith('b', 2)
'a' + 'b'.concat('c', 1)
output.text.length
[...output.text].length
output.text.indexOf('😀')
'😀'.charCodeAt(0)
'\\ud83d'
'e\\u0301'.normalize('NFC').length
'b'.localeCompare('a') > 0
encodeURIComponent('a b&c/é')
decodeURIComponent('%E0%A4%A')
encodeURI('a b/?é')
escape('ü')
parseInt('12px')
parseInt('0x1f')
parseInt('z', 36)
parseInt('')
parseFloat('3.14abc')
Number('')
Number('0b101')
Number(null)
Number([5])
Number('1_000')
1_000
0xff
0b11
0o17
.5 + 5.
1e21
1e-7
123456789012345680000
9007199254740993
(0.000001234).toString()
(25).toString(2)
(255).toString(16)
(1.005).toFixed(2)
(1234.5678).toFixed(1)
(0.00001).toPrecision(1)
(12345.6789).toExponential(2)
(1e21).toFixed(2)
Number.MAX_SAFE_INTEGER
Number.EPSILON > 0
Number.isInteger(5.0)
Number.isNaN('x')
isNaN('x')
isFinite('12')
Math.max()
Math.max(1, '3', 2)
Math.max(...output.list)
Math.min(1, NaN)
Math.round(-0.5)
Math.round(2.5)
Math.sign(-3)
Math.trunc(-4.7)
Math.hypot(3, 4)
Math.cbrt(27)
Math.floor(-0.5)
10n ** 20n > 5
1n + 1
BigInt('12') === 12n
String(123n)
new Map([[1, 2]]).get(1)
[...new Set([1, 1, 2])]
new Set([1, 2]).size
[...new Map([['a', 1]])]
new Map()
new Set([1])
(() => 1)
Symbol('x')
Symbol('x').description
((a, b = 2, ...rest) => [a, b, rest])(1, undefined, 3, 4)
(function () { return arguments.length })(1, 2, 3)
(function () { return this })()
((x) => ({x}))(1)
(function f(n) { return n < 2 ? 1 : n * f(n - 1) })(6)
(({a, b: {c} = {c: 5}}) => [a, c])({a: 1})
[1, 2, 3].map((x, i, all) => all.length - i - x)
[['a', 1]].map(([k, v]) => k + v)
new (class { constructor() { this.v = 1 } get w() { return this.v + 1 } })().w
new (class A { static s = 3; #p = 4; p() { return this.#p + A.s } })().p()
(class B extends Array {}).from([1, 2]).length
[...(function* () { yield 1; yield* [2, 3] })()]
new Error('x').message
new TypeError('x') instanceof Error
Object.prototype.toString.call([])
structuredClone
nothingHere
new Date(0).toISOString()
Date.UTC(2024, 1, 29)
new Date('2024-02-30').getTime() > 0
new Date(2024, 0, 31).getMonth()
item.value > 40 && item.key === 'k1' || false
env.MODE === 'false' && !env.EMPTY
index % 2 === 0 ? 'even' : 'odd'
output.items.length > 2 ? output.items[1].level : null
1 +
ok ok
'unclosed
a b
{a: 1}
[1, 2
) + (
1; 2)
""".strip("\n").split("\n")

PICKED_BODIES = """
const a = 1; a + 1
let t = 0; for (const x of output.list) t += x; t
let t = 0; for (let i = 0; i < 3; i++) { t += i } return t
if (output.n > 2) { 'big' } else { 'small' }
if (output.n > 5) { return 'big' } return 'small'
const {n, name: other} = output; return n + other
const [first, , third] = output.list; return [first, third]
let s = ''; for (const k in inputs) s += k; return s
try { missing.thing } catch (e) { e.name }
try { throw new RangeError('r') } catch ({message}) { return message } finally { 1 }
outer: for (const a of [1, 2]) { for (const b of [1, 2]) { if (b > 1) continue outer; if (a > 1) break outer } } 'done'
switch (output.name) { case 'lint': 'L'; break; default: 'D' }
let i = 0; while (true) { if (++i > 4) break } return i
let i = 0; do { i += 2 } while (i < 5); i
function double(x) { return x * 2 } double(output.n)
return hoisted(); function hoisted() { return 'up' }
const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2); return fib(12)
var x = 1; { let x = 2 } return x
const o = {...item}; o.value++; return o
const list = [...output.list]; list.sort(); return list
return
let x; return x
return [1, 2].map(x => {
x = 5; return x
const c = 1; c = 2
return typeof y; let y = 1
let a = 1, b = 2; [a, b] = [b, a]; return [a, b]
const m = new Map(); for (const i of output.items) m.set(i.level, (m.get(i.level) ?? 0) + 1); return [...m]
class P { constructor(n) { this.n = n } } class Q extends P { get d() { return this.n * 2 } } return new Q(4).d
const g = (function* () { let n = 0; while (true) yield n++ })(); g.next(); return g.next().value
const {a = 1, ...rest} = {b: 2, c: 3}; return [a, rest]
throw new TypeError('mine')
throw 'text'
output.n = 1; return output.n
let n = null; n ??= 4; n ||= 5; n &&= 6; return n
return new Error('boom')
'use strict'; return 1
""".strip("\n").split("\n")


def picked() -> list[str]:
    """The corners: truth, equality, and what the lists above say."""
    return [*_truth_and_equality(), *PICKED_EXPRESSIONS, *PICKED_BODIES]


def grown() -> list[str]:
    """The same thousand expressions each time."""
    made = _Grammar(random.Random(SEED))
    return list(dict.fromkeys(made.any(3) for _ in range(GROWN * 2)))[:GROWN]


class _Grammar:
    """Grows expressions by kind: numbers, texts, booleans, lists, objects."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def any(self, depth: int) -> str:
        return self._one(self.number, self.text, self.truth, self.list, self.object, self.mixed)(depth)

    def number(self, depth: int) -> str:
        if depth <= 0:
            return self._one("0", "1", "-1", "2.5", "1e3", "output.n", "index", "item.value", "inputs.limit")
        n, t, xs = self.number, self.text, self.list
        forms = (
            lambda: (
                f"({n(depth - 1)} {self._one('+', '-', '*', '/', '%', '**', '|', '&', '>>')} ({n(depth - 1)}))"
            ),
            lambda: f"Math.{self._one('floor', 'ceil', 'abs', 'round', 'sign', 'trunc')}({n(depth - 1)})",
            lambda: f"Math.{self._one('max', 'min')}({n(depth - 1)}, {n(depth - 1)})",
            lambda: f"({t(depth - 1)}).length",
            lambda: f"({xs(depth - 1)}).length",
            lambda: f"({xs(depth - 1)}).indexOf({n(depth - 1)})",
            lambda: f"({xs(depth - 1)}).reduce((a, b) => a + b, {n(depth - 1)})",
            lambda: f"Number({t(depth - 1)})",
            lambda: f"(-{n(depth - 1)})",
        )
        return self._one(*forms)()

    def text(self, depth: int) -> str:
        if depth <= 0:
            return self._one(
                "''", "'a'", "'Beta'", "'10'", "output.name", "output.text", "env.MODE", "item.key", '"é😀"'
            )
        n, t, xs = self.number, self.text, self.list
        forms = (
            lambda: f"({t(depth - 1)} + {self.any(depth - 1)})",
            lambda: f"`<${{{t(depth - 1)}}}:${{{n(depth - 1)}}}>`",
            lambda: (
                f"({t(depth - 1)}).{self._one('toUpperCase()', 'toLowerCase()', 'trim()', 'slice(1)', 'slice(-2)')}"
            ),
            lambda: (
                f"({t(depth - 1)}).replace({self._one('/a/g', '/[A-Z]/', chr(39) + 'e' + chr(39))}, {t(depth - 1)})"
            ),
            lambda: f"({xs(depth - 1)}).join({t(0)})",
            lambda: f"String({self.any(depth - 1)})",
            lambda: f"typeof {self.any(depth - 1)}",
            lambda: f"({t(depth - 1)}).padStart(5, {t(0)})",
        )
        return self._one(*forms)()

    def truth(self, depth: int) -> str:
        if depth <= 0:
            return self._one(
                "true", "false", "output.flag", "output.off", "!output.empty", "output.nothing == null"
            )
        a, n, b = self.any, self.number, self.truth
        forms = (
            lambda: f"({a(depth - 1)} {self._one('==', '===', '!=', '!==', '<', '>=')} {a(depth - 1)})",
            lambda: f"({n(depth - 1)} {self._one('<', '<=', '>', '>=', '===')} {n(depth - 1)})",
            lambda: f"({b(depth - 1)} {self._one('&&', '||')} {b(depth - 1)})",
            lambda: f"!({a(depth - 1)})",
            lambda: f"({self.list(depth - 1)}).{self._one('some', 'every')}(x => x > {n(0)})",
            lambda: (
                f"({self.text(depth - 1)}).{self._one('includes', 'startsWith', 'endsWith')}({self.text(0)})"
            ),
            lambda: f"Array.isArray({a(depth - 1)})",
            lambda: f"/{self._one('a', '[0-9]+', '^B', 'é')}/.test({self.text(depth - 1)})",
        )
        return self._one(*forms)()

    def list(self, depth: int) -> str:
        if depth <= 0:
            return self._one("[]", "[1, 2]", "output.list", "output.words", "inputs.names", "[0, '', null]")
        xs = self.list
        forms = (
            lambda: f"[{self.any(depth - 1)}, {self.any(depth - 1)}]",
            lambda: f"[...{xs(depth - 1)}, {self.any(depth - 1)}]",
            lambda: (
                f"({xs(depth - 1)}).map(x => {self._one('x', 'x + 1', 'typeof x', '[x]', '({x})', 'String(x)')})"
            ),
            lambda: f"({xs(depth - 1)}).filter(x => {self._one('x', 'x > 1', '!x', 'x !== null')})",
            lambda: f"({xs(depth - 1)}).slice({self._one('1', '-1', '0, 2')})",
            lambda: f"[...{xs(depth - 1)}].{self._one('reverse()', 'sort()')}",
            lambda: f"({xs(depth - 1)}).concat({self.any(depth - 1)})",
            lambda: f"Object.{self._one('keys', 'values', 'entries')}({self.object(depth - 1)})",
            lambda: f"({self.text(depth - 1)}).split({self._one(chr(39) * 2, chr(39) + 'a' + chr(39))})",
            lambda: "output.items.map(i => i." + self._one("id", "n", "level", "tags", "missing") + ")",
        )
        return self._one(*forms)()

    def object(self, depth: int) -> str:
        if depth <= 0:
            return self._one("({})", "item", "output.nested", "env", "inputs", "({a: 1})")
        forms = (
            lambda: f"({{k: {self.any(depth - 1)}, [{self.text(0)}]: {self.any(depth - 1)}}})",
            lambda: f"({{...{self.object(depth - 1)}, z: {self.any(depth - 1)}}})",
            lambda: f"Object.assign({{}}, {self.object(depth - 1)})",
            lambda: f"JSON.parse(JSON.stringify({self.object(depth - 1)}))",
        )
        return self._one(*forms)()

    def mixed(self, depth: int) -> str:
        forms = (
            lambda: f"({self.truth(depth - 1)} ? {self.any(depth - 1)} : {self.any(depth - 1)})",
            lambda: f"({self.any(depth - 1)} {self._one('??', '||', '&&')} {self.any(depth - 1)})",
            lambda: f"output.{self._one('missing', 'nested', 'nothing')}?.{self._one('a', 'a.b', 'list[0]')}",
            lambda: f"({self.list(depth - 1)})[{self.number(0)}]",
            lambda: f"({self.object(depth - 1)}).{self._one('a', 'k', 'z', 'key')}",
            lambda: (
                f"output.items[{self._one('0', '1', '5')}]{self._one('.', '?.')}{self._one('id', 'level', 'tags[0]')}"
            ),
        )
        return self._one(*forms)() if depth > 0 else self._one("null", "undefined", "output.missing")

    def _one(self, *choices: Any) -> Any:
        return self._dice.choice(choices)
