import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

type Call = (...args: unknown[]) => unknown;

/** Sees every call of some of Node's file functions while something runs. The real function is there to be called. */
async function intercept(
  names: readonly string[],
  seen: (name: string, args: readonly unknown[], real: Call) => unknown,
  action: () => Promise<unknown>,
): Promise<void> {
  const functions = fs as unknown as Record<string, Call | undefined>;
  const originals = new Map(names.map((name) => [name, functions[name]]));
  for (const [name, real] of originals) {
    if (real === undefined) throw new Error(`node:fs has no ${name}`);
    functions[name] = (...args) => seen(name, args, real);
  }
  syncBuiltinESMExports();
  try {
    await action();
  } finally {
    for (const [name, real] of originals) functions[name] = real;
    syncBuiltinESMExports();
  }
}

/** What was asked of the file system. */
export interface FileWork {
  readonly calls: number;
  readonly bytesWritten: number;
  readonly bytesRead: number;
}

const counted = [
  'openSync',
  'closeSync',
  'readSync',
  'writeSync',
  'statSync',
  'fstatSync',
  'ftruncateSync',
  'readdirSync',
  'readFileSync',
  'unlinkSync',
  'renameSync',
  'rmSync',
  'mkdirSync',
  'fdatasyncSync',
  'fsyncSync',
];

/** Counts what something asks of the file system. */
export async function countFileWork(action: () => Promise<unknown>): Promise<FileWork> {
  let work: FileWork = { calls: 0, bytesWritten: 0, bytesRead: 0 };
  await watchFileWork((done) => {
    work = done;
  }, action);
  return work;
}

/** Tells after each call what something has asked of the file system so far. */
async function watchFileWork(
  seen: (work: FileWork) => void,
  action: () => Promise<unknown>,
): Promise<void> {
  const work = { calls: 0, bytesWritten: 0, bytesRead: 0 };
  await intercept(
    counted,
    (name, args, real) => {
      const result = real(...args);
      work.calls++;
      if (name === 'writeSync') work.bytesWritten += Number(result);
      if (name === 'readSync') work.bytesRead += Number(result);
      seen(work);
      return result;
    },
    action,
  );
}

const changing = [
  'openSync',
  'writeSync',
  'ftruncateSync',
  'renameSync',
  'unlinkSync',
  'rmSync',
  'rmdirSync',
  'mkdirSync',
];

/**
 * Lets something run until it has changed the file system so many times, and then no more, as if the process had died in the
 * middle of the next change: half of what it writes is written, half of what it removes is removed. Returns whether it died.
 */
export async function dieAfter(changes: number, action: () => Promise<unknown>): Promise<boolean> {
  let left = changes;
  const die = (name: string, args: readonly unknown[], real: Call): never => {
    if (left-- === 0) half(name, args, real);
    throw new Error('the process is dead');
  };
  await intercept(
    changing,
    (name, args, real) => {
      if (name === 'openSync' && args[1] === 'r') return real(...args);
      if (left > 0) {
        left--;
        return real(...args);
      }
      return die(name, args, real);
    },
    () => action().catch(() => {}),
  );
  return left < 0;
}

function half(name: string, args: readonly unknown[], real: Call): void {
  if (name === 'writeSync') {
    const [fd, data, offset = 0, length = 0, place] = args as [
      number,
      Buffer,
      number,
      number,
      number,
    ];
    real(fd, data, offset, Math.floor(length / 2), place);
  }
  if (name === 'rmSync' && fs.statSync(String(args[0]), { throwIfNoEntry: false })?.isDirectory()) {
    const names = fs.readdirSync(String(args[0]));
    for (const each of names.slice(0, Math.ceil(names.length / 2))) {
      real(`${String(args[0])}/${each}`, { recursive: true, force: true });
    }
  }
}

/** Lets every write fail while something runs, as on a full disk. */
export async function failWrites(action: () => Promise<unknown>): Promise<void> {
  await intercept(
    ['writeSync'],
    () => {
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    },
    action,
  );
}

/** Lets writes that contain a text fail while something runs, up to `most` times. Returns how often that was. */
export async function failWritesOf(
  text: string,
  most: number,
  action: () => Promise<unknown>,
): Promise<number> {
  let failed = 0;
  await intercept(
    ['writeSync'],
    (_, args, real) => {
      if (failed >= most || !String(args[1]).includes(text)) return real(...args);
      failed++;
      throw Object.assign(new Error('input/output error'), { code: 'EIO' });
    },
    action,
  );
  return failed;
}
