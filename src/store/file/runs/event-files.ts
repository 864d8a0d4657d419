import { systemClock } from '../../../core/time/clock.ts';
import { endEvents } from '../../memory/events.ts';
import type { Tables } from '../../memory/tables.ts';
import { isSnapshotId } from '../../rules/ids.ts';
import type { Disk } from '../directory/disk.ts';
import { eventsFolder } from '../directory/layout.ts';
import type { Journal } from '../sessions/journal.ts';
import { EventFile } from './event-file.ts';
import type { FindHome } from './run-file.ts';

const extension = '.jsonl';

/** The events of all runs. Whether a run is open must have been found out before its events are refreshed. */
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

  /** Makes the tables say what the file says. */
  refresh(runId: string): void {
    if (!isSnapshotId(runId)) return;
    const file = this.#file(runId);
    file.refresh();
    const { runs, endedAt } = this.#tables;
    if (!file.journal.exists) this.#files.delete(runId);
    // Its process died before it could say so.
    else if (!runs.has(runId) && !endedAt.has(runId)) endEvents(this.#tables, runId);
  }

  /** Writes what is new about the events of a run. */
  save(runId: string): void {
    if (this.#tables.events.has(runId)) this.#file(runId).save(this.#tables.newId);
  }

  /** The file of this name, when it is known here. */
  journalAt(name: string): Journal | undefined {
    const runId = name.slice(eventsFolder.length + 1, -extension.length);
    return this.#files.get(runId)?.journal;
  }

  /** The runs that have a file. */
  runIds(): readonly string[] {
    return this.#disk.list(eventsFolder).map((name) => name.slice(0, -extension.length));
  }

  /** Removes the files of events whose time is over, or whose session is gone. */
  sweep(): void {
    if (this.#files.size === this.#tables.events.size) return;
    for (const [runId, file] of this.#files) {
      if (this.#tables.events.has(runId)) continue;
      if (file.journal.exists) file.remove();
      this.#files.delete(runId);
    }
  }

  /** Removes the files of runs that ended long ago while no process was running. */
  dropForgotten(): void {
    const before = BigInt(systemClock.now() - this.#tables.eventsTtl) * 1_000_000n;
    for (const runId of this.runIds().filter((id) => !this.#tables.runs.has(id))) {
      const name = `${eventsFolder}/${runId}${extension}`;
      const stamp = this.#disk.stamp(name);
      if (stamp !== undefined && stamp.changed < before) this.#disk.unlink(name);
    }
  }

  forget(): void {
    for (const { journal } of this.#files.values()) journal.forget();
  }

  #file(runId: string): EventFile {
    const known = this.#files.get(runId);
    if (known !== undefined) return known;
    const file = new EventFile(this.#disk, this.#tables, runId, this.#find);
    this.#files.set(runId, file);
    return file;
  }
}
