// Host data inside the engine: a table of frozen values, read-only views that are filled when read, memory,
// and the throw-away copies that scripts get. `current()` is the evaluation under way.
(current) => {
  'use strict';
  const values = new Map();
  const hasOwn = Object.hasOwn;
  const WRITERS = ['set', 'append', 'increment', 'delete', 'clear'];

  const freeze = (value) => {
    if (typeof value !== 'object' || value === null) return value;
    const pending = [value];
    while (pending.length > 0) {
      const holder = Object.freeze(pending.pop());
      for (const key of Object.keys(holder)) {
        const inner = holder[key];
        if (typeof inner === 'object' && inner !== null) pending.push(inner);
      }
    }
    return value;
  };

  // `event` compares equal to its name: `event == 'pr_opened'` (engine spec B.3 D).
  const eventPrototype = Object.create(Object.prototype, {
    toString: { value() { return String(this.name); } },
    valueOf: { value() { return String(this.name); } },
  });
  const asEvent = (value) => {
    if (value === null) return null;
    const given = typeof value === 'object' ? value : { name: value };
    const name = given.name ?? given.event_name ?? null;
    return Object.assign(Object.create(eventPrototype), given, { name, event_name: given.event_name ?? name });
  };

  const put = (slot, json) => { values.set(slot, freeze(JSON.parse(json))); };
  const putEvent = (slot, json) => { values.set(slot, freeze(asEvent(JSON.parse(json)))); };
  const drop = (slot) => { values.delete(slot); };

  // JSON data only, so no cycles; the depth is bounded by what JSON.parse took.
  const copy = (value) => {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map(copy);
    const made = Object.create(Object.getPrototypeOf(value));
    for (const key of Object.keys(value)) {
      const inner = copy(value[key]);
      Object.defineProperty(made, key, { value: inner, writable: true, enumerable: true, configurable: true });
    }
    return made;
  };

  const at = (slot) => {
    const value = values.get(String(slot));
    return current().kind === 'script' ? copy(value) : value;
  };

  // Missing data is noted for the host, which sends it and runs the expression again; a `catch` can't hide
  // the note.
  const need = (view, key) => {
    current().needs.push([view, key]);
    throw new Error('waiting for data');
  };

  // A view is a proxy over its own state. `given` maps keys to slots (0: no such key); `keys` lists all keys,
  // or is null when that wasn't asked for yet; `filled` holds what was read or, by a script, written
  // (undefined: deleted).
  const present = (state, key) => {
    if (key in state.filled) return state.filled[key] !== undefined;
    if (hasOwn(state.given, key)) return state.given[key] !== 0;
    return state.keys === null ? need(state.name, key) : state.keys.includes(key);
  };
  const readEntry = (state, key) => {
    const slot = hasOwn(state.given, key) ? state.given[key] : null;
    if (slot === null && (state.keys === null || state.keys.includes(key))) need(state.name, key);
    if (slot === null || slot === 0) return undefined;
    const value = at(slot);
    state.filled[key] = value;
    return value;
  };
  const writeEntry = (state, key, value) => {
    if (current().kind !== 'script') throw new TypeError(`'${state.name}' is read-only`);
    state.filled[key] = value;
    return true;
  };
  const VIEW = {
    get(state, key) {
      if (typeof key === 'symbol') return undefined;
      if (key in state.filled) return state.filled[key];
      if (key === 'history' && state.name === 'outputs') return history();
      if (key === 'hasOwnProperty') return Object.prototype.hasOwnProperty;
      return readEntry(state, key);
    },
    has: (state, key) => typeof key === 'string' && present(state, key),
    ownKeys(state) {
      const all = state.keys ?? need(state.name, null);
      const added = Object.keys(state.filled).filter((key) => !all.includes(key));
      return [...all, ...added].filter((key) => state.filled[key] !== undefined || !(key in state.filled));
    },
    // Must not read: Object.keys asks for every descriptor and would pull everything over.
    getOwnPropertyDescriptor: (state, key) => (typeof key === 'string' && present(state, key)
      ? { value: undefined, writable: true, enumerable: true, configurable: true } : undefined),
    set: (state, key, value) => writeEntry(state, key, value),
    deleteProperty: (state, key) => writeEntry(state, key, undefined),
    defineProperty: (state, key, found) => writeEntry(state, key, found.value),
    getPrototypeOf: () => Object.prototype,
    setPrototypeOf: () => false,
    preventExtensions: () => false,
  };
  const view = (name, { given, keys }) => new Proxy({ name, given, keys, filled: Object.create(null) }, VIEW);

  const memory = ({ given, keys, namespace }) => {
    const changed = new Map();
    let cleared = false;
    const stored = (space) => {
      if (cleared) return null;
      if (hasOwn(given, space)) return given[space] === 0 ? null : values.get(String(given[space]));
      if (keys !== null && !keys.includes(space)) return null;
      return need('memory', space);
    };
    const entries = (space) => changed.get(space) ?? stored(space) ?? {};
    const get = (space, key) => (hasOwn(entries(space), key) ? entries(space)[key] : undefined);
    const shown = (value) => (current().kind === 'script' ? copy(value) : value);
    const plain = (value) => (value === undefined ? null : freeze(JSON.parse(current().json(value))));
    const record = (op, key, value, space) => {
      if (current().ops.length >= 10000) throw new RangeError('expected at most 10000 memory changes in an evaluation');
      current().ops.push({ op, key, value, namespace: space });
    };
    const change = (space, edit) => {
      const next = Object.assign(Object.create(null), entries(space));
      edit(next);
      changed.set(space, Object.freeze(next));
    };
    const name = (space) => (space === undefined || space === null ? namespace : String(space));
    const number = (value, what) => {
      if (typeof value !== 'number' || !Number.isFinite(value)) throw new TypeError(`expected a number ${what}`);
      return value;
    };
    const api = {
      get: (key, space) => shown(get(name(space), String(key))),
      has: (key, space) => hasOwn(entries(name(space)), String(key)),
      list: (space) => Object.keys(entries(name(space))),
      getAll: (space) => shown(Object.assign({}, entries(name(space)))),
      set(key, value, space) {
        const kept = plain(value);
        change(name(space), (next) => { next[String(key)] = kept; });
        record('set', String(key), kept, name(space));
        return value;
      },
      append(key, value, space) {
        const kept = plain(value);
        const had = get(name(space), String(key));
        const list = had === undefined ? [kept] : [...(Array.isArray(had) ? had : [had]), kept];
        change(name(space), (next) => { next[String(key)] = Object.freeze(list); });
        record('append', String(key), kept, name(space));
        return shown(list);
      },
      increment(key, amount = 1, space = undefined) {
        const had = get(name(space), String(key));
        const sum = number(had ?? 0, `in memory under '${key}'`) + number(amount, 'to add');
        change(name(space), (next) => { next[String(key)] = sum; });
        record('increment', String(key), amount, name(space));
        return sum;
      },
      delete(key, space) {
        const had = hasOwn(entries(name(space)), String(key));
        change(name(space), (next) => { delete next[String(key)]; });
        record('delete', String(key), null, name(space));
        return had;
      },
      clear(space) {
        const one = space === undefined || space === null ? null : String(space);
        if (one === null) {
          cleared = true;
          changed.clear();
        } else {
          changed.set(one, {});
        }
        record('clear', null, null, one);
      },
    };
    if (current().kind === 'condition') {
      for (const key of WRITERS) {
        api[key] = () => { throw new TypeError(`memory.${key} is not available: memory is read-only in conditions`); };
      }
    }
    return Object.freeze(api);
  };

  // One argument: a slot number, null, or [name, content] for a view.
  const argument = (spec) => {
    if (spec === null) return null;
    if (typeof spec === 'number') return at(spec);
    const made = spec[0] === 'memory' ? memory(spec[1]) : view(spec[0], spec[1]);
    if (spec[0] === 'outputs_history') current().history = made;
    return made;
  };

  // `outputs.history` is `outputs_history`, sent only when it is read (engine spec B.5).
  const history = () => {
    const { history: made, spec } = current();
    if (made !== undefined) return made;
    return spec.history === undefined ? need('history', null) : argument(spec.history);
  };

  const args = ({ names }) => {
    const made = [];
    for (let index = 0; index < names.length; index += 1) made[index] = argument(names[index]);
    return made;
  };

  return { put, putEvent, drop, at, args };
}
