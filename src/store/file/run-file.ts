import type { Json, JsonObject } from '../../core/json/json.ts';
import type { Artifact } from '../../protocol/state.ts';
import { emptyState, hashState, type SessionState } from '../../session/session-state.ts';
import type { Scope } from '../contract/store.ts';
import { endRun, noCrashes, noMessages } from '../memory/claim.ts';
import type { Checkpoint, RunRow, SessionRow, SnapshotRow, Tables } from '../memory/tables.ts';
import { format, toLine } from './checked-line.ts';
import type { Disk } from './disk.ts';
import { Journal, type JournalReader } from './journal.ts';
import {
  applyChange,
  type CheckpointLine,
  type RunHead,
  type RunLine,
  runFields,
  type Saved,
  toChange,
  toRunHead,
  toSaved,
} from './rows.ts';
import { type SessionTree, toScope } from './session-tree.ts';
import { artifactHash, fromDelta, toDelta, type WrittenState } from './state-delta.ts';

/** Finds a session and its tree; `undefined` when there is no such session. */
export type FindHome = (
  scope: Scope,
  sessionId: string,
) => { readonly tree: SessionTree; readonly session: SessionRow } | undefined;

/** A run as it was last written or read. */
interface SavedRun {
  readonly fields: Saved;
  readonly checkpoint: Checkpoint | undefined;
  readonly steps: number;
  readonly inbox: number;
}

const newRun: SavedRun = { fields: [], checkpoint: undefined, steps: 0, inbox: 0 };

/** The journal of the run that works on a session. It is removed when the run ends. */
export class RunFile implements JournalReader {
  readonly journal: Journal;
  readonly #disk: Disk;
  readonly #tables: Tables;
  readonly #find: FindHome;
  /** Artifacts of checkpoints, which no snapshot has yet. */
  readonly #artifacts = new Map<string, Artifact>();
  #run: RunRow | undefined;
  #tree: SessionTree | undefined;
  /** The run of the session that ended before this one. */
  #endedBefore: string | undefined;
  #saved = newRun;

  constructor(disk: Disk, tables: Tables, name: string, find: FindHome) {
    this.journal = new Journal(disk, name, this);
    this.#disk = disk;
    this.#tables = tables;
    this.#find = find;
  }

  /** The open run as it was last written or read. */
  get run(): RunRow | undefined {
    return this.#run;
  }

