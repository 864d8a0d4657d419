import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { memoryStore } from 'waymark';
import { createClient } from 'waymark/client';
import { serve } from 'waymark/server';
import { directory } from 'waymark/workspace';
import { act, openApp, testFolder } from './support.ts';

test('S808 S807 S809 a client lists, opens, compares and restores files, if it is allowed to', async () => {
  using folder = testFolder();
  const { project } = folder;
  await using app = openApp(memoryStore());
  app.defineAgent({ name: 'coder', workspace: directory(project), tools: [act] });
  app.defineAgent({ name: 'plain' });
  const asked: unknown[] = [];
  const server = await serve(app, {
    port: 0,
    log: () => {},
    auth: (request) => ({ principal: request.headers.get('x-user') ?? 'ann' }),
    authorize({ operation, agent, workspace }) {
      if (operation !== 'restore') return true;
      asked.push({ agent, workspace });
      return workspace !== true || asked.length > 1;
    },
  });
  try {
    const client = createClient({ url: server.url });
    const coder = client.agent('coder');
    const stranger = createClient({ url: server.url, headers: { 'x-user': 'bob' } }).agent('coder');
    const content = 'x'.repeat(500_000);
    const first = await coder.run(`mkdir "a b"; printf ${'%0500000d'} 0 | tr 0 x > "a b/c%2F.txt"`);
    const second = await coder.run('echo 2 > two', { sessionId: first.sessionId });
    const { items } = await coder.listFiles(second);
    expect(items.map(({ path, size }) => [path, size])).toEqual([
      ['a b/c%2F.txt', content.length],
      ['two', 2],
    ]);
    const page = await coder.listFiles({ sessionId: first.sessionId }, { limit: 1 });
    expect([page.items.length, page.next === undefined]).toEqual([1, false]);
    const opened = await coder.openFile(first, 'a b/c%2F.txt');
    expect(opened).toMatchObject({
      name: 'a b/c%2F.txt',
      size: content.length,
      hash: items[0]?.hash,
    });
    expect(await new Response(opened.stream).text()).toBe(content);
    const range = await coder.openFile(first, 'a b/c%2F.txt', { range: { start: 1, end: 4 } });
    expect([await new Response(range.stream).text(), range.size]).toEqual(['xxx', content.length]);
    const empty = await coder.openFile(first, 'a b/c%2F.txt', { range: { start: 4, end: 4 } });
    expect(await new Response(empty.stream).text()).toBe('');
    await expect(coder.openFile(first, 'two')).rejects.toMatchObject({ status: 'NOT_FOUND' });
    expect((await coder.diff(first, second)).files).toEqual([
      { path: 'two', change: 'added', lines: [{ kind: 'added', text: '2', after: 1 }] },
    ]);
    expect(await coder.diff(first, second, { workspace: false })).not.toHaveProperty('files');
    writeFileSync(join(project, 'two'), '3\n');
    expect((await coder.diff(second, first, { workspace: 'now' })).files).toEqual([
      { path: 'two', change: 'removed', lines: [{ kind: 'removed', text: '3', before: 1 }] },
    ]);
    const odd = coder.diff(first, second, { workspace: 'later' as 'now' });
    await expect(odd).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    await expect(stranger.diff(first, second, { workspace: 'now' })).rejects.toMatchObject({
      status: 'NOT_FOUND',
    });

    for (const call of [stranger.listFiles(first), stranger.openFile(first, 'two')]) {
      await expect(call).rejects.toMatchObject({ status: 'NOT_FOUND' });
    }
    writeFileSync(join(project, 'two'), 'changed');
    await expect(coder.restore(first)).rejects.toMatchObject({ status: 'PERMISSION_DENIED' });
    expect(readFileSync(join(project, 'two'), 'utf8')).toBe('changed');
    await coder.restore(first, { workspace: false });
    expect(existsSync(join(project, 'two'))).toBe(true);
    await coder.restore(first);
    expect(existsSync(join(project, 'two'))).toBe(false);
    const plain = client.agent('plain');
    const output = await plain.run('nothing');
    await plain.restore(output);
    expect(asked).toEqual([
      { agent: 'coder', workspace: true },
      { agent: 'coder', workspace: false },
      { agent: 'coder', workspace: true },
      { agent: 'plain', workspace: undefined },
    ]);
    expect((await plain.listFiles(output)).items).toEqual([]);
    expect(app.errors).toEqual([]);
  } finally {
    await server.close();
  }
});
