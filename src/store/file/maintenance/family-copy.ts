import { createKeyedEmitter } from '../../../core/async/emitter.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import { RestingHistory } from '../../../session/resting-history.ts';
import { emptyState, type SessionState } from '../../../session/session-state.ts';
import type { SessionRow, SnapshotRow, Tables } from '../../memory/tables.ts';
import { betweenSteps } from '../../rules/between-steps.ts';
import type { Step } from '../../rules/maintenance-steps.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import { runFile } from '../directory/layout.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import { RunFile } from '../runs/run-file.ts';
import { type Portion, portion } from '../sessions/journal.ts';
import { type Gone, type RowFields, SessionTree } from '../sessions/session-tree.ts';
import { CopiedRow, CopiedStates } from './copied-row.ts';
import { OutsideHeap } from './outside-heap.ts';

/** What maintenance works with. */
export interface MaintenanceContext {
  readonly cache: DirectoryCache;
  readonly transaction: DirectoryTransaction;
  /** Called between two steps; throws when the task is to stop. */
  readonly step: Step;
  /** Waits for the disk, while the task may do something else. */
  readonly wait: <Result>(disk: Promise<Result>) => Promise<Result>;
}

/** A copy has no listeners. */
const noListeners = createKeyedEmitter();

/** An empty state; the messages of those that are made from it lie outside of the heap. */
function emptyOutsideHeap(): SessionState {
  return { ...emptyState, history: RestingHistory.in(new OutsideHeap()) };
}

/**
 * A session with its forks, read for maintenance alone, with separate rows. Turns neither see it nor wait for it: a long
 * journal is read in portions, and the memory is free again when the family is done.
 */
export class FamilyCopy extends SessionTree {
  readonly tables: Tables;
  readonly #cache: DirectoryCache;
  readonly #states: CopiedStates;
  /** The state that those with no other below them are made from. */
  #first = emptyOutsideHeap();
  #watched: (Gone & { isNamed: boolean }) | undefined;

  constructor(cache: DirectoryCache, folder: string) {
    const rows = new Map<string, CopiedRow>();
    const states = new CopiedStates(rows);
    const first = () => this.#first;
    const tables: Tables = {
      ...cache.tables,
      emitter: noListeners,
      sessions: new Map(),
      snapshots: rows,
      runs: new Map(),
      events: new Map(),
      endedAt: new Map(),
      dead: new Map(),
      requests: new Map(),
    };
    super(folder, {
      disk: cache.disk,
      tables,
      use: () => {},
      findFile: cache.findFile,
      rows,
      states: { first, states },
    });
    this.tables = tables;
    this.#cache = cache;
    this.#states = states;
  }

  /** Whether the journal has named something that is watched since then, or was rewritten. */
  get isNamed(): boolean {
    return this.#watched?.isNamed ?? false;
  }

  /** Watches whether what is read from now on names one of these snapshots and sessions. */
  watch(gone: Gone): void {
    this.#watched = { ...gone, isNamed: false };
  }

  /** Watches no longer. */
  unwatch(): void {
    this.#watched = undefined;
  }

  /** Reads the runs that work on its sessions, under the lock. */
  readRuns(sessions: Iterable<SessionRow> = this.sessions.values()): void {
    for (const session of sessions) this.readRun(session);
  }

  /** Reads the run that works on a session, under the lock; it is never in step with the file by itself. */
  readRun(session: SessionRow): void {
    if (session.run !== undefined) this.tables.runs.delete(session.run.id);
    session.run = undefined;
    const name = runFile(session.scope, session.id);
    if (this.#cache.disk.stamp(name) === undefined) return;
    const find = () => ({ tree: this, session });
    new RunFile(this.#cache.disk, this.tables, name, find).refresh();
  }

  protected override newRow(id: string, session: SessionRow, fields: RowFields): SnapshotRow {
    return new CopiedRow(id, session, fields, this.#states.take());
  }

  protected override changedRow(row: SnapshotRow, fields: RowFields): SnapshotRow {
    (row as CopiedRow).change(fields);
    return row;
  }

  protected override save(row: SnapshotRow, artifacts: readonly string[]): void {
    (row as CopiedRow).artifacts = artifacts;
  }

  override reset(): void {
    super.reset();
    // Messages outside of the heap are freed together.
    this.#first = emptyOutsideHeap();
    if (this.#watched !== undefined) this.#watched.isNamed = true;
  }

  override line(line: JsonObject): void {
    if (this.#watched !== undefined) {
      this.#watched.isNamed ||= namesOne(line, this.#watched);
      // What follows may build on rows that this copy does not have any more.
      if (this.#watched.isNamed) return;
    }
    super.line(line);
  }
}

/** Reads a journal to its end, a portion at a time. `atEnd` is called under the hold of the lock that came to the end. */
export async function readToEnd<Result>(
  { transaction, step }: MaintenanceContext,
  journal: { refreshSome(some: Portion): boolean },
  atEnd: () => Result,
): Promise<Result> {
  for (;;) {
    const end = await transaction.read(() =>
      journal.refreshSome(portion) ? ([atEnd()] as const) : undefined,
    );
    if (end !== undefined) return end[0];
    step(0);
    await betweenSteps();
  }
}

interface NamingLine {
  readonly session?: {
    readonly id?: string;
    readonly head?: string | null;
    readonly forkedFrom?: { readonly snapshotId?: string };
  };
  readonly snapshots?: readonly {
    readonly id?: string;
    readonly parent?: string;
    readonly state?: { readonly base?: string };
  }[];
  readonly dropped?: readonly string[];
}

function namesOne(line: JsonObject, gone: Gone): boolean {
  const { session, snapshots = [], dropped = [] } = line as NamingLine;
  if (gone.sessions.has(session?.id ?? '')) return true;
  const names = [session?.head, session?.forkedFrom?.snapshotId, ...dropped];
  for (const { id, parent, state } of snapshots) names.push(id, parent, state?.base);
  return names.some((name) => typeof name === 'string' && gone.snapshots.has(name));
}
