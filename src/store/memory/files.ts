import { createSha256 } from '../../core/platform.ts';
import { fileHashesIn, treeHashesIn } from '../../protocol/artifacts.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { SessionState } from '../../session/session-state.ts';
import { namesOfNode } from '../../session/tree-node.ts';
import type { FileHolder, OpenFile, Scope, TreeWrite } from '../contract/store.ts';
import {
  checkFiles,
  damagedFile,
  fileHoldMs,
  hashOfBytes,
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
  readonly #nodes = new Map<string, Uint8Array>();
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

  /** As {@link FileSupport.writeTree}. */
  writeTree({ run }: FileHolder, { nodes, contents }: TreeWrite): readonly string[] {
    const tables = this.#tables();
    if (run !== undefined) currentRun(tables, run);
    const files = new Map(contents.map((bytes) => [hashOfBytes(bytes), bytes]));
    const written = new Map(nodes.map((bytes) => [hashOfBytes(bytes), bytes]));
    const missing = new Set<string>();
    for (const bytes of nodes) {
      const names = namesOfNode(bytes);
      for (const hash of names.files)
        if (!files.has(hash) && !this.#files.has(hash)) missing.add(hash);
      for (const hash of names.nodes) {
        if (!written.has(hash) && !this.#nodes.has(hash)) missing.add(hash);
      }
    }
    if (missing.size > 0) return [...missing];
    for (const [hash, bytes] of files) {
      const pieces = bytes.length === 0 ? [] : [bytes.slice()];
      if (!this.#files.has(hash)) this.#files.set(hash, { size: bytes.length, pieces });
    }
    for (const [hash, bytes] of written) this.#nodes.set(hash, bytes.slice());
    for (const hash of [...files.keys(), ...written.keys()]) {
      this.#holds.add({ runId: run?.runId, at: tables.clock.now(), hash });
    }
    return [];
  }

  readTree(hashes: readonly string[]): readonly (Uint8Array | undefined)[] {
    return hashes.map((hash) => this.#nodes.get(hash));
  }

  open(hash: string): OpenFile | undefined {
    const file = this.#files.get(hash);
    return file && { size: file.size, read: (from, to) => read(file, from, to) };
  }

  check(_scope: Scope, state: SessionState, before: () => SessionState): void {
    checkFiles(state, before, (hash) => this.#files.has(hash) || this.#nodes.has(hash));
  }

  /** The fault of a file; `undefined`: none. */
  readonly problemOf = (hash: string): string | undefined => {
    const file = this.#files.get(hash);
    if (file === undefined) return damagedFile(hash, 'it is missing').message;
    const sum = createSha256();
    for (const piece of file.pieces) sum.update(piece);
    if (sum.hex() === hash) return undefined;
    return damagedFile(hash, 'its content does not fit its hash').message;
  };

  readonly node = (hash: string): Uint8Array | undefined => this.#nodes.get(hash);

  runEnded(runId: string): void {
    for (const hold of this.#holds) if (hold.runId === runId) this.#sweepLater();
  }

  // Most snapshots name no file, and a sweep looks at all that are left.
  removed(rows: readonly SnapshotRow[]): void {
    if (this.#isEmpty() || this.#isSweeping) return;
    const named = (artifacts: readonly Artifact[]) =>
      fileHashesIn(artifacts).length > 0 || treeHashesIn(artifacts).length > 0;
    if (rows.some(({ state }) => named(state.artifacts))) this.#sweepLater();
  }

  /** Looks for unused files when the caller is done. */
  #sweepLater(): void {
    if (this.#isEmpty() || this.#isSweeping) return;
    this.#isSweeping = true;
    queueMicrotask(() => {
      this.#isSweeping = false;
      this.#sweep();
    });
  }

  #isEmpty(): boolean {
    return this.#files.size === 0 && this.#nodes.size === 0;
  }

  #sweep(): void {
    if (this.#isEmpty()) return;
    for (const hold of this.#holds) if (!this.#isHeld(hold)) this.#holds.delete(hold);
    const needed = new Set<string>();
    for (const { hash } of this.#holds) this.#need(hash, needed);
    const { snapshots, runs } = this.#tables();
    const states = [
      ...Array.from(snapshots.values(), (row) => row.state),
      ...Array.from(runs.values(), (run) => run.checkpoint?.state),
    ];
    for (const state of states) {
      const artifacts = state?.artifacts ?? [];
      for (const hash of [...fileHashesIn(artifacts), ...treeHashesIn(artifacts)]) {
        this.#need(hash, needed);
      }
    }
    for (const table of [this.#files, this.#nodes]) {
      for (const hash of table.keys()) if (!needed.has(hash)) table.delete(hash);
    }
  }

  /** Notes that a file or a node is needed, with all that a node names. */
  #need(hash: string, needed: Set<string>): void {
    if (needed.has(hash)) return;
    needed.add(hash);
    const node = this.#nodes.get(hash);
    if (node === undefined) return;
    const { files, nodes } = namesOfNode(node);
    for (const each of files) needed.add(each);
    for (const each of nodes) this.#need(each, needed);
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
