/** restore, fork, label, rename and runs; ids by their beginning; what empty lists say. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { createIds } from '../../src/core/id.ts';
import { systemClock } from '../../src/core/time.ts';
import { emptyState, hashState } from '../../src/session/session-state.ts';
import { agentsFile, command, Running, tempFolder } from './support/command.ts';

const folder = tempFolder();
const run = (...args: string[]) => command(folder.path, [...args, '--file', agentsFile]);
const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout);
const snapshots: string[] = [];
const newId = createIds(systemClock);

// The database of the fixture's app, filled from here.
beforeAll(async () => {
  const store = sqliteStore(join(folder.path, 'waymark.db'));
  const app = waymark({ store, model: scriptedModel({ patterns: [], otherwise: 'Yes.' }) });
  const talker = app.defineAgent({ name: 'talker' });
  for (const text of ['one', 'two', 'three']) {
    const { snapshotId = '' } = await talker.runText(text, { sessionId: 'trip' });
    snapshots.push(snapshotId);
  }
  await talker.runText('hello', { sessionId: 'trip-2' });
  await app.close();
});
afterAll(() => folder.remove());

/** All but the end of an id: enough to tell it from others of the same millisecond. */
const prefix = (id: string | undefined): string => (id ?? '').slice(0, 30);

describe('restore', () => {
  test('moves the head of the session; an id can be shortened', async () => {
    const { code, stdout, stderr } = await run('restore', prefix(snapshots[0]));
    expect(code).toBe(0);
    expect(stdout).toBe(`Session trip continues from turn 1 (${snapshots[0]}).\n`);
    expect(stderr).toContain('waymark chat talker --session trip');
    expect((await json('snapshots', 'trip')).headId).toBe(snapshots[0]);
    expect(await json('restore', snapshots[2] ?? '')).toMatchObject({ snapshotId: snapshots[2] });
  });

  test('S721 --partial is for an aborted background run', async () => {
    const { code, stderr } = await run('restore', snapshots[0] ?? '', '--partial');
    expect(code).not.toBe(0);
    expect(stderr).toContain(
      '`partial` is for aborted background runs, and this snapshot is succeeded.',
    );
  });

  test('S763 S764 --undo shows what it undoes, and undoes it', async () => {
    const store = sqliteStore(join(folder.path, 'waymark.db'));
    const model = scriptedModel([
      'Hi.',
      { toolCalls: [{ name: 'reserve', input: { what: 'table' } }] },
      'Done.',
    ]);
    const app = waymark({ store, model });
    const reserve = app.defineTool(
      { name: 'reserve', description: 'Reserves.', undo: () => {} },
      () => 'reserved',
    );
    const talker = app.defineAgent({ name: 'talker', tools: [reserve] });
    const { snapshotId = '' } = await talker.runText('Hi', { sessionId: 'dinner' });
    await talker.runText('reserve table', { sessionId: 'dinner' });
    await app.close();
    const cancelled = join(folder.path, 'cancelled-table');
    const plan = await run('restore', snapshotId, '--undo', '--dry-run');
    expect(plan).toMatchObject({ code: 0 });
    expect(plan.stdout).toMatch(/^possible .* reserve {2}\{"what":"table"\}\n$/);
    expect((await run('restore', snapshotId, '--undo')).stderr).toContain('--dry-run');
    expect((await run('restore', snapshotId, '--yes')).code).toBe(2);
    expect(existsSync(cancelled)).toBe(false);
    const undone = await run('restore', snapshotId, '--undo', '--yes');
    expect(undone.stdout).toBe(`Session dinner continues from turn 1 (${snapshotId}).\n`);
    expect(existsSync(cancelled)).toBe(true);
    const again = await run('restore', snapshotId, '--undo', '--dry-run');
    expect(again.stdout).toBe('There is nothing to undo.\n');
  });

  test('of a backup is another command, and says so', async () => {
    const tooMany = await run('restore', 'nightly.db', 'sqlite:new.db');
    const option = await run('restore', 'nightly.db', '--schema', 'other');
    expect([tooMany.code, option.code]).toEqual([2, 2]);
    for (const { stderr } of [tooMany, option]) {
      expect(stderr).toContain('use "waymark restore-backup"');
    }
  });
});

describe('fork, label and rename', () => {
  test('fork starts a session from a snapshot', async () => {
    const { code, stdout } = await run('fork', prefix(snapshots[1]), '--session', 'fork-1');
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Forked into session fork-1.\n' });
    const { items } = await json('snapshots', 'fork-1');
    expect(items).toMatchObject([{ sessionId: 'fork-1', turnIndex: 1 }]);
    expect((await run('fork', snapshots[1] ?? '', '--session', 'fork-1')).code).toBe(4);
  });

  test('label names a snapshot, and removes the name', async () => {
    const labelled = await run('label', prefix(snapshots[0]), 'the start');
    expect(labelled.stdout).toBe(`Labelled ${snapshots[0]} "the start".\n`);
    expect(await json('show', snapshots[0] ?? '')).toMatchObject({ label: 'the start' });
    const removed = await json('label', snapshots[0] ?? '', '--remove');
    expect(removed).not.toHaveProperty('label');
    const neither = await run('label', snapshots[0] ?? '');
    expect(neither).toMatchObject({ code: 2 });
    expect(neither.stderr).toContain('Give a label, or --remove.');
  });

  test('rename changes the title of a session, also on a server', async () => {
    expect((await run('rename', 'trip-', 'Two days in Lisbon')).stdout).toBe(
      'Renamed session trip-2 to "Two days in Lisbon".\n',
    );
    expect(await json('rename', 'trip-2', '--remove')).not.toHaveProperty('title');
    const dev = new Running(['dev', agentsFile, '--port', '0', '--no-reload'], folder.path);
    try {
      await dev.see(/Server +http/);
      const [, url = ''] = /Server +(http:\S+)/.exec(dev.stdout) ?? [];
      const remote = await command(folder.path, ['rename', 'trip-', 'Far away', '--url', url]);
      expect(remote.stdout).toBe('Renamed session trip-2 to "Far away".\n');
    } finally {
      dev.interrupt();
      await dev.finished;
    }
  });
});

