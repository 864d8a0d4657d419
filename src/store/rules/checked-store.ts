import { withCaller } from '../../core/async/promises.ts';
import { invalid, isWaymarkError, type Status, WaymarkError } from '../../core/error.ts';
import {
  checkId,
  checkLookup,
  checkScope,
  checkSessionId,
  checkSnapshotId,
  fitsLookup,
} from '../../protocol/ids.ts';
import { checkMessagePage, type MessageOptions } from '../../protocol/message-page.ts';
import type {
  ClaimRequest,
  CommitWrite,
  ExpectHead,
  FileHolder,
  FilePlace,
  Lookup,
  RunRef,
  RunSupport,
  Scope,
  SessionChange,
  SessionFilter,
  SnapshotStore,
  SteeringMessage,
  Store,
  TimelineSupport,
} from '../contract/store.ts';
import { runningOf } from './errors.ts';
import { withFiles } from './exported-files.ts';
import { withMemory } from './exported-memory.ts';
import { checkPolicy } from './retention.ts';
import { checkQuery } from './session-filter.ts';
import { checkLabel, checkTitle } from './size-limits.ts';

/** A check of the argument at its place, which throws. */
type Check = (value: never) => void;

type Calls<Target> = {
  readonly [Name in keyof Required<Target> as Required<Target>[Name] extends (
    ...args: never[]
  ) => unknown
    ? Name
    : never]: readonly Check[];
};
type Capability =
  | 'runs'
  | 'abort'
  | 'events'
  | 'timeline'
  | 'maintenance'
  | 'spend'
  | 'files'
  | 'memory'
  | 'effects';

function scope(value: Scope): void {
  checkId(value?.agent, 'an agent name');
  if (value.owner !== undefined) checkId(value.owner, 'an owner');
}

/** A scope in which something is created. */
function newScope(value: Scope): void {
  scope(value);
  checkScope(value);
}

function ownerIfGiven(owner: string | undefined): void {
  if (owner !== undefined) checkId(owner, 'an owner');
}

function scopeIfGiven(value: Scope | undefined): void {
  if (value !== undefined) scope(value);
}

const snapshot: Check = (id) => checkId(id, 'a snapshot id');
const session: Check = (id) => checkId(id, 'a session id');
const runId: Check = (id) => checkId(id, 'a run id');
const anything: Check = () => {};
const messages: Check = (options: MessageOptions | undefined) =>
  checkMessagePage(options?.messages);

function run(value: RunRef): void {
  checkId(value?.runId, 'a run id');
}

function expecting(options: ExpectHead | undefined): void {
  if (options?.expectHead !== undefined) checkId(options.expectHead, 'a snapshot id');
}

function claim({ runId: id, sessionId, from, expectHead }: ClaimRequest): void {
  checkId(id, 'a run id');
  checkId(sessionId, 'a session id');
  if (from !== 'head' && from !== null) checkId(from?.snapshotId, 'a snapshot id');
  if (expectHead !== undefined && expectHead !== null) checkId(expectHead, 'a snapshot id');
  checkSessionId(sessionId);
  checkSnapshotId(id);
}

function write({ snapshotId, parentId, defaultTitle }: CommitWrite): void {
  checkId(snapshotId, 'a snapshot id');
  if (parentId !== undefined) checkId(parentId, 'a snapshot id');
  if (defaultTitle !== undefined) checkTitle(defaultTitle);
}

function change({ title, defaultTitle }: SessionChange): void {
  for (const text of [title, defaultTitle])
    if (text !== undefined && text !== null) checkTitle(text);
}

function label(text: unknown): void {
  if (text !== null) checkLabel(text);
}

function importOptions(options: { readonly sessionId?: unknown } | undefined): void {
  const { sessionId } = options ?? {};
  if (sessionId === undefined) return;
  checkId(sessionId, 'a session id');
  checkSessionId(sessionId);
}

function taken({ runIds }: Parameters<RunSupport['takeOver']>[0]): void {
  for (const id of runIds ?? []) checkId(id, 'a run id');
}

function message(value: SteeringMessage): void {
  checkId(value?.id, 'the id of a message');
}

function target(value: Parameters<TimelineSupport['fork']>[2]): void {
  checkId(value?.sessionId, 'a session id');
  checkId(value.snapshotId, 'a snapshot id');
  expecting(value);
}

function holder(value: FileHolder): void {
  scope(value?.scope);
  if (value.run !== undefined) run(value.run);
}

function place(value: FilePlace): void {
  scope(value?.scope);
  checkId(value.sessionId, 'a session id');
  if (value.runId !== undefined) checkId(value.runId, 'a run id');
}

