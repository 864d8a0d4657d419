import type { RunRef } from './run.ts';
import type { Scope } from './snapshot-store.ts';

/**
 * Files: content that is stored and read in pieces, and never held in memory as a whole. A state names a file by its hash (see
 * `fileHashOf`), and the store keeps the file as long as a snapshot, a checkpoint or an open run names it. Branches and forks share it.
 */
export interface FileSupport {
  /**
   * Stores a file. Its bytes are on the disk when this resolves. If reading `data` fails, nothing is stored and the error is passed on.
   * Equal content is stored once.
   */
  write(holder: FileHolder, data: AsyncIterable<Uint8Array>): Promise<StoredFile>;
  /** Opens a file that a state of this session names, or that the run has written; `undefined` if it is not in the store. */
  open(place: FilePlace, hash: string): Promise<OpenFile | undefined>;
  /**
   * Stores nodes of trees, and contents of files, in one step. Agents with a workspace need it. A node (see `namesOfNode`) names files and
   * other nodes, which are kept as long as it is; a state names the topmost one (see `treeHashesIn`), and the store keeps it like a file.
   * Returns the hashes that the nodes name and that the store does not have: if there are any, it has stored nothing.
   */
  writeTree?(holder: FileHolder, write: TreeWrite): Promise<readonly string[]>;
  /** Reads nodes that a state of this session names, or that the run has written; `undefined` for one that is not in the store. */
  readTree?(
    place: FilePlace,
    hashes: readonly string[],
  ): Promise<readonly (Uint8Array | undefined)[]>;
}

/** Nodes and contents to be stored together. */
export interface TreeWrite {
  /** Nodes, each after those that it names. */
  readonly nodes: readonly Uint8Array[];
  /** Contents of files, each of at most 256 KiB. */
  readonly contents: readonly Uint8Array[];
}

/**
 * Keeps a file until a state names it. `run`: until the run ends or has been dead for an hour; a stale attempt is `ABORTED`. Without it: for
 * an hour, for an import.
 */
export interface FileHolder {
  /** Whose file it is, and of which agent. */
  readonly scope: Scope;
  /** The run that stores it; absent for an import. */
  readonly run?: RunRef;
}

/** Where a file is named. */
export interface FilePlace {
  /** The owner and the agent of the session. */
  readonly scope: Scope;
  /** The session whose state names it. */
  readonly sessionId: string;
  /** The open run that may have written it. */
  readonly runId?: string;
}

/** A file that has been stored. */
export interface StoredFile {
  /** SHA-256 of the bytes, in lower-case hex. */
  readonly hash: string;
  /** Number of bytes. */
  readonly size: number;
}

/** A file that can be read. */
export interface OpenFile extends Pick<StoredFile, 'size'> {
  /**
   * The bytes from one position to before another, in pieces of at most 256 KiB that are read when they are asked for, each in separate memory. Damaged content is
   * `DATA_LOSS`. Stop early by `return`, as `break` in a `for await` loop does.
   */
  read(from: number, to: number): AsyncGenerator<Uint8Array<ArrayBuffer>>;
}
