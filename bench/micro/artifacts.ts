// What a four-character edit of a 1 MB artifact costs, by store: `node bench/micro/artifacts.ts [store …]`. CPU time per turn next to the
// same turn without the artifact, and bytes per version.
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { memoryStore, type Store, waymark } from '../../src/index.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'waymark-artifacts-'));
const stores: Record<string, (name: string) => Store> = {
  memory: () => memoryStore(),
  sqlite: (name) => sqliteStore(join(folder, name)),
  file: (name) => fileStore(join(folder, name)),
};
const chosen = process.argv.slice(2);
const start = Array.from({ length: 200_000 }, (_, at) => `${(at * 7919) % 10_007} `).join('');

for (const [name, open] of Object.entries(stores)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  const runs = await Promise.all(
    [false, true].map(async (edits) => {
      const path = `${name}-${edits}`;
      const store = open(path);
      const app = waymark({ store, work: false });
      let text = start;
      const agent = app.defineCustomAgent({ name: 'probe' }, async (session) => {
        await session.run(async () => {
          if (!edits) return;
          const at = Math.floor(Math.random() * text.length);
          text = `${text.slice(0, at)}four${text.slice(at + 4)}`;
          session.addArtifacts({ name: 'text', parts: [{ text }] });
        });
      });
      const chat = agent.chat();
      for (let at = 0; at < 10; at++) await chat.send('go');
      return { path, chat, store, times: [] as number[], before: sizeOf(path) };
    }),
  );
  for (let round = 0; round < 20; round++) {
    for (const { chat, times } of runs) {
      const started = process.cpuUsage();
      await chat.send('go');
      const { user, system } = process.cpuUsage(started);
      times.push(user + system);
    }
  }
  const [without, withEdits] = runs.map(({ times }) => times.sort((a, b) => a - b)[10] ?? 0);
  const grown = runs.map(({ path, before }) => ((sizeOf(path) - before) / 20).toFixed(0));
  console.log(
    `${name}: ${without} µs without, ${withEdits} µs with; ${grown.join(' and ')} bytes a turn`,
  );
  for (const { store } of runs) await store.close?.();
}
rmSync(folder, { recursive: true, force: true });

function sizeOf(name: string): number {
  if (name.startsWith('sqlite')) {
    const db = new DatabaseSync(join(folder, name));
    db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
    db.close();
  }
  const entries = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const own = entries.filter((entry) => entry.startsWith(name) && !/-(shm|wal)$/.test(entry));
  return own.reduce((sum, entry) => sum + statSync(join(folder, entry)).size, 0);
}