describe('the beginning of an id', () => {
  test('that fits several is an error with the candidates', async () => {
    const [session, snapshot] = [await run('snapshots', 'tri'), await run('show', '0')];
    expect(session.code).toBe(2);
    expect(session.stderr).toMatch(
      /"tri" matches 2 sessions\..*\n.*trip-2 +talker.*\n.*trip +talker/,
    );
    expect(snapshot.code).toBe(2);
    expect(snapshot.stderr).toContain(`${snapshots[0]}  talker  turn 1 of trip`);
  });

  test('that fits none is not found', async () => {
    const [session, snapshot, word] = [
      await run('snapshots', 'nowhere'),
      await run('show', 'ffffff'),
      await run('show', 'latest'),
    ];
    expect([session.code, snapshot.code, word.code]).toEqual([3, 3, 3]);
    expect(snapshot.stderr).toContain('"waymark runs" the open runs');
  });

  test('of a session does not stand for it where a session can be created', async () => {
    const answer = await run('chat', 'talker', 'hi', '--session', 'tri');
    expect(answer).toMatchObject({ code: 0, stdout: 'Message 1.\n' });
  });
});

describe('empty lists', () => {
  test('say which filters were applied, and whose data was read', async () => {
    const [owner, query, runs, failed] = [
      await run('sessions', '--owner', 'ada'),
      await run('sessions', '--query', 'nothing', '--agent', 'talker'),
      await run('runs'),
      await run('retry'),
    ];
    expect(owner).toMatchObject({ code: 0, stdout: '' });
    expect(owner.stderr).toContain('No sessions of owner "ada".');
    expect(query.stderr).toContain('No sessions of agent "talker" that match "nothing".');
    expect(query.stderr).toContain('use --owner');
    expect(runs.stderr).toContain('No open or failed runs.');
    // Agents without a store have none.
    expect(failed).toMatchObject({ code: 0, stderr: expect.stringContaining('No failed runs.') });
    const bare = await run('sessions', '--agent', 'bare');
    expect(bare.stderr).toContain('Agent "bare" has no store');
  });
});

describe('runs', () => {
  const ids = { running: newId(), queued: newId(), failed: newId() };

  test('lists open and failed runs with their state and worker', async () => {
    const store = sqliteStore(join(folder.path, 'waymark.db'));
    await store.open?.();
    const claim = async (runId: string, worker: string) =>
      await store.runs?.claim(
        { agent: 'worker' },
        {
          runId,
          sessionId: `session of ${worker}`,
          from: 'head',
          mode: 'accepted',
          inputs: [{ message: { role: 'user', content: [{ text: 'work' }] } }],
          ttl: 600_000,
          worker,
        },
      );
    await claim(ids.running, 'machine-7');
    await claim(ids.queued, 'queue/');
    const failed = await claim(ids.failed, 'machine-8');
    await store.runs?.commit(failed ?? { runId: '', attempt: 0 }, {
      snapshotId: ids.failed,
      turnIndex: 0,
      event: 'turnEnd',
      status: 'failed',
      error: { status: 'INTERNAL', message: 'Its workers died.' },
      state: emptyState,
      stateHash: hashState(emptyState),
      end: true,
      deadLetter: true,
    });
    await store.close?.();
    const { code, stdout, stderr } = await run('runs');
    expect(code).toBe(0);
    const row = (id: string): string =>
      stdout.split('\n').find((line) => line.startsWith(id)) ?? '';
    expect(row(ids.running)).toMatch(/ running +worker +session of machine-7 .* machine-7$/);
    expect(row(ids.queued)).toMatch(/ queued +worker .* -$/);
    expect(row(ids.failed)).toMatch(/ failed +worker +session of machine-8 /);
    expect(stderr).toContain('waymark retry');
    const { items } = await json('runs', '--agent', 'worker');
    expect(items.map((each: { state: string }) => each.state)).toEqual([
      'running',
      'queued',
      'failed',
    ]);
  });

  test('are found by the beginning of their id', async () => {
    const asked = await json('abort', prefix(ids.running));
    expect(asked).toEqual({ snapshotId: ids.running, status: 'pending' });
    const { items } = await json('runs');
    expect(items[0]).toMatchObject({ snapshotId: ids.running, state: 'stopping' });
  });
});
