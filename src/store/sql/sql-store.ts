import { inGroups } from '../../core/async/groups.ts';
import type { WaymarkError } from '../../core/error.ts';
import { createIds } from '../../core/id.ts';
import { defined } from '../../core/json/json.ts';
import { checkOptions, type OptionNames } from '../../core/options.ts';
import { createSha256, letOthersRun } from '../../core/platform.ts';
import { systemClock } from '../../core/time.ts';
import type {
  AbortSupport,
  EventSupport,
  FileSupport,
  MaintenanceOptions,
  OpenFile,
  Store,
  TimelineSupport,
} from '../contract/store.ts';
import { checkedStore } from '../rules/checked-store.ts';
import { damagedFile, inPieces, neededPieces } from '../rules/file-pieces.ts';
import { createCipher } from './content/cipher.ts';
import { type FileHead, pieceMark, readHead, readPiece } from './content/files.ts';
import { readNodes, writeTree } from './content/nodes.ts';
import { openedDriver } from './content/opened-driver.ts';
import { finishUpload, writePiece } from './content/uploads.ts';
import type { Driver } from './database/driver.ts';
import { effectSupport } from './effects.ts';
import type { StateContext } from './history/state-rows.ts';
import { maintenanceSupport } from './maintenance-support.ts';
import { memorySupport } from './memory.ts';
import { eraseSession } from './retention/erase.ts';
import { GcScheduler } from './retention/gc-scheduler.ts';
import { runSupport } from './run-support.ts';
import { abortSnapshot } from './runs/abort.ts';
import { type AppendedEvents, appendAll, appendHeld, readEvents } from './runs/events.ts';
import { KnownRuns, type RunContext } from './runs/known-runs.ts';
import { saveSnapshot } from './sessions/save-snapshot.ts';
import { indexSome, searchesText } from './sessions/search.ts';
import { getSession, listOwners, listSessions, updateSession } from './sessions/sessions.ts';
import { fork, label, restore } from './sessions/timeline.ts';
import { listSnapshots } from './snapshots/list-snapshots.ts';
import { readSnapshot } from './snapshots/locate.ts';
import { spendSupport } from './spend.ts';
import type { SendRun, SqlContext, SqlStoreOptions } from './sql-context.ts';
import { hexOf } from './values/bytes.ts';

/** A store whose content can be encrypted again. */
export interface SqlStore extends Store {
  /**
   * Encrypts all content with the first of the given keys, in batches, while the store is in use. Returns how many rows it
   * encrypted. Afterwards the other keys are no longer needed. When it is stopped, doing it again encrypts the rest.
   */
  rotateKeys(options?: MaintenanceOptions): Promise<number>;
}

const optionNames: OptionNames<SqlStoreOptions> = {
  name: true,
  driver: true,
  encryption: true,
  eventsTtl: true,
  clock: true,
  newId: true,
};

/** A store in a SQL database, through a driver for it. */
export function sqlStore(options: SqlStoreOptions): SqlStore {
  checkOptions(options, optionNames, 'sqlStore()');
  return storeOver(options);
}

/** A way to detach runs that are handed over, together with others of the same moment. */
export type Sender = (db: Driver, state: StateContext) => SendRun;

