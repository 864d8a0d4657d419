import { systemClock } from '../../core/time.ts';
import { type RequestMark, requestTtl, type Scope } from '../contract/store.ts';
import type { Tables } from '../memory/tables.ts';
import { format, parseFile, toLine } from './checked-line.ts';
import type { Disk } from './disk.ts';
import { requestsFolder } from './layout.ts';
import { iso } from './rows.ts';
import type { FindHome } from './run-file.ts';
import { toScope } from './session-tree.ts';

/** The run that was claimed under a key. */
interface RequestLine extends Scope {
  readonly session: string;
  readonly run: string;
  readonly digest: string;
  readonly at: string;
}

/** How often old files are removed, in milliseconds. */
const sweepEvery = 3_600_000;

/**
 * The runs that were claimed under request ids, by key. A file only points to its run: the result is in the journal of the session and is
 * deleted with it. A file without its run means nothing.
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

  /** Makes the tables equal to the file of a key. */
  refresh(key: string): void {
    const { requests } = this.#tables;
    requests.delete(key);
    const name = fileOf(key);
    const text = this.#disk.readText(name);
    // The power failed while it was written: the claim was not acknowledged.
    if (text === undefined || !text.endsWith('\n')) return;
    const line = parseFile(text, name) as unknown as RequestLine;
    const { session, run: runId, digest, at } = line;
    const home = this.#find(toScope(line), session);
    if (home === undefined) return;
    const receipt = home.tree.receipts.get(runId);
    requests.set(key, {
      session: home.session,
      runId,
      digest,
      at: receipt?.at ?? Date.parse(at),
      ...(receipt === undefined ? {} : { receipt: receipt.value }),
    });
  }

  /** Writes the keys that a run was claimed under. */
  save(marks: readonly RequestMark[], claimed: string): void {
    for (const { key } of marks) {
      const request = this.#tables.requests.get(key);
      if (request?.runId !== claimed) continue;
      const { session, runId, digest, at } = request;
      const whose = { ...session.scope, session: session.id, run: runId };
      const line = toLine({ waymark: format, ...whose, digest, at: iso(at) });
      this.#disk.unlink(fileOf(key));
      // Synced before the commit: otherwise the turn could run again after a power cut.
      this.#disk.create(fileOf(key), Buffer.from(`${line}\n`), { durable: true });
    }
    if (marks.length > 0) this.sweep();
  }

  /**
   * Removes old files from time to time. A receipt may be newer than its file, which has the time of the claim, so files stay for
   * twice as long as receipts.
   */
  sweep(): void {
    const now = systemClock.now();
    if (now - this.#sweptAt < sweepEvery) return;
    this.#sweptAt = now;
    for (const name of this.#disk.list(requestsFolder).map((each) => `${requestsFolder}/${each}`)) {
      const { changedAt = now } = this.#disk.stat(name) ?? {};
      if (changedAt < now - 2 * requestTtl) this.#disk.unlink(name);
    }
  }
}

function fileOf(key: string): string {
  return `${requestsFolder}/${key}.json`;
}
