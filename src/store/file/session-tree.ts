import type { JsonObject } from '../../core/json/json.ts';
import { fileHashesIn, treeHashesIn } from '../../protocol/artifacts.ts';
import type { Artifact } from '../../protocol/state.ts';
import { emptyState, type SessionState } from '../../session/session-state.ts';
import { requestTtl, type Scope } from '../contract/store.ts';
import { endRun } from '../memory/claim.ts';
import { keepEvents } from '../memory/events.ts';
import { createSessionRow } from '../memory/rows.ts';
import {
  type DeadRow,
  type RequestRow,
  type SessionRow,
  type SnapshotRow,
  sessionKey,
  type Tables,
} from '../memory/tables.ts';
import { checkLine, format, parseLine, toLine } from './checked-line.ts';
import { type Disk, dataLoss } from './disk.ts';
import { FileRow, type StateSource } from './file-row.ts';
import { Journal, type JournalReader, type Place } from './journal.ts';
import { journalName, pointerFile, requestFile, runFile, sessionFolder } from './layout.ts';
import {
  type ArtifactLine,
  applyChange,
  deadFields,
  type RequestLine,
  requestFields,
  type SnapshotLine,
  sessionFields,
  snapshotFields,
  type TreeHead,
  type TreeLine,
} from './rows.ts';
import { applyRun } from './run-lines.ts';
import {
  artifactHash,
  artifactHashes,
  fromDelta,
  isArtifactHash,
  type StateDelta,
} from './state-delta.ts';

/** An artifact in the journal, and the saved files that it names. */
interface StoredArtifact extends Place, NamedFiles {}

/** The saved files and the trees that artifacts name. */
interface NamedFiles {
  readonly files: readonly string[];
  readonly trees?: readonly string[];
}

/** A session as the journal has it, with the number of its listed snapshots. */
type SavedSession = Omit<SessionRow, 'listed'> & { readonly listed: number };

/** The dependencies of a tree. */
interface TreeContext {
  readonly disk: Disk;
  readonly tables: Tables;
  /** Notes that the states of a tree are used. */
  use(tree: SessionTree): void;
}

/** The tree of each session. */
const homes = new WeakMap<SessionRow, SessionTree>();

/** The tree of a session that has been written or read. */
export function homeOf(session: SessionRow): SessionTree | undefined {
  const tree = homes.get(session);
  return tree?.sessions.get(session.id) === session ? tree : undefined;
}

/** The size in bytes from which a journal is rewritten when more than half of it is garbage. */
const smallestRewritten = 256 * 1024;

/**
 * A session and its forks. They share a journal, which has their common content once. Their rows are in the tables of the memory
 * store; `refresh` makes the tables equal to the journal.
 */
export class SessionTree implements JournalReader, StateSource {
  readonly folder: string;
  readonly journal: Journal;
  readonly sessions = new Map<string, SessionRow>();
  /** The sessions as the journal has them. */
  readonly saved = new Map<string, SavedSession>();
  /** The snapshots that the journal has. */
  readonly rows = new Map<string, FileRow>();
  /** The requests that the journal has, by key. */
  readonly requests = new Map<string, RequestRow>();
  /** The runs whose dead letters the journal has. */
  readonly dead = new Set<string>();
  /** The artifacts in the journal, by hash. */
  readonly artifacts = new Map<string, StoredArtifact>();
  readonly #directory: TreeContext;
  #head: TreeHead | undefined;
  /** Whether the states of its snapshots are in memory. */
  #isLoaded: boolean;
  /** Number of bytes of lines that mean nothing once a run has ended. */
  #passing = 0;
  /** The size of the journal from which garbage is looked for. */
  #checkedFrom = smallestRewritten;

  constructor(
    folder: string,
    directory: TreeContext,
    { isLoaded = true }: { readonly isLoaded?: boolean } = {},
  ) {
    this.folder = folder;
    this.journal = new Journal(directory.disk, `${folder}/${journalName}`, this);
    this.#directory = directory;
    this.#isLoaded = isLoaded;
  }

  /** The name of the journal. */
  get name(): string {
    return this.journal.name;
  }

  /** Whose sessions these are; `undefined` for a folder in the wrong place, such as a copy that was made by hand. */
  get scope(): Scope | undefined {
    return this.#head && toScope(this.#head);
  }

  /** Sets the head line of a tree that has no journal yet. */
  begin(scope: Scope, root: string): void {
    this.journal.refresh();
    if (this.journal.exists) return;
    this.#head = { waymark: format, id: this.#directory.tables.newId(), ...scope, session: root };
  }

