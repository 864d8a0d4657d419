import { directory } from '../../../src/workspace/index.ts';

// Locks a folder, and tells: node lock-worker.js <folder> <run>. With WAIT, it waits for its turn, notes it and releases the lock.
const [, , path = '', runId = ''] = process.argv;
const folder = await directory(path).open({ agent: 'a', sessionId: 's' });
const wait = process.env.WAIT === '1';
const lock = await folder.lock({ runId }, { wait });
lock.lost.addEventListener('abort', () => console.log('lost'));
console.log('locked');
if (wait) {
  // Two owners at the same time would overwrite each other's number.
  const { readFileSync, writeFileSync } = await import('node:fs');
  for (let at = 0; at < 20; at++) {
    const counter = `${path}/counter`;
    const count = Number(readFileSync(counter, 'utf8'));
    await new Promise((resolve) => setImmediate(resolve));
    writeFileSync(counter, String(count + 1));
  }
  await lock.release();
  process.exit(0);
}
setInterval(() => {}, 1_000);
