import { StatementSync } from 'node:sqlite';

/** Lets every write of SQLite fail while something runs, as on a full disk. Reads go on. */
export async function failCommits(action: () => Promise<unknown>): Promise<void> {
  const { run } = StatementSync.prototype;
  let isWriting = false;
  StatementSync.prototype.run = function (this: StatementSync, ...args: unknown[]) {
    const { sourceSQL } = this;
    if (sourceSQL.startsWith('BEGIN')) isWriting = sourceSQL === 'BEGIN IMMEDIATE';
    if (sourceSQL !== 'COMMIT' || !isWriting) return Reflect.apply(run, this, args);
    throw Object.assign(new Error('database or disk is full'), {
      code: 'ERR_SQLITE_ERROR',
      errcode: 13,
    });
  };
  try {
    await action();
  } finally {
    StatementSync.prototype.run = run;
  }
}
