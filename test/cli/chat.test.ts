import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { type Agent, memoryStore, waymark } from 'waymark';
import { ChatLoop } from '../../src/cli/chat/chat-loop.ts';
import { Conversation } from '../../src/cli/chat/conversation.ts';
import { localAgent } from '../../src/cli/source/agent-access.ts';
import { createStyle } from '../../src/cli/terminal.ts';
import { agentsFile, command, Running, tempFolder } from './support/command.ts';

let folder = tempFolder();
const folders = [folder];
beforeEach(() => {
  folder = tempFolder();
  folders.push(folder);
});
afterAll(() => folders.forEach((each) => void each.remove()));

const file = ['--file', agentsFile];
const talk = (lines: readonly string[], agent = 'talker') =>
  command(folder.path, ['chat', agent, ...file], { input: `${lines.join('\n')}\n` });
const comeBack = /Continue with: waymark chat talker --snapshot ([0-9a-f-]{36}) --file/;

describe('a single message', () => {
  test('prints the answer, and where to come back to', async () => {
    const { code, stdout, stderr } = await command(folder.path, ['chat', 'talker', 'Hi', ...file]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Message 1.\n' });
    const [, snapshotId = ''] = comeBack.exec(stderr) ?? [];
    const again = await command(folder.path, [
      ...['chat', 'talker', 'And?', '--snapshot', snapshotId],
      ...file,
    ]);
    expect(again.stdout).toBe('Message 3.\n');
    const elsewhere = await command(folder.path, [
      ...['chat', 'talker', 'And?', '--snapshot', snapshotId, '--session', 'another'],
      ...file,
    ]);
    expect(elsewhere.code).toBe(3);
    expect(elsewhere.stderr).toMatch(/no snapshot .* in session "another"/);
  });

  test('gives the whole output as JSON', async () => {
    const { stdout } = await command(folder.path, ['chat', 'talker', 'Hi', '--json', ...file]);
    expect(JSON.parse(stdout)).toMatchObject({
      finishReason: 'stop',
      message: { role: 'model', content: [{ text: 'Message 1.' }] },
    });
  });

  test('exits with 1 when the turn fails, and says what was thrown', async () => {
    const { code, stderr } = await command(folder.path, ['chat', 'talker', 'fail', ...file]);
    expect(code).toBe(1);
    expect(stderr).toContain('✗ Model "scripted" failed: the secret inside (INTERNAL)');
    expect(stderr).toContain('--debug');
    expect(stderr).not.toContain('    at ');
    const json = await command(folder.path, ['chat', 'talker', 'fail', '--json', ...file]);
    expect(JSON.parse(json.stdout)).toMatchObject({
      error: { status: 'INTERNAL', message: 'Model "scripted" failed: the secret inside' },
    });
  });

  test('a failed turn says how to look at it, by the id of its session', async () => {
    await command(folder.path, ['chat', 'talker', 'Hi', '--session', 'bad', ...file]);
    const failed = await command(folder.path, [
      ...['chat', 'talker', 'fail', '--session', 'bad'],
      ...file,
    ]);
    expect(failed.stderr).toContain('waymark show bad --agent talker --file ');
    const shown = await command(folder.path, ['show', 'bad', '--agent', 'talker', ...file]);
    expect(shown.stdout).toMatch(/^status +failed$/m);
    expect(shown.stdout).toMatch(/^turn +2 /m);
    expect(shown.stdout).toContain('The cause is not stored.');
    await command(folder.path, ['chat', 'talker', 'Again', '--session', 'bad', ...file]);
    const later = await command(folder.path, ['show', 'bad', ...file]);
    expect(later.stdout).toMatch(/^status +succeeded, stop$/m);
    expect((await command(folder.path, ['show', 'nothing', ...file])).code).toBe(3);
  });

  test('is enough when the app has one agent', async () => {
    writeFileSync(
      join(folder.path, 'one.ts'),
      `import { waymark } from 'waymark';
       import { scriptedModel } from 'waymark/testing';
       const model = scriptedModel({ patterns: [], otherwise: 'Hello.' });
       export const app = waymark({ model });
       app.defineAgent({ name: 'only' });`,
    );
    const one = ['--file', 'one.ts'];
    const answer = await command(folder.path, ['chat', 'hello there', ...one]);
    expect(answer).toMatchObject({ code: 0, stdout: 'Hello.\n' });
    const several = await command(folder.path, ['chat', 'hello there', ...file]);
    expect(several.stderr).toContain('Name an agent: ');
    const unknown = await command(folder.path, ['chat', 'onyl', ...one]);
    expect(unknown.stderr).toContain('There is no agent "onyl". Agents: only.');
  });

  test('S146 shows the message and the stack once with --debug', async () => {
    const { stderr } = await command(folder.path, ['chat', 'thrower', 'x', '--debug', ...file]);
    expect(stderr).toMatch(/^✗ Agent "thrower" failed in turn 1 \(session .*, run .*\)$/m);
    expect(stderr.match(/my bug is here/g)).toHaveLength(1);
    expect(stderr).toMatch(/^TypeError: my bug is here\n {4}at .*fixture\/agents\.ts/m);
  });

  test('exits with 6 when a tool waits for an approval', async () => {
    const { code, stdout } = await command(folder.path, ['chat', 'talker', 'book tea', ...file]);
    expect(code).toBe(6);
    expect(stdout).toContain('→ book {"what":"tea"}');
  });

  test('S414 lists the sessions that wait for an answer', async () => {
    await command(folder.path, ['chat', 'talker', 'book cake', '--session', 'cake', ...file]);
    const { stdout } = await command(folder.path, ['interrupts', '--agent', 'talker', ...file]);
    expect(stdout).toMatch(/^cake .*talker .*book/m);
    const json = await command(folder.path, ['interrupts', '--json', ...file]);
    expect(JSON.parse(json.stdout).items).toContainEqual(
      expect.objectContaining({ sessionId: 'cake', agent: 'talker' }),
    );
  });
});

describe('a conversation', () => {
  test('goes back, takes another way, and branches', async () => {
    const { code, stdout, stderr } = await talk([
      'one',
      'two',
      'three',
      '/back 2',
      'another two',
      '/tree',
      '/branch',
      'three, elsewhere',
      '/sessions',
      '/back 99',
      '/quit',
      'never said',
    ]);
    expect(code).toBe(0);
    const answers = stdout.match(/^Message \d+\.$/gm);
    // The one in the middle is what /back shows of the place it went to.
    expect(answers).toEqual([1, 3, 5, 1, 3, 5].map((count) => `Message ${count}.`));
    expect(stdout).toMatch(/^● +1 .*one$/m);
    expect(stdout).toMatch(/^├─○ +2 .*two {2}\[orphaned\]$/m);
    expect(stdout).toMatch(/^│ ○ +3 .*three {2}\[orphaned\]$/m);
    expect(stdout).toMatch(/^◉ +2 .*another two {2}\[head\]$/m);
    expect(stderr).toContain('Forked into session ');
    expect(stdout.match(/turns {2}\d{4}-/g)).toHaveLength(2);
    expect(stderr).toContain('Cannot go back 99 turns: this is turn 3');
    expect(stderr).toMatch(comeBack);
  });

  test('asks before a tool acts: yes runs it, no declines, anything else is the answer', async () => {
    const { stdout } = await talk([
      'book tea',
      'yes',
      'book coffee',
      'no, too strong',
      'where to',
      'x',
      'Oslo',
    ]);
    expect(stdout).toContain('  Really book tea?');
    expect(stdout).toContain('Result: [{"booked":"tea"}]');
    expect(stdout).not.toContain('"booked":"coffee"');
    // The one-letter answer does not fit the tool's schema, and is asked for again.
    expect(stdout.match(/^\? ask_city/gm)).toHaveLength(2);
    expect(stdout).toContain('Result: ["Oslo"]');
  });

  test('S590 asks about what waits inside a sub-agent', async () => {
    writeFileSync(
      join(folder.path, 'sub.ts'),
      `import { agentTool, memoryStore, waymark } from 'waymark';
       import { scriptedModel } from 'waymark/testing';
       const app = waymark({ store: memoryStore() });
       const book = app.defineTool({ name: 'book', description: 'Books.' }, (_, { resumed, interrupt }) =>
         resumed === undefined ? interrupt() : 'booked');
       const call = (name, input) => ({ toolCalls: [{ name, input }] });
       const answers = { afterTools: (_, results) => JSON.stringify(results) };
       const clerk = app.defineAgent({
         name: 'clerk', tools: [book],
         model: scriptedModel({ patterns: [], otherwise: call('book', {}), ...answers }),
       });
       app.defineAgent({
         name: 'boss', tools: [agentTool(clerk)],
         model: scriptedModel({ patterns: [], otherwise: call('clerk', { message: 'x' }), ...answers }),
       });
       export { app };`,
    );
    const said = async (answer: string) =>
      (
        await command(folder.path, ['chat', 'boss', '--file', 'sub.ts'], {
          input: `go\n${answer}\n`,
        })
      ).stdout;
    expect(await said('yes')).toContain('booked');
    const declined = await said('no, too far');
    expect(declined).toContain('The user declined. The reason: too far');
    expect(declined).not.toContain('booked');
  });

  test('takes a command while a question is open, and asks it again after that', async () => {
    const { stdout } = await talk(['book tea', '/tree', 'yes', 'book coffee', '/back', 'fine']);
    expect(stdout.match(/^\? book {"what":"tea"}/gm)).toHaveLength(2);
    expect(stdout).toContain('[head, interrupted]');
    expect(stdout).toContain('Result: [{"booked":"tea"}]');
    expect(stdout.trimEnd()).toMatch(/Message \d+\.$/);
  });

  test('leaves a question open when the input ends, and asks it again later', async () => {
    const first = await talk(['book tea']);
    expect(first.stderr).toContain('The tool still waits for an answer');
    const [, snapshotId = ''] = comeBack.exec(first.stderr) ?? [];
    const again = await command(
      folder.path,
      ['chat', 'talker', '--snapshot', snapshotId, ...file],
      { input: 'yes\n' },
    );
    expect(again.stdout).toContain('Result: [{"booked":"tea"}]');
  });

  test('S620 finishes the turn before /quit, so that an answer or a message before it is not lost', async () => {
    const first = await talk(['book tea']);
    const [, snapshotId = ''] = comeBack.exec(first.stderr) ?? [];
    const answered = await command(
      folder.path,
      ['chat', 'talker', '--snapshot', snapshotId, ...file],
      { input: 'yes\n/quit\nnever said\n' },
    );
    expect(answered).toMatchObject({ code: 0 });
    expect(answered.stdout).toContain('Result: [{"booked":"tea"}]');
    expect(answered.stdout).not.toContain('Message');
    expect(answered.stderr).not.toContain('Stopped');
    expect(comeBack.exec(answered.stderr)?.[1]).not.toBe(snapshotId);
    const slow = await talk(['slowly', '/quit']);
    expect(slow).toMatchObject({ code: 0, stdout: 'One. Two. Three. Four.\n' });
  });

  test('S620 in a terminal, says that /quit waits for the turn, once', async () => {
    const app = waymark({ store: memoryStore() });
    const announced = Promise.withResolvers<void>();
    const model = app.defineModel({ name: 'slow' }, async (_, { stream }) => {
      await stream({ content: [{ text: 'One. ' }] });
      await announced.promise;
      await stream({ content: [{ text: 'Two.' }] });
      return { message: { role: 'model', content: [{ text: 'One. Two.' }] }, finishReason: 'stop' };
    });
    const agent = app.defineAgent({ name: 'chat', model });
    const input = new PassThrough();
    let stdout = '';
    const notes: string[] = [];
    const write = (text: string) => {
      stdout += text;
      if (stdout === 'One. ') input.write('/quit\n');
    };
    const loop = new ChatLoop({
      conversation: new Conversation(localAgent(agent as Agent, undefined, app.store), true),
      sourceArguments: '',
      isDebug: false,
      terminal: {
        write,
        print: (line = '') => write(`${line}\n`),
        note: (line) => {
          notes.push(line);
          if (line.startsWith('Leaving')) announced.resolve();
        },
        progress: () => {},
        interactive: true,
        style: createStyle(false),
        input: input as unknown as NodeJS.ReadStream,
        output: new PassThrough() as unknown as NodeJS.WriteStream,
        cwd: folder.path,
        env: {},
        onInterrupt: () => () => {},
      },
    });
    input.write('hello\n');
    expect(await loop.talk()).toBe(0);
    loop.end();
    await app.close();
    expect(stdout).toBe('One. Two.\n');
    expect(notes.filter((note) => note.includes('Leaving'))).toEqual([
      'Leaving when this turn has ended. To stop it, press Ctrl-C.',
    ]);
    expect(notes.join()).not.toContain('Stopped');
  });

  test('S57 S620 says that the input was not saved when /stop comes before the turn', async () => {
    for (const agent of ['talker', 'bare']) {
      const { code, stdout, stderr } = await talk(['slowly', '/stop', 'one'], agent);
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'Message 1.\n' });
      expect(stderr).toContain('Stopped before the turn started. Your input was not saved.');
      expect(stderr).not.toContain('partial answer');
    }
  });

  test('goes on after a failed turn', async () => {
    const { code, stdout, stderr } = await talk(['one', 'fail', 'two']);
    expect(code).toBe(0);
    expect(stdout).toBe('Message 1.\nMessage 3.\n');
    expect(stderr).toContain('(INTERNAL)');
  });

  test('keeps the conversation of an agent that has no store, as long as it lasts', async () => {
    const { stdout, stderr } = await talk(['one', 'two', '/back'], 'bare');
    expect(stdout).toBe('Message 1.\nMessage 3.\n');
    expect(stderr).toContain('has no store');
    expect(stderr).not.toContain('Continue with');
  });

  test('never lets what a model says reach the terminal as control codes', async () => {
    const { stdout } = await talk(['escape']);
    expect(stdout).toContain('red');
    expect(stdout).not.toContain('\u001b');
    expect(stdout).not.toContain('\u0007');
  });
});

