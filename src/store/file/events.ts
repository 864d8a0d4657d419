import type { JsonObject } from '../../core/json/json.ts';
import { systemClock } from '../../core/time.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import { appendTo, endEvents } from '../memory/events.ts';
import { KeptEvents } from '../memory/kept-events.ts';
import type { StoredEvents, Tables } from '../memory/tables.ts';
import { unpackEvents } from '../rules/event-body.ts';
import { format, toLine } from './checked-line.ts';
import { attempt, type Disk } from './disk.ts';
import { Journal, type JournalReader } from './journal.ts';
import { eventsFile, eventsFolder, extension } from './layout.ts';
import { iso, type TreeHead } from './rows.ts';
import type { FindHome } from './run-file.ts';
import { toScope } from './session-tree.ts';

/** New events in batches, and when the run ended. */
interface EventsLine {
  readonly events?: readonly { readonly attempt: number; readonly body: string }[];
  readonly endedAt?: string;
}

/** The events of a run, until shortly after its end. */
class EventFile implements JournalReader {
  readonly journal: Journal;
  readonly #runId: string;
  readonly #tables: Tables;
  readonly #find: FindHome;
  #log: StoredEvents | undefined;
  #saved = 0;
  #endedAt: number | undefined;

  constructor(disk: Disk, tables: Tables, runId: string, find: FindHome) {
    this.journal = new Journal(disk, eventsFile(runId), this);
    this.#runId = runId;
    this.#tables = tables;
    this.#find = find;
  }

  /** Writes new events, and when the run ended. */
  save(): void {
    const log = this.#tables.events.get(this.#runId);
    if (log === undefined) return;
    this.journal.refresh();
    const batches = log.kept.batchesFrom(this.#saved);
    const events = batches.map(({ attempt, body }) => ({ attempt, body }));
    const endedAt = this.#tables.endedAt.get(this.#runId);
    const isNew = events.length > 0 || endedAt !== this.#endedAt;
    const lines = [
      ...(this.journal.exists ? [] : [this.#newHead(log)]),
      ...(isNew
        ? [
            {
              ...(events.length === 0 ? {} : { events }),
              ...(endedAt === undefined ? {} : { endedAt: iso(endedAt) }),
            },
          ]
        : []),
    ];
    if (lines.length === 0) return;
    this.journal.append(lines.map(toLine), { durable: false });
    this.#log = log;
    this.#saved = log.kept.count;
    this.#endedAt = endedAt;
  }

  reset(): void {
    if (this.#log !== undefined && this.#tables.events.get(this.#runId) === this.#log) {
      this.#tables.events.delete(this.#runId);
      this.#tables.endedAt.delete(this.#runId);
    }
    this.#log = undefined;
    this.#saved = 0;
    this.#endedAt = undefined;
  }

  head(line: JsonObject): void {
    const head = line as unknown as TreeHead;
    const home = this.#find(toScope(head), head.session);
    if (home === undefined) return;
    this.#log = { session: home.session, kept: new KeptEvents() };
    this.#tables.events.set(this.#runId, this.#log);
  }

  line(line: JsonObject): void {
    const { events: packed = [], endedAt: end } = line as unknown as EventsLine;
    const events = packed.flatMap(({ attempt, body }) => unpackEvents(attempt, body));
    const log = this.#log;
    if (log === undefined) return;
    const run = this.#tables.runs.get(this.#runId);
    if (run === undefined) log.kept.append(events);
    else appendTo(this.#tables, run, events);
    this.#saved = log.kept.count;
    if (end === undefined) return;
    this.#endedAt = Date.parse(end);
    this.#tables.endedAt.set(this.#runId, this.#endedAt);
    sortByTime(this.#tables.endedAt);
  }

  #newHead({ session: { scope, id: session } }: StoredEvents): object {
    return { waymark: format, ...scope, session, run: this.#runId };
  }
}

/** The events of all runs. A run must be refreshed before its events are. */
export class EventFiles {
  readonly #disk: Disk;
  readonly #tables: Tables;
  readonly #find: FindHome;
  readonly #files = new Map<string, EventFile>();

  constructor(disk: Disk, tables: Tables, find: FindHome) {
    this.#disk = disk;
    this.#tables = tables;
    this.#find = find;
  }

  /** Makes the tables equal to the file of a run. */
  refresh(runId: string): void {
    if (!isSnapshotId(runId)) return;
    const file = this.#file(runId);
    file.journal.refresh();
    const { runs, endedAt } = this.#tables;
    if (!file.journal.exists) this.#files.delete(runId);
    // The process of the run died before it wrote the end.
    else if (!runs.has(runId) && !endedAt.has(runId)) endEvents(this.#tables, runId);
  }

  /** Writes the new events of a run. */
  save(runId: string): void {
    if (this.#tables.events.has(runId)) this.#file(runId).save();
  }

  /** Removes files of runs whose events the tables have forgotten. */
  sweep(): void {
    if (this.#files.size === this.#tables.events.size) return;
    for (const [runId, file] of this.#files) {
      if (this.#tables.events.has(runId)) continue;
      if (file.journal.exists) file.journal.remove();
      this.#files.delete(runId);
    }
  }

  /** Makes the tables equal to all files. A damaged one does not hide the others. Needs the open runs in the tables. */
  refreshAll(): void {
    for (const runId of this.#runIds()) attempt(() => this.refresh(runId));
  }

  /** Removes the files of runs that ended long ago, while no process was running. Needs the open runs in the tables. */
  removeOld(): void {
    const before = systemClock.now() - this.#tables.eventsTtl;
    for (const runId of this.#runIds().filter((id) => !this.#tables.runs.has(id))) {
      const name = `${eventsFolder}/${runId}${extension}`;
      if ((this.#disk.stat(name)?.changedAt ?? before) < before) this.#disk.unlink(name);
    }
  }

  forget(): void {
    for (const { journal } of this.#files.values()) journal.forget();
  }

  #runIds(): readonly string[] {
    return this.#disk.list(eventsFolder).map((name) => name.slice(0, -extension.length));
  }

  #file(runId: string): EventFile {
    const known = this.#files.get(runId);
    if (known !== undefined) return known;
    const file = new EventFile(this.#disk, this.#tables, runId, this.#find);
    this.#files.set(runId, file);
    return file;
  }
}

// Files are read in any order; the tables need the runs that ended first at the beginning.
function sortByTime(times: Map<string, number>): void {
  const sorted = [...times].sort(([, a], [, b]) => a - b);
  times.clear();
  for (const [runId, at] of sorted) times.set(runId, at);
}
