import { appendFile, mkdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/time.ts';
import { emptyState, hashState } from '../../src/session/session-state.ts';
import type { Scope } from '../../src/store/contract/store.ts';
import { toLine } from '../../src/store/file/checked-line.ts';
import { exchange, type Kit, plain, refused, texts } from '../../src/testing/store-contract/kit.ts';
import { tickingClock } from '../support/movable-clock.ts';
import { readTree } from '../support/read-tree.ts';
import { setUpFileStores } from './file-support.ts';

const files = setUpFileStores();
const open = (scope?: Scope): Kit => files.open({ clock: tickingClock }, scope);

const journal = (session: string): string =>
  join(files.directory, `sessions/_/chat/${session}/journal.jsonl`);

async function linesOf(path: string): Promise<readonly unknown[]> {
  const text = await readFile(path, 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

describe('the files of a store', () => {
  test('tell a person what is in them', async () => {
    const { turn, timeline, scope, id, claim } = open();
    const artifacts = [{ name: 'plan.md', parts: [{ text: '# Rome' }] }];
    const { base } = await turn('trip-to-rome', { text: 'hello' });
    const second = await turn('trip-to-rome', {
      base,
      parentId: base.snapshotId,
      state: { ...base.state, custom: { days: 3 }, artifacts },
    });
    await timeline.fork(scope, second.snapshot.snapshotId, {
      sessionId: 'trip-to-pisa',
      snapshotId: id(),
    });
    await turn('Trip to Oslo!', { scope: { agent: 'chat', owner: 'alice@example.com' } });
    await claim('trip-to-rome', { mode: 'accepted' });
    const names = [...(await readTree(files.directory)).keys()].map((name) =>
      name.replace(/[0-9a-f-]{36}/, '<id>').replace(/~[0-9a-f]{32}/g, '~<hash>'),
    );
    expect(names).toEqual([
      '.gitignore',
      'lock',
      'runs/<id>.json',
      'sessions/_/chat/trip-to-pisa.json',
      'sessions/_/chat/trip-to-rome/journal.jsonl',
      'sessions/alice-example-com~<hash>/chat/trip-to-oslo~<hash>/journal.jsonl',
      'waymark.json',
    ]);
    expect(await linesOf(journal('trip-to-rome'))).toMatchObject([
      { waymark: 6, agent: 'chat', session: 'trip-to-rome' },
      { session: { id: 'trip-to-rome' }, run: { id: base.snapshotId } },
      {
        session: { head: base.snapshotId },
        snapshots: [
          {
            id: base.snapshotId,
            index: 0,
            status: 'succeeded',
            state: {
              messages: [
                { role: 'user', content: [{ text: 'hello' }] },
                { role: 'model', content: [{ text: 'HELLO' }] },
              ],
            },
          },
        ],
        ended: base.snapshotId,
      },
      { run: { id: second.snapshot.snapshotId, start: base.snapshotId } },
      { artifact: expect.any(String), files: [], content: artifacts[0] },
      {
        snapshots: [
          {
            parent: base.snapshotId,
            state: { base: base.snapshotId, custom: { whole: { days: 3 } } },
          },
        ],
      },
      {
        session: { id: 'trip-to-pisa', forkedFrom: { sessionId: 'trip-to-rome' } },
        snapshots: [{ state: { base: second.snapshot.snapshotId } }],
      },
      { session: { id: 'trip-to-rome' }, run: { request: { mode: 'accepted' } } },
    ]);
  });

  test('under version control are those that hold conversations, and no others', async () => {
    const { turn, claim } = open();
    await turn('s');
    await claim('s');
    expect((await readTree(files.directory)).get('.gitignore')?.split('\n')).toEqual(
      expect.arrayContaining(['/lock*', '/runs/', '/requests/', '*.tmp']),
    );
  });

  test('have names of their own, whatever the ids are', async () => {
    const ids = [
      '../../etc/passwd',
      'C:\\con',
      'nul',
      'A',
      'a',
      '.',
      '..',
      ' ',
      'ä',
      'x'.repeat(200),
      '~',
      'a/b',
      'a\nb',
    ];
    const { turn } = open();
    for (const id of ids) await turn(id, { text: `in ${id}` });
    const folders = new Set<string>();
    for (const name of (await readTree(files.directory)).keys()) {
      expect(name).toMatch(/^[a-z0-9_~./-]+$/i);
      expect(name).not.toContain('..');
      for (const part of name.split('/')) expect(part.length).toBeLessThan(100);
      if (name.startsWith('sessions/')) folders.add(name.toLowerCase());
    }
    expect(folders.size).toBe(ids.length);
    const again = open();
    for (const id of ids) {
      expect(await again.textsOf({ sessionId: id })).toEqual([
        `in ${id}`,
        `in ${id}`.toUpperCase(),
      ]);
    }
  });

  test('of one session are all that its erasure takes, also while a fork of it lives on', async () => {
    const { turn, timeline, scope, id } = open();
    const artifacts = [{ name: 'a', parts: [{ text: 'only in the source' }] }];
    const first = await turn('source', { text: 'shared' });
    await timeline.fork(scope, first.snapshot.snapshotId, { sessionId: 'fork', snapshotId: id() });
    await turn('source', { text: 'private', state: { ...first.base.state, artifacts } });
    await timeline.updateSession(scope, 'source', { title: 'a private title' });
    expect(await timeline.deleteSession(scope, 'source')).toBe(true);
    const all = [...(await readTree(files.directory)).values()].join('\n');
    expect(all).not.toContain('private');
    expect(all).not.toContain('only in the source');
    const again = open();
    expect(await again.textsOf({ sessionId: 'fork' })).toEqual(['shared', 'SHARED']);
    expect(await again.maintenance.verify()).toEqual([]);
    await again.turn('source', { text: 'again' });
    expect(await open().textsOf({ sessionId: 'source' })).toEqual(['again', 'AGAIN']);
    expect(await open().textsOf({ sessionId: 'fork' })).toEqual(['shared', 'SHARED']);
    await again.timeline.deleteSession(scope, 'fork');
    await again.timeline.deleteSession(scope, 'source');
    expect([...(await readTree(files.directory)).keys()]).toEqual([
      '.gitignore',
      'lock',
      'waymark.json',
    ]);
  });
});

describe('a folder that is not the store’s', () => {
  test('S235: is refused when it holds anything, and stays as it is', async () => {
    await writeFile(join(files.directory, 'notes.txt'), 'mine');
    await refused(open().turn('s'), 'FAILED_PRECONDITION');
    expect(Object.fromEntries(await readTree(files.directory))).toEqual({ 'notes.txt': 'mine' });
  });

  test('S235: keeps its .gitignore when it becomes a store', async () => {
    await writeFile(join(files.directory, '.gitignore'), '*.log\n');
    await mkdir(join(files.directory, '.git'));
    await open().turn('s');
    expect(await readFile(join(files.directory, '.gitignore'), 'utf8')).toBe('*.log\n');
  });
});

describe('damage', () => {
  test('S233: a line that was cut short anywhere has never been, is reported, and the next one takes its place', async () => {
    const { turn } = open();
    await turn('s', { text: 'first' });
    const before = await readFile(journal('s'));
    await turn('s', { text: 'second' });
    const after = await readFile(journal('s'));
    for (let length = before.length; length < after.length; length += 7) {
      await writeFile(journal('s'), after.subarray(0, length));
      const cut = open();
      expect(await cut.textsOf({ sessionId: 's' })).toEqual(['first', 'FIRST']);
      expect(await cut.maintenance.verify()).toMatchObject([{ kind: 'unfinished' }]);
    }
    await truncate(journal('s'), after.length - 2);
    // The run whose turn was cut holds the session until it expires.
    const later = { ...tickingClock, now: () => tickingClock.now() + 120_000 };
    await files.open({ clock: later }).turn('s', { text: 'third' });
    expect(await open().textsOf({ sessionId: 's' })).toEqual(['first', 'FIRST', 'third', 'THIRD']);
    expect(await open().maintenance.verify()).toEqual([]);
  });

  test('a run whose line was cut short was never claimed', async () => {
    const { claim, turn } = open();
    await turn('s');
    const { size } = await stat(journal('s'));
    await claim('s', { mode: 'accepted' });
    await truncate(journal('s'), size + 40);
    const again = open();
    expect(await again.runs.listRuns()).toEqual([]);
    await again.turn('s', { text: 'on' });
    expect(await again.maintenance.verify()).toEqual([]);
  });

  test('a line that is not what was written is DATA_LOSS and names the file, and other sessions are not hurt', async () => {
    const { turn, timeline, scope } = open();
    await turn('good', { text: 'fine' });
    const { snapshot } = await turn('bad', { text: 'hello' });
    const text = await readFile(journal('bad'), 'utf8');
    for (const damaged of [
      text.replace('"HELLO"', '"hullo"'),
      text.replace('{"session":{"id":"bad","updatedAt"', '{{{'),
      text.replace('"status":"succeeded"', '"status":"splendid"'),
      text
        .replace(/"parent":"[^"]*"/, '"parent":"01a1dd1c-fe95-7314-aa3e-0ec663d90926"')
        .replace('"turnIndex":0', '"parent":"01a1dd1c-fe95-7314-aa3e-0ec663d90926","turnIndex":0'),
      text.slice(text.indexOf('\n') + 1),
    ]) {
      expect(damaged).not.toBe(text);
      await writeFile(journal('bad'), damaged);
      const { runs, store, maintenance, ...again } = open();
      await refused(runs.load(scope, { sessionId: 'bad' }), 'DATA_LOSS');
      await refused(store.getSnapshot(scope, { snapshotId: snapshot.snapshotId }), 'DATA_LOSS');
      const [fault, ...others] = await maintenance.verify();
      expect(others).toEqual([]);
      expect(fault?.kind).toBe('hash');
      expect(JSON.stringify(fault)).toContain('bad');
      expect(await again.textsOf({ sessionId: 'good' })).toEqual(['fine', 'FINE']);
      const { items } = await again.timeline.listSessions(scope);
      expect(items.map((each) => each.sessionId)).toContain('good');
    }
    await writeFile(journal('bad'), text);
    expect(await open().textsOf({ sessionId: 'bad' })).toEqual(['hello', 'HELLO']);
    expect((await timeline.getSession(scope, 'bad'))?.turnCount).toBe(1);
  });

  test('an artifact that was changed is DATA_LOSS and names the file', async () => {
    const { turn, scope } = open();
    const { base } = await turn('s');
    await turn('t', { text: 'fine' });
    const state = { ...base.state, artifacts: [{ name: 'a', parts: [{ text: 'one' }] }] };
    await turn('s', { state });
    const text = await readFile(journal('s'), 'utf8');
    await writeFile(journal('s'), text.replace('"one"', '"two"'));
    await refused(open().store.getSnapshot(scope, { sessionId: 's' }), 'DATA_LOSS');
    expect(await open().maintenance.verify()).toEqual([
      { kind: 'hash', message: expect.stringContaining('chat/s/journal.jsonl') },
    ]);
    expect(await open().textsOf({ sessionId: 't' })).toEqual(['fine', 'FINE']);
  });

  test('S740: artifacts that no snapshot has any more are removed when they are most of a journal', async () => {
    const { turn, commit, claim, maintenance } = open();
    let { base } = await turn('s');
    const sizes: number[] = [];
    for (let no = 0; no < 12; no++) {
      const text = `${no} `.repeat(150_000);
      const state = { ...base.state, artifacts: [{ name: 'a', parts: [{ text }] }] };
      const held = await claim('s');
      const write = { base, parentId: base.snapshotId, state, listed: false };
      ({ base } = await commit(held, { ...write, stateHash: hashState(state) }));
      sizes.push((await stat(journal('s'))).size);
    }
    expect(Math.max(...sizes)).toBeLessThan(5 * (sizes[0] ?? 0));
    const again = open();
    const loaded = await again.runs.load(again.scope, { sessionId: 's' });
    expect(loaded?.state.artifacts).toEqual(base.state.artifacts);
    expect(await maintenance.verify()).toEqual([]);
    expect(await turn('s', { text: 'on' })).toBeDefined();
  });

  test.each([
    ['are over', 0],
    ['are still kept', 60_000],
  ])('S740: a journal that is mostly events which %s is rewritten now and then', async (_, ttl) => {
    const options = { durability: 'normal', eventsTtl: ttl } as const;
    const { claim, commit, events } = files.open(options);
    const heads = new Set<string>();
    const sizes: number[] = [];
    for (let no = 0; no < 100; no++) {
      const held = await claim('s');
      const text = `${no} `.repeat(3_000);
      await events.append(held, [{ attempt: 1, seq: 0, chunk: { status: text } }]);
      await commit(held, { text: `turn ${no}` });
      const [head = ''] = (await readFile(journal('s'), 'utf8')).split('\n', 1);
      heads.add(head);
      sizes.push((await stat(journal('s'))).size);
    }
    expect(heads.size).toBeGreaterThan(1);
    // At 256 KB, and whenever it has doubled.
    expect(heads.size).toBeLessThan(ttl === 0 ? 8 : 5);
    const written = 100 * 3_000;
    if (ttl === 0) expect(Math.max(...sizes)).toBeLessThan(1.2 * written);
    else expect(sizes.at(-1)).toBeGreaterThan(2 * written);
    const again = files.open(options);
    expect(await again.textsOf({ sessionId: 's' })).toHaveLength(200);
    expect(await again.maintenance.verify()).toEqual([]);
  });

  test('a pointer to nothing does no harm, and pruning removes it; a damaged one is found', async () => {
    const { turn } = open();
    await turn('s');
    const path = join(files.directory, 'sessions/_/chat/f.json');
    await writeFile(path, `${toLine({ waymark: 6, folder: 'sessions/_/chat/s' })}\n`);
    expect(await open().maintenance.verify()).toEqual([]);
    await open().maintenance.prune({ keepLast: 1 });
    await expect(readFile(path)).rejects.toMatchObject({ code: 'ENOENT' });
    const damaged = JSON.stringify({ waymark: 6, folder: 'sessions/_/chat/s' });
    for (const [kind, text] of [
      ['unreachable', `${damaged}\n`],
      ['unfinished', damaged],
    ]) {
      await writeFile(path, text ?? '');
      expect(await open().maintenance.verify()).toEqual([
        { kind, message: expect.stringContaining('f.json') },
      ]);
    }
  });

  test('a saved file that no snapshot names is found, and pruning removes it', async () => {
    const { turn } = open();
    await turn('s');
    const name = `sessions/_/chat/s/files/${'0'.repeat(64)}.bin`;
    await mkdir(dirname(join(files.directory, name)));
    await writeFile(join(files.directory, name), 'stray');
    expect(await open().maintenance.verify()).toEqual([
      { kind: 'unreachable', message: expect.stringContaining(name) },
    ]);
    await open().maintenance.prune({ keepLast: 1 });
    expect(await open().maintenance.verify()).toEqual([]);
  });

  test('a run whose checkpoint is damaged is not taken over, and the others are', async () => {
    const { turn, claim, runs, scope } = open();
    for (const sessionId of ['bad', 'good']) {
      const { base } = await turn(sessionId);
      const held = await claim(sessionId, { mode: 'accepted', ttl: 1 });
      const state = exchange(base.state, 'reached');
      const write = { base, state, stateHash: hashState(state), inputsDone: 0, midTurn: true };
      await runs.checkpoint(held, write);
    }
    const path = journal('bad');
    await writeFile(path, (await readFile(path, 'utf8')).replace('"REACHED"', '"CHANGED"'));
    await systemClock.sleep(5);
    const request = { agents: [scope.agent], worker: 'w', ttl: 60_000, limit: 10 };
    const taken = await open().runs.takeOver(request);
    expect(taken.map(({ run }) => run.sessionId)).toEqual(['good']);
    expect(texts(plain(taken[0]?.checkpoint ?? emptyState))).toContain('REACHED');
  });

  test('what a process left behind that died while it deleted a session is cleared away', async () => {
    await open().turn('s', { text: 'kept' });
    const left = join(files.directory, 'trash/01a1/journal.jsonl');
    await mkdir(dirname(left), { recursive: true });
    await writeFile(left, 'deleted');
    expect(await open().textsOf({ sessionId: 's' })).toEqual(['kept', 'KEPT']);
    const names = [...(await readTree(files.directory)).keys()];
    expect(names.filter((name) => name.includes('trash'))).toEqual([]);
  });

  test('a folder that was copied by hand is no second session', async () => {
    const { turn, scope } = open();
    await turn('s', { text: 'original' });
    const text = await readFile(journal('s'), 'utf8');
    await mkdir(join(files.directory, 'sessions/_/chat/copy'));
    await writeFile(journal('copy'), text);
    const again = open();
    expect((await again.timeline.listSessions(scope)).items).toHaveLength(1);
    expect(await again.textsOf({ sessionId: 'copy' })).toEqual([]);
    expect(await again.maintenance.verify()).toEqual([
      { kind: 'unreachable', message: expect.stringContaining('copy') },
    ]);
  });

  test('a newer format is FAILED_PRECONDITION and stays as it is', async () => {
    const { turn, scope } = open();
    await turn('s');
    const text = await readFile(journal('s'), 'utf8');
    const newer = text.replace('"waymark":6', '"waymark":7');
    await writeFile(journal('s'), newer);
    await refused(open().runs.load(scope, { sessionId: 's' }), 'FAILED_PRECONDITION', {
      format: 7,
    });
    await refused(open().turn('s'), 'FAILED_PRECONDITION');
    expect(await readFile(journal('s'), 'utf8')).toBe(newer);
    await writeFile(join(files.directory, 'waymark.json'), '{"waymark":7}');
    await refused(open().turn('t'), 'FAILED_PRECONDITION', { format: 7 });
  });

  test('a file that something else changed while it was open is read again', async () => {
    const kit = open();
    await kit.turn('s', { text: 'one' });
    const text = await readFile(journal('s'), 'utf8');
    await kit.turn('s', { text: 'two' });
    await writeFile(journal('s'), text);
    expect(await kit.textsOf({ sessionId: 's' })).toEqual(['one', 'ONE']);
    await appendFile(journal('s'), '{"half');
    await kit.turn('s', { text: 'three' });
    expect(await open().textsOf({ sessionId: 's' })).toEqual(['one', 'ONE', 'three', 'THREE']);
  });
});

describe.each([
  ['nothing', ''],
  ['half a line', '{"waymark":6,"id":'],
])('a process that died as it had written %s into a new file', (_, left) => {
  test('leaves a session that the next process begins', async () => {
    await open().turn('other');
    await mkdir(dirname(journal('s')));
    await writeFile(journal('s'), left);
    await open().turn('s', { text: 'hello' });
    expect(await open().textsOf({ sessionId: 's' })).toEqual(['hello', 'HELLO']);
    expect(await open().maintenance.verify()).toEqual([]);
  });

  test('leaves a request and a run that can be claimed', async () => {
    const request = { key: 'a'.repeat(64), digest: 'd' };
    const runId = open().id();
    await open().turn('other');
    for (const name of [`runs/${runId}.json`, `requests/${request.key}.json`]) {
      await mkdir(dirname(join(files.directory, name)), { recursive: true });
      await writeFile(join(files.directory, name), left);
    }
    const run = await open().claim('s', { runId, mode: 'accepted', requests: [request] });
    const next = open();
    expect(await next.runs.listRuns()).toMatchObject([{ runId }]);
    expect(await next.runs.heartbeat(run)).toBe('held');
    expect(await next.runs.getRequest(request.key)).toMatchObject({ runId });
  });
});

test('a store that was closed says so', async () => {
  const { store, scope } = open();
  await store.close?.();
  await refused(store.getSnapshot(scope, { sessionId: 's' }), 'FAILED_PRECONDITION');
});
