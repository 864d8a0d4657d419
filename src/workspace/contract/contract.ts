/**
 * A place for the files that an agent's sessions work on. Implement it for containers and remote sandboxes, and run
 * `workspaceContract` of `waymark/testing` against it. Its state outside of the files, such as the lock, must be kept where all
 * processes that use the place see it.
 */
export interface Workspace {
  /** The name, for errors: never a path of the machine. */
  readonly name: string;
  /** Whether each session has a separate folder. Otherwise sessions share one, and exclude each other while a turn runs. */
  readonly isPerSession: boolean;
  /**
   * Opens the folder of a session, and creates it if it does not exist and sessions have folders of their own. Changes nothing in a
   * folder that exists, except that it completes or undoes a change that a process began before it died.
   */
  open(session: WorkspaceSession): Promise<WorkspaceFolder>;
  /** Writes a tree into a folder outside of the workspace. FAILED_PRECONDITION unless it is missing or empty. */
  checkout(path: string, tree: TreeSource): Promise<readonly SkippedPath[]>;
}

/** The session whose folder is opened. */
export interface WorkspaceSession {
  /** The name of the agent. */
  readonly agent: string;
  /** The owner of the session, if it has one. */
  readonly owner?: string | undefined;
  /** Together with agent and owner, this identifies the folder where each session has its own. */
  readonly sessionId: string;
  /**
   * The tree that a session's folder begins with, called only when the folder is created. The folder exists once the tree is
   * complete. `undefined`: as the template.
   */
  readonly start?: () => Promise<TreeSource | undefined>;
  /** Absolute paths of files and folders that are no part of the tree, such as those of the store. */
  readonly exclude?: readonly string[];
}

/** The open folder of a session. Paths are relative to it, with `/` between folders. */
export interface WorkspaceFolder {
  /** Identifies the folder among all that processes on this machine can open; equal for sessions that share it. */
  readonly id: string;
  /** The absolute path, where the folder is on this machine. */
  readonly path?: string;
  /**
   * Takes the lock, which excludes all other owners in all processes. ABORTED if another owner has it, or, with `wait`, once the
   * signal aborts. The same owner takes it any number of times, and releases it as often. A later attempt of the same run takes it
   * from the earlier one at once; any other lock is taken over once its owner has been silent for too long.
   */
  lock(owner: LockOwner, options?: LockOptions): Promise<WorkspaceLock>;
  /**
   * The tree as it is now. A folder that has not changed since an earlier scan is the same object. It neither blocks the event
   * loop nor changes files.
   */
  scan(options?: ScanOptions): Promise<WorkspaceScan>;
  /**
   * The content of a file, in pieces. NOT_FOUND without such a file, PERMISSION_DENIED where it cannot be read, and ABORTED if its
   * content turns out to be different from `hash` (scan again).
   */
  read(path: string, options?: { readonly hash?: string }): AsyncIterable<Uint8Array>;
  /**
   * Makes all changes or none, also if the process dies. Each path must be as its `before` says, otherwise ABORTED, and where something
   * is in the way that no scan lists FAILED_PRECONDITION. Returns paths that cannot exist here, such as links on Windows. Only the
   * owner of the lock calls it.
   */
  apply(changes: readonly TreeChange[], options: ApplyOptions): Promise<readonly SkippedPath[]>;
  /** Runs a shell command in the folder. Absent where no process can be started. */
  execute?(command: string, options: ExecuteOptions): Promise<ExecuteResult>;
}

/** An entry of a folder. */
export type TreeEntry = TreeFile | TreeLink | TreeFolder;

/** A regular file. */
export interface TreeFile {
  /** A regular file. */
  readonly type: 'file';
  /** SHA-256 of the content, in lower-case hex. */
  readonly hash: string;
  /** Number of bytes. */
  readonly size: number;
  /** Whether its owner may execute it. */
  readonly isExecutable?: true;
}

/** A symbolic link, which is never followed. */
export interface TreeLink {
  /** A symbolic link. */
  readonly type: 'link';
  /** As it is stored in the link, inside or outside of the tree. */
  readonly target: string;
}

/** A folder. One that contains nothing but ignored paths is not in the tree; an empty one is. */
export interface TreeFolder {
  /** A folder. */
  readonly type: 'folder';
  /** By name, sorted by UTF-16 code units. */
  readonly entries: ReadonlyMap<string, TreeEntry>;
}

