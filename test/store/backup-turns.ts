import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'vitest';
import { bundleChild } from '../support/bundle-child.ts';
import { clockAhead } from '../support/movable-clock.ts';
import { type BackupStore, claimTtl, openBackupApp, openStore } from './backup-child.ts';

const child = new URL('./backup-child.ts', import.meta.url);

/** Turns in another process, as far as it has said that they have ended. */
export async function startTurns(where: BackupStore) {
  const process_ = spawn(process.execPath, [bundleChild(child), JSON.stringify(where)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const acknowledged = new Map<string, number>();
  let sleeper = '';
  let rest = '';
  process_.stdout.on('data', (data: Buffer) => {
    const lines = (rest + data.toString()).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [kind = '', id = '', n = ''] = line.split(' ');
      if (kind === 'sleeper') sleeper = id;
      else acknowledged.set(id, Number(n));
    }
  });
  const all = (): number => [...acknowledged.values()].reduce((sum, n) => sum + n, 0);
  await expect.poll(() => acknowledged.size).toBe(3);
  return {
    acknowledged,
    all,
    sleeper: () => sleeper,
    async stop() {
      process_.kill('SIGKILL');
      await once(process_, 'exit');
    },
  };
}

/**
 * Expects a restored store to have all turns that had ended, to continue its sessions and its run, and to be whole. The time of
 * a database must have been put forward: the claims of the process that was killed have expired.
 */
export async function expectContinues(
  where: BackupStore,
  before: ReadonlyMap<string, number>,
  sleeper: string,
): Promise<void> {
  const app = openBackupApp(where, { sleeps: false, clock: clockAhead(() => 2 * claimTtl) });
  await app.ready();
  const counter = app.agent('counter');
  for (const [sessionId, n] of before) {
    const { custom, messages = [] } =
      (await counter.getSnapshot({ sessionId }))?.state ?? expect.fail(sessionId);
    expect(custom).toBeGreaterThanOrEqual(n);
    expect(messages).toHaveLength(2 * (custom as number));
    // A retry of a turn that had ended returns its output, and does not run again.
    const retried = await counter.run('go', { sessionId, requestId: `${sessionId} ${n}` });
    expect(retried.text).toBe(`turn ${n}`);
    // The session continues from there.
    const { finishReason } = await counter.runText('go', { sessionId, throwOnError: false });
    const next = await counter.getSnapshot({ sessionId });
    expect([finishReason, next?.state?.custom]).toEqual(['stop', (custom as number) + 1]);
  }
  // The run that had not ended continues here.
  const woken = await app.agent('sleeper').wait(sleeper);
  expect(woken).toMatchObject({ status: 'succeeded' });
  expect(woken.state?.messages?.at(-1)).toMatchObject({ content: [{ text: 'awake' }] });
  await app.close();
  const opened = openStore(where);
  expect(await opened.maintenance?.verify()).toEqual([]);
  await opened.close?.();
}
