import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';

// So much room that V8 starts no full collection, and young space of a fixed size: how often it is collected, and with it how
// many logs of recent turns are promoted, must not depend on when V8 decides to grow it.
const ampleRoom = [
  '--expose-gc',
  '--initial-old-space-size=1024',
  '--min-semi-space-size=32',
  '--max-semi-space-size=32',
];

/** Asks a worker in a separate process. */
async function ask<Answer>(worker: string): Promise<Answer> {
  const child = fork(join(import.meta.dirname, worker), [], {
    execArgv: [...ampleRoom, '--no-warnings'],
  });
  const [answer] = (await once(child, 'message')) as [Answer];
  child.disconnect();
  return answer;
}

// V8 collects young objects for next to nothing, and copies those that something old still reaches. A turn that is reached by
// an old object, dead or alive, is copied whole, again and again: this once took a third of all time.
test('what a turn leaves behind is collected while it is young', async () => {
  const { bytesPerTurn } = await ask<{ bytesPerTurn: number }>('garbage-worker.ts');
  // The logs of the last hundred turns are alive at each collection; how many of them are promoted, 2 to 7 KB a turn, depends on
  // where in young space they lie. A turn that is promoted whole is 24 KB and more.
  expect(bytesPerTurn).toBeLessThan(12_000);
  expect(bytesPerTurn).toBeGreaterThan(0);
});
