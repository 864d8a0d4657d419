import { createSha256 } from '../../core/platform.ts';
import { fileHashesIn } from '../../protocol/artifacts.ts';
import type { SessionState } from '../../session/session-state.ts';
import type { FileHolder, OpenFile, Scope } from '../contract/store.ts';
import {
  checkFiles,
  damagedFile,
  fileHoldMs,
  inPieces,
  neededPieces,
} from '../rules/file-pieces.ts';
import { currentRun, type FileTable, type SnapshotRow, type Tables } from './tables.ts';

interface KeptFile {
  readonly size: number;
  readonly pieces: readonly Uint8Array[];
}

/** Files that a run, or an import, keeps until a state names them. */
interface Hold {
  readonly runId: string | undefined;
  readonly at: number;
  readonly hash: string;
}

/** The files of a memory store, by the hash of their bytes. A file goes when nothing names or holds it any more. */
export class MemoryFiles implements FileTable {
  readonly #files = new Map<string, KeptFile>();
  readonly #holds = new Set<Hold>();
  readonly #tables: () => Tables;
  #isSweeping = false;

  constructor(tables: () => Tables) {
    this.#tables = tables;
  }

  async write(
    { run }: FileHolder,
    data: AsyncIterable<Uint8Array>,
  ): Promise<{ hash: string; size: number }> {
    const tables = this.#tables();
    const check = (): void => {
      if (run !== undefined) currentRun(tables, run);
    };
    check();
    const sum = createSha256();
    const pieces: Uint8Array[] = [];
    let size = 0;
    for await (const piece of inPieces(data)) {
      sum.update(piece);
      pieces.push(piece.slice());
      size += piece.length;
    }
    const hash = sum.hex();
    check();
    if (!this.#files.has(hash)) this.#files.set(hash, { size, pieces });
    this.#holds.add({ runId: run?.runId, at: tables.clock.now(), hash });
    return { hash, size };
  }

  open(hash: string): OpenFile | undefined {
    const file = this.#files.get(hash);
    return file && { size: file.size, read: (from, to) => read(file, from, to) };
  }

  check(_scope: Scope, state: SessionState, before: () => SessionState): void {
    checkFiles(state, before, (hash) => this.#files.has(hash));
  }

  /** The fault of a file; `undefined`: none. */
  problemOf(hash: string): string | undefined {
    const file = this.#files.get(hash);
    if (file === undefined) return damagedFile(hash, 'it is missing').message;
    const sum = createSha256();
    for (const piece of file.pieces) sum.update(piece);
    if (sum.hex() === hash) return undefined;
    return damagedFile(hash, 'its content does not fit its hash').message;
  }

  runEnded(runId: string): void {
    for (const hold of this.#holds) if (hold.runId === runId) this.#sweepLater();
  }

  // Most snapshots name no file, and a sweep looks at all that are left.
  removed(rows: readonly SnapshotRow[]): void {
    if (this.#files.size === 0 || this.#isSweeping) return;
    if (rows.some(({ state }) => fileHashesIn(state.artifacts).length > 0)) this.#sweepLater();
  }

  /** Looks for unused files when the caller is done. */
  #sweepLater(): void {
    if (this.#files.size === 0 || this.#isSweeping) return;
    this.#isSweeping = true;
    queueMicrotask(() => {
      this.#isSweeping = false;
      this.#sweep();
    });
  }

  #sweep(): void {
    if (this.#files.size === 0) return;
    for (const hold of this.#holds) if (!this.#isHeld(hold)) this.#holds.delete(hold);
    const needed = new Set(Array.from(this.#holds, ({ hash }) => hash));
    const { snapshots, runs } = this.#tables();
    const states = [
      ...Array.from(snapshots.values(), (row) => row.state),
      ...Array.from(runs.values(), (run) => run.checkpoint?.state),
    ];
    for (const state of states) {
      for (const hash of fileHashesIn(state?.artifacts ?? [])) needed.add(hash);
    }
    for (const hash of this.#files.keys()) if (!needed.has(hash)) this.#files.delete(hash);
  }

  #isHeld({ runId, at }: Hold): boolean {
    const { runs, snapshots, clock } = this.#tables();
    const isRecent = (time: number): boolean => time + fileHoldMs > clock.now();
    if (runId === undefined) return isRecent(at);
    const run = runs.get(runId);
    if (run !== undefined) return isRecent(run.heartbeatAt + run.ttl);
    // An aborted run may still attach what it had reached.
    return snapshots.get(runId)?.partialFrom !== undefined && isRecent(at);
  }
}

async function* read(
  { pieces }: KeptFile,
  from: number,
  to: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (const needed of neededPieces(from, to)) {
    const piece = pieces[needed.number];
    if (piece !== undefined) yield new Uint8Array(piece.slice(needed.from, needed.to));
  }
}
