// The helper functions every expression may call. What depends on the evaluation is read from `current()`:
// `status` {success, failure}, `association` (text or null) and `logs`. Data names are left to mirror.js.
(current) => {
  'use strict';
  const text = (value) => (value === null || value === undefined ? '' : String(value).toLowerCase());
  const isList = Array.isArray;
  const LOG_LINES_MAX = 200;
  const LOG_CHARACTERS_MAX = 4000;

  const asLine = (part) => {
    if (typeof part === 'string') return part;
    if (typeof part !== 'object' || part === null) return String(part);
    try { return JSON.stringify(part) ?? String(part); } catch { return '[not shown: no JSON]'; }
  };

  const RANKS = ['NONE', 'FIRST_TIMER', 'FIRST_TIME_CONTRIBUTOR', 'CONTRIBUTOR', 'COLLABORATOR', 'MEMBER', 'OWNER'];
  const rank = (association) => (typeof association === 'string' ? RANKS.indexOf(association.toUpperCase()) : -1);
  const atLeast = (level) => {
    const wanted = rank(level);
    const had = rank(current().association);
    return wanted >= 0 && had >= 0 && had >= wanted;
  };

  const matchesField = (field, value) => (entry) => entry !== null && entry !== undefined && entry[field] === value;
  const fileContains = (part) => (entry) => {
    const name = typeof entry === 'string' ? entry : entry?.file ?? entry?.filename;
    return typeof name === 'string' && name.includes(String(part));
  };

  const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' };

  const helpers = {
    contains: (where, what) => (isList(where)
      ? where.some((entry) => entry === what || (typeof entry === 'string' && text(entry) === text(what)))
      : text(where).includes(text(what))),
    startsWith: (where, what) => text(where).startsWith(text(what)),
    endsWith: (where, what) => text(where).endsWith(text(what)),
    length: (value) => {
      if (typeof value === 'string' || isList(value)) return value.length;
      return typeof value === 'object' && value !== null ? Object.keys(value).length : 0;
    },
    always: () => true,
    success: () => current().status?.success ?? true,
    failure: () => current().status?.failure ?? false,
    hasIssue: (list, field, value) => isList(list) && list.some(matchesField(field, value)),
    countIssues: (list, field, value) => (isList(list) ? list.filter(matchesField(field, value)).length : 0),
    hasFileMatching: (list, part) => isList(list) && list.some(fileContains(part)),
    any: (list, test) => isList(list) && list.some((entry) => test(entry)),
    all: (list, test) => isList(list) && list.every((entry) => test(entry)),
    none: (list, test) => isList(list) && !list.some((entry) => test(entry)),
    count: (list, test) => (isList(list) ? list.filter((entry) => test(entry)).length : 0),
    hasMinPermission: (level) => atLeast(level),
    isOwner: () => atLeast('OWNER'),
    isMember: () => atLeast('MEMBER'),
    isCollaborator: () => atLeast('COLLABORATOR'),
    isContributor: () => atLeast('CONTRIBUTOR'),
    isFirstTimer: () => ['FIRST_TIMER', 'FIRST_TIME_CONTRIBUTOR'].includes(RANKS[rank(current().association)]),
    log: (...parts) => {
      const { logs } = current();
      if (logs.length < LOG_LINES_MAX) logs.push(parts.map(asLine).join(' ').slice(0, LOG_CHARACTERS_MAX));
    },
    escapeXml: (value) => String(value ?? '').replace(/[&<>"']/g, (found) => ENTITIES[found]),
    btoa: globalThis.btoa,
    atob: globalThis.atob,
  };
  for (const name of Object.keys(helpers)) {
    Object.defineProperty(globalThis, name, { value: helpers[name], enumerable: false });
  }
}