/** The store over a database: every capability, whichever database it is. */
export function storeOver(options: SqlStoreOptions, sender?: Sender): SqlStore {
  const { name, driver, encryption, eventsTtl = 60_000 } = options;
  const { clock = systemClock, newId = createIds(clock) } = options;
  const cipher = createCipher(encryption, driver.dialect.name === 'sqlite' ? 'binary' : 'text');
  const db = openedDriver(driver, cipher);
  const parts = { db, cipher, clock, newId, eventsTtl };
  const state: RunContext = {
    get database() {
      return db.id;
    },
    cipher,
    homes: new Map(),
    known: new KnownRuns(),
  };
  const gcScheduler = new GcScheduler(parts);
  const context: SqlContext = {
    ...parts,
    state,
    gcScheduler,
    uploading: new Set(),
    send: sender?.(db, state),
  };
  const maintenance = maintenanceSupport(context);
  return checkedStore({
    name,
    encrypted: cipher.keyId !== undefined,
    ...(driver.paths && { paths: driver.paths }),
    open: () => db.open(),
    async close() {
      await gcScheduler.close();
      await db.close();
    },
    getSnapshot: (scope, lookup, options) =>
      db.read(() => readSnapshot(scope, lookup, state, options)),
    async saveSnapshot(scope, snapshotId, mutate) {
      const saved = await db.write(() => saveSnapshot(scope, snapshotId, mutate, state));
      db.tell([{ kind: 'run', id: snapshotId }]);
      gcScheduler.later();
      return saved;
    },
    runs: runSupport(context),
    abort: abortSupport(context),
    events: eventSupport(context),
    timeline: timelineSupport(context),
    maintenance,
    spend: spendSupport(context),
    files: fileSupport(context),
    memory: memorySupport(context),
    effects: effectSupport(context),
    rotateKeys: (options) => maintenance.rotateKeys(options),
  });
}

function abortSupport({ db, state, gcScheduler }: SqlContext): AbortSupport {
  return {
    async abortSnapshot(scope, snapshotId) {
      const status = await db.write(() => abortSnapshot(scope, snapshotId, state));
      if (status === undefined) return undefined;
      db.tell([
        { kind: 'run', id: snapshotId },
        { kind: 'events', id: snapshotId },
      ]);
      gcScheduler.later();
      return status;
    },
    onChange: (snapshotId, listener) => db.listen({ kind: 'run', id: snapshotId }, listener),
  };
}

/** Runs whose events are written in one transaction. */
const maxRuns = 100;

/** Events of runs, kept for a while after their end. */
function eventSupport(context: SqlContext): EventSupport {
  const { db, cipher, gcScheduler } = context;
  const append = inGroups<AppendedEvents, void>((group) => appendGroup(context, group), maxRuns);
  return {
    append: (run, events) => append({ run, events }),
    async read(scope, runId, options) {
      await gcScheduler.forget();
      return db.read(() => readEvents(scope, runId, options, cipher));
    },
    onEvents: (runId, listener) => db.listen({ kind: 'events', id: runId }, listener),
  };
}

/** Appends to the events of several runs. A run that is lost gets its own error, and the others are written. */
async function appendGroup(
  { db, state }: SqlContext,
  group: readonly AppendedEvents[],
): Promise<readonly (WaymarkError | undefined)[]> {
  const hintOf = ({ run }: AppendedEvents) => ({ kind: 'events', id: run.runId }) as const;
  await db.open();
  // In one order everywhere: the runs are held until all are written.
  const ordered = group.toSorted((a, b) => (a.run.runId < b.run.runId ? -1 : 1));
  const written = await db.write(() => appendHeld(ordered, state), {
    durable: false,
    guarded: 'append',
    hints: group.map(hintOf),
  });
  for (const { run, events } of written) {
    const last = events.at(-1);
    if (last !== undefined) state.known.appended(run, last);
  }
  const rest = group.filter((each) => !written.has(each));
  if (rest.length === 0) return [];
  const lost = await db.write(() => appendAll(rest, state), { durable: false });
  db.tell(rest.map(hintOf));
  return group.map((each) => lost.get(each));
}

