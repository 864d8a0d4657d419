import { systemClock } from '../../../core/time/clock.ts';
import type { Tables } from '../../memory/tables.ts';
import { fileHoldMs } from '../../rules/file-pieces.ts';
import type { Disk } from '../directory/disk.ts';
import { uploadsFolder } from '../directory/layout.ts';

/** The files that runs, and imports, have stored and that no snapshot names yet: a folder for each. */
export class UploadFiles {
  readonly #disk: Disk;
  readonly #tables: Tables;

  constructor(disk: Disk, tables: Tables) {
    this.#disk = disk;
    this.#tables = tables;
  }

  /** The folder of a run or an import. */
  folderOf(id: string): string {
    return `${uploadsFolder}/${id}`;
  }

  /** Where some run has a file; `undefined` when none has it. */
  find(file: string): string | undefined {
    return this.#disk
      .list(uploadsFolder)
      .map((id) => `${this.folderOf(id)}/${file}`)
      .find((name) => this.#disk.stamp(name) !== undefined);
  }

  /** Removes what a run has stored that is over. An aborted one may still attach what it had reached. */
  end(runId: string): void {
    const folder = this.folderOf(runId);
    if (this.#disk.stamp(folder) === undefined) return;
    if (this.#tables.snapshots.get(runId)?.partialFrom === undefined) this.#disk.remove(folder);
  }

  /** Whether a run has stored something that may have to be removed. */
  has(runId: string): boolean {
    return this.#disk.stamp(this.folderOf(runId)) !== undefined;
  }

  /** Removes what processes left behind that died. Needs the open runs in the tables. */
  sweep(): void {
    for (const id of this.#disk.list(uploadsFolder)) {
      const changed = this.#disk.stamp(this.folderOf(id))?.changed ?? 0n;
      const age = systemClock.now() - Number(changed / 1_000_000n);
      const run = this.#tables.runs.get(id);
      const isAlive =
        run !== undefined && run.heartbeatAt + run.ttl + fileHoldMs > this.#tables.clock.now();
      if (!isAlive && age > fileHoldMs) this.#disk.remove(this.folderOf(id));
    }
  }
}
