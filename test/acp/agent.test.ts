import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { type App, type Chunk, type Interrupt, waymark } from 'waymark';
import { type AcpAgentOptions, acpAgent } from 'waymark/acp';
import { sqliteStore } from 'waymark/sqlite';
import { directory } from 'waymark/workspace';
import { tempFolder } from '../cli/support/command.ts';
import { endProcesses } from '../support/child-process.ts';
import { eventually } from '../support/eventually.ts';
import { TestEditor } from './support/editor.ts';

const vendor = fileURLToPath(new URL('./fixture/vendor.ts', import.meta.url));

const apps: App[] = [];
const folders: { remove(): void }[] = [];
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close({ grace: 0 })));
  await endProcesses();
  for (const folder of folders.splice(0)) folder.remove();
});

function place() {
  const folder = tempFolder();
  folders.push(folder);
  const project = join(folder.path, 'project');
  mkdirSync(project);
  const log = (): string[] => {
    const file = join(folder.path, 'vendor.log');
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  };
  /** An app as a new process has it: no program of an earlier one is known to it. */
  const open = (options: Partial<AcpAgentOptions> = {}, trick = '') => {
    const app = waymark({ store: sqliteStore(join(folder.path, 'waymark.db')), onError: () => {} });
    apps.push(app);
    return app.defineCustomAgent(
      ...acpAgent({
        name: 'vendor',
        command: [process.execPath, vendor],
        env: { VENDOR_HOME: folder.path, VENDOR_TRICK: trick },
        workspace: directory(project),
        keepAlive: 60_000,
        ...options,
      }),
    );
  };
  return { folder: folder.path, project, log, open };
}

const connectionOf = (
  snapshot: { readonly state?: { readonly custom?: unknown } | undefined } | undefined,
) => Object(snapshot?.state?.custom).connection;

