// Saves a file of 100 MB in a turn and serves it over HTTP, and tells the most memory that this took.
import { createHash } from 'node:crypto';
import { createInterface } from 'node:readline';
import { type Store, waymark } from '../../src/index.ts';
import { serve } from '../../src/server/index.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { peakMemory } from '../security/peak-memory.ts';

const [, , kind = '', place = ''] = process.argv;
const key = new Uint8Array(32).fill(7);
const open: Readonly<Record<string, () => Store>> = {
  sqlite: () => sqliteStore(place),
  'encrypted sqlite': () => sqliteStore(place, { encryption: { key } }),
  files: () => fileStore(place),
  postgres: () => postgresStore({ connectionString: place, max: 4 }),
};
const size = 100_000_000;

/** Bytes that no store can compress, made as they are asked for, in one buffer: a store copies what it takes. */
async function* source(length: number): AsyncGenerator<Uint8Array> {
  const chunk = Buffer.alloc(65_536);
  let block = createHash('sha512').update('seed').digest();
  for (let left = length; left > 0; left -= chunk.length) {
    block = createHash('sha512').update(block).digest();
    for (let at = 0; at < chunk.length; at += block.length) block.copy(chunk, at);
    yield chunk.subarray(0, Math.min(left, chunk.length));
  }
}

const app = waymark({ store: open[kind]?.() as Store });
const agent = app.defineCustomAgent({ name: 'maker' }, async (session, { init }) => {
  await session.run(async () => {
    const length = init.sessionId === 'large' ? size : 1_000_000;
    await session.saveFile({ name: 'file', data: source(length) });
  });
});
const server = await serve(app, { port: 0, log: () => {} });

const tell = (what: object): void => void process.stdout.write(`${JSON.stringify(what)}\n`);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const memory = peakMemory();
let buffers = 0;
let heap = 0;
const look = (): void => {
  const used = process.memoryUsage();
  buffers = Math.max(buffers, used.arrayBuffers);
  heap = Math.max(heap, used.heapUsed);
  memory.look();
};
setInterval(look, 5).unref();
const measured: Record<string, number> = {};
const measure = async (name: string, work: () => Promise<unknown>): Promise<void> => {
  globalThis.gc?.();
  memory.reset();
  const before = process.memoryUsage();
  buffers = 0;
  heap = 0;
  await work();
  look();
  measured[`${name} rss`] = memory.peak() - before.rss;
  measured[`${name} buffers`] = buffers - before.arrayBuffers;
  measured[`${name} heap`] = heap - before.heapUsed;
};

// Loads everything that is used.
await agent.run('go', { sessionId: 'small' });
tell({ url: server.url });
await lines.next();
await measure('store', () => agent.run('go', { sessionId: 'large' }));
await measure('serve', async () => {
  // The test reads it, so that only what the server needs is seen here.
  tell({ isStored: true });
  await lines.next();
});
const expected = createHash('sha256');
for await (const chunk of source(size)) expected.update(chunk);
await server.close();
await app.close();
tell({ measured, expected: { size, hash: expected.digest('hex') } });
process.exit();
