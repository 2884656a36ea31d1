// Takes away what reaches outside the sandbox, what isn't deterministic and what can't be interrupted, then
// freezes every builtin. Runs once, before any expression. Values and helpers are left to the other files.
(nowText) => {
  'use strict';
  const { apply, ownKeys, getOwnPropertyDescriptor, defineProperty, getPrototypeOf } = Reflect;

  const REMOVED = [
    'eval', 'Function', 'WeakRef', 'FinalizationRegistry', 'SharedArrayBuffer', 'Atomics', 'performance', 'console',
    'queueMicrotask', 'DOMException', 'DisposableStack', 'AsyncDisposableStack', 'SuppressedError', 'InternalError',
    'print', 'Worker', 'navigator',
  ];

  // The four function constructors compile text; their prototypes are reachable through syntax alone.
  const functionPrototypes = [
    function () {}, function* () {}, async function () {}, async function* () {},
  ].map((made) => getPrototypeOf(made));

  const refuse = (holder, key, message) => defineProperty(holder, key, {
    get() { throw new TypeError(message); },
    set(value) { own(this, key, value); },
    enumerable: false,
    configurable: false,
  });

  const own = (target, key, value) => {
    if (!defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true })) {
      throw new TypeError(`'${String(key)}' is read-only`);
    }
  };

  const replaceDate = () => {
    const Real = Date;
    const started = Number(nowText);
    const Fixed = function Date(...parts) {
      if (new.target === undefined) return new Real(started).toString();
      return Reflect.construct(Real, parts.length === 0 ? [started] : parts, new.target);
    };
    defineProperty(Fixed, 'length', { value: 7 });
    defineProperty(Fixed, 'prototype', { value: Real.prototype, writable: false });
    for (const key of ['parse', 'UTC']) {
      defineProperty(Fixed, key, { value: Real[key], writable: true, configurable: true });
    }
    defineProperty(Fixed, 'now', { value: { now() { return started; } }.now, writable: true, configurable: true });
    defineProperty(Real.prototype, 'constructor', { value: Fixed, writable: true, configurable: true });
    globalThis.Date = Fixed;
  };

  // Natives that walk `length` without asking whether time is up: on a sparse array of 4e9 they run for
  // minutes.
  const UNINTERRUPTED = [
    'at', 'with', 'concat', 'fill', 'indexOf', 'lastIndexOf', 'includes', 'join', 'toString', 'toLocaleString', 'pop',
    'push', 'shift', 'unshift', 'reverse', 'toReversed', 'sort', 'toSorted', 'slice', 'splice', 'toSpliced',
    'copyWithin', 'flat', 'flatMap', 'every', 'some', 'forEach', 'map', 'filter', 'reduce', 'reduceRight', 'find',
    'findIndex', 'findLast', 'findLastIndex',
  ];
  const LENGTH_MAX = 2 ** 24;

  const guardArrays = () => {
    for (const key of UNINTERRUPTED) {
      const native = Array.prototype[key];
      if (native === undefined) continue;
      const guarded = { [key](...parts) {
        if (this !== null && this !== undefined && this.length > LENGTH_MAX) {
          throw new RangeError('expected at most 16777216 items in an array');
        }
        return apply(native, this, parts);
      } }[key];
      defineProperty(guarded, 'length', { value: native.length });
      defineProperty(Array.prototype, key, { value: guarded, writable: true, configurable: true });
    }
  };

  // On a frozen prototype a plain assignment to an own object's `name` or `toString` would throw; accessors
  // allow it.
  const ASSIGNABLE = new Set(['toString', 'toLocaleString', 'valueOf', 'constructor', 'name', 'message', 'toJSON']);

  const allowAssignment = (holder) => {
    for (const key of ownKeys(holder)) {
      const found = getOwnPropertyDescriptor(holder, key);
      if (!ASSIGNABLE.has(key) || !('value' in found) || !found.configurable) continue;
      const { value } = found;
      defineProperty(holder, key, {
        get() { return value; },
        set(next) { own(this, key, next); },
        enumerable: found.enumerable,
        configurable: false,
      });
    }
  };

  const freezeReachable = (roots) => {
    const seen = new Set();
    const pending = [...roots];
    while (pending.length > 0) {
      const holder = pending.pop();
      if (holder === null || (typeof holder !== 'object' && typeof holder !== 'function') || seen.has(holder)) continue;
      seen.add(holder);
      pending.push(getPrototypeOf(holder));
      for (const key of ownKeys(holder)) {
        let found;
        try { found = getOwnPropertyDescriptor(holder, key); } catch { continue; }
        pending.push(found.value, found.get, found.set);
      }
    }
    seen.delete(globalThis);
    for (const holder of seen) {
      if (typeof holder !== 'function' && holder !== Math && holder !== JSON) allowAssignment(holder);
    }
    allowAssignment(functionPrototypes[0]);
    for (const holder of seen) Object.freeze(holder);
  };

  for (const name of REMOVED) delete globalThis[name];
  replaceDate();
  guardArrays();
  defineProperty(Math, 'random', {
    value: {
      random() { throw new TypeError('Math.random is not available: expressions give the same result each time'); },
    }.random,
  });
  for (const key of ['__defineGetter__', '__defineSetter__', '__lookupGetter__', '__lookupSetter__']) {
    delete Object.prototype[key];
  }
  delete Error.captureStackTrace;
  delete Error.prepareStackTrace;
  for (const prototype of functionPrototypes) {
    refuse(prototype, 'constructor', 'constructors of functions are not available');
  }
  delete functionPrototypes[0].caller;
  delete functionPrototypes[0].arguments;
  refuse(Object.prototype, '__proto__', '__proto__ is not available');

  const iterators = [
    [][Symbol.iterator](), ''[Symbol.iterator](), new Map().entries(), new Set().values(), 'a'.matchAll(/a/g),
    (function* () {})(), (async function* () {})(), Iterator.from({ next() {} }),
  ].map((made) => getPrototypeOf(made));
  return () => {
    const globals = ownKeys(globalThis).map((key) => globalThis[key]);
    freezeReachable([...globals, ...functionPrototypes, ...iterators]);
    Object.freeze(globalThis);
  };
}