describe('an agent of another vendor', () => {
  test('S926 runs turns with tool calls, files, plan, thoughts and cost', async () => {
    const { project, open } = place();
    const agent = open();
    const chunks: Chunk[] = [];
    const { stream, output } = agent.stream('write a.txt one');
    for await (const chunk of stream) chunks.push(chunk);
    const first = await output;
    expect(first.text).toBe('Wrote a.txt.');
    expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('one');
    expect((await agent.listFiles(first)).items).toMatchObject([{ path: 'a.txt' }]);
    const { state } = (await agent.getSnapshot(first)) ?? {};
    expect(
      state?.messages?.map(({ role, content }) => [role, ...content.flatMap(Object.keys)]),
    ).toEqual([
      ['user', 'text'],
      ['model', 'toolRequest', 'metadata'],
      ['tool', 'toolResponse'],
      ['model', 'text'],
    ]);
    const parts = chunks.flatMap(({ modelChunk }) => modelChunk?.content ?? []);
    expect(parts.map((part) => Object.keys(part)[0])).toEqual([
      'toolRequest',
      'toolResponse',
      'text',
    ]);

    const second = await agent.run('cost', { sessionId: first.sessionId });
    expect(second.usage?.cost).toEqual({ USD: 500_000 });
    const third = await agent.run('cost', { sessionId: first.sessionId });
    // The program reports the sum of its session; the turn has used the rest.
    expect(third.usage?.cost).toEqual({ USD: 250_000 });
    expect((await agent.getSnapshot(third))?.state?.custom).toMatchObject({
      agent: 'vendor 1.2',
      connection: 'kept',
      plan: [{ content: 'Test' }],
      context: { used: 1200, size: 200_000 },
    });
    expect(JSON.stringify(third.message)).toContain('"reasoning":"Hm."');
    expect((await agent.listSessions({ query: 'Wrote' })).items).toHaveLength(1);
  });

  test('S927 keeps one program from turn to turn, and loads its session after a restart', async () => {
    const { log, open } = place();
    const agent = open();
    const first = await agent.run('hello');
    const { sessionId } = first;
    expect(connectionOf(await agent.getSnapshot(first))).toBe('new');
    expect(connectionOf(await agent.getSnapshot(await agent.run('again', { sessionId })))).toBe(
      'kept',
    );
    expect(log().filter((line) => line.startsWith('start'))).toHaveLength(1);
    const later = open();
    const third = await later.run('after a restart', { sessionId });
    expect(third.text).toBe('Prompt 3: after a restart');
    expect(connectionOf(await later.getSnapshot(third))).toBe('loaded');
    expect(log().filter((line) => line.startsWith('new'))).toHaveLength(1);
  });

  test('S927 tells a new session the conversation so far, if a restored state cannot be reached', async () => {
    const { project, open } = place();
    const agent = open();
    const first = await agent.run('write a.txt one');
    const { sessionId } = first;
    await agent.run('write a.txt two', { sessionId });
    await agent.restore(first);
    expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('one');
    const other = await agent.run('where were we', { sessionId });
    expect(connectionOf(await agent.getSnapshot(other))).toBe('retold');
    expect(other.text).toContain('Prompt 1:');
    expect(other.text).toContain('User: write a.txt one');
    expect(other.text).not.toContain('two');
    // From here on, the new session is in the state of the branch: also for a process that loads it.
    const loaded = await open().run('and now', { sessionId });
    expect(loaded.text).toBe('Prompt 2: and now');
    expect(connectionOf(await agent.getSnapshot(loaded))).toBe('loaded');
    // The session of a fork is another one.
    const fork = await agent.fork(loaded);
    const forked = await agent.run('in the fork', { sessionId: fork.sessionId });
    expect(connectionOf(await agent.getSnapshot(forked))).toBe('retold');
    const original = await agent.run('in the original', { sessionId });
    expect(original.text).toBe('Prompt 3: in the original');
  });

  test('S927 keeps the programs of several sessions, also if they use one id', async () => {
    const { log, open } = place();
    const agent = open({}, 'counts');
    const first = await agent.run('hello');
    const other = await agent.run('hello');
    const again = await agent.run('again', { sessionId: first.sessionId });
    expect(connectionOf(await agent.getSnapshot(again))).toBe('kept');
    const last = await agent.run('again', { sessionId: other.sessionId });
    expect(connectionOf(await agent.getSnapshot(last))).toBe('kept');
    expect(log().filter((line) => line.startsWith('start'))).toHaveLength(2);
  });

  test.each([
    ['noload', 'cannot load sessions'],
    ['lies', 'claims that it can'],
  ])('continues with a program that %s', async (trick) => {
    const { open } = place();
    const { sessionId } = await open({}, trick).run('hello');
    const later = open({}, trick);
    const second = await later.run('again', { sessionId });
    expect(connectionOf(await later.getSnapshot(second))).toBe('retold');
    expect(second.text).toContain('User: hello');
  });

  test('S926 stops when the turn is stopped, and keeps the partial answer', async () => {
    const { log, open } = place();
    const agent = open();
    const stop = new AbortController();
    const { stream, output } = agent.stream('hang', { signal: stop.signal });
    for await (const { modelChunk } of stream) if (modelChunk) stop.abort();
    const stopped = await output;
    expect(stopped.finishReason).toBe('aborted');
    const { sessionId } = stopped;
    expect((await agent.getSession(sessionId))?.text).toBe('Hanging.');
    // The program stopped as well, and goes on with its session.
    expect((await agent.run('hello', { sessionId })).text).toBe('Prompt 2: hello');
    expect(log().filter((line) => line.startsWith('start'))).toHaveLength(1);
    const again = new AbortController();
    const stubborn = agent.stream('stubborn', { sessionId, signal: again.signal });
    for await (const { modelChunk } of stubborn.stream) if (modelChunk) again.abort();
    expect((await stubborn.output).finishReason).toBe('aborted');
    const [, pid] = /start (\d+)/.exec(log().join('\n')) ?? [];
    await eventually(() => expect(() => process.kill(Number(pid), 0)).toThrow());
    expect((await agent.run('hello', { sessionId })).text).toContain('Prompt 4: hello');
  });

  test.each([
    ['die', 'UNAVAILABLE', 'ended with code 3. It said last: a wire is loose'],
    ['garbage', 'INTERNAL', 'is no JSON-RPC message: "Starting up, please wait …"'],
    ['flood', 'RESOURCE_EXHAUSTED', 'more than 2000000 bytes in one turn'],
    ['long', 'RESOURCE_EXHAUSTED', 'a message of more than 1000000 bytes'],
    ['hang', 'DEADLINE_EXCEEDED', 'has not said anything for 1500 ms'],
  ])('S929 ends a turn in which the program does this: %s', async (text, status, message) => {
    const { log, open } = place();
    const maxTurnBytes = text === 'long' ? 20_000_000 : 2_000_000;
    const agent = open({ maxMessageBytes: 1_000_000, maxTurnBytes });
    // Only here, so that a slow machine fails no other turn.
    const tested = text === 'hang' ? open({ idleTimeout: 1_500 }) : agent;
    const { sessionId } = await agent.run('hello');
    const failed = await tested.run(text, { sessionId, throwOnError: false });
    expect(failed.error).toMatchObject({ status });
    expect(failed.error?.message).toContain(message);
    // The session continues after the last good turn, with another program.
    const next = await agent.run('hello again', { sessionId });
    expect(next.text).toContain('hello again');
    // Another process has let it hang: the program of this one is still running.
    const connection = text === 'hang' ? 'kept' : 'retold';
    expect(connectionOf(await agent.getSnapshot(next))).toBe(connection);
    const pids = log().flatMap((line) => /start (\d+)/.exec(line)?.[1] ?? []);
    const pid = Number(pids[text === 'hang' ? 1 : 0]);
    await eventually(() => expect(() => process.kill(pid, 0)).toThrow());
  });

  test('S929 ends a turn whose program has died and left a process with its output', async () => {
    const { log, open } = place();
    const failed = await open().run('orphan', { throwOnError: false });
    process.kill(Number(/(\d+)$/.exec(log().at(-1) ?? '')?.[1]), 'SIGKILL');
    expect(failed.error?.message).toContain('ended with code 4');
  });

  test('says what is wrong with a program that cannot be used', async () => {
    const { open } = place();
    await expect(open({ command: ['/nowhere/agent'] }).run('hello')).rejects.toThrow(
      'cannot be started',
    );
    await expect(open({}, 'version').run('hello')).rejects.toThrow('speaks version 9 of ACP');
    await expect(open({ startTimeout: 1_000 }, 'silent').run('hello')).rejects.toThrow(
      'within 1000 ms',
    );
    const login = open({ command: [process.execPath, vendor, '--key=secret'] }, 'login');
    const failed = await login.run('hello', { throwOnError: false });
    expect(failed.error?.message).toContain('needs a login');
    expect(JSON.stringify(failed.error)).not.toContain('secret');
    const nothing = [process.execPath, '-e', answersNothing];
    await expect(open({ command: nothing }).run('hello')).rejects.toThrow(
      'opened a session without an id',
    );
    expect((await open().run('calls')).text).toBe('Refused: -32601');
    expect(() => acpAgent({ name: 'a', command: [] })).toThrow('must be a program');
  });
});

