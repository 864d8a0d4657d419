import * as v from 'valibot';
import { isWaymarkError } from '../../../core/error.ts';
import { systemClock } from '../../../core/time/clock.ts';
import { type RequestMark, requestTtl } from '../../contract/store.ts';
import type { Tables } from '../../memory/tables.ts';
import { toLine } from '../directory/checked-line.ts';
import type { Disk } from '../directory/disk.ts';
import { dataLoss } from '../directory/disk-error.ts';
import { format, parseSealed } from '../directory/format.ts';
import { requestsFolder } from '../directory/layout.ts';
import { iso, time } from '../sessions/journal-line.ts';
import type { FindHome } from './run-file.ts';

const requestFile = v.object({
  waymark: v.number(),
  agent: v.string(),
  owner: v.optional(v.string()),
  session: v.string(),
  run: v.string(),
  digest: v.string(),
  at: time,
});

/** How often old files are looked for, in milliseconds. */
const sweepEvery = 3_600_000;

/**
 * Which run was claimed under which key. A file only points to the run: what came of it is in the journal of its session,
 * where it goes with the session. A file without its run says nothing.
 */
export class RequestFiles {
  readonly #disk: Disk;
  readonly #tables: Tables;
  readonly #find: FindHome;
  #sweptAt = 0;

  constructor(disk: Disk, tables: Tables, find: FindHome) {
    this.#disk = disk;
    this.#tables = tables;
    this.#find = find;
  }

  /** Makes the tables say of a key what the files say. */
  reach(key: string): void {
    const { requests } = this.#tables;
    requests.delete(key);
    const found = this.#read(key);
    if (found === undefined) return;
    const { agent, owner, session, run: runId, digest, at } = found;
    const home = this.#find(owner === undefined ? { agent } : { agent, owner }, session);
    if (home === undefined) return;
    const receipt = home.tree.receipts.get(runId);
    requests.set(key, {
      session: home.session,
      runId,
      digest,
      at: receipt?.at ?? at,
      ...(receipt === undefined ? {} : { receipt: receipt.value }),
    });
  }

  /** Writes what the tables say of keys that a run was claimed under. */
  save(marks: readonly RequestMark[]): void {
    for (const { key } of marks) {
      const request = this.#tables.requests.get(key);
      if (request === undefined) continue;
      const { session, runId, digest, at } = request;
      const content = {
        waymark: format,
        ...session.scope,
        session: session.id,
        run: runId,
        digest,
        at: iso(at),
      };
      this.#disk.unlink(fileOf(key));
      // Before the commit is, or the turn could be done again after a power cut.
      this.#disk.create(fileOf(key), Buffer.from(`${toLine(content)}\n`), {
        durable: true,
      });
      this.#disk.note(requestsFolder);
    }
    if (marks.length > 0) this.sweep();
  }

  /**
   * Removes files whose time is over, now and then. A receipt may be younger than the file, which says when the run was
   * claimed, so it stays for as long again.
   */
  sweep(): void {
    const now = systemClock.now();
    if (now - this.#sweptAt < sweepEvery) return;
    this.#sweptAt = now;
    const before = BigInt(now - 2 * requestTtl) * 1_000_000n;
    for (const name of this.#disk.list(requestsFolder)) {
      const stamp = this.#disk.stamp(`${requestsFolder}/${name}`);
      if (stamp !== undefined && stamp.changed < before) {
        this.#disk.unlink(`${requestsFolder}/${name}`);
      }
    }
  }

  #read(key: string): v.InferOutput<typeof requestFile> | undefined {
    const name = fileOf(key);
    const text = this.#disk.readText(name);
    // The power went while it was written: the claim had not been given out.
    if (text === undefined || !text.endsWith('\n')) return undefined;
    try {
      return v.parse(requestFile, parseSealed(text, name));
    } catch (cause) {
      if (isWaymarkError(cause)) throw cause;
      throw dataLoss(name, 'it is not what this store writes', cause);
    }
  }
}

function fileOf(key: string): string {
  return `${requestsFolder}/${key}.json`;
}
