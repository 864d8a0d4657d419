import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  type Agent,
  agentTool,
  backgroundAgentTools,
  memoryStore,
  on,
  type Store,
  tool,
  waymark,
} from 'waymark';
import { type ScriptedReply, scriptedModel } from 'waymark/testing';
import { directory, memoryWorkspace, type Workspace } from 'waymark/workspace';
import { createGate, type Gate } from '../agent/support/gate.ts';
import { mortalStore } from '../agent/support/mortal-store.ts';
import { eventually } from '../support/eventually.ts';
import { movableClock } from '../support/movable-clock.ts';
import { act, hashFolder, openApp, shell, testFolder } from './support.ts';

const refusal = { status: 'FAILED_PRECONDITION' };

/** A tool that waits until the test lets it continue, and then does something in the folder. */
function waitingTool(gate: Gate, command: string) {
  return tool({ name: 'pause', description: 'Waits.' }, async (_, { workspace }) => {
    await gate.wait();
    shell(workspace?.path ?? '', command);
  });
}

test('S806 a definition without a store that keeps trees is refused', async () => {
  const workspace = memoryWorkspace();
  const app = waymark();
  expect(() => app.defineAgent({ name: 'a', workspace })).toThrow(
    expect.objectContaining({ ...refusal, message: expect.stringContaining('client holds') }),
  );
  const { files: _, ...plain } = memoryStore();
  const other = waymark({ store: plain as Store });
  expect(() => other.defineAgent({ name: 'a', workspace })).toThrow(
    expect.objectContaining({ ...refusal, message: expect.stringContaining('keep the trees') }),
  );
  expect(() =>
    waymark({ store: memoryStore() }).defineAgent({ name: 'a', workspace: {} as Workspace }),
  ).toThrow(expect.objectContaining({ status: 'INVALID_ARGUMENT' }));
});

test('S805 sessions that may run at once need folders of their own', async () => {
  const shared = memoryWorkspace();
  const own = memoryWorkspace({ perSession: true });
  await using app = openApp(memoryStore());
  const forking = { concurrency: 'fork' } as const;
  expect(() => app.defineAgent({ name: 'a', workspace: shared, ...forking })).toThrow(
    expect.objectContaining({ ...refusal, message: expect.stringContaining('perSession') }),
  );
  app.defineAgent({ name: 'b', workspace: own, ...forking });
  const worker = app.defineAgent({ name: 'worker', workspace: shared });
  expect(() => backgroundAgentTools(worker)).toThrow(expect.objectContaining(refusal));
  backgroundAgentTools(app.defineAgent({ name: 'other', workspace: own }));
  const chosen = app.defineAgent({ name: 'chosen', workspace: () => shared, ...forking });
  await expect(chosen.run('nothing')).rejects.toMatchObject(refusal);
});

test('S805 sessions that share a folder exclude each other while a turn runs', async () => {
  using folder = testFolder();
  const gate = createGate();
  await using app = openApp(memoryStore());
  const workspace = directory(folder.project);
  const model = scriptedModel([{ toolCalls: [{ name: 'pause' }] }, 'done']);
  const slow = app.defineAgent({
    name: 'slow',
    model,
    workspace,
    tools: [waitingTool(gate, 'echo slow > file')],
  });
  const quick = app.defineAgent({ name: 'quick', workspace, tools: [act] });
  const patient = app.defineAgent({
    name: 'patient',
    workspace,
    tools: [act],
    concurrency: 'wait',
  });
  const running = slow.run('go');
  await gate.reached;
  await expect(quick.run('echo quick > file')).rejects.toMatchObject({ status: 'ABORTED' });
  const waiting = patient.run('cat file');
  gate.open();
  await running;
  const { sessionId } = await waiting;
  const seen = await patient.getSession(sessionId);
  expect(JSON.stringify(seen?.state)).toContain('slow');
  await quick.run('echo quick > file');
  expect(readFileSync(join(folder.project, 'file'), 'utf8')).toBe('quick\n');
  expect(app.errors).toEqual([]);
});