describe('Ctrl-C', () => {
  test('stops the turn once and keeps what was said; the next message goes on from it', async () => {
    const chat = new Running(['chat', 'talker', ...file], folder.path);
    chat.type('hang on');
    await chat.see(/Here I am/);
    chat.interrupt();
    await chat.see(/Stopped\. The partial answer is kept\./);
    chat.type('next');
    await chat.see(/Message 3\./);
    const { code, stderr } = await chat.end();
    expect(code).toBe(0);
    expect(stderr).toMatch(comeBack);
  });

  test('ends the chat when it comes twice in a turn', async () => {
    const chat = new Running(['chat', 'talker', ...file], folder.path);
    chat.type('one');
    await chat.see(/Message 1/);
    chat.type('hang on');
    await chat.see(/Here I am/);
    chat.interrupt();
    await chat.see(/Stopping/);
    chat.interrupt();
    const { code, stderr } = await chat.finished;
    expect(code).toBe(130);
    expect(stderr).toMatch(comeBack);
    expect(stderr).not.toMatch(/\bat .*:\d+:\d+/);
  });

  test('ends the chat between turns, without a stack, and names the snapshot', async () => {
    const chat = new Running(['chat', 'talker', ...file], folder.path);
    chat.type('one');
    await chat.see(/Message 1/);
    await chat.see(/\n/);
    chat.interrupt();
    const { code, stderr } = await chat.finished;
    expect(code).toBe(130);
    expect(stderr).toMatch(comeBack);
    expect(stderr).not.toMatch(/\bat .*:\d+:\d+/);
  });
});

