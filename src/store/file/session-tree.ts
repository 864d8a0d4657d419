import type { Json, JsonObject } from '../../core/json/json.ts';
import { fileHashesIn } from '../../protocol/artifacts.ts';
import type { Artifact } from '../../protocol/state.ts';
import { emptyState, type SessionState } from '../../session/session-state.ts';
import type { Scope } from '../contract/store.ts';
import { endRun } from '../memory/claim.ts';
import { type SessionRow, type SnapshotRow, sessionKey, type Tables } from '../memory/tables.ts';
import { checkLine, format, parseLine, toLine } from './checked-line.ts';
import { type Disk, dataLoss } from './disk.ts';
import { Journal, type JournalReader, type Place } from './journal.ts';
import { journalName, sessionFolder } from './layout.ts';
import {
  applyChange,
  FileRow,
  type Saved,
  type SnapshotLine,
  type StateSource,
  sessionFields,
  snapshotFields,
  type TreeHead,
  type TreeLine,
  toSaved,
} from './rows.ts';
import { fromDelta, isArtifactHash, type StateDelta } from './state-delta.ts';

/** An artifact in the journal, and the saved files that it names. */
interface StoredArtifact extends Place {
  readonly files: readonly string[];
}

/** The result of a run, for repeated requests. */
export interface Receipt {
  readonly sessionId: string;
  readonly at: number;
  readonly value: Json;
}

/** A session as the journal has it. */
interface SavedSession {
  readonly fields: Saved;
  readonly head: SnapshotRow | undefined;
  /** Number of listed snapshots. */
  readonly listed: number;
}

/** The dependencies of a tree. */
export interface TreeContext {
  readonly disk: Disk;
  readonly tables: Tables;
  /** Called when the states of a tree are used. */
  readonly onUse: (tree: SessionTree) => void;
  /** Called when a session is forgotten, because its journal was replaced or is gone. */
  readonly onForget: (session: SessionRow) => void;
}

/** The tree of each session. */
const homes = new WeakMap<SessionRow, SessionTree>();

/** The tree of a session that has been written or read. */
export function homeOf(session: SessionRow): SessionTree | undefined {
  const tree = homes.get(session);
  return tree?.sessions.get(session.id) === session ? tree : undefined;
}

/** The size in bytes from which a journal is rewritten when more than half of it is artifacts that no snapshot has. */
const smallestRewritten = 1024 * 1024;

