import * as v from 'valibot';
import type { Json, JsonObject } from '../../../core/json/json.ts';
import { privateField } from '../../../core/private-field.ts';
import type { Scope } from '../../contract/store.ts';
import { endRun } from '../../memory/claim.ts';
import { type SessionRow, type SnapshotRow, sessionKey, type Tables } from '../../memory/tables.ts';
import type { Disk } from '../directory/disk.ts';
import { dataLoss } from '../directory/disk-error.ts';
import { format } from '../directory/format.ts';
import { journalName, safeName, scopeFolder } from '../directory/layout.ts';
import { ArtifactFiles, type FindFile } from './artifact-files.ts';
import { Journal, type JournalReader, type NewFile, type Portion } from './journal.ts';
import {
  type JournalHead,
  type JournalLine,
  journalHead,
  journalLine,
  SavedSession,
  SavedSnapshot,
  type SessionChange,
  type SnapshotChange,
  type SnapshotLine,
} from './journal-line.ts';
import {
  emptied,
  keepStates,
  optionalOfSession,
  optionalOfSnapshot,
  withLazyState,
  youngRow,
} from './rows.ts';
import { States, type StatesOptions } from './states.ts';

/** A row as the journal has it. */
export interface SavedRow {
  readonly row: SnapshotRow;
  /** The hashes of its artifacts. */
  readonly artifacts: readonly string[];
  /** To know what changes; not in a copy, of which nothing is written. */
  readonly was: SavedSnapshot | undefined;
}

/** What a line says of a snapshot besides its state. */
export type RowFields = Omit<SnapshotRow, 'id' | 'session' | 'state'>;

const noArtifacts: readonly string[] = [];

/** What a run came to, for those who ask again under its request ids. */
export interface Receipt {
  readonly sessionId: string;
  readonly at: number;
  readonly value: Json;
}

/** What a rewritten journal does not have any more, by id; receipts by the id of their run. */
export interface Gone {
  readonly sessions: ReadonlySet<string>;
  readonly snapshots: ReadonlySet<string>;
  readonly receipts: ReadonlySet<string>;
}

/** Which family has a session. */
export const homes = privateField<SessionRow, SessionTree | undefined>();

/** What families are made for. */
export interface SessionTreeContext {
  readonly disk: Disk;
  readonly tables: Tables;
  /** Hears that the states of a family were looked at. */
  readonly use: (tree: SessionTree) => void;
  readonly findFile: FindFile;
  /** The map that holds its rows. @default a new map */
  readonly rows?: Map<string, SavedRow>;
  readonly states?: Omit<StatesOptions, 'onUse'>;
}

/**
 * A session and its forks. They share a journal, so that what they have in common stands in it once. Their rows live in the
 * tables of the memory store; a family makes these say what the journal says, and knows what that is.
 */
export class SessionTree implements JournalReader {
  readonly folder: string;
  readonly journal: Journal;
  readonly artifacts: ArtifactFiles;
  readonly states: States;
  /** What the journal has: sessions, as they are and as they were written, and snapshots in the order of their first lines. */
  readonly sessions = new Map<string, SessionRow>();
  readonly saved = new Map<string, SavedSession>();
  readonly rows: Map<string, SavedRow>;
  /** By session: the last run that ended. Its file may still be there when its process died at that moment. */
  readonly lastEnded = new Map<string, string>();
  /** By run: what runs under request ids came to. */
  readonly receipts = new Map<string, Receipt>();
  readonly #disk: Disk;
  readonly #tables: Tables;
  #head: JournalHead | undefined;
  /** The sessions of a journal that is read again; references to them stay valid. */
  #former: Map<string, SessionRow> | undefined;

  constructor(
    folder: string,
    { disk, tables, use, findFile, rows = new Map(), states }: SessionTreeContext,
  ) {
    this.folder = folder;
    this.journal = new Journal(disk, `${folder}/${journalName}`, this);
    this.artifacts = new ArtifactFiles(disk, folder, { newId: tables.newId, findFile });
    const onUse = () => use(this);
    this.states = new States(disk, this.journal.name, this.artifacts, { ...states, onUse });
    this.rows = rows;
    this.#disk = disk;
    this.#tables = tables;
  }

  /** Whose sessions these are; `undefined` for a folder that is not where it belongs, as after copying one by hand. */
  get scope(): Scope | undefined {
    return this.#head && toScope(this.#head);
  }

  /** Makes the tables say what the journal says. */
  refresh(): void {
    this.journal.refresh();
    this.#former = undefined;
  }