  /** The first line of a rewritten journal. */
  newHead(): string {
    return toLine({ ...this.#head, waymark: format, id: this.#directory.tables.newId() });
  }

  /** Writes artifacts and one change of a session. */
  write(session: SessionRow, line: TreeLine, artifacts: readonly Artifact[]): void {
    if (this.#head === undefined) throw new Error('A tree begins with its head line.');
    if (!this.journal.exists) this.journal.append(toLine(this.#head));
    for (const artifact of artifacts) {
      const hash = artifactHash(artifact);
      if (this.artifacts.has(hash)) continue;
      const place = this.journal.append(toArtifactLine(hash, artifact));
      this.artifacts.set(hash, { ...place, ...namedIn(artifact) });
    }
    const durable = isDurable(session, line);
    const { length } = this.journal.append(toLine(line), { durable });
    for (const { id, state } of line.snapshots ?? []) {
      const row = this.#directory.tables.snapshots.get(id);
      if (row instanceof FileRow) this.#settleRow(row, state);
    }
    for (const id of line.dropped ?? []) this.rows.delete(id);
    this.#settle(session, line, length);
    this.#directory.use(this);
  }

  readonly #readArtifact = (hash: string): Artifact => {
    const place = this.artifacts.get(hash);
    const bytes = place && this.readLine(place);
    if (bytes === undefined) throw dataLoss(this.name, `it lacks the artifact "${hash}"`);
    checkLine(bytes, this.name, `artifact "${hash}"`);
    const { content } = parseLine(bytes, this.name, `artifact "${hash}"`);
    const artifact = content as unknown as Artifact;
    if (isArtifactHash(artifact, hash)) return artifact;
    throw dataLoss(this.name, `artifact "${hash}" does not fit its hash`);
  };

  /** The bytes of a line without its line feed. */
  readLine({ at, length }: Place): Buffer | undefined {
    return this.#directory.disk.open(this.name, ({ read }) => read(at, length - 1));
  }

  /** Whether a pointer names a fork, an open run or a request of this tree. */
  isNamedBy(pointer: string): boolean {
    const ofSession = ({ scope, id, run }: SessionRow): readonly string[] =>
      run === undefined ? [pointerFile(scope, id)] : [pointerFile(scope, id), runFile(run.id)];
    const isRequest = [...this.requests.keys()].some((key) => requestFile(key) === pointer);
    return isRequest || [...this.sessions.values()].flatMap(ofSession).includes(pointer);
  }

  /** The saved files, or the trees, that its snapshots name. */
  needed(kind: keyof NamedFiles): ReadonlySet<string> {
    const used = [...this.rows.values()].flatMap((row) => row.artifacts);
    return new Set(used.flatMap((hash) => this.artifacts.get(hash)?.[kind] ?? []));
  }

  /** Number of bytes of artifacts that no snapshot has. */
  unusedBytes(): number {
    const used = new Set([...this.rows.values()].flatMap((row) => row.artifacts));
    for (const { run } of this.sessions.values()) {
      for (const hash of artifactHashes(run?.checkpoint?.state ?? emptyState)) used.add(hash);
    }
    const unused = [...this.artifacts].filter(([hash]) => !used.has(hash));
    return unused.reduce((bytes, [, { length }]) => bytes + length, 0);
  }

  /** Whether more than half of the journal is unused artifacts, events, and what runs have left. */
  isMostlyGarbage(): boolean {
    return this.#passing + this.unusedBytes() > this.journal.size / 2;
  }

  /** The same for a large journal. Asked again when the journal has doubled, so that not every turn counts. */
  isLargeGarbage(): boolean {
    const { size } = this.journal;
    if (size < this.#checkedFrom) return false;
    this.#checkedFrom = 2 * size;
    return this.isMostlyGarbage();
  }

  loadStates(): void {
    const states = new Map<string, SessionState>();
    const reader = {
      reset: () => states.clear(),
      line: (line: JsonObject) => {
        const { snapshots = [], dropped = [] } = line as unknown as TreeLine;
        for (const { id, state } of snapshots) {
          if (state === undefined) continue;
          const base = states.get(state.base ?? '');
          states.set(id, this.#stateOf(id, state, base));
        }
        for (const id of dropped) states.delete(id);
      },
    };
    new Journal(this.#directory.disk, this.name, reader).refresh();
    for (const row of this.rows.values()) {
      const state = states.get(row.id);
      // States that are in memory already are shared with their users.
      if (state !== undefined && !row.isLoaded) row.state = state;
    }
    this.#isLoaded = true;
    this.#directory.use(this);
  }

  /** Frees the memory of all states. */
  unload(): void {
    for (const row of this.rows.values()) row.unload();
    this.#isLoaded = false;
  }

  reset(): void {
    const { snapshots, sessions, runs, events, endedAt, dead, requests } = this.#directory.tables;
    for (const row of this.rows.values()) {
      if (snapshots.get(row.id) === row) snapshots.delete(row.id);
      dead.delete(row.id);
    }
    const isOwn = (session: SessionRow): boolean => this.sessions.get(session.id) === session;
    for (const [runId, { session }] of events) {
      if (isOwn(session) && events.delete(runId)) endedAt.delete(runId);
    }
    for (const [key, request] of this.requests) {
      if (requests.get(key) === request) requests.delete(key);
    }
    for (const session of this.sessions.values()) {
      const key = sessionKey(session.scope, session.id);
      if (sessions.get(key) === session) sessions.delete(key);
      if (session.run !== undefined) runs.delete(session.run.id);
    }
    this.#head = undefined;
    this.#passing = 0;
    this.#checkedFrom = smallestRewritten;
    for (const map of [this.sessions, this.saved, this.rows]) map.clear();
    for (const each of [this.requests, this.artifacts, this.dead]) each.clear();
  }

  head(line: JsonObject): void {
    const head = line as unknown as TreeHead;
    if (sessionFolder(toScope(head), head.session) === this.folder) this.#head = head;
  }

  line(content: JsonObject, place: Place): void {
    const { scope } = this;
    if (scope === undefined) return;
    if ('artifact' in content) {
      const { artifact, files, trees } = content as unknown as ArtifactLine;
      this.artifacts.set(artifact, { ...place, files, ...(trees && { trees }) });
      return;
    }
    const { tables } = this.#directory;
    const line = content as unknown as TreeLine;
    const { id } = line.session;
    const session = this.sessions.get(id) ?? createSessionRow(tables, scope, id);
    // A new one has all its fields before its snapshots refer to it.
    const { head, ...fields } = line.session;
    applyChange(session, fields, [...sessionFields, 'nextIndex'], this.#rowOf);
    for (const snapshot of line.snapshots ?? []) this.#put(session, snapshot);
    if (head !== undefined) session.head = head === null ? undefined : this.#rowOf(String(head));
    for (const { run, ...batch } of line.events ?? []) keepEvents(tables, session, run, [batch]);
    if (line.ended !== undefined) this.#end(session, line.ended, line.endedAt);
    if (line.run !== undefined) {
      const context = { rowOf: this.#rowOf, readArtifact: this.#readArtifact };
      applyRun(tables, session, line.run, context);
    }
    for (const dropped of line.dropped ?? []) {
      this.rows.delete(dropped);
      tables.snapshots.delete(dropped);
    }
    for (const request of line.requests ?? []) this.#request(session, request);
    for (const letter of line.dead ?? []) {
      const row = applyChange({ session } as DeadRow, letter, deadFields, this.#rowOf);
      tables.dead.set(row.runId, row);
    }
    for (const runId of line.undead ?? []) tables.dead.delete(runId);
    if (line.effects !== undefined || line.noEffects !== undefined) {
      const effects = new Map(session.effects);
      for (const effect of line.effects ?? []) effects.set(effect.key, effect);
      for (const key of line.noEffects ?? []) effects.delete(key);
      session.effects = effects;
    }
    // The pending snapshot of a detached run has the id of the run.
    const row = session.run && this.rows.get(session.run.id);
    if (session.run !== undefined && row?.status === 'pending') session.run.row = row;
    this.#settle(session, line, place.length);
  }

  /** Ends a run. Its events go as if it had just been seen to end. */
  #end(session: SessionRow, runId: string, time: string | undefined): void {
    const { tables } = this.#directory;
    if (session.run?.id === runId) endRun(tables, session.run);
    if (!tables.events.has(runId) || time === undefined) return;
    const endedAt = Date.parse(time);
    if (endedAt > tables.clock.now() - tables.eventsTtl) tables.endedAt.set(runId, endedAt);
    else if (tables.events.delete(runId)) tables.endedAt.delete(runId);
  }

  #request(session: SessionRow, { key, ...line }: RequestLine): void {
    const { requests, clock } = this.#directory.tables;
    const row = { session } as RequestRow;
    const request = applyChange(row, line, requestFields, this.#rowOf);
    const { at, runId } = request;
    this.requests.set(key, request);
    const known = requests.get(key);
    // The key may have been used again, in a session elsewhere.
    const isNewer = known !== undefined && known.session !== session && known.at > at;
    const isOld = at <= clock.now() - requestTtl && session.run?.id !== runId;
    if (!isNewer && !isOld) requests.set(key, request);
  }

  #put(session: SessionRow, line: SnapshotLine): void {
    const { id, state } = line;
    const row = this.rows.get(id) ?? new FileRow({ id, session, index: -1 } as SnapshotRow);
    const before = row.index;
    if (state !== undefined && this.#isLoaded) {
      row.state = this.#stateOf(id, state, this.rows.get(state.base ?? '')?.state);
    } else if (state !== undefined) row.unload();
    applyChange<SnapshotRow>(row, line, snapshotFields, this.#rowOf);
    if (before < 0 && row.index >= 0) {
      session.listed.push(row);
      session.nextIndex = Math.max(session.nextIndex, row.index + 1);
    }
    this.#directory.tables.snapshots.set(id, row);
    this.#settleRow(row, state);
    this.#directory.tables.emitter.emit(id);
  }

  #stateOf(id: string, delta: StateDelta, base: SessionState | undefined): SessionState {
    if (delta.base !== undefined && base === undefined) {
      throw dataLoss(this.name, `snapshot "${id}" builds on one that is not in it`);
    }
    return fromDelta(delta, base ?? emptyState, this.#readArtifact);
  }

  /** Notes that the journal has a session as it is, after a line of so many bytes. */
  #settle(session: SessionRow, line: TreeLine, bytes: number): void {
    const { events: logs, requests } = this.#directory.tables;
    this.sessions.set(session.id, session);
    const run = session.run && { ...session.run, steps: new Map(session.run.steps) };
    this.saved.set(session.id, { ...session, listed: session.listed.length, run });
    homes.set(session, this);
    for (const { body } of line.events ?? []) {
      if (line.snapshots !== undefined) this.#passing += body.length;
    }
    for (const { runId } of line.dead ?? []) this.dead.add(String(runId));
    for (const runId of line.undead ?? []) this.dead.delete(runId);
    for (const { key } of line.requests ?? []) {
      const request = requests.get(key);
      if (request?.session === session) this.requests.set(key, request);
    }
    const isOver = line.kept === undefined || (line.ended !== undefined && !logs.has(line.ended));
    const isOfRun = line.run !== undefined || line.events !== undefined;
    if (isOver && isOfRun && line.snapshots === undefined) this.#passing += bytes;
  }

  /** Notes that the journal has a snapshot as it is. */
  #settleRow(row: FileRow, state: SnapshotLine['state']): void {
    const base = this.rows.get(state === undefined ? row.id : (state.base ?? ''));
    row.settle(this, state?.artifacts ?? base?.artifacts ?? []);
    this.rows.set(row.id, row);
  }

  readonly #rowOf = (id: string): SnapshotRow => {
    const row = this.rows.get(id);
    if (row === undefined) throw dataLoss(this.name, `snapshot "${id}" is not in it`);
    return row;
  };
}

/**
 * Whether a line must survive a power cut. Events and heartbeats need not, because others soon follow; nor need an attached run, which does
 * not continue after one.
 */
function isDurable(
  { run }: SessionRow,
  { session, events: _, run: change = { id: '' }, ...others }: TreeLine,
): boolean {
  if (Object.keys(others).length > 0 || Object.keys(session).length > 1) return true;
  const isHeartbeat = Object.keys(change).every((key) => key === 'id' || key === 'heartbeatAt');
  return run?.request.mode !== 'attached' && !isHeartbeat;
}

/** An artifact as a line of the journal. */
export function toArtifactLine(hash: string, artifact: Artifact): string {
  return toLine({
    artifact: hash,
    ...namedIn(artifact),
    content: artifact,
  } satisfies ArtifactLine);
}

function namedIn(artifact: Artifact): NamedFiles {
  const trees = treeHashesIn([artifact]);
  return { files: fileHashesIn([artifact]), ...(trees.length > 0 && { trees }) };
}

/** The scope that a head line has. */
function toScope({ agent, owner }: Pick<TreeHead, 'agent' | 'owner'>): Scope {
  return owner === undefined ? { agent } : { agent, owner };
}