function hash(given: unknown): void {
  if (isHash(given)) return;
  throw invalid('The hash of a file must be a SHA-256 in lower-case hex.');
}

function effectKey(given: unknown): void {
  if (isHash(given)) return;
  throw invalid('The key of an effect must be a SHA-256 in lower-case hex.');
}

function isHash(given: unknown): boolean {
  return typeof given === 'string' && /^[0-9a-f]{64}$/.test(given);
}

const ownCalls: Calls<Omit<Store, Capability>> = {
  open: [],
  close: [],
  getSnapshot: [scope, anything, messages],
  saveSnapshot: [scope, snapshot],
};

/** The checks of each call of a capability. A name that is missing here does not compile. */
const capabilityCalls: { readonly [Name in Capability]: Calls<Required<Store>[Name]> } = {
  runs: {
    claim: [newScope, claim],
    load: [scope],
    heartbeat: [run],
    detach: [run],
    checkpoint: [run],
    commit: [run, write],
    release: [run],
    replaceReceipt: [],
    getRequest: [],
    handOver: [run],
    attachPartial: [run],
    getStep: [run],
    saveStep: [run],
    takeOver: [taken],
    steer: [scope, snapshot, message],
    readInbox: [run],
    readLeftInbox: [scope, session],
    getRun: [scope, snapshot],
    listRuns: [scopeIfGiven],
    listDeadRuns: [scopeIfGiven],
    dropDeadRun: [scope, snapshot],
  },
  abort: { abortSnapshot: [scope, snapshot], onChange: [snapshot] },
  events: { append: [run], read: [scope, snapshot], onEvents: [runId] },
  timeline: {
    getSession: [scope, session, messages],
    listSessions: [scope, (options: SessionFilter | undefined) => checkQuery(options?.query)],
    listOwners: [],
    updateSession: [scope, session, change],
    deleteSession: [scope, session],
    listSnapshots: [scope, session],
    restore: [scope, snapshot, expecting],
    fork: [scope, snapshot, target],
    label: [scope, snapshot, label, expecting],
  },
  maintenance: {
    prune: [checkPolicy, scopeIfGiven],
    eraseOwner: [(owner) => checkId(owner, 'an owner')],
    verify: [],
    exportSession: [scope, session],
    importSession: [newScope, anything, importOptions],
  },
  spend: { add: [], reserve: [], total: [], sums: [] },
  files: {
    write: [holder],
    open: [place, hash],
    writeTree: [holder],
    readTree: [place, (hashes: readonly unknown[]) => hashes.forEach(hash)],
  },
  memory: {
    read: [],
    add: [],
    remove: [],
    session: [scope, session],
    note: [ownerIfGiven, snapshot],
    heads: [],
    exportSession: [scope, session],
    importSession: [scope, session],
  },
  effects: { save: [run, effectKey], list: [scope, session], markUndone: [run, effectKey] },
};

/** Calls that return no promise, so that a failed check throws. */
const listeners: ReadonlySet<string> = new Set(['abort.onChange', 'events.onEvents']);

/** Calls that a run can be in the way of. */
const refusable: ReadonlySet<string> = new Set([
  'saveSnapshot',
  'runs.claim',
  'timeline.deleteSession',
  'timeline.restore',
]);

/** Calls with a lookup, and the session of what they find. */
const lookups: Readonly<Record<string, (found: never) => string>> = {
  getSnapshot: (found: { readonly sessionId: string }) => found.sessionId,
  'runs.load': (found: { readonly snapshot: { readonly sessionId: string } }) =>
    found.snapshot.sessionId,
};

/** Calls that run code of the caller, whose errors pass as they are: callbacks, signals, streams. */
const callersErrors = /^(saveSnapshot|maintenance\..*|files\.write)$/;

/** A store that answers with one of these has decided. Anything else may have kept it from writing. */
const decided: ReadonlySet<Status> = new Set([
  'ABORTED',
  'NOT_FOUND',
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
]);

/** Number of runs with an owed release that are remembered. Their claims expire by themselves. */
const maxOwed = 1000;

const wrapped = new WeakMap<object, object>();

type Method = (...args: readonly unknown[]) => unknown;

/**
 * The one wrapper around a store, also around one that users write:
 *
 * - An argument that is no id is `INVALID_ARGUMENT`, and a lookup with both ids finds the snapshot only in that session. Beneath, a
 *   lookup has exactly one id.
 * - A second `close` waits for the first one.
 * - A run whose release could not be written, for example because the disk was full, is over for this process: when it is in the way
 *   of a call, it is released first.
 * - Exported sessions have their files.
 * - An unexpected error says which call failed: the caller of a turn should see what was not written, and a driver's own text
 *   is nothing for a client.
 */
