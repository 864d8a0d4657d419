import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { model, waymark } from '../../src/index.ts';
import { serve } from '../../src/server/index.ts';
import { sharedClock } from '../support/shared-clock.ts';
import { openTestStore } from './child-store.ts';

// A server process as in docs/serving-and-auth.md: it drains on SIGTERM. The time that running turns get is that of a clock
// which only the test moves.
const [kind = '', place = '', clockFile = '', graceFile = ''] = process.argv.slice(2);
const { clock } = sharedClock(clockFile);

/** `20 /a/file`: ten pieces, and ten more when the file is gone. */
const pieces = model({ name: 'pieces' }, async ({ messages }, { stream, signal }) => {
  const [part] = messages.at(-1)?.content ?? [];
  const [, count = '', file = ''] =
    part && 'text' in part ? (/^(\d+) (\S+)/.exec(part.text) ?? []) : [];
  const all = Array.from({ length: Number(count) }, (_, at) => `${at} `);
  for (const [at, text] of all.entries()) {
    while (at === 10 && existsSync(file)) await sleep(20, undefined, { signal });
    await stream({ content: [{ text }] });
  }
  return { message: { role: 'model', content: [{ text: all.join('') }] }, finishReason: 'stop' };
});

const store = await openTestStore(kind, place, clock);
const app = waymark({ store, clock, claimTtl: 600_000, model: pieces, onError: () => {} });
app.defineAgent({ name: 'chat' });
await app.ready();
const server = await serve(app, {
  port: 0,
  grace: 60_000,
  clock: sharedClock(graceFile).clock,
  log: () => {},
  limits: {
    unauthenticatedPerAddress: 1000,
    streamsPerPrincipal: 1000,
    turnsPerPrincipal: 1000,
    backgroundRunsPerPrincipal: 1000,
  },
});
process.once('SIGTERM', async () => {
  await server.close();
  await app.close({ grace: 0 });
  // Nothing else keeps the process: it ends by itself, with 0.
  lines.close();
  process.stdin.destroy();
});
const lines = createInterface({ input: process.stdin });
// Ends with its parent.
lines.on('close', () => setTimeout(() => process.exit(1), 30_000).unref());
console.log(`port ${server.port}`);
