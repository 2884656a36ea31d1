"""Run the corpus in Node and keep the results in `corpus.json`: `python -m tests.expressions.record_results`.

Needed only when `corpus.py` changes. The JavaScript below states what the sandbox promises of a result: JSON, or
a refusal for what is no JSON; it is written for Node alone and shares nothing with the sandbox.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.expressions.corpus import DATA, grown, picked

RESULTS = Path(__file__).with_name("corpus.json")

RECORDER = r"""
const vm = require('node:vm');
const { sources, data } = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
const SETUP = `'use strict';
  const freeze = (v) => {
    if (typeof v === 'object' && v !== null) { Object.values(v).forEach(freeze); Object.freeze(v); }
    return v;
  };
  const data = freeze(JSON.parse(DATA));
  for (const k of Object.keys(data)) Object.defineProperty(globalThis, k, { value: data[k] });
  globalThis.__show = (v) => {
    const bad = (x) => ['function', 'symbol', 'bigint'].includes(typeof x) || (typeof x === 'number' && !isFinite(x))
      || x instanceof Promise || x instanceof Map || x instanceof Set;
    const deep = (x) => (typeof x === 'bigint' || typeof x === 'number' || typeof x === 'object') && bad(x);
    if (v === undefined) return 'undefined';
    if (bad(v)) return 'refused';
    let found = false;
    const text = JSON.stringify(v, (k, x) => { if (deep(x)) found = true; return typeof x === 'bigint' ? 0 : x; });
    return found ? 'refused' : Object.is(v, -0) ? 'json:-0.0' : 'json:' + text;
  };
  globalThis.__truth = (v) => (typeof v === 'function' || typeof v === 'symbol' || v instanceof Promise
    || v instanceof Map || v instanceof Set) ? 'refused' : String(Boolean(v));`;
const names = Object.keys(data).join(', ');
const compile = (source) => {
  const attempts = [
    [`[\n${source}\n]`, `(() => { 'use strict'; return (\n${source}\n) })`],
    [`(() => {\n${source}\n})`, `'use strict';\n{\n${source}\n}`],
    [`(() => {\n${source}\n})`, `(() => { 'use strict';\n${source}\n})`],
  ];
  let failure;
  for (const [check, text] of attempts) {
    try {
      new vm.Script(check);
      return [new vm.Script(text), text.startsWith('(() =>')];
    } catch (error) { failure = error; }
  }
  throw failure;
};
const record = (source, show) => {
  const context = vm.createContext({ DATA: JSON.stringify(data) });
  new vm.Script(SETUP).runInContext(context);
  try {
    const [script, isFunction] = compile(source);
    let value = script.runInContext(context);
    if (isFunction) value = value();
    return context[show](value);
  } catch (error) {
    return 'error:' + (typeof error?.name === 'string' ? error.name : 'thrown');
  }
};
console.log(JSON.stringify(sources.map((source) => [source, record(source, '__show'), record(source, '__truth')])));
"""


def main() -> int:
    """Write the results, one expression a line."""
    asked = json.dumps({"sources": [*picked(), *grown()], "data": DATA})
    done = subprocess.run(["node", "-e", RECORDER], input=asked, capture_output=True, text=True, check=True)
    lines = [json.dumps(entry, ensure_ascii=True) for entry in json.loads(done.stdout)]
    RESULTS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
