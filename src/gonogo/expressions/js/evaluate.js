// Runs one compiled expression and turns what comes out into a short text for the host: `t` or `f` for a
// condition that changed and logged nothing, else JSON: {v} value, {u} undefined, {e} error, {n} data needed;
// {m} memory, {l} logs. The three other scripts are handed in by the host, never found through a global.
(lockdown, makeHelpers, makeMirror, resultCharactersMaxText) => {
  'use strict';
  const { apply } = Reflect;
  const resultCharactersMax = Number(resultCharactersMaxText);
  let evaluation = null;
  const current = () => evaluation;

  class Unusable extends Error {}
  const refused = (message) => { throw new Unusable(message); };

  const unusable = (value) => {
    switch (typeof value) {
      case 'function': return 'the result is a function; call it, as in always()';
      case 'symbol': return 'the result is a symbol, which is no data';
      case 'bigint': return 'the result is a BigInt, which is no JSON; use Number(…) or String(…)';
      case 'number': return Number.isFinite(value) ? null : `the result is or holds ${value}, which is no JSON`;
      case 'object': break;
      default: return null;
    }
    if (value instanceof Promise) return 'the result is a promise; nothing is awaited in an expression';
    if (value instanceof Map) return 'the result is or holds a Map; use Object.fromEntries(…)';
    if (value instanceof Set) return 'the result is or holds a Set; use [...set]';
    return null;
  };

  const check = (key, value) => {
    if (typeof value === 'function' || typeof value === 'symbol') return undefined;
    const problem = unusable(value);
    return problem === null ? value : refused(problem);
  };

  const json = (value) => {
    const problem = unusable(value);
    if (problem !== null) refused(problem);
    let text;
    try {
      text = JSON.stringify(value, check);
    } catch (error) {
      if (error instanceof TypeError && String(error.message).includes('circular')) {
        refused('the result refers to itself, which is no JSON');
      }
      throw error;
    }
    if (text === undefined) return 'null';
    if (text.length > resultCharactersMax) refused(`expected a result of at most ${resultCharactersMax} characters`);
    return text;
  };

  const described = (error) => {
    try {
      if (error instanceof Unusable) return ['Unusable', error.message, ''];
      if (error instanceof Error) {
        return [error.name, error.message, error.stack].map((part) => String(part).slice(0, 2000));
      }
      return ['thrown', (typeof error === 'object' ? json(error) : String(error)).slice(0, 2000), ''];
    } catch {
      return ['thrown', 'the expression threw something that has no text', ''];
    }
  };

  const settled = (value) => {
    if (evaluation.kind === 'condition') {
      if (typeof value === 'number' || typeof value === 'bigint') return value ? 't' : 'f';
      const problem = unusable(value);
      if (problem !== null) refused(problem);
      return value ? 't' : 'f';
    }
    if (value === undefined) return '{"u":1}';
    if (value === 0 && 1 / value < 0) return '{"v":-0.0}';
    return `{"v":${json(value)}}`;
  };

  const withEffects = (result) => {
    const { ops, logs } = evaluation;
    const body = result === 't' ? '"v":true' : result === 'f' ? '"v":false' : result.slice(1, -1);
    return `{${body},"m":${JSON.stringify(ops)},"l":${JSON.stringify(logs)}}`;
  };

  const NOTHING = { names: [] };
  const mirror = makeMirror(current);
  makeHelpers(current);
  lockdown();

  const run = (compiled, kind, specText) => {
    const spec = specText === '' ? NOTHING : JSON.parse(specText);
    evaluation = {
      kind, spec, needs: [], ops: [], logs: [], history: undefined, status: null, association: null, json,
    };
    let result;
    try {
      if (spec.status !== undefined) evaluation.status = mirror.at(spec.status);
      if (spec.association !== undefined) evaluation.association = mirror.at(spec.association);
      result = settled(apply(compiled, undefined, mirror.args(spec)));
    } catch (error) {
      result = `{"e":${JSON.stringify(described(error))}}`;
    }
    if (evaluation.needs.length > 0) return JSON.stringify({ n: evaluation.needs });
    return evaluation.ops.length === 0 && evaluation.logs.length === 0 ? result : withEffects(result);
  };

  const table = { run, put: mirror.put, putEvent: mirror.putEvent, drop: mirror.drop };
  return (name) => table[name];
}