  /** Reads a portion of what the journal has new; returns whether that was all of it. */
  refreshSome(some: Portion): boolean {
    const isAll = this.journal.refreshSome(some);
    if (isAll) this.#former = undefined;
    return isAll;
  }

  /**
   * Takes note that the journal was rewritten without some snapshots, sessions and receipts, without reading it again. Only
   * after a refresh. `moved` are the rows that stay and have another parent now. The states of what is gone stay until {@link SessionTree.forgetStates}.
   */
  rewritten(file: NewFile, gone: Gone, moved: Iterable<SnapshotRow>): void {
    const { sessions, runs, snapshots } = this.#tables;
    for (const id of gone.sessions) {
      const session = this.sessions.get(id);
      if (session === undefined) continue;
      sessions.delete(sessionKey(session.scope, id));
      if (session.run !== undefined) runs.delete(session.run.id);
      homes.set(session, undefined);
      this.sessions.delete(id);
      this.saved.delete(id);
      this.lastEnded.delete(id);
    }
    for (const id of gone.snapshots) {
      snapshots.delete(id);
      this.rows.delete(id);
    }
    for (const row of moved) {
      const saved = this.rows.get(row.id);
      if (saved !== undefined) this.save(row, saved.artifacts);
    }
    for (const session of this.sessions.values())
      this.saved.set(session.id, new SavedSession(session));
    for (const run of gone.receipts) this.receipts.delete(run);
    this.#head = v.parse(journalHead, JSON.parse(file.head.toString('utf8')));
    this.journal.replaced(file);
  }

  /** Frees the states of snapshots that are gone. */
  forgetStates(ids: readonly string[]): void {
    for (const id of ids) if (!this.rows.has(id)) this.states.delete(id);
  }

  /** Names the folder of a family that has no journal yet. */
  begin(scope: Scope, root: string): void {
    // A dead process may have left the beginning of one.
    if (!this.journal.exists) this.journal.refresh();
    if (this.journal.exists) return;
    this.#head = { waymark: format, id: this.#tables.newId(), ...scope, session: root };
  }

  /** The first line of the rewritten journal. */
  newHead(): JournalHead | undefined {
    return this.#head && { ...this.#head, waymark: format, id: this.#tables.newId() };
  }

  /** Writes one change and takes in what it says. */
  write(session: SessionRow, line: JournalLine): void {
    const head = this.journal.exists ? undefined : this.#head;
    if (head !== undefined) this.#disk.makeFolder(this.folder);
    this.journal.append(head === undefined ? [line] : [head, line]);
    keepStates(session, this.states);
    for (const snapshot of line.snapshots ?? []) {
      const row = this.#tables.snapshots.get(snapshot.id);
      if (row === undefined) continue;
      this.states.keep(row, { isNew: this.rows.get(row.id)?.row !== row });
      this.#adopt(row, snapshot.state);
    }
    for (const id of line.dropped ?? []) this.#drop(id);
    if (line.ended !== undefined) this.lastEnded.set(session.id, line.ended);
    for (const { run, at, value } of line.receipts ?? []) {
      this.receipts.set(run, { sessionId: session.id, at: Date.parse(at), value: value as Json });
    }
    this.#settle(session);
  }

  /** Whether the journal has expired receipts. */
  hasOldReceipts(before: number): boolean {
    return [...this.receipts.values()].some(({ at }) => at <= before);
  }

  /** Whether something in the journal has an artifact. */
  hasArtifact(hash: string): boolean {
    return [...this.rows.values()].some((row) => row.artifacts.includes(hash));
  }

