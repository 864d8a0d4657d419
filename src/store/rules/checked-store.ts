import { WaymarkError } from '../../core/error.ts';
import { checkId, checkLookup, fitsLookup } from '../../protocol/ids.ts';
import { checkMessagePage, type MessageOptions } from '../../protocol/message-page.ts';
import type {
  AbortSupport,
  ClaimRequest,
  CommitWrite,
  EventSupport,
  ExpectHead,
  FileHolder,
  FilePlace,
  FileSupport,
  Lookup,
  MaintenanceSupport,
  RunRef,
  RunSupport,
  Scope,
  SessionFilter,
  SnapshotStore,
  SteeringMessage,
  Store,
  TimelineSupport,
} from '../contract/store.ts';
import { withFiles } from './exported-files.ts';
import { OwedReleases } from './owed-releases.ts';
import { checkQuery } from './session-filter.ts';

/**
 * The store with its ids checked: what is not a string is `INVALID_ARGUMENT` in every call that takes an id, and a lookup
 * with both ids finds the snapshot only in that session. A second `close` waits for the first one. A run whose release could
 * not be written holds nothing up. Every store of ours passes its calls through here, so that they agree. Beneath, a lookup has
 * exactly one id.
 */
export function checkedStore<S extends Store>(store: S): S {
  const { runs, abort, events, timeline, maintenance, files, close } = store;
  let closing: Promise<void> | undefined;
  const owed = new OwedReleases(runs?.release ?? (() => Promise.resolve()));
  return {
    ...store,
    ...snapshots(store, owed),
    ...(close && {
      close() {
        closing ??= close();
        return closing;
      },
    }),
    ...(runs && { runs: checkedRuns(runs, owed) }),
    ...(abort && { abort: checkedAbort(abort) }),
    ...(events && { events: checkedEvents(events) }),
    ...(timeline && { timeline: checkedTimeline(timeline, owed) }),
    ...(maintenance && { maintenance: checkedMaintenance(maintenance, files) }),
    ...(files && { files: checkedFiles(files) }),
  };
}

type Check = (value: never) => void;

/** The same method, which rejects when one of its arguments fails the check at its place. */
function guard<Args extends readonly unknown[], Result>(
  method: (...args: Args) => Promise<Result>,
  ...checks: readonly Check[]
): (...args: Args) => Promise<Result> {
  return (...args) => {
    try {
      for (let place = 0; place < checks.length; place++) checks[place]?.(args[place] as never);
    } catch (error) {
      return Promise.reject(error);
    }
    return method(...args);
  };
}

function scope(value: Scope): void {
  checkId(value?.agent, 'an agent name');
  if (value.owner !== undefined) checkId(value.owner, 'an owner');
}

function scopeIfGiven(value: Scope | undefined): void {
  if (value !== undefined) scope(value);
}

const snapshot: Check = (id) => checkId(id, 'a snapshot id');
const session: Check = (id) => checkId(id, 'a session id');
const anything: Check = () => {};

function run(value: RunRef): void {
  checkId(value?.runId, 'a run id');
}

function request({ runId, sessionId, from, expectHead }: ClaimRequest): void {
  checkId(runId, 'a run id');
  checkId(sessionId, 'a session id');
  if (from !== 'head' && from !== null) checkId(from?.snapshotId, 'a snapshot id');
  headIfGiven(expectHead);
}

function headIfGiven(id: string | null | undefined): void {
  if (id !== undefined && id !== null) checkId(id, 'a snapshot id');
}

function expecting(options: ExpectHead | undefined): void {
  if (options?.expectHead !== undefined) checkId(options.expectHead, 'a snapshot id');
}

function steering(message: SteeringMessage): void {
  checkId(message?.id, 'the id of a message');
}

function write({ snapshotId, parentId }: CommitWrite): void {
  checkId(snapshotId, 'a snapshot id');
  if (parentId !== undefined) checkId(parentId, 'a snapshot id');
}

const messages = (options: MessageOptions | undefined): void => checkMessagePage(options?.messages);

/** Reads by one id, and leaves out what is of another session than the one asked for. */
function finding<Found>(
  read: (scope: Scope, lookup: Lookup, options?: MessageOptions) => Promise<Found | undefined>,
  sessionOf: (found: Found) => string,
): (scope: Scope, lookup: Lookup, options?: MessageOptions) => Promise<Found | undefined> {
  return async (within, given, options) => {
    scope(within);
    messages(options);
    const lookup = checkLookup(given);
    if (!('snapshotId' in lookup)) return read(within, lookup, options);
    const found = await read(within, { snapshotId: lookup.snapshotId }, options);
    return found !== undefined && fitsLookup(lookup, sessionOf(found)) ? found : undefined;
  };
}

