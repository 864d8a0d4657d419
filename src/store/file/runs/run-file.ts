import * as v from 'valibot';
import type { JsonObject } from '../../../core/json/json.ts';
import type { Scope } from '../../contract/store.ts';
import { endRun } from '../../memory/claim.ts';
import type { RunRow, Tables } from '../../memory/tables.ts';
import type { Disk } from '../directory/disk.ts';
import { format } from '../directory/format.ts';
import { Journal, type JournalReader } from '../sessions/journal.ts';
import { iso } from '../sessions/journal-line.ts';
import {
  type RunChange,
  runHead,
  runLine,
  type SavedRun,
  toRunLine,
  toSavedRun,
  toStart,
} from './run-line.ts';
import { changeRun, type Home, type RunArtifacts, toRun } from './run-row.ts';

/** The way to where a session lives; `undefined` when there is no such session. */
export type FindHome = (scope: Scope, sessionId: string) => Home | undefined;

/** The file of the run that works on a session. It stays for the next one, and says nothing meanwhile. */
export class RunFile implements JournalReader {
  readonly journal: Journal;
  readonly #tables: Tables;
  readonly #find: FindHome;
  readonly #artifacts: RunArtifacts = new Map();
  #run: RunRow | undefined;
  #home: Home | undefined;
  #saved: SavedRun | undefined;

  constructor(disk: Disk, tables: Tables, name: string, find: FindHome) {
    this.journal = new Journal(disk, name, this, { isPrivate: true });
    this.#tables = tables;
    this.#find = find;
  }

  /** The run as it was last written or read; not one that the session's journal knows to be over. */
  get run(): RunRow | undefined {
    return this.#run;
  }

  /** Makes the tables say what the file says, after the session's journal has been refreshed. */
  refresh(): void {
    const before = this.#run;
    // After the journal was read again, the run's rows are new objects.
    if (before !== undefined && this.#tables.runs.get(before.id) !== before) this.journal.forget();
    const isNew = this.journal.refresh();
    this.#linkRow();
    if (before !== undefined && before.id !== this.#run?.id) endRun(this.#tables, before);
    else if (isNew && this.#run !== undefined) this.#tables.emitter.emit(this.#run.id);
  }

  /** Writes a new run, in place of one that is over. */
  create(run: RunRow, home: Home): void {
    this.clear();
    this.#run = run;
    this.#home = home;
    this.#append({
      waymark: format,
      // New whenever the file is rewritten, as a run is.
      id: run.id,
      ...home.session.scope,
      session: home.session.id,
      run: run.id,
      createdAt: iso(run.createdAt),
      turnIndex: run.turnIndex,
      ...(run.start === undefined ? {} : { start: toStart(run.start) }),
      ...toRunLine(run, undefined),
    });
  }

  /** Writes what is new about the run. */
  update(): void {
    if (this.#run === undefined) return;
    const line = toRunLine(this.#run, this.#saved);
    if (Object.keys(line).length > 0) this.#append(line);
  }

  /** Leaves the file to the session's next run. */
  clear(): void {
    this.journal.clear();
  }

  remove(): void {
    this.journal.remove();
  }

  reset(): void {
    const run = this.#run;
    if (run !== undefined) {
      if (this.#tables.runs.get(run.id) === run) this.#tables.runs.delete(run.id);
      if (run.session.run === run) run.session.run = undefined;
    }
    this.#run = undefined;
    this.#home = undefined;
    this.#saved = undefined;
    this.#artifacts.clear();
  }

  head(line: JsonObject): void {
    const head = v.parse(runHead, line);
    const { agent, owner } = head;
    const home = this.#find(owner === undefined ? { agent } : { agent, owner }, head.session);
    if (home === undefined || home.tree.lastEnded.get(head.session) === head.run) return;
    const run = toRun(head, home);
    this.#run = run;
    this.#home = home;
    this.#tables.runs.set(run.id, run);
    run.session.run = run;
    this.#change(run, home, head);
  }

  line(line: JsonObject): void {
    if (this.#run === undefined || this.#home === undefined) return;
    this.#change(this.#run, this.#home, v.parse(runLine, line));
  }

  #change(run: RunRow, { tree }: Home, change: RunChange): void {
    changeRun(run, change, tree, this.#artifacts);
    this.#saved = toSavedRun(run);
  }

  #append(line: object): void {
    const run = this.#run;
    if (run === undefined) return;
    // A lost heartbeat is soon followed by another; and an attached run does not continue after a power cut.
    const isHeartbeat = Object.keys(line).every((key) => key === 'heartbeatAt');
    this.journal.append([line], { durable: run.request.mode !== 'attached' && !isHeartbeat });
    this.#saved = toSavedRun(run);
  }

  // A detached run has a pending snapshot under its own id.
  #linkRow(): void {
    const run = this.#run;
    const row = run && this.#home?.tree.rows.get(run.id)?.row;
    if (run !== undefined && row?.status === 'pending') run.row = row;
  }
}