/** A program that answers every request with a result that has nothing in it. */
const answersNothing = `
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  const result = method === 'initialize' ? { protocolVersion: 1, agentCapabilities: null } : {};
  console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
});
`;

describe('permissions of another vendor', () => {
  test('S926 are interrupts, and the program goes on with the answers', async () => {
    const { project, open } = place();
    const agent = open();
    const asked = await agent.run('ask-two');
    const titles: string[] = [];
    let answered = asked;
    // The questions of two calls may come together or one after the other.
    while (answered.finishReason === 'interrupted') {
      answered = await agent.resume(answered, (request) => {
        const { question } = Object(request.metadata);
        titles.push(question);
        return question === 'Make one' ? request.approve() : request.decline();
      });
    }
    expect(titles).toEqual(['Make one', 'Make two']);
    expect(answered.text).toBe('one: yes, two: no');
    expect(existsSync(join(project, 'one.made'))).toBe(true);
    expect(existsSync(join(project, 'two.made'))).toBe(false);
    expect(connectionOf(await agent.getSnapshot(answered))).toBe('kept');
    const formed = await agent.run('form', { sessionId: asked.sessionId });
    const filled = await agent.resume(formed, (request) =>
      request.approve({ resumed: { action: 'accept', content: { city: 'Porto' } } }),
    );
    expect(filled.text).toBe('Form: {"action":"accept","content":{"city":"Porto"}}');
  });

  test('S927 are not in the state before their answer afterwards', async () => {
    const { open } = place();
    const first = open();
    const asked = await first.run('ask');
    await first.resume(asked, (request) => request.approve());
    const { snapshotId = '' } = asked;
    const other = await open().run('hello', { snapshotId });
    expect(connectionOf(await first.getSnapshot(other))).toBe('retold');
  });

  test('S926 are cancelled by another message', async () => {
    const { project, open } = place();
    const agent = open();
    const { sessionId } = await agent.run('ask');
    const next = await agent.run('hello', { sessionId });
    expect(next.text).toBe('Prompt 2: hello');
    expect(existsSync(join(project, 'only.made'))).toBe(false);
  });

  test('S928 are answered after a restart', async () => {
    const { project, open } = place();
    const asked = await open().run('ask');
    const later = open();
    const answered = await later.resume(asked, (request) => request.approve());
    // The program asks again, and gets the answer that the user has given.
    expect(answered.finishReason).toBe('stop');
    expect(connectionOf(await later.getSnapshot(answered))).toBe('loaded');
    expect(existsSync(join(project, 'only.made'))).toBe(true);
    // The answer counts once.
    const again = await later.run('ask', { sessionId: asked.sessionId });
    expect(again.finishReason).toBe('interrupted');
  });
});

