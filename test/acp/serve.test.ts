import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { tempFolder } from '../cli/support/command.ts';
import { endProcesses } from '../support/child-process.ts';
import { eventually } from '../support/eventually.ts';
import { TestEditor } from './support/editor.ts';

const folders: { remove(): void }[] = [];
afterEach(async () => {
  await endProcesses();
  for (const folder of folders.splice(0)) folder.remove();
});

function place(): {
  readonly folder: string;
  readonly project: string;
  readonly log: () => string;
} {
  const folder = tempFolder();
  folders.push(folder);
  const project = join(folder.path, 'project');
  mkdirSync(project);
  const file = join(folder.path, 'log.txt');
  return {
    folder: folder.path,
    project,
    log: () => (existsSync(file) ? readFileSync(file, 'utf8') : ''),
  };
}

const coder = ['--agent', 'coder'];

describe('a session in an editor', () => {
  test('runs prompts with tool calls, diffs and a plan', async () => {
    const { folder, project } = place();
    const editor = new TestEditor(folder, [...coder, '--context-window', '1000']);
    const { agentCapabilities, protocolVersion } = await editor.initialize();
    expect(protocolVersion).toBe(1);
    expect(agentCapabilities?.loadSession).toBe(true);
    const id = await editor.open(project);
    await editor.sees(({ sessionUpdate }) => sessionUpdate === 'available_commands_update');
    editor.take();

    expect(await editor.say(id, 'write a.txt one')).toBe('end_turn');
    expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('one');
    const updates = editor.take();
    const path = join(project, 'a.txt');
    expect(updates.find(({ sessionUpdate }) => sessionUpdate === 'tool_call')).toMatchObject({
      title: 'write a.txt',
      kind: 'edit',
      locations: [{ path }],
    });
    const diff = { type: 'diff', path, oldText: null, newText: 'one' };
    expect(updates).toContainEqual(expect.objectContaining({ content: [diff] }));
    expect(updates).toContainEqual(
      expect.objectContaining({ sessionUpdate: 'tool_call_update', status: 'completed' }),
    );
    expect(updates.find(({ sessionUpdate }) => sessionUpdate === 'usage_update')).toMatchObject({
      size: 1000,
      used: expect.any(Number),
    });
    expect(
      updates.find(({ sessionUpdate }) => sessionUpdate === 'session_info_update'),
    ).toMatchObject({ title: 'write a.txt one' });

    await editor.say(id, 'write a.txt two');
    const second = { type: 'diff', path, oldText: 'one', newText: 'two' };
    expect(editor.take()).toContainEqual(expect.objectContaining({ content: [second] }));
    await editor.say(id, 'plan it');
    expect(editor.take()).toContainEqual({
      sessionUpdate: 'plan',
      entries: [{ content: 'Test', status: 'pending', priority: 'medium' }],
    });
    await editor.say(id, 'think');
    expect(editor.take()).toContainEqual({
      sessionUpdate: 'agent_thought_chunk',
      content: { type: 'text', text: 'Hm.' },
    });
    await expect(editor.say(id, 'fail')).rejects.toThrow('the model is down');
    await editor.leave();
    expect(editor.process.stderr).toContain('loaded');
  });

  test('S921 asks for permission, and remembers it for the session', async () => {
    const { folder, project } = place();
    const editor = new TestEditor(folder, coder);
    await editor.initialize();
    const id = await editor.open(project);
    editor.onPermission = () => 'reject';
    expect(await editor.say(id, 'run touch no')).toBe('end_turn');
    expect(existsSync(join(project, 'no'))).toBe(false);
    expect(editor.asked[0]).toMatchObject({
      toolCall: { title: 'shell touch no', kind: 'execute', status: 'pending' },
    });
    editor.onPermission = () => 'always';
    await editor.say(id, 'run touch yes');
    await editor.say(id, 'run touch more');
    expect(existsSync(join(project, 'more'))).toBe(true);
    expect(editor.asked).toHaveLength(2);
    const other = await editor.open(project);
    await editor.say(other, 'run touch other');
    expect(editor.asked).toHaveLength(3);
    await editor.agent.request('session/set_mode', { sessionId: other, modeId: 'allow' });
    await editor.say(other, 'run touch other2');
    expect(editor.asked).toHaveLength(3);
    await expect(
      editor.agent.request('session/set_mode', { sessionId: other, modeId: 'never' }),
    ).rejects.toThrow('is no value of "mode"');
    await editor.leave();
  });

  test('S921 asks about a call with the path of a pipe', async () => {
    const { folder, project } = place();
    const server = join(folder, 'server.mjs');
    writeFileSync(server, echoServer);
    execFileSync('sh', ['-c', 'mkfifo pipe'], { cwd: project });
    const editor = new TestEditor(folder, coder);
    await editor.initialize();
    const mcpServers = [{ name: 'echo', command: process.execPath, args: [server], env: [] }];
    const id = await editor.open(project, { mcpServers });
    await editor.say(id, 'save pipe');
    expect(editor.asked).toMatchObject([
      { toolCall: { content: [{ type: 'diff', oldText: null, newText: 'x' }] } },
    ]);
    await editor.leave();
  });

  test.each([true, false])(
    'S922 S925 asks about a call of an MCP server again after a restart, with the server: %s',
    async (hasServer) => {
      const { folder, project } = place();
      const server = join(folder, 'server.mjs');
      writeFileSync(server, echoServer);
      const mcpServers = [{ name: 'echo', command: process.execPath, args: [server], env: [] }];
      const first = new TestEditor(folder, coder);
      await first.initialize();
      const id = await first.open(project, { mcpServers });
      const asked = Promise.withResolvers<void>();
      first.onPermission = () => {
        asked.resolve();
        return new Promise(() => {});
      };
      const prompt = first.say(id, 'mcp salut');
      prompt.catch(() => {});
      await Promise.race([asked.promise, prompt]);
      await first.process.end('SIGKILL');
      const second = new TestEditor(folder, coder);
      await second.initialize();
      await second.agent.request('session/resume', {
        sessionId: id,
        cwd: project,
        ...(hasServer && { mcpServers }),
      });
      await second.say(id, 'hello');
      expect(second.asked).toHaveLength(1);
      expect(second.text()).toContain(hasServer ? 'You said salut' : 'not available any more');
      expect(second.text()).toContain('Message 2.');
      await second.leave();
    },
  );

  test('lets the user choose a model', async () => {
    const { folder, project } = place();
    const editor = new TestEditor(folder, coder);
    await editor.initialize();
    const id = await editor.open(project);
    const choose = async (value: string) =>
      await editor.agent.request('session/set_config_option', {
        sessionId: id,
        configId: 'model',
        value,
      });
    const { configOptions } = await choose('other');
    expect(configOptions).toMatchObject([
      { id: 'mode', currentValue: 'ask' },
      { id: 'model', currentValue: 'other', options: [{ value: 'default' }, { value: 'other' }] },
    ]);
    await editor.say(id, 'hello');
    expect(editor.text()).toBe('I am the other model.');
    await choose('default');
    editor.take();
    await editor.say(id, 'hello');
    expect(editor.text()).toBe('Message 2.');
    await expect(choose('unknown')).rejects.toThrow('is no value of "model"');
    await editor.leave();
  });

  test('S921 asks questions by forms, and by text where the client has none', async () => {
    const { folder, project } = place();
    const editor = new TestEditor(folder, coder);
    await editor.initialize({ elicitation: { form: {} } });
    const id = await editor.open(project);
    editor.onElicitation = () => ({ action: 'accept', content: { answer: 'Porto' } });
    await editor.say(id, 'where to');
    expect(editor.text()).toContain('Porto');
    await editor.leave();
    const plain = new TestEditor(folder, coder);
    await plain.initialize();
    const second = await plain.open(project);
    expect(await plain.say(second, 'where to')).toBe('end_turn');
    expect(plain.text()).toContain('Which city?');
    plain.take();
    await plain.say(second, 'Lisbon');
    expect(plain.text()).toContain('Result: ["Lisbon"]');
    await plain.leave();
  });

  test('S920 stops a tool in the middle, keeps the partial answer, and ignores a second cancel', async () => {
    const { folder, project, log } = place();
    const editor = new TestEditor(folder, coder);
    await editor.initialize();
    const id = await editor.open(project);
    const prompt = editor.say(id, 'wait');
    await eventually(() => expect(log()).toContain('waiting'));
    await editor.agent.notify('session/cancel', { sessionId: id });
    await editor.agent.notify('session/cancel', { sessionId: id });
    expect(await prompt).toBe('cancelled');
    await editor.agent.notify('session/cancel', { sessionId: id });
    await editor.agent.notify('session/cancel', { sessionId: 'unknown' });
    editor.take();
    await editor.load(id, project);
    expect(editor.text()).toContain('Waiting.');
    expect(await editor.say(id, 'hello')).toBe('end_turn');
    await editor.leave();
  });

  test('S920 S921 is loaded again after kill -9, with its pending permission', async () => {
    const { folder, project } = place();
    const first = new TestEditor(folder, coder);
    await first.initialize();
    const id = await first.open(project);
    await first.say(id, 'write a.txt one');
    const asked = Promise.withResolvers<void>();
    first.onPermission = () => {
      asked.resolve();
      return new Promise(() => {});
    };
    const prompt = first.say(id, 'run touch approved');
    prompt.catch(() => {});
    // The prompt ends only if it fails.
    await Promise.race([asked.promise, prompt]);
    await first.process.end('SIGKILL');

    const second = new TestEditor(folder, coder);
    await second.initialize();
    const { sessions } = await second.agent.request('session/list', { cwd: project });
    expect(sessions).toMatchObject([{ sessionId: id, cwd: project, title: 'write a.txt one' }]);
    await second.load(id, project);
    const replayed = second.take();
    expect(
      replayed
        .filter(({ sessionUpdate }) => sessionUpdate === 'user_message_chunk')
        .map((each) => ('content' in each ? Object(each.content).text : '')),
    ).toEqual(['write a.txt one', 'run touch approved']);
    expect(replayed.filter(({ sessionUpdate }) => sessionUpdate === 'tool_call')).toHaveLength(2);
    // The permission is asked before the new input runs.
    second.onPermission = () => 'allow';
    await second.say(id, 'hello');
    expect(second.asked).toMatchObject([{ toolCall: { title: 'shell touch approved' } }]);
    expect(existsSync(join(project, 'approved'))).toBe(true);
    expect(second.text()).toMatch(/Result: .*Message 3\./s);
    await second.leave();
  });

  test('continues after kill -9 in the middle of an answer', async () => {
    const { folder, project } = place();
    const first = new TestEditor(folder, coder);
    await first.initialize();
    const id = await first.open(project);
    await first.say(id, 'hello');
    void first.say(id, 'hang').catch(() => {});
    await first.sees((each) => first.text([each]).includes('Here I am'));
    await first.process.end('SIGKILL');
    const second = new TestEditor(folder, coder);
    await second.initialize();
    await second.agent.request('session/resume', { sessionId: id, cwd: project });
    // It waits until the claim of the process that died has expired.
    expect(await second.say(id, 'hello again')).toBe('end_turn');
    expect(second.text()).toBe('Message 2.');
    await second.leave();
  });

  test('S924 uses files and terminals of the editor', async () => {
    const { folder, project } = place();
    const editor = new TestEditor(folder, coder);
    const fs = { readTextFile: true, writeTextFile: true };
    await editor.initialize({ fs, terminal: true, session: { notices: {} } });
    const id = await editor.open(project);
    await editor.say(id, 'write a.txt one');
    const path = join(project, 'a.txt');
    expect(editor.saved).toEqual([path]);
    expect(readFileSync(path, 'utf8')).toBe('one');
    editor.buffers.set(path, 'unsaved');
    editor.take();
    await editor.say(id, 'read a.txt');
    expect(editor.text()).toContain('unsaved');
    expect(editor.take()).toContainEqual(
      expect.objectContaining({ sessionUpdate: 'notice', title: expect.stringContaining('a.txt') }),
    );
    await editor.say(id, 'write a.txt overwritten');
    expect(readFileSync(path, 'utf8')).toBe('one');
    expect(editor.buffers.get(path)).toBe('unsaved');
    expect(editor.text()).toContain('unsaved changes in the editor');
    await editor.say(id, 'run make');
    expect(editor.terminals).toEqual(['make']);
    expect(editor.updates).toContainEqual(
      expect.objectContaining({ content: [{ type: 'terminal', terminalId: 'terminal-1' }] }),
    );
    expect(editor.text()).toContain('from the terminal');
    await editor.leave();
  });

  test('S925 calls tools of MCP servers that the client passes', async () => {
    const { folder, project } = place();
    const server = join(folder, 'server.mjs');
    writeFileSync(server, echoServer);
    const editor = new TestEditor(folder, coder);
    await editor.initialize();
    const mcpServers = [{ name: 'echo', command: process.execPath, args: [server], env: [] }];
    const id = await editor.open(project, { mcpServers });
    await editor.say(id, 'mcp salut');
    expect(editor.asked).toMatchObject([{ toolCall: { title: 'echo_say' } }]);
    expect(editor.text()).toContain('You said salut');
    const sse = [{ type: 'sse', name: 'old', url: 'http://localhost:1/', headers: [] }];
    await expect(editor.open(project, { mcpServers: sse })).rejects.toThrow('uses SSE');
    await editor.leave();
  });
});