  /** Makes the tables equal to the file. Call it after the session's journal was refreshed. */
  refresh(): void {
    const before = this.#run;
    // The session's journal says that it has ended, or was read again.
    if (before !== undefined && this.#tables.runs.get(before.id) !== before) this.journal.forget();
    const [tree, endedBefore] = [this.#tree, this.#endedBefore];
    const isNew = this.journal.refresh();
    if (before !== undefined && tree !== undefined && !this.journal.isThere) {
      // Someone removed the file of an open run: the end of a run would be in the session's journal.
      if (tree.lastEnded.get(before.session.id) === endedBefore) this.#restore(before, tree);
    }
    // The pending snapshot of a detached run has the id of the run.
    const row = this.#run && this.#tree?.rows.get(this.#run.id);
    if (this.#run !== undefined && row?.status === 'pending') this.#run.row = row;
    if (before !== undefined && before.id !== this.#run?.id) endRun(this.#tables, before);
    else if (isNew && this.#run !== undefined) this.#tables.emitter.emit(this.#run.id);
  }

  /** Writes a new run in place of one that has ended. */
  create(run: RunRow, tree: SessionTree): void {
    this.journal.refresh();
    if (this.journal.isThere) this.journal.remove();
    this.#restore(run, tree);
  }

  /** Writes the changes of the run. */
  update(): void {
    const line = this.#run && this.#toLine(this.#run);
    if (line !== undefined && Object.keys(line).length > 0) this.#append(line);
  }

  /** Takes the run out of memory. */
  forget(): void {
    this.journal.forget();
  }

  reset(): void {
    const run = this.#run;
    if (run !== undefined) {
      if (this.#tables.runs.get(run.id) === run) this.#tables.runs.delete(run.id);
      if (run.session.run === run) run.session.run = undefined;
    }
    this.#run = undefined;
    this.#tree = undefined;
    this.#saved = newRun;
    this.#artifacts.clear();
  }

  head(line: JsonObject): void {
    const head = line as unknown as RunHead;
    const home = this.#find(toScope(head), head.session);
    // Its process died after it had ended the run, and before it cleared the file.
    if (home === undefined || home.tree.lastEnded.get(head.session) === head.run) return;
    this.#open(toRun(head, home.tree, home.session), home.tree);
    this.line(line);
  }

  line(content: JsonObject): void {
    const [run, tree] = [this.#run, this.#tree];
    if (run === undefined || tree === undefined) return;
    const line = content as unknown as RunLine;
    const base = line.base === undefined ? run.base : tree.rows.get(line.base);
    // Its process died before it wrote the base, so the run continues from the one before.
    const isWritten = line.base === undefined || base !== undefined;
    applyChange(run, { ...line, base: undefined }, runFields, () => undefined);
    for (const { key, value } of line.steps ?? []) run.steps.set(key, value);
    if (line.inbox !== undefined) run.inbox = [...run.inbox, ...line.inbox];
    if (isWritten) {
      run.base = base;
      if (line.checkpoint !== undefined)
        run.checkpoint = this.#checkpoint(line.checkpoint, run, tree);
    }
    this.#settle(run);
  }

  #open(run: RunRow, tree: SessionTree): void {
    this.#run = run;
    this.#tree = tree;
    this.#endedBefore = tree.lastEnded.get(run.session.id);
    this.#tables.runs.set(run.id, run);
    run.session.run = run;
  }

  #restore(run: RunRow, tree: SessionTree): void {
    this.#open(run, tree);
    this.#saved = newRun;
    if (!this.#disk.isWritable) return;
    this.#append({ waymark: format, ...toRunHead(run), ...this.#toLine(run) });
  }

  #append(line: object): void {
    const run = this.#run;
    if (run === undefined) return;
    // A lost heartbeat is soon followed by another; and an attached run does not continue after a power cut.
    const isHeartbeat = Object.keys(line).every((key) => key === 'heartbeatAt');
    const durable = run.request.mode !== 'attached' && !isHeartbeat;
    this.journal.append([toLine(line)], { durable });
    this.#settle(run);
  }

  #settle(run: RunRow): void {
    const { checkpoint, steps, inbox } = run;
    const fields = toSaved(run, runFields);
    this.#saved = { fields, checkpoint, steps: steps.size, inbox: inbox.length };
  }

  #toLine(run: RunRow): RunLine {
    const saved = this.#saved;
    const steps = [...run.steps].slice(saved.steps).map(([key, value]) => toStep(key, value));
    const inbox = run.inbox.slice(saved.inbox);
    const checkpoint = run.checkpoint === saved.checkpoint ? undefined : run.checkpoint;
    return {
      ...toChange(run, runFields, saved.fields),
      ...(checkpoint && { checkpoint: toCheckpointLine(checkpoint, run.base, saved.checkpoint) }),
      ...(steps.length > 0 && { steps }),
      ...(inbox.length > 0 && { inbox }),
    };
  }

  #checkpoint(line: CheckpointLine, { base, checkpoint: before }: RunRow, tree: SessionTree) {
    const { state: delta, artifacts = {}, stateHash = base?.stateHash ?? '', ...place } = line;
    for (const [hash, artifact] of Object.entries(artifacts)) this.#artifacts.set(hash, artifact);
    const readArtifacts = (hashes: readonly string[]): readonly Artifact[] =>
      hashes.map((hash) => this.#artifacts.get(hash) ?? tree.readArtifact(hash));
    const read = (): SessionState => {
      if (delta === undefined) return base?.state ?? emptyState;
      const from = delta.base === 'checkpoint' ? before : base;
      return fromDelta(delta, from?.state ?? emptyState, readArtifacts);
    };
    let state: SessionState | undefined;
    return {
      ...place,
      stateHash,
      get state() {
        state ??= read();
        return state;
      },
    };
  }
}

function toStep(key: string, value: Json | undefined): { key: string; value?: Json } {
  return value === undefined ? { key } : { key, value };
}

function toCheckpointLine(
  { state, stateHash, ...place }: Checkpoint,
  base: SnapshotRow | undefined,
  before: Checkpoint | undefined,
): CheckpointLine {
  if (stateHash === base?.stateHash) return place;
  const bases: WrittenState[] = [];
  if (before !== undefined) bases.push({ id: 'checkpoint', state: before.state });
  if (base !== undefined) bases.push(base);
  const known = new Set(bases.flatMap((each) => each.state.artifacts.map(artifactHash)));
  const fresh = state.artifacts
    .map((artifact) => [artifactHash(artifact), artifact] as const)
    .filter(([hash]) => !known.has(hash));
  return {
    ...place,
    stateHash,
    state: toDelta(state, bases),
    ...(fresh.length > 0 && { artifacts: Object.fromEntries(fresh) }),
  };
}

/** The run of a first line, without the fields that change. */
function toRun(head: RunHead, tree: SessionTree, session: SessionRow): RunRow {
  const start = head.start && (tree.rows.get(head.start.id) ?? toStart(head.start, session));
  return {
    id: head.run,
    session,
    createdAt: Date.parse(head.createdAt),
    turnIndex: head.turnIndex,
    start,
    base: start,
    attempt: 1,
    worker: '',
    ttl: 0,
    heartbeatAt: 0,
    request: { mode: 'attached', inputs: [] },
    stopping: false,
    crashes: noCrashes,
    steps: new Map(),
    inbox: noMessages,
  };
}

/** A snapshot that a run was claimed from and that the journal does not have any more. */
function toStart(start: NonNullable<RunHead['start']>, session: SessionRow): SnapshotRow {
  const { createdAt } = session;
  return {
    ...start,
    session,
    parent: undefined,
    event: 'turnEnd',
    status: 'succeeded',
    createdAt,
    updatedAt: createdAt,
    state: emptyState,
    stateHash: hashState(emptyState),
  };
}