  /** Takes a session in as it has been written. */
  #settle(session: SessionRow): void {
    this.sessions.set(session.id, session);
    homes.set(session, this);
    this.saved.set(session.id, new SavedSession(session));
  }

  reset(): void {
    const { snapshots, sessions, runs } = this.#tables;
    for (const { row } of this.rows.values()) {
      if (snapshots.get(row.id) === row) snapshots.delete(row.id);
    }
    for (const session of this.sessions.values()) {
      sessions.delete(sessionKey(session.scope, session.id));
      if (session.run !== undefined) runs.delete(session.run.id);
      homes.set(session, undefined);
      this.#former ??= new Map();
      this.#former.set(session.id, session);
    }
    this.sessions.clear();
    this.saved.clear();
    this.rows.clear();
    this.lastEnded.clear();
    this.receipts.clear();
    this.states.reset();
    this.#head = undefined;
  }

  head(line: JsonObject): void {
    const head = v.parse(journalHead, line);
    const home = `${scopeFolder(toScope(head))}/${safeName(head.session)}`;
    if (home === this.folder) this.#head = head;
  }

  line(line: JsonObject): void {
    const { scope } = this;
    if (scope === undefined) return;
    const change = v.parse(journalLine, line);
    const { snapshots = [], dropped = [], ended, receipts = [] } = change;
    const session = this.#sessionOf(scope, change.session);
    for (const snapshot of snapshots) this.#put(session, snapshot);
    for (const id of dropped) {
      this.#drop(id);
      this.#tables.snapshots.delete(id);
    }
    this.#change(session, change.session);
    if (ended !== undefined) this.#end(session, ended);
    for (const { run, at, value } of receipts) {
      this.receipts.set(run, { sessionId: session.id, at, value: value as Json });
    }
    this.#settle(session);
  }

  #sessionOf(
    scope: Scope,
    { id, createdAt = 0, forkedFrom, startedBy }: SessionChange,
  ): SessionRow {
    const known = this.sessions.get(id);
    if (known !== undefined) return known;
    const session = youngRow<SessionRow>({
      scope,
      id,
      createdAt,
      updatedAt: createdAt,
      ...(forkedFrom === undefined ? {} : { forkedFrom }),
      ...(startedBy === undefined ? {} : { startedBy }),
      head: undefined,
      // Young like the row itself, which an array literal may not be.
      listed: Array.of(),
      nextIndex: 0,
      run: undefined,
    });
    const former = this.#former?.get(id);
    const row =
      former === undefined ? session : Object.assign(emptied(former, optionalOfSession), session);
    this.#tables.sessions.set(sessionKey(scope, id), row);
    keepStates(row, this.states);
    return row;
  }

  #change(session: SessionRow, change: SessionChange): void {
    const { updatedAt, title, metadata, head, nextIndex, inbox } = change;
    if (updatedAt !== undefined) session.updatedAt = updatedAt;
    if (title === null) delete session.title;
    else if (title !== undefined) session.title = title;
    if (metadata === null) delete session.metadata;
    else if (metadata !== undefined) session.metadata = metadata;
    if (head !== undefined) session.head = head === null ? undefined : this.#rowOf(head);
    if (nextIndex !== undefined) session.nextIndex = nextIndex;
    if (inbox === null) delete session.inbox;
    else if (inbox !== undefined) session.inbox = inbox;
  }

  #put(session: SessionRow, change: SnapshotChange): void {
    const { id, parent, index = -1, state, ...fields } = change;
    const known = this.rows.get(id)?.row;
    const isNewInList = index >= 0 && (known === undefined || known.index < 0);
    const rest = {
      ...fields,
      index,
      parent: parent === undefined ? undefined : this.#rowOf(parent),
    };
    if (state !== undefined) this.states.apply(id, state);
    const row = known === undefined ? this.newRow(id, session, rest) : this.changedRow(known, rest);
    if (isNewInList) {
      session.listed.push(row);
      session.nextIndex = Math.max(session.nextIndex, index + 1);
    }
    this.#tables.snapshots.set(id, row);
    this.#adopt(row, state);
    this.#tables.emitter.emit(id);
  }

  /** Takes a row in as it stands in the journal. */
  #adopt(row: SnapshotRow, state: SnapshotLine['state']): void {
    const before = this.rows.get(state === undefined ? row.id : (state.base ?? ''));
    this.save(row, state?.artifacts ?? before?.artifacts ?? noArtifacts);
  }

  /** A row for a snapshot whose state, if it has one, has been applied. */
  protected newRow(id: string, session: SessionRow, fields: RowFields): SnapshotRow {
    return withLazyState({ id, session, ...fields });
  }

  /** The same row as a later line has it. */
  protected changedRow(row: SnapshotRow, fields: RowFields): SnapshotRow {
    return Object.assign(emptied(row, optionalOfSnapshot), fields);
  }

  /** Takes note that the journal has a row as it is now. */
  protected save(row: SnapshotRow, artifacts: readonly string[]): void {
    this.rows.set(row.id, { row, artifacts, was: new SavedSnapshot(row) });
  }

  #drop(id: string): void {
    this.rows.delete(id);
    this.states.delete(id);
  }

  #rowOf(id: string): SnapshotRow {
    const saved = this.rows.get(id);
    if (saved === undefined) throw dataLoss(this.journal.name, `snapshot "${id}" is not in it`);
    return saved.row;
  }

  #end(session: SessionRow, runId: string): void {
    this.lastEnded.set(session.id, runId);
    if (session.run?.id === runId) endRun(this.#tables, session.run);
  }
}

function toScope({ agent, owner }: JournalHead): Scope {
  return owner === undefined ? { agent } : { agent, owner };
}