test('S804 a run that is taken over continues with the files of its checkpoint', async () => {
  using folder = testFolder();
  const { project } = folder;
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  const claimTtl = 60_000;
  const define = (own: Store, script: Parameters<typeof scriptedModel>[0], gate: Gate): Agent => {
    const app = waymark({ store: own, claimTtl, clock, onError: () => {} });
    const hang = waitingTool(gate, 'true');
    const model = scriptedModel(script);
    const workspace = directory(project);
    return app.defineAgent({ name: 'coder', model, workspace, tools: [act, hang] });
  };
  writeFileSync(join(project, 'start'), 'start');
  const gate = createGate();
  const first = define(
    line,
    [
      { toolCalls: [{ name: 'act', input: { command: 'echo 1 > done' } }] },
      { toolCalls: [{ name: 'pause' }] },
    ],
    gate,
  );
  const run = await first.start('go');
  await gate.reached;
  line.cut();
  writeFileSync(join(project, 'half'), 'of the call that runs again');
  advance(2 * claimTtl);
  const again = createGate();
  again.open();
  const heir = define(
    store,
    [{ toolCalls: [{ name: 'act', input: { command: 'ls > seen' } }] }, 'finished'],
    again,
  );
  const { snapshotId = '' } = await heir.wait(run.id);
  expect(readFileSync(join(project, 'seen'), 'utf8').split('\n')).toEqual([
    'done',
    'seen',
    'start',
    '',
  ]);
  expect(existsSync(join(project, 'half'))).toBe(false);
  const { items } = await heir.listSnapshots(run.sessionId, { includeOrphaned: true });
  const holders = await Promise.all(
    items.map(async (each) =>
      (await heir.listFiles(each)).items.some(({ path }) => path === 'half'),
    ),
  );
  expect(holders.filter(Boolean)).toHaveLength(1);
  expect((await heir.listFiles(snapshotId)).items.map(({ path }) => path)).toEqual([
    'done',
    'seen',
    'start',
  ]);
  expect(await store.maintenance?.verify()).toEqual([]);
});

test('S804 on another host, a run that is taken over continues in a new folder with the files of its checkpoint', async () => {
  using folder = testFolder();
  const { path } = folder;
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  const claimTtl = 60_000;
  const define = (
    own: Store,
    host: string,
    replies: readonly ScriptedReply[],
    gate: Gate,
  ): Agent => {
    const app = waymark({ store: own, claimTtl, clock, onError: () => {} });
    const hang = waitingTool(gate, 'true');
    const workspace = directory.perSession({ in: join(path, host) });
    const model = scriptedModel(replies);
    return app.defineAgent({ name: 'coder', model, workspace, tools: [act, hang] });
  };
  const gate = createGate();
  const calls = [
    { toolCalls: [{ name: 'act', input: { command: 'echo 1 > done; mkdir empty' } }] },
    { toolCalls: [{ name: 'pause' }] },
  ];
  const first = define(line, 'here', calls, gate);
  const run = await first.start('go');
  await gate.reached;
  line.cut();
  writeFileSync(join(path, 'here', run.sessionId, 'half'), 'of the call that runs again');
  advance(2 * claimTtl);
  const again = createGate();
  again.open();
  const rest = [{ toolCalls: [{ name: 'act', input: { command: 'ls > seen' } }] }, 'finished'];
  const heir = define(store, 'there', rest, again);
  const ended = await heir.wait(run.id);
  expect(ended.text).toBe('finished');
  expect(readFileSync(join(path, 'there', run.sessionId, 'seen'), 'utf8')).toBe(
    'done\nempty\nseen\n',
  );
  const { items } = await heir.listSnapshots(run.sessionId, { includeOrphaned: true });
  expect(items.map(({ edit }) => edit)).not.toContainEqual(expect.anything());
  expect(Object.keys(hashFolder(join(path, 'here', run.sessionId)))).toContain('half');
});