describe('an answer that is no yes', () => {
  test.each([
    [
      'the option to reject',
      (request: Interrupt) => request.approve({ resumed: { optionId: 'no' } }),
    ],
    [
      'an unknown option',
      (request: Interrupt) => request.approve({ resumed: { optionId: 'sure' } }),
    ],
    ['an output that refuses', (request: Interrupt) => request.respond({ approved: false })],
    ['an output that says nothing', (request: Interrupt) => request.respond('maybe')],
  ])('S926 S928 is a no, also after a restart: %s', async (_, answer) => {
    const { project, open } = place();
    const agent = open();
    const kept = await agent.resume(await agent.run('ask'), answer);
    expect(kept.text).toBe('only: no');
    const asked = await agent.run('ask');
    const later = open();
    const answered = await later.resume(asked, answer);
    expect(answered.text).toBe('only: no');
    expect(JSON.stringify((await later.getSnapshot(answered))?.state?.custom)).not.toContain('yes');
    expect(existsSync(join(project, 'only.made'))).toBe(false);
  });
});

test('is served to an editor, also after kill -9 during a permission', async () => {
  const { folder, project } = place();
  const start = () =>
    new TestEditor(folder, ['--agent', 'vendor'], { VENDOR: vendor, VENDOR_HOME: folder });
  const first = start();
  await first.initialize();
  const id = await first.open(project);
  await first.say(id, 'write a.txt one');
  expect(first.take().find(({ sessionUpdate }) => sessionUpdate === 'tool_call')).toMatchObject({
    kind: 'edit',
  });
  const asked = Promise.withResolvers<void>();
  first.onPermission = () => {
    asked.resolve();
    return new Promise(() => {});
  };
  void first.say(id, 'ask').catch(() => {});
  await asked.promise;
  await first.process.end('SIGKILL');
  const second = start();
  await second.initialize();
  await second.load(id, project);
  second.take();
  await second.say(id, 'hello');
  expect(second.asked).toMatchObject([{ toolCall: { title: 'Make only' } }]);
  expect(existsSync(join(project, 'only.made'))).toBe(true);
  expect(second.text()).toContain('Prompt 4: hello');
  await second.leave();
});