/** A tree with the contents of its files. */
export interface TreeSource {
  /** The root folder. */
  readonly tree: TreeFolder;
  /** Reads the content of its files. */
  readonly content: ReadContent;
}

/** Reads the content of a file of a tree. */
export type ReadContent = (file: TreeFile, path: string) => AsyncIterable<Uint8Array>;

/** The files of a folder at one time. */
export interface WorkspaceScan {
  /** The root folder. */
  readonly tree: TreeFolder;
  /** Paths that are no part of the tree although they are not ignored, sorted. Leave them alone: they may be in the tree of another time. */
  readonly skipped: readonly SkippedPath[];
  /** Number of files and links. */
  readonly count: number;
  /** The sizes of all files, in bytes. */
  readonly size: number;
}

/** A path that cannot be stored or written, and why. */
export interface SkippedPath {
  /** Names that are not UTF-8 have `\xNN` for each byte that is not. */
  readonly path: string;
  /**
   * `special`: a socket, device or pipe. `too-large`: above the limit for one file. `unreadable`: no permission. `name`: not UTF-8,
   * or with a character that trees do not allow. `changing`: it changed whenever it was read. `unsupported`: this system has no
   * such thing, such as a link on Windows. `collision`: this system takes its name for that of another entry. `rules`: a line of
   * a `.gitignore`, such as `.gitignore:3`, that takes too long to evaluate and is not applied.
   */
  readonly reason:
    | 'special'
    | 'too-large'
    | 'unreadable'
    | 'name'
    | 'changing'
    | 'unsupported'
    | 'collision'
    | 'rules';
}

/** Options of {@link WorkspaceFolder.scan}. */
export interface ScanOptions {
  /** Stops the scan. */
  readonly signal?: AbortSignal;
  /**
   * Paths that are part of the tree if they exist, also if a `.gitignore` excludes them: those of the files and links that a target
   * tree has and an earlier scan has not. What is in their way is part of the tree too. Scan with them before you call `apply`, so
   * that nothing is overwritten that was not saved.
   */
  readonly include?: readonly string[];
}

/** A path that differs between two trees. A change of a folder does not include its content, which has separate changes. */
export interface TreeChange {
  /** Where the change is, from the root. */
  readonly path: string;
  /**
   * The entry that a scan has found; `null`: none. `undefined`: whatever there is, except a folder with content. A file then keeps
   * its permissions.
   */
  readonly before?: TreeEntry | null;
  /** The new entry; `undefined` to remove it. */
  readonly after?: TreeEntry;
}

/** Options of {@link WorkspaceFolder.apply}. */
export interface ApplyOptions {
  /** The contents of new files. Not called for content that the folder has in the same place. */
  readonly content: ReadContent;
  /** Stops before the first change becomes visible. */
  readonly signal?: AbortSignal;
}

/** The owner of a lock: a root run, whose foreground sub-agents share it. */
export interface LockOwner {
  /** The run that holds the lock. */
  readonly runId: string;
  /** The attempt of the run; a later one takes the lock from an earlier one. @default 0 */
  readonly attempt?: number;
}

/** Options of {@link WorkspaceFolder.lock}. */
export interface LockOptions {
  /** Wait while another owner has it. @default false */
  readonly wait?: boolean;
  /** Stops waiting. */
  readonly signal?: AbortSignal;
}

/** A lock that is held. */
export interface WorkspaceLock {
  /** Aborts when another process has taken the lock: the folder belongs to that one, so stop without changing it. */
  readonly lost: AbortSignal;
  /** Gives the lock up. */
  release(): Promise<void>;
}

/** Options of {@link WorkspaceFolder.execute}. */
export interface ExecuteOptions {
  /** Ends the command with all processes that it has started. */
  readonly signal: AbortSignal;
  /** Ends the command after this time, in milliseconds. */
  readonly timeoutMs: number;
  /** Longer output is cut in the middle. */
  readonly maxOutputBytes: number;
  /** Environment variables in addition to those that commands need, such as `PATH`. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The outcome of a command. */
export interface ExecuteResult {
  /** `null` if a signal ended it. */
  readonly exitCode: number | null;
  /** Standard output and error as they came, as text. */
  readonly output: string;
  /** Whether the time limit ended it. */
  readonly timedOut: boolean;
  /** Number of bytes that were cut. */
  readonly cut: number;
}