test('S804 a custom agent whose run is taken over starts with the files of the turn’s start', async () => {
  using folder = testFolder();
  const { project } = folder;
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  const claimTtl = 60_000;
  const gate = createGate();
  const define = (own: Store, isFirst: boolean): Agent => {
    const app = waymark({ store: own, claimTtl, clock, onError: () => {} });
    return app.defineCustomAgent(
      { name: 'own', workspace: directory(project) },
      async (session) => {
        await session.run(async ({ message }) => {
          const found = shell(project, 'ls');
          shell(project, 'echo half > half');
          if (isFirst && JSON.stringify(message).includes('second')) await gate.wait();
          session.addMessages({ role: 'model', content: [{ text: found }] });
        });
      },
    );
  };
  writeFileSync(join(project, 'start'), 'start');
  const first = define(line, true);
  const { sessionId } = await first.run('first');
  shell(project, 'rm half');
  const run = await first.start('second', { sessionId });
  await gate.reached;
  line.cut();
  writeFileSync(join(project, 'other'), 'left by the first attempt');
  advance(2 * claimTtl);
  const heir = define(store, false);
  const ended = await heir.wait(run.id);
  expect(ended.text).toBe('start\n');
  expect(Object.keys(hashFolder(project))).toEqual(['half', 'start']);
  const { items } = await heir.listSnapshots(sessionId, { includeOrphaned: true });
  const found = items.find(({ edit }) => edit?.reason?.includes('earlier attempt'));
  const { items: files } = await heir.listFiles(found ?? '');
  expect(files.map(({ path }) => path)).toEqual(['half', 'other', 'start']);
});

test('S800 a background run has the files of its turns', async () => {
  using folder = testFolder();
  await using app = openApp(memoryStore());
  const coder = app.defineAgent({
    name: 'coder',
    workspace: directory(folder.project),
    tools: [act],
  });
  const first = await coder.run('echo 1 > file');
  writeFileSync(join(folder.project, 'mine'), 'mine');
  const run = await coder.start('echo 2 > file', { sessionId: first.sessionId });
  await run.wait();
  const { files } = await coder.diff(first, run.id);
  expect(files?.map(({ path }) => path)).toEqual(['file', 'mine']);
  await coder.restore(first);
  expect(hashFolder(folder.project)).toEqual({
    file: expect.stringContaining('file'),
  });
  await coder.restore(run.id);
  expect(readFileSync(join(folder.project, 'file'), 'utf8')).toBe('2\n');
  expect(app.errors).toEqual([]);
});

test('S805 a restore waits for the folder of a run whose end can be seen, but not for one that runs', async () => {
  using folder = testFolder();
  await using app = openApp(memoryStore());
  const own = directory(folder.project);
  const slow: Workspace = {
    ...own,
    async open(place) {
      const opened = await own.open(place);
      return {
        ...opened,
        async lock(owner, options) {
          const lock = await opened.lock(owner, options);
          const release = async (): Promise<void> => {
            await new Promise((resolve) => setTimeout(resolve, 100));
            await lock.release();
          };
          return { lost: lock.lost, release };
        },
      };
    },
  };
  const coder = app.defineAgent({ name: 'coder', workspace: slow, tools: [act] });
  const first = await coder.run('echo 1 > file');
  const run = await coder.start('echo 2 > file', { sessionId: first.sessionId });
  await run.wait();
  await coder.restore(first);
  expect(readFileSync(join(folder.project, 'file'), 'utf8')).toBe('1\n');

  const other = await coder.start('sleep 5', { sessionId: 'other' });
  await eventually(async () => {
    const busy = await coder.restore(run.id).catch(({ details }) => details.running);
    return busy === other.id;
  });
  await other.abort();
});

test('S801 with the policy never, the latest state has the files', async () => {
  using folder = testFolder();
  await using app = openApp(memoryStore());
  const workspace = directory(folder.project);
  const coder = app.defineAgent({ name: 'coder', workspace, tools: [act], snapshot: 'never' });
  const { sessionId } = await coder.run('echo 1 > file');
  writeFileSync(join(folder.project, 'mine'), 'mine');
  await coder.run('echo 2 > file', { sessionId });
  expect((await coder.listSnapshots(sessionId)).items).toEqual([]);
  const { items } = await coder.listFiles({ sessionId });
  expect(items.map(({ path }) => path)).toEqual(['file', 'mine']);
});