function timelineSupport({ db, state, gcScheduler }: SqlContext): TimelineSupport {
  return {
    async getSession(scope, sessionId, options = {}) {
      const info = await db.read(() => getSession(scope, sessionId, state));
      if (options.state !== true || info?.headId === undefined) return info;
      const head = await db.read(() => readSnapshot(scope, { sessionId }, state, options));
      return defined({ ...info, state: head?.state, messageRange: head?.messageRange });
    },
    async listSessions(scope, options = {}) {
      if (searchesText(options.query, state)) {
        // It can be made again, so it need not outlive a power cut.
        while (await db.write(() => indexSome(scope, state), { durable: false }));
      }
      return await db.read(() => listSessions(scope, options, state));
    },
    listOwners: (options = {}) => db.read(() => listOwners(options)),
    updateSession: (scope, sessionId, change) =>
      db.write(() => updateSession(scope, sessionId, change, state)),
    async deleteSession(scope, sessionId) {
      const erased = await db.write(() => eraseSession(scope, sessionId));
      if (erased === undefined) return false;
      db.tell(erased.hints);
      await gcScheduler.now();
      await db.scrub?.();
      return true;
    },
    listSnapshots: (scope, sessionId, options = {}) =>
      db.read(() => listSnapshots(scope, sessionId, options, state)),
    async restore(scope, snapshotId, options = {}) {
      const snapshot = await db.write(() => restore(scope, snapshotId, options, state));
      db.tell([{ kind: 'run', id: snapshotId }]);
      const { run } = options;
      if (run !== undefined) {
        state.known.forget(run.runId);
        state.homes.delete(run.runId);
        db.tell([{ kind: 'run', id: run.runId }]);
      }
      return snapshot;
    },
    fork: (scope, snapshotId, target) => db.write(() => fork(scope, snapshotId, target, state)),
    async label(scope, snapshotId, text, { expectHead } = {}) {
      const change = { text, expectHead };
      const snapshot = await db.write(() => label(scope, snapshotId, change, state));
      db.tell([{ kind: 'run', id: snapshotId }]);
      return snapshot;
    },
  };
}

/** Files in pieces: a transaction for each, so that none is in memory, or locks anything, as a whole. */
function fileSupport(context: SqlContext): FileSupport {
  const { db, cipher, uploading } = context;
  return {
    async write({ run }, data) {
      if (run !== undefined) uploading.add(run.runId);
      const sum = createSha256();
      const pieces: string[] = [];
      let size = 0;
      // Pieces that are written before an error are removed with the run.
      for await (const piece of inPieces(data, 1)) {
        sum.update(piece);
        size += piece.length;
        const marked = new Uint8Array(piece.buffer, 0, 1 + piece.length);
        marked[0] = pieceMark;
        // The row of the file makes them last.
        const write = () => writePiece(run, marked, cipher);
        pieces.push(hexOf(await db.write(write, { durable: false })));
        // SQLite works on this thread.
        await letOthersRun();
      }
      const hash = sum.hex();
      await db.write(() => finishUpload(run, hash, { size, pieces }, cipher));
      return { hash, size };
    },
    async open(_place, hash) {
      const head = await db.read(() => readHead(hash, cipher));
      return head && opened(context, hash, head);
    },
    async writeTree({ run }, write) {
      if (run !== undefined) uploading.add(run.runId);
      // The commit that names the tree makes it last.
      return await db.write(() => writeTree(run, write, cipher), { durable: false });
    },
    readTree: (_place, hashes) => db.read(() => readNodes(hashes, cipher)),
  };
}

function opened({ db, cipher }: SqlContext, hash: string, head: FileHead): OpenFile {
  return {
    size: head.size,
    async *read(from, to) {
      const sum = from === 0 && to === head.size ? createSha256() : undefined;
      for (const needed of neededPieces(from, to)) {
        const piece = await db.read(() => readPiece(hash, head, needed.number, cipher));
        await letOthersRun();
        sum?.update(piece);
        const isLast = sum !== undefined && needed.number === head.pieces.length - 1;
        // Before the last piece, so that a reader does not take a damaged file for a whole one.
        if (isLast && sum.hex() !== hash)
          throw damagedFile(hash, 'its content does not fit its hash');
        yield piece.subarray(needed.from, needed.to) as Uint8Array<ArrayBuffer>;
      }
    },
  };
}