function snapshots(
  store: SnapshotStore,
  owed: OwedReleases,
): Pick<SnapshotStore, 'getSnapshot' | 'saveSnapshot'> {
  return {
    getSnapshot: finding(store.getSnapshot, ({ sessionId }) => sessionId),
    saveSnapshot: guard(owed.freeing(store.saveSnapshot), scope, snapshot),
  };
}

function checkedRuns(runs: RunSupport, owed: OwedReleases): RunSupport {
  return {
    ...runs,
    claim: guard(owed.freeing(runs.claim), scope, request),
    load: finding(runs.load, (found) => found.snapshot.sessionId),
    heartbeat: guard(runs.heartbeat, run),
    detach: guard(runs.detach, run),
    checkpoint: guard(runs.checkpoint, run),
    commit: guard(runs.commit, run, write),
    release: guard(owed.release, run),
    handOver: guard(runs.handOver, run),
    attachPartial: guard(runs.attachPartial, run),
    getStep: guard(runs.getStep, run),
    saveStep: guard(runs.saveStep, run),
    takeOver: guard(runs.takeOver, ({ runIds }: Parameters<RunSupport['takeOver']>[0]) => {
      for (const id of runIds ?? []) checkId(id, 'a run id');
    }),
    ...(runs.readLeftInbox && { readLeftInbox: guard(runs.readLeftInbox, scope, session) }),
    ...(runs.steer && { steer: guard(runs.steer, scope, snapshot, steering) }),
    ...(runs.readInbox && { readInbox: guard(runs.readInbox, run) }),
    getRun: guard(runs.getRun, scope, snapshot),
    listRuns: guard(runs.listRuns, scopeIfGiven),
    ...(runs.listDeadRuns && { listDeadRuns: guard(runs.listDeadRuns, scopeIfGiven) }),
    ...(runs.dropDeadRun && { dropDeadRun: guard(runs.dropDeadRun, scope, snapshot) }),
  };
}

function checkedAbort(abort: AbortSupport): AbortSupport {
  return {
    ...abort,
    abortSnapshot: guard(abort.abortSnapshot, scope, snapshot),
    onChange(id, listener) {
      checkId(id, 'a snapshot id');
      return abort.onChange(id, listener);
    },
  };
}

function checkedEvents(events: EventSupport): EventSupport {
  return {
    ...events,
    append: guard(events.append, run),
    read: guard(events.read, scope, snapshot),
    onEvents(id, listener) {
      checkId(id, 'a run id');
      return events.onEvents(id, listener);
    },
  };
}

const query = (options: SessionFilter | undefined): void => checkQuery(options?.query);

function checkedTimeline(timeline: TimelineSupport, owed: OwedReleases): TimelineSupport {
  return {
    ...timeline,
    getSession: guard(timeline.getSession, scope, session, messages),
    listSessions: guard(timeline.listSessions, scope, query),
    updateSession: guard(timeline.updateSession, scope, session),
    deleteSession: guard(owed.freeing(timeline.deleteSession), scope, session),
    listSnapshots: guard(timeline.listSnapshots, scope, session),
    restore: guard(owed.freeing(timeline.restore), scope, snapshot, expecting),
    fork: guard(
      timeline.fork,
      scope,
      snapshot,
      (target: Parameters<TimelineSupport['fork']>[2]) => {
        checkId(target?.sessionId, 'a session id');
        checkId(target.snapshotId, 'a snapshot id');
        expecting(target);
      },
    ),
    label: guard(timeline.label, scope, snapshot, anything, expecting),
  };
}

const hash: Check = (given) => {
  if (typeof given === 'string' && /^[0-9a-f]{64}$/.test(given)) return;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    'The hash of a file must be a SHA-256 in lower-case hex.',
  );
};

function checkedFiles(files: FileSupport): FileSupport {
  return {
    write: guard(files.write, (holder: FileHolder) => {
      scope(holder?.scope);
      if (holder.run !== undefined) run(holder.run);
    }),
    open: guard(
      files.open,
      (place: FilePlace) => {
        scope(place?.scope);
        checkId(place.sessionId, 'a session id');
        if (place.runId !== undefined) checkId(place.runId, 'a run id');
      },
      hash,
    ),
  };
}

function checkedMaintenance(
  maintenance: MaintenanceSupport,
  files: FileSupport | undefined,
): MaintenanceSupport {
  const { exportSession, importSession } = withFiles(maintenance, files);
  return {
    ...maintenance,
    prune: guard(maintenance.prune, anything, scopeIfGiven),
    eraseOwner: guard(maintenance.eraseOwner, (owner) => checkId(owner, 'an owner')),
    exportSession: guard(exportSession, scope, session),
    importSession: guard(
      importSession,
      scope,
      anything,
      (options: Parameters<MaintenanceSupport['importSession']>[2]) => {
        if (options?.sessionId !== undefined) checkId(options.sessionId, 'a session id');
      },
    ),
  };
}