test('S800 a policy takes snapshots of files after each round of tools', async () => {
  using folder = testFolder();
  await using app = openApp(memoryStore());
  const workspace = directory(folder.project);
  const snapshot = on('turnEnd', 'toolIterationEnd');
  const coder = app.defineAgent({ name: 'coder', workspace, tools: [act], snapshot });
  const { sessionId } = await coder.run('echo 1 > a;;echo 2 > b');
  const { items } = await coder.listSnapshots(sessionId);
  const counts = await Promise.all(
    items.map(async (each) => (await coder.listFiles(each)).items.length),
  );
  expect(counts).toEqual([1, 2, 2]);
});

test('S805 a foreground sub-agent works in the folder of its parent', async () => {
  using folder = testFolder();
  await using app = openApp(memoryStore());
  const workspace = directory(folder.project);
  const inner = app.defineAgent({ name: 'inner', description: 'Works.', workspace, tools: [act] });
  const script = [
    { toolCalls: [{ name: 'inner', input: { message: 'echo inner > file' } }] },
    'done',
  ];
  const outer = app.defineAgent({
    name: 'outer',
    model: scriptedModel(script),
    workspace,
    tools: [agentTool(inner)],
  });
  const output = await outer.run('go');
  const file = await outer.openFile(output, 'file');
  expect(await new Response(file.stream).text()).toBe('inner\n');
  const { items } = await inner.listSessions();
  const own = await inner.openFile({ sessionId: items[0]?.sessionId ?? '' }, 'file');
  expect(await new Response(own.stream).text()).toBe('inner\n');
  expect(app.errors).toEqual([]);
});

test('S808 S810 S800 an artifact of the name of a file wins, and no artifact can name a tree', async () => {
  using folder = testFolder();
  await using app = openApp(memoryStore());
  const workspace = directory(folder.project);
  const agent = app.defineCustomAgent({ name: 'own', workspace }, async (session) => {
    await session.run(async () => {
      expect(session.artifacts).toEqual([]);
      shell(folder.project, 'echo file > name; echo other > other');
      await session.saveFile({ name: 'name', data: new TextEncoder().encode('artifact') });
      session.setArtifacts([...session.artifacts]);
      const url = `waymark-tree:${'0'.repeat(64)}`;
      expect(() => session.addArtifacts({ parts: [{ media: { url } }] })).toThrow('workspace');
    });
  });
  const output = await agent.run('go');
  expect(output.artifacts).toHaveLength(1);
  const text = async (name: string, options = {}) =>
    await new Response((await agent.openFile(output, name, options)).stream).text();
  expect(await text('name')).toBe('artifact');
  expect(await text('name', { workspace: true })).toBe('file\n');
  expect(await text('other')).toBe('other\n');
  expect(await text('other', { range: { start: 1, end: 3 } })).toBe('th');
  const { items } = await agent.listFiles(output);
  expect(items.map(({ path }) => path)).toEqual(['name', 'other']);
});

test('S809 a transform decides which files leave, and how their lines look', async () => {
  using folder = testFolder();
  await using app = openApp(memoryStore());
  const agent = app.defineAgent({
    name: 'coder',
    workspace: directory(folder.project),
    tools: [act],
    transform: {
      state: ({ artifacts = [], ...state }) => ({
        ...state,
        artifacts: artifacts
          .filter(({ name }) => name !== 'secret')
          .map((artifact) => ({
            ...artifact,
            parts: artifact.parts.map((part) =>
              'text' in part ? { text: part.text.replaceAll('password', '***') } : part,
            ),
          })),
      }),
    },
  });
  const first = await agent.run('echo 1 > secret; echo password > open');
  const second = await agent.run('echo 2 > secret; echo new password > open', {
    sessionId: first.sessionId,
  });
  expect((await agent.listFiles(second)).items.map(({ path }) => path)).toEqual(['open']);
  await expect(agent.openFile(second, 'secret')).rejects.toMatchObject({ status: 'NOT_FOUND' });
  const { files } = await agent.diff(first, second);
  expect(files?.map(({ path }) => path)).toEqual(['open']);
  expect(JSON.stringify(files)).not.toContain('password');
});