describe('background work', () => {
  test('/detach sends a message off; watch follows it to its end from another process', async () => {
    const { stderr, code } = await talk(['/detach do it', 'and?'], 'worker');
    expect(code).toBe(0);
    const [, runId = ''] = /waymark watch ([0-9a-f-]{36}) --agent worker/.exec(stderr) ?? [];
    expect(stderr).toContain(`is busy with run "${runId}"`);
    const watched = await command(folder.path, ['watch', runId, ...file]);
    expect(watched.code).toBe(0);
    expect(watched.stdout).toContain('· {"step":3}');
    expect(watched.stdout).toContain('● succeeded');
    const events = await command(folder.path, ['watch', runId, '--json', ...file]);
    const lines = events.stdout.trim().split('\n');
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ type: 'end' });
  });

  test('/detach in the middle of a turn lets it go on without the chat', async () => {
    const chat = new Running(['chat', 'talker', ...file], folder.path);
    chat.type('slowly');
    await chat.see(/One\. /);
    chat.type('/detach');
    await chat.see(/in the background/);
    const { stderr } = await chat.end();
    const [, runId = ''] = /waymark watch ([0-9a-f-]{36})/.exec(stderr) ?? [];
    const { stdout, code } = await command(folder.path, ['watch', runId, ...file]);
    expect(code).toBe(0);
    expect(stdout).toContain('Four.');
  });

  test('abort stops a run; watch then exits with 1', async () => {
    const { stderr } = await talk(['/detach hang'], 'talker');
    const [, runId = ''] = /waymark watch ([0-9a-f-]{36})/.exec(stderr) ?? [];
    // A prefix is enough: all but the last character.
    const aborted = await command(folder.path, ['abort', runId.slice(0, -1), ...file]);
    expect(aborted).toMatchObject({ code: 0, stdout: 'aborted\n' });
    const watched = await command(folder.path, ['watch', runId, ...file]);
    expect(watched.code).toBe(1);
    expect(watched.stdout).toContain('✗ aborted');
    const again = await command(folder.path, ['abort', runId, ...file]);
    expect(again).toMatchObject({ code: 0, stdout: 'already ended: aborted\n' });
    const unknown = await command(folder.path, ['abort', crypto.randomUUID(), ...file]);
    expect(unknown.code).toBe(3);
  });
});