const artifactStart = Buffer.from('{"artifact":');
const contentStart = ',"content":';

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
  /** The last run of each session that ended. Its file may remain when its process died at that moment. */
  readonly lastEnded = new Map<string, string>();
  /** The results of runs under request ids, by run. */
  readonly receipts = new Map<string, Receipt>();
  /** The artifacts in the journal, by hash. */
  readonly artifacts = new Map<string, StoredArtifact>();
  /** The size of the journal from which {@link SessionTree.garbage} is looked for. */
  checkedFrom = smallestRewritten;
  readonly #context: TreeContext;
  #head: TreeHead | undefined;
  #isLoaded: boolean;

  constructor(
    folder: string,
    context: TreeContext,
    { isLoaded = true }: { readonly isLoaded?: boolean } = {},
  ) {
    this.folder = folder;
    this.journal = new Journal(context.disk, `${folder}/${journalName}`, this);
    this.#context = context;
    this.#isLoaded = isLoaded;
  }

  /** Whose sessions these are; `undefined` for a folder in the wrong place, such as a copy that was made by hand. */
  get scope(): Scope | undefined {
    return this.#head && toScope(this.#head);
  }

  /** Whether the states of its snapshots are in memory. */
  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  /** Makes the tables equal to the journal. */
  refresh(): void {
    this.journal.refresh();
  }

  /** Sets the head line of a tree that has no journal yet. */
  begin(scope: Scope, root: string): void {
    this.journal.refresh();
    if (this.journal.exists) return;
    this.#head = { waymark: format, id: this.#context.tables.newId(), ...scope, session: root };
  }

  /** The first line of a rewritten journal. */
  newHead(): string {
    return toLine({ ...this.#head, waymark: format, id: this.#context.tables.newId() });
  }

  /** Writes artifacts and one change of a session. */
  write(
    session: SessionRow,
    line: TreeLine,
    artifacts: ReadonlyMap<string, Artifact> = new Map(),
  ): void {
    if (this.#head === undefined) throw new Error('A tree begins with its head line.');
    const head = this.journal.exists ? [] : [toLine(this.#head)];
    const contents = Array.from(artifacts, ([hash, artifact]) => toArtifactLine(hash, artifact));
    let at = this.journal.size + Buffer.byteLength(head.map((text) => `${text}\n`).join(''));
    this.journal.append([...head, ...contents, toLine(line)]);
    for (const [number, [hash, artifact]] of [...artifacts].entries()) {
      const length = Buffer.byteLength(contents[number] ?? '') + 1;
      this.artifacts.set(hash, { at, length, files: fileHashesIn([artifact]) });
      at += length;
    }
    for (const { id, state } of line.snapshots ?? []) {
      const row = this.#context.tables.snapshots.get(id);
      if (row instanceof FileRow) this.#settleRow(row, state);
    }
    for (const id of line.dropped ?? []) this.rows.delete(id);
    if (line.ended !== undefined) this.lastEnded.set(session.id, line.ended);
    this.#note(session, line);
    this.#settle(session);
    this.#context.onUse(this);
  }

  /** Reads an artifact. */
  readArtifact(hash: string): Artifact {
    const { name } = this.journal;
    const place = this.artifacts.get(hash);
    const bytes = place && this.readLine(place);
    if (bytes === undefined) throw dataLoss(name, `it lacks the artifact "${hash}"`);
    checkLine(bytes, name, `artifact "${hash}"`);
    const { content } = parseLine(bytes, name, `artifact "${hash}"`);
    const artifact = content as unknown as Artifact;
    if (isArtifactHash(artifact, hash)) return artifact;
    throw dataLoss(name, `artifact "${hash}" does not fit its hash`);
  }

  /** The bytes of a line without its line feed. */
  readLine({ at, length }: Place): Buffer | undefined {
    return this.#context.disk.open(this.journal.name, ({ read }) => read(at, length - 1));
  }

  /** The saved files that its snapshots name. */
  neededFiles(): ReadonlySet<string> {
    const used = [...this.#usedArtifacts()];
    return new Set(used.flatMap((hash) => this.artifacts.get(hash)?.files ?? []));
  }

  /** Number of bytes of artifacts that no snapshot has. */
  garbage(): number {
    const used = this.#usedArtifacts();
    const unused = [...this.artifacts].filter(([hash]) => !used.has(hash));
    return unused.reduce((bytes, [, { length }]) => bytes + length, 0);
  }

  #usedArtifacts(): ReadonlySet<string> {
    return new Set([...this.rows.values()].flatMap((row) => row.artifacts));
  }

  loadStates(): void {
    const states = new Map<string, SessionState>();
    const reader = {
      reset: () => states.clear(),
      head: () => {},
      raw: isArtifactLine,
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
    new Journal(this.#context.disk, this.journal.name, reader).refresh();
    for (const row of this.rows.values()) {
      const state = states.get(row.id);
      // States that are in memory already are shared with their users.
      if (state !== undefined && !row.isLoaded) row.state = state;
    }
    this.#isLoaded = true;
    this.#context.onUse(this);
  }

  /** Frees the memory of all states. */
  unload(): void {
    for (const row of this.rows.values()) row.unload();
    this.#isLoaded = false;
  }

  /** Takes the tree out of the tables. */
  forget(): void {
    this.journal.forget();
  }

  reset(): void {
    const { snapshots, sessions, dead } = this.#context.tables;
    for (const row of this.rows.values()) {
      if (snapshots.get(row.id) === row) snapshots.delete(row.id);
      dead.delete(row.id);
    }
    for (const session of this.sessions.values()) {
      const key = sessionKey(session.scope, session.id);
      if (sessions.get(key) === session) sessions.delete(key);
      this.#context.onForget(session);
    }
    this.#head = undefined;
    this.checkedFrom = smallestRewritten;
    for (const map of [this.sessions, this.saved, this.rows, this.lastEnded]) map.clear();
    for (const map of [this.receipts, this.artifacts]) map.clear();
  }

  head(line: JsonObject): void {
    const head = line as unknown as TreeHead;
    if (sessionFolder(toScope(head), head.session) === this.folder) this.#head = head;
  }

  raw(line: Buffer, place: Place): boolean {
    if (!isArtifactLine(line)) return false;
    const head = `${line.toString('utf8', 0, line.indexOf(contentStart))}}`;
    const { artifact, files } = JSON.parse(head) as { artifact: string; files: string[] };
    this.artifacts.set(artifact, { ...place, files });
    return true;
  }

  line(content: JsonObject): void {
    const { scope } = this;
    if (scope === undefined) return;
    const { tables } = this.#context;
    const line = content as unknown as TreeLine;
    const { id } = line.session;
    const session = this.sessions.get(id) ?? this.#newSession(scope, id);
    // A new one has all its fields before its snapshots refer to it.
    const { head, ...fields } = line.session;
    applyChange(session, fields, [...sessionFields, 'nextIndex'], (of) => this.#rowOf(of));
    for (const snapshot of line.snapshots ?? []) this.#put(session, snapshot);
    for (const dropped of line.dropped ?? []) {
      this.rows.delete(dropped);
      tables.snapshots.delete(dropped);
    }
    if (head !== undefined) session.head = head === null ? undefined : this.#rowOf(String(head));
    if (line.ended !== undefined) {
      this.lastEnded.set(id, line.ended);
      if (session.run?.id === line.ended) endRun(tables, session.run);
    }
    this.#note(session, line);
    for (const { run: runId, since, ...dead } of line.dead ?? []) {
      tables.dead.set(runId, { ...dead, runId, session, since: Date.parse(since) });
    }
    for (const runId of line.undead ?? []) tables.dead.delete(runId);
    this.#settle(session);
  }

  /** Keeps the results of runs. */
  #note({ id: sessionId }: SessionRow, { receipts = [] }: TreeLine): void {
    for (const { run, at, value } of receipts) {
      this.receipts.set(run, { sessionId, at: Date.parse(at), value });
    }
  }

  #newSession(scope: Scope, id: string): SessionRow {
    const session: SessionRow = {
      scope,
      id,
      createdAt: 0,
      updatedAt: 0,
      head: undefined,
      listed: [],
      nextIndex: 0,
      run: undefined,
    };
    this.#context.tables.sessions.set(sessionKey(scope, id), session);
    return session;
  }

  #put(session: SessionRow, line: SnapshotLine): void {
    const { id, index = -1, state } = line;
    const known = this.rows.get(id);
    const isNewInList = index >= 0 && (known === undefined || known.index < 0);
    const row = known ?? new FileRow({ id, session } as SnapshotRow);
    if (state !== undefined && this.#isLoaded) {
      row.state = this.#stateOf(id, state, this.rows.get(state.base ?? '')?.state);
    } else if (state !== undefined) row.unload();
    known?.clear();
    applyChange<SnapshotRow>(row, { ...line, index }, snapshotFields, (of) => this.#rowOf(of));
    if (isNewInList) {
      session.listed.push(row);
      session.nextIndex = Math.max(session.nextIndex, index + 1);
    }
    this.#context.tables.snapshots.set(id, row);
    this.#settleRow(row, state);
    this.#context.tables.emitter.emit(id);
  }

  #stateOf(id: string, delta: StateDelta, base: SessionState | undefined): SessionState {
    if (delta.base !== undefined && base === undefined) {
      throw dataLoss(this.journal.name, `snapshot "${id}" builds on one that is not in it`);
    }
    return fromDelta(delta, base ?? emptyState, (hashes) =>
      hashes.map((hash) => this.readArtifact(hash)),
    );
  }

  /** Notes that the journal has a session as it is. */
  #settle(session: SessionRow): void {
    this.sessions.set(session.id, session);
    const { head, listed } = session;
    this.saved.set(session.id, {
      fields: toSaved(session, sessionFields),
      head,
      listed: listed.length,
    });
    homes.set(session, this);
  }

  /** Notes that the journal has a snapshot as it is. */
  #settleRow(row: FileRow, state: SnapshotLine['state']): void {
    const base = this.rows.get(state === undefined ? row.id : (state.base ?? ''));
    row.settle(this, state?.artifacts ?? base?.artifacts ?? []);
    this.rows.set(row.id, row);
  }

  #rowOf(id: string): SnapshotRow {
    const row = this.rows.get(id);
    if (row === undefined) throw dataLoss(this.journal.name, `snapshot "${id}" is not in it`);
    return row;
  }
}

function isArtifactLine(line: Buffer): boolean {
  return line.subarray(0, artifactStart.length).equals(artifactStart);
}

/** An artifact as a line of the journal. The content comes last, so that readers can skip it. */
export function toArtifactLine(hash: string, artifact: Artifact): string {
  return toLine({ artifact: hash, files: fileHashesIn([artifact]), content: artifact });
}

/** The scope that a head line has. */
export function toScope({ agent, owner }: Pick<TreeHead, 'agent' | 'owner'>): Scope {
  return owner === undefined ? { agent } : { agent, owner };
}