export function checkedStore<S extends Store | SnapshotStore>(store: S): S {
  const known = wrapped.get(store);
  // Only this function adds entries, keyed by the store that they wrap.
  if (known !== undefined) return known as S;
  const owed = new OwedReleases(store);
  const copy = wrapCalls(store, ownCalls, '', owed);
  for (const [name, calls] of Object.entries(capabilityCalls)) {
    const capability: unknown = Reflect.get(store, name);
    if (typeof capability !== 'object' || capability === null) continue;
    copy[name] = wrapCalls(capability, calls, `${name}.`, owed);
  }
  const { maintenance, files, memory, timeline } = copy as Partial<Store>;
  if (maintenance !== undefined) {
    const complete = withMemory(withFiles({ ...maintenance }, files), { memory, timeline });
    Object.assign(maintenance, complete);
  }
  wrapped.set(store, copy);
  wrapped.set(copy, copy);
  return copy as S;
}

/** A copy of an object, which may be an instance of a class, with its calls wrapped. */
function wrapCalls(
  target: object,
  calls: Readonly<Record<string, readonly Check[]>>,
  prefix: string,
  owed: OwedReleases,
): Record<string, unknown> {
  const copy: Record<string, unknown> = { ...target };
  for (const name of ['name', 'encrypted', 'transactional']) {
    if (name in target) copy[name] = Reflect.get(target, name);
  }
  for (const [name, checks] of Object.entries(calls)) {
    const method: unknown = Reflect.get(target, name);
    if (typeof method !== 'function') continue;
    copy[name] = wrapCall(method.bind(target), checks, `${prefix}${name}`, owed);
  }
  return copy;
}

function wrapCall(
  method: Method,
  checks: readonly Check[],
  path: string,
  owed: OwedReleases,
): Method {
  const check = (args: readonly unknown[]): void => {
    for (let at = 0; at < checks.length; at++) checks[at]?.(args[at] as never);
  };
  if (path === 'close') return once(method);
  if (listeners.has(path)) {
    return (...args) => {
      check(args);
      return method(...args);
    };
  }
  const sessionOf = lookups[path];
  const call = sessionOf === undefined ? method : finding(method, sessionOf);
  return async (...args) => {
    check(args);
    try {
      return await call(...args);
    } catch (error) {
      if (refusable.has(path) && (await owed.settle(error))) return call(...args);
      if (path === 'runs.release') owed.note(args[0] as RunRef, error);
      const known =
        isWaymarkError(error) || callersErrors.test(path) ? error : failedIn(path, error);
      // Opening a driver is deep: the frames of the caller are not among those that engines keep.
      throw path === 'open' ? withCaller(known) : known;
    }
  };
}

function once(method: Method): Method {
  let result: unknown;
  return () => {
    result ??= method();
    return result;
  };
}

/** Reads by one id, and leaves out what is of another session than the one asked for. */
function finding(read: Method, sessionOf: (found: never) => string): Method {
  return async (within, given, options) => {
    const lookup = checkLookup(given as Lookup);
    if (!('snapshotId' in lookup)) return read(within, lookup, options);
    const found = await read(within, { snapshotId: lookup.snapshotId }, options);
    return found !== undefined && fitsLookup(lookup, sessionOf(found as never)) ? found : undefined;
  };
}

function failedIn(call: string, cause: unknown): WaymarkError {
  return new WaymarkError(
    'INTERNAL',
    `The store failed in ${call}. See the cause in the server's log.`,
    { cause, details: { storeCall: call } },
  );
}

/** Runs whose release could not be written. */
class OwedReleases {
  readonly #store: Partial<Store>;
  readonly #owed = new Map<string, RunRef>();

  constructor(store: Partial<Store>) {
    this.#store = store;
  }

  /** Remembers a run whose release failed, unless the store has refused it. */
  note(ref: RunRef, error: unknown): void {
    if (isDecided(error)) return;
    this.#owed.set(ref.runId, ref);
    const [oldest] = this.#owed.keys();
    if (this.#owed.size > maxOwed && oldest !== undefined) this.#owed.delete(oldest);
  }

  /** Releases the run that was in the way of a call, if that is owed. Returns whether the call can be made again. */
  async settle(refusal: unknown): Promise<boolean> {
    const ref = this.#owed.get(runningOf(refusal) ?? '');
    if (ref === undefined) return false;
    try {
      await this.#store.runs?.release(ref);
    } catch (error) {
      // It was released after all, or another worker has it.
      if (!isDecided(error)) throw isWaymarkError(error) ? error : failedIn('runs.release', error);
    }
    return this.#owed.delete(ref.runId);
  }
}

function isDecided(error: unknown): boolean {
  return isWaymarkError(error) && decided.has(error.status);
}