test('S813 a function chooses the workspace by session and context', async () => {
  using folder = testFolder();
  await using app = openApp(memoryStore());
  const seen: unknown[] = [];
  const coder = app.defineAgent({
    name: 'coder',
    tools: [act],
    workspace: (session, context) => {
      seen.push([session, context]);
      return directory(String(context.folder ?? folder.project));
    },
  });
  const context = { folder: folder.project };
  const first = await coder.run('echo 1 > file', { context, owner: 'ann' });
  expect(seen).toEqual([[{ sessionId: first.sessionId, agent: 'coder', owner: 'ann' }, context]]);
  await coder.run('echo 2 > file', { context, owner: 'ann', sessionId: first.sessionId });
  await coder.restore(first, { context, owner: 'ann' });
  expect(readFileSync(join(folder.project, 'file'), 'utf8')).toBe('1\n');
});

test('S801 a turn with an outdated ifHead saves nothing', async () => {
  using folder = testFolder();
  await using app = openApp(memoryStore());
  const coder = app.defineAgent({
    name: 'coder',
    workspace: directory(folder.project),
    tools: [act],
  });
  const first = await coder.run('echo 1 > file');
  const second = await coder.run('echo 2 > file', { sessionId: first.sessionId });
  writeFileSync(join(folder.project, 'mine'), 'mine');
  const { sessionId } = first;
  await expect(coder.run('echo 3 > file', { sessionId, ifHead: first })).rejects.toMatchObject({
    status: 'ABORTED',
  });
  await expect(coder.restore(first, { ifHead: first })).rejects.toMatchObject({
    status: 'ABORTED',
  });
  expect((await coder.getSession(sessionId))?.headId).toBe(second.snapshotId);
  expect(existsSync(join(folder.project, 'mine'))).toBe(true);
  await eventually(async () => {
    expect((await coder.listRuns()).items).toEqual([]);
  });
});

test('S801 files that change while a turn waits for an approval are saved before its answer', async () => {
  using folder = testFolder();
  await using app = openApp(memoryStore());
  const workspace = directory(folder.project);
  const asking = tool(
    { name: 'act', description: 'Does something.', needsApproval: true },
    async (_, { workspace: own }) => shell(own?.path ?? '', 'cat mine > seen'),
  );
  const model = scriptedModel([{ toolCalls: [{ name: 'act' }] }, 'done']);
  const coder = app.defineAgent({ name: 'coder', model, workspace, tools: [asking] });
  const asked = await coder.run('go');
  expect(asked.finishReason).toBe('interrupted');
  writeFileSync(join(folder.project, 'mine'), 'by a person');
  const done = await coder.resume(asked, (request) => request.approve());
  expect(done.finishReason).toBe('stop');
  const file = await coder.openFile(done, 'seen');
  expect(await new Response(file.stream).text()).toBe('by a person');
  const { items } = await coder.listSnapshots(done);
  expect(items.map(({ event }) => event)).toEqual(['turnEnd', 'edit', 'turnEnd']);
  await expect(coder.resume(asked, (request) => request.approve())).rejects.toMatchObject(refusal);
  expect(app.errors).toEqual([]);
});

test('S800 a turn that is stopped keeps its files', async () => {
  using folder = testFolder();
  await using app = openApp(memoryStore());
  const workspace = directory(folder.project);
  const gate = createGate();
  const slow = tool(
    { name: 'act', description: 'Waits.' },
    async (_, { signal, workspace: own }) => {
      shell(own?.path ?? '', 'echo half > half');
      void gate.wait();
      await new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    },
  );
  const model = scriptedModel([{ toolCalls: [{ name: 'act' }] }, 'next']);
  const coder = app.defineAgent({ name: 'coder', model, workspace, tools: [slow] });
  const stop = new AbortController();
  const running = coder.run('go', { signal: stop.signal, throwOnError: false });
  await gate.reached;
  stop.abort();
  const output = await running;
  expect(output.finishReason).toBe('aborted');
  expect((await coder.listFiles(output)).items.map(({ path }) => path)).toEqual(['half']);
  const next = await coder.run('again', { sessionId: output.sessionId });
  expect(next.text).toBe('next');
  expect((await coder.listSnapshots(next)).items).toHaveLength(2);
});