const echoServer = `
import { createInterface } from 'node:readline';
const send = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }));
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const schema = { type: 'object', properties: { text: {}, path: {}, content: {} } };
  if (method === 'initialize') send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'echo', version: '1' } } });
  else if (method === 'tools/list') send({ id, result: { tools: [{ name: 'say', description: 'Says.', inputSchema: schema }] } });
  else if (method === 'tools/call') send({ id, result: { content: [{ type: 'text', text: 'You said ' + params.arguments.text }] } });
  else send({ id, error: { code: -32601, message: 'unknown' } });
}
`;

describe('slash commands', () => {
  test('restore, branch and fork', async () => {
    const { folder, project } = place();
    const editor = new TestEditor(folder, coder);
    await editor.initialize();
    const id = await editor.open(project);
    const file = join(project, 'a.txt');
    await editor.say(id, 'write a.txt one');
    await editor.say(id, 'write a.txt two');
    await editor.say(id, '/turns');
    const [latest = ''] = /[0-9a-f-]{36}/.exec(editor.text().split('\n').at(-1) ?? '') ?? [];
    editor.take();
    await editor.say(id, '/restore');
    expect(editor.text()).toContain('Restored conversation and files after turn 1');
    expect(readFileSync(file, 'utf8')).toBe('one');
    await editor.say(id, `/restore ${latest}`);
    expect(readFileSync(file, 'utf8')).toBe('two');
    await editor.say(id, '/branch 1');
    expect(readFileSync(file, 'utf8')).toBe('two');
    editor.take();
    await editor.say(id, 'hello');
    expect(editor.text()).toBe('Message 2.');
    expect(readFileSync(file, 'utf8')).toBe('one');
    editor.take();
    await editor.say(id, '/fork');
    const [, forked = ''] = /session ([0-9a-f-]{36})/.exec(editor.text()) ?? [];
    const { sessions } = await editor.agent.request('session/list', {});
    expect(sessions.map(({ sessionId }) => sessionId).sort()).toEqual([id, forked].sort());
    await expect(editor.say(id, '/restore 9')).rejects.toThrow('Cannot go back 9 turns');
    await expect(editor.say(id, '/restore nothing')).rejects.toThrow('is no turn of this session');
    // A text that begins like a path is no command.
    expect(await editor.say(id, '/etc/hosts is a file')).toBe('end_turn');
    await editor.leave();
  });

  test('S923 undo shows the plan first, and does nothing without a yes', async () => {
    const { folder, project, log } = place();
    const editor = new TestEditor(folder, coder);
    await editor.initialize();
    const id = await editor.open(project);
    await editor.say(id, 'hello');
    await editor.say(id, 'book train');
    editor.onPermission = () => undefined;
    await editor.say(id, '/undo');
    expect(editor.text()).toContain('undo is possible');
    expect(editor.text()).toContain('Nothing was changed.');
    expect(log()).toBe('booked train\n');
    editor.onPermission = ({ options }) => options[0]?.optionId;
    await editor.say(id, '/undo');
    expect(log()).toBe('booked train\ncancelled train\n');
    expect(editor.text()).toContain('Undid 1 effect. Restored');
    editor.take();
    await editor.say(id, '/undo 0');
    expect(editor.text()).toContain('No tool has changed another system');
    await editor.say(id, 'book bus');
    // A restore that would leave an effect behind asks as well.
    editor.onPermission = () => 'keep';
    await editor.say(id, '/restore');
    expect(log()).not.toContain('cancelled bus');
    await editor.leave();
  });
});

