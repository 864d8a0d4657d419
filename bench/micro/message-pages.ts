// What the last 50 of 40,000 messages cost to read, by store: `node bench/micro/message-pages.ts [store …]`. Next to all messages, and to
// 50 rows of a bare SQLite table.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { memoryStore, type Store, waymark } from '../../src/index.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';

const turns = 20_000;
const folder = mkdtempSync(join(tmpdir(), 'waymark-pages-'));
const stores: Record<string, () => Store> = {
  memory: () => memoryStore(),
  sqlite: () => sqliteStore(join(folder, 'pages.db'), { durability: 'normal' }),
  file: () => fileStore(join(folder, 'file'), { durability: 'normal' }),
};
const chosen = process.argv.slice(2);
const text = 'm'.repeat(400);

async function median(work: () => unknown, count: number): Promise<string> {
  const times: number[] = [];
  for (let at = 0; at < count; at++) {
    const started = performance.now();
    await work();
    times.push(performance.now() - started);
  }
  return (times.sort((a, b) => a - b)[Math.floor(count / 2)] ?? 0).toFixed(2);
}

for (const [name, open] of Object.entries(stores)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  const app = waymark({ store: open(), work: false });
  const agent = app.defineCustomAgent({ name: 'long' }, async (session) => {
    await session.run(async () => {
      session.addMessages({ role: 'model', content: [{ text }] });
    });
  });
  for (let turn = 0; turn < turns; turn++) await agent.runText('next', { sessionId: 's' });
  const last = await median(() => agent.getSession('s', { messages: { last: 50 } }), 51);
  const page = { last: 50, before: turns };
  const middle = await median(() => agent.getSession('s', { messages: page }), 51);
  const all = await median(() => agent.getSession('s'), 5);
  console.log(`${name}: last 50 ${last} ms, 50 in the middle ${middle} ms, all ${all} ms`);
  await app.close();
}
const db = new DatabaseSync(join(folder, 'bare.db'));
db.exec('CREATE TABLE messages(id INTEGER PRIMARY KEY, body TEXT); BEGIN');
const insert = db.prepare('INSERT INTO messages VALUES(?, ?)');
const body = JSON.stringify({ role: 'model', content: [{ text }] });
for (let id = 0; id < 2 * turns; id++) insert.run(id, body);
db.exec('COMMIT');
const select = db.prepare('SELECT body FROM messages ORDER BY id DESC LIMIT 50');
const bare = await median(() => select.all().map((row) => JSON.parse(String(row.body))), 51);
console.log(`bare SQLite: last 50 ${bare} ms`);
db.close();
rmSync(folder, { recursive: true, force: true });
