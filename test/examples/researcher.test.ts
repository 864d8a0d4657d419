import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { defineResearcher } from '../../examples/researcher.ts';

const folder = mkdtempSync(join(tmpdir(), 'waymark-researcher-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('research goes on in another process after the first one ended, and reads no source twice', async () => {
  const path = join(folder, 'waymark.db');
  const open = (pauseMs: number) => {
    const app = waymark({ store: sqliteStore(path), claimTtl: 300 });
    return { app, researcher: defineResearcher(app, { pauseMs }) };
  };
  const first = open(150);
  const { snapshotId = '', finishReason } = await first.researcher.run({
    message: { role: 'user', content: [{ text: 'tides' }] },
    detach: true,
  });
  expect(finishReason).toBe('detached');
  const early: unknown[] = [];
  for await (const event of first.researcher.watch(snapshotId)) {
    if (event.type === 'chunk' && event.chunk.status) early.push(event.chunk.status.reading);
    if (early.length === 3) break;
  }
  expect(early).toEqual(['archives', 'papers', 'interviews']);
  await first.app.close({ grace: 0 });

  const second = open(20);
  const done = await second.researcher.wait(snapshotId);
  expect(done.status).toBe('succeeded');
  expect(done.state?.custom).toEqual({
    read: ['archives', 'papers', 'interviews', 'figures', 'maps'],
    of: 5,
  });
  expect(done.state?.artifacts?.[0]?.name).toBe('findings.md');
  await second.app.close();
});
