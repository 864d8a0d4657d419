import { execFileSync } from 'node:child_process';
import { DatabaseSync } from 'node:sqlite';
import { eventually } from './eventually.ts';

interface Stoppable {
  readonly pid: number;
  signal(signal: NodeJS.Signals): void;
}

/**
 * Stops a process with SIGSTOP. With the path of a SQLite file, between two of its writes: a stopped process keeps the lock of
 * the write that it is in, and no other can take over anything before it wakes up.
 */
export async function freeze(child: Stoppable, sqliteFile?: string): Promise<void> {
  await eventually(async () => {
    child.signal('SIGSTOP');
    await eventually(() => isStopped(child.pid), 'a stopped process');
    if (sqliteFile === undefined || canWrite(sqliteFile)) return true;
    child.signal('SIGCONT');
    return false;
  }, 'a process that is stopped outside its writes');
}

function isStopped(pid: number): boolean {
  return execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).startsWith(
    'T',
  );
}

function canWrite(file: string): boolean {
  const db = new DatabaseSync(file, { timeout: 0 });
  try {
    db.exec('BEGIN IMMEDIATE; ROLLBACK');
    return true;
  } catch (error) {
    const { errcode } = error as { errcode?: number };
    if (errcode === 5) return false;
    throw error;
  } finally {
    db.close();
  }
}