describe('a client that does something else', () => {
  test('S920 gets errors for unknown methods, sessions of others, and a second prompt', async () => {
    const { folder, project, log } = place();
    const ann = new TestEditor(folder, [...coder, '--owner', 'ann']);
    await expect(ann.open(project)).rejects.toThrow();
    await ann.initialize();
    const id = await ann.open(project);
    await ann.say(id, 'hello');
    const ben = new TestEditor(folder, [...coder, '--owner', 'ben']);
    await ben.initialize();
    const load = { sessionId: id, cwd: project, mcpServers: [] };
    await expect(ben.agent.request('session/load', load)).rejects.toMatchObject({ code: -32002 });
    await expect(
      ben.agent.request('session/resume', { sessionId: id, cwd: project }),
    ).rejects.toMatchObject({ code: -32002 });
    await expect(ben.say(id, 'hello')).rejects.toMatchObject({ code: -32002 });
    expect((await ben.agent.request('session/list', {})).sessions).toEqual([]);
    await ben.agent.request('session/delete', { sessionId: id });
    await expect(ben.agent.request('session/nothing', {})).rejects.toMatchObject({ code: -32601 });
    await expect(ben.open('relative')).rejects.toMatchObject({ code: -32602 });
    // Not deleted: it is the session of another owner.
    expect((await ann.agent.request('session/list', {})).sessions).toHaveLength(1);
    const prompt = ann.say(id, 'wait');
    await eventually(() => expect(log()).toContain('waiting'));
    await expect(ann.say(id, 'hello')).rejects.toThrow('still running');
    await ann.agent.request('session/close', { sessionId: id });
    expect(await prompt).toBe('cancelled');
    await expect(ann.say(id, 'hello')).rejects.toMatchObject({ code: -32002 });
    await ann.agent.request('session/delete', { sessionId: id });
    expect((await ann.agent.request('session/list', {})).sessions).toEqual([]);
    await ann.leave();
    await ben.leave();
  });

  test.each(['files', 'terminal', 'permission', 'plan'])(
    'S920 may never answer about its %s: the prompt can still be stopped',
    async (what) => {
      const { folder, project, log } = place();
      const editor = new TestEditor(folder, coder);
      const fs = { readTextFile: true, writeTextFile: true };
      await editor.initialize({ ...(what === 'files' && { fs }), terminal: true });
      const id = await editor.open(project);
      const asked = Promise.withResolvers<void>();
      const hang = () => {
        asked.resolve();
        return new Promise<never>(() => {});
      };
      if (what === 'files') editor.onRead = hang;
      if (what === 'terminal') editor.onTerminal = hang;
      if (what === 'plan') {
        await editor.say(id, 'hello');
        await editor.say(id, 'book train');
      }
      if (what === 'permission' || what === 'plan') editor.onPermission = hang;
      const text = { files: 'write a.txt x', plan: '/restore' }[what] ?? 'run make';
      const prompt = editor.say(id, text);
      await asked.promise;
      await editor.agent.notify('session/cancel', { sessionId: id });
      expect(await prompt).toBe('cancelled');
      editor.onRead = () => 'x';
      editor.onPermission = () => undefined;
      expect(log()).not.toContain('cancelled');
      expect(await editor.say(id, 'hello')).toBe('end_turn');
      await editor.agent.request('session/close', { sessionId: id });
      await editor.leave();
    },
  );

  test('S922 may disappear during a permission: the session waits, and the process ends', async () => {
    const { folder, project } = place();
    const first = new TestEditor(folder, coder);
    await first.initialize();
    const id = await first.open(project);
    const asked = Promise.withResolvers<void>();
    first.onPermission = () => {
      asked.resolve();
      return new Promise(() => {});
    };
    const prompt = first.say(id, 'run touch later');
    prompt.catch(() => {});
    // The prompt ends only if it fails.
    await Promise.race([asked.promise, prompt]);
    first.process.closeInput();
    expect((await first.process.ended).code).toBe(0);
    const second = new TestEditor(folder, coder);
    await second.initialize();
    await second.agent.request('session/resume', { sessionId: id, cwd: project });
    await second.say(id, 'hello');
    expect(second.asked).toHaveLength(1);
    expect(existsSync(join(project, 'later'))).toBe(true);
    await second.leave();
  });
});
