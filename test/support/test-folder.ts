import { chmodSync, mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { freemem } from 'node:os';
import { join } from 'node:path';

/** The environment variable with the path of a folder that all tests of one run share. */
export const testFolderVariable = 'WAYMARK_TEST_FOLDER';
/** The same for bundles, which must be inside the repository to find its packages. */
export const bundlesVariable = 'WAYMARK_TEST_BUNDLES';

/** The file system in memory that Linux has. */
const memory = '/dev/shm';
const inMemory = 'waymark-tests-';
const gigabyte = 2 ** 30;

/**
 * Lets the tests write their temporary files to memory. Tests flush thousands of turns to disk, and a disk that others use
 * makes single tests wait for minutes. `TMPDIR` decides when it is set, and the disk is used where memory is short.
 */
export function keepFilesInMemory(): void {
  if (process.env.TMPDIR !== undefined || !hasRoom()) return;
  removeLeftovers();
  const folder = join(memory, `${inMemory}${process.pid}`);
  mkdirSync(folder, { recursive: true });
  // As /tmp: when the tests run as root, Postgres runs as another user.
  chmodSync(folder, 0o1777);
  process.env.TMPDIR = folder;
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize > 8 * gigabyte && freemem() > 8 * gigabyte;
  } catch {
    return false;
  }
}

/** A run that was killed has not removed its folder. */
function removeLeftovers(): void {
  for (const name of readdirSync(memory)) {
    if (!name.startsWith(inMemory) || isRunning(Number(name.slice(inMemory.length)))) continue;
    rmSync(join(memory, name), { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Removes the folders after the run. */
export async function teardown(): Promise<void> {
  const { TMPDIR } = process.env;
  const folders = [process.env[testFolderVariable], process.env[bundlesVariable]];
  if (TMPDIR === join(memory, `${inMemory}${process.pid}`)) folders.push(TMPDIR);
  for (const folder of folders) {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }
}
