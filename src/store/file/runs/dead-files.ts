import * as v from 'valibot';
import { isWaymarkError } from '../../../core/error.ts';
import type { Tables } from '../../memory/tables.ts';
import { toLine } from '../directory/checked-line.ts';
import type { Disk } from '../directory/disk.ts';
import { dataLoss } from '../directory/disk-error.ts';
import { format, parseSealed } from '../directory/format.ts';
import { deadFile, deadFolder } from '../directory/layout.ts';
import type { FindHome } from './run-file.ts';
import { runRequest } from './run-line.ts';
import { requestOf } from './run-row.ts';

const letter = v.object({
  waymark: v.number(),
  run: v.string(),
  agent: v.string(),
  owner: v.optional(v.string()),
  session: v.string(),
  since: v.number(),
  inputsDone: v.number(),
  request: runRequest,
});

/** The dead-letter queue: a file for each run that was given up. */
export class DeadFiles {
  readonly #disk: Disk;
  readonly #tables: Tables;
  readonly #find: FindHome;

  constructor(disk: Disk, tables: Tables, find: FindHome) {
    this.#disk = disk;
    this.#tables = tables;
    this.#find = find;
  }

  /** Makes the tables say what the files say. */
  refresh(): void {
    const { dead } = this.#tables;
    dead.clear();
    const letters = this.#disk.list(deadFolder).flatMap((name) => this.#read(name) ?? []);
    for (const each of letters.toSorted((a, b) => a.since - b.since)) {
      const { agent, owner, run: runId, since, inputsDone } = each;
      const home = this.#find(owner === undefined ? { agent } : { agent, owner }, each.session);
      if (home === undefined) continue;
      const request = requestOf(each.request);
      dead.set(runId, { runId, session: home.session, request, inputsDone, since });
    }
  }

  /** Writes the letter of a run that is given up. */
  save(runId: string): void {
    const row = this.#tables.dead.get(runId);
    if (row === undefined) return;
    const { session, since, inputsDone, request } = row;
    const content: v.InferInput<typeof letter> = {
      waymark: format,
      run: runId,
      ...session.scope,
      session: session.id,
      since,
      inputsDone,
      request: { ...request, inputs: request.inputs },
    };
    this.#disk.replace(deadFile(runId), `${toLine(content)}\n`);
  }

  /** Removes the letters that the tables do not have, or whose snapshot is gone. */
  sweep(): void {
    const { dead, snapshots } = this.#tables;
    const kept = [...dead.keys()].filter((runId) => snapshots.has(runId)).map(deadFile);
    for (const name of this.#disk.list(deadFolder)) {
      if (!kept.includes(`${deadFolder}/${name}`)) this.#disk.remove(`${deadFolder}/${name}`);
    }
  }

  #read(name: string): v.InferOutput<typeof letter> | undefined {
    const file = `${deadFolder}/${name}`;
    const text = name.endsWith('.json') ? this.#disk.readText(file) : undefined;
    if (text === undefined) return undefined;
    try {
      return v.parse(letter, parseSealed(text, file));
    } catch (cause) {
      if (isWaymarkError(cause)) throw cause;
      throw dataLoss(file, 'it is not what this store writes', cause);
    }
  }
}
