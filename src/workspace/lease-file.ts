import { randomUUID } from 'node:crypto';
import {
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { codeOf } from '../core/error.ts';
import { metadataFolder } from './contract/paths.ts';
import { fileSystemTime, makeMetadataFolder } from './scanner.ts';

/** The content of a lease file. */
export interface LeaseRecord {
  readonly runId: string;
  readonly attempt: number;
  /** Absent once it is released. */
  readonly process?: ProcessId;
  /** Changes with each heartbeat. */
  readonly beat: number;
}

/** Identifies a process among those that may use a folder. */
interface ProcessId {
  readonly host: string;
  readonly pid: number;
  /** When it was started, where the system tells: process ids are used again. */
  readonly start: string;
}

/** The lease of a folder as a process found it. */
export interface FoundLease {
  /** Each owner creates the next one, so that only one of several takes a lease over. */
  readonly generation: number;
  /** `undefined` if it is being written. */
  readonly record: LeaseRecord | undefined;
}

/** The lease files of a folder. */
export interface LeaseFiles {
  /** The current one; `undefined` before the first one. */
  find(): FoundLease | undefined;
  /** Creates a lease. Returns whether no other process was faster. */
  create(generation: number, record: LeaseRecord): boolean;
  /** Replaces the content of the own lease. */
  write(generation: number, record: LeaseRecord): void;
  /** Milliseconds since the last heartbeat, by the clock of the file system. */
  ageOf(generation: number): number;
}

export function leaseFiles(root: string): LeaseFiles {
  const folder = join(root, metadataFolder, 'lock');
  const pathOf = (generation: number): string => join(folder, String(generation));
  const generations = (): readonly number[] =>
    readdirSync(folder)
      .filter((name) => /^\d{1,15}$/.test(name))
      .map(Number);
  const prepare = (): void => {
    makeMetadataFolder(root);
    mkdirSync(folder, { recursive: true });
  };
  return {
    find() {
      prepare();
      const generation = Math.max(0, ...generations());
      return generation === 0 ? undefined : { generation, record: readRecord(pathOf(generation)) };
    },
    create(generation, record) {
      if (!writeNew(pathOf(generation), JSON.stringify(record))) return false;
      const all = generations();
      // A slow process may create one that had been cleaned up.
      if (all.some((each) => each > generation)) {
        rmSync(pathOf(generation), { force: true });
        return false;
      }
      // The previous one stays, so that every listing of the folder has one.
      for (const each of all) if (each < generation - 1) rmSync(pathOf(each), { force: true });
      return true;
    },
    write(generation, record) {
      prepare();
      const temporary = join(folder, `new-${randomUUID()}`);
      writeFileSync(temporary, JSON.stringify(record));
      renameSync(temporary, pathOf(generation));
    },
    ageOf(generation) {
      const stat = lstatSync(pathOf(generation), { throwIfNoEntry: false });
      const now = fileSystemTime(root);
      return stat === undefined || now === undefined ? 0 : now - stat.mtimeMs;
    },
  };
}

/** Creates a file with its content in one step, also for a process that is killed. Returns whether there was none. */
function writeNew(path: string, text: string): boolean {
  const temporary = join(dirname(path), `new-${randomUUID()}`);
  writeFileSync(temporary, text);
  try {
    linkSync(temporary, path);
    return true;
  } catch (error) {
    const code = codeOf(error) ?? '';
    if (code === 'EEXIST') return false;
    // Some file systems have no links. Without its content, a lease is taken over once it is old.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(code)) throw error;
    return writeExclusively(path, text);
  } finally {
    rmSync(temporary, { force: true });
  }
}

function writeExclusively(path: string, text: string): boolean {
  try {
    writeFileSync(path, text, { flag: 'wx' });
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

function readRecord(path: string): LeaseRecord | undefined {
  try {
    const { runId, attempt, beat, process } = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof runId !== 'string' || typeof attempt !== 'number') return undefined;
    return { runId, attempt, beat, ...(process && { process }) };
  } catch {
    return undefined;
  }
}

/** This process. */
export function thisProcess(): ProcessId {
  return { host: thisHost(), pid: process.pid, start: startOf(process.pid) ?? '' };
}

/** Whether a process of this host is gone. Of another host, nothing is known. */
export function isGone({ host, pid, start }: ProcessId): boolean {
  if (host !== thisHost()) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === 'ESRCH';
  }
  const now = startOf(pid);
  return now !== undefined && now !== start;
}

let host: string | undefined;

/** Two containers may have the same host name, and each its own process ids. */
function thisHost(): string {
  host ??= [
    hostname(),
    tryTo(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    tryTo(() => readlinkSync('/proc/self/ns/pid')),
  ].join(' ');
  return host;
}

/** When a process was started; `undefined` where the system does not tell, `ended` if it only waits for its parent. */
function startOf(pid: number): string | undefined {
  const text = tryTo(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields?.[0] === 'Z' || fields?.[0] === 'X' ? 'ended' : fields?.[19];
}

function tryTo<Result>(action: () => Result): Result | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}
