import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/time.ts';
import {
  type App,
  type AppOptions,
  type ErrorInfo,
  memoryStore,
  toolApproval,
  waymark,
} from '../../src/index.ts';
import { type McpSource, mcp } from '../../src/mcp/index.ts';
import { fakeClock, type ScriptStep, scriptedModel } from '../../src/testing/index.ts';
import { eventually } from '../support/eventually.ts';
import { rawServer } from './support/raw.ts';

const apps: App[] = [];
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

function open(
  script: readonly ScriptStep[],
  tools: readonly McpSource[],
  options: AppOptions = {},
): {
  app: App;
  agent: ReturnType<App['defineAgent']>;
  model: ReturnType<typeof scriptedModel>;
  errors: [string, ErrorInfo][];
} {
  const errors: [string, ErrorInfo][] = [];
  const model = scriptedModel(script);
  const app = waymark({
    model,
    onError: (error, info) => errors.push([String((error as Error).message), info]),
    ...options,
  });
  apps.push(app);
  const agent = app.defineAgent({ name: 'chat', system: 'Help.', tools });
  return { app, agent: agent as never, model, errors };
}

const call = (name: string, input: object = {}): ScriptStep => ({
  toolCalls: [{ name, input: input as never }],
});
/** Says what the last tool said. */
const repeat: ScriptStep = ({ messages }) => {
  const part = messages.at(-1)?.content[0];
  const output = part && 'toolResponse' in part ? part.toolResponse?.output : undefined;
  return typeof output === 'string' ? output : JSON.stringify(output);
};

test('S310 S314 an agent calls the tools of a server, under prefixed names', async () => {
  const { agent, model } = open([call('raw_echo', { text: 'hi' }), repeat], [rawServer('raw')]);
  const { text } = await agent.run('Go');
  expect(text).toBe('echo hi');
  const echo = model.requests[0]?.tools.find(({ name }) => name === 'raw_echo');
  expect(echo).toMatchObject({
    description: 'Repeats a text.',
    inputSchema: { required: ['text'] },
  });
});

test('S777 a tool that only reads has no effect, any other one cannot be undone', async () => {
  const script = [
    'Hi.',
    { toolCalls: [{ name: 'raw_echo', input: { text: 'hi' } }, { name: 'raw_remove' }] },
    'Done.',
  ];
  const { agent } = open(script, [rawServer('raw')], { store: memoryStore() });
  const first = await agent.run('Hi');
  await agent.run('Go', { sessionId: first.sessionId });
  const { effects } = await agent.planUndo(first);
  expect(effects.map(({ tool, undo }) => [tool, undo])).toEqual([['raw_remove', 'impossible']]);
});

test('only and except select tools by the server’s own names; rename and prefix name them', async () => {
  const raw = rawServer('raw', '', { prefix: 'r-', rename: { remove: 'delete_it' } });
  const { app, model } = open(['a', 'b', 'c'], []);
  for (const tools of [
    [raw.only('echo', 'remove')],
    [raw.only('echo', 'remove').except('echo')],
    [raw.only('echo'), raw.only('echo', 'remove')],
  ]) {
    await app.generate({ prompt: 'Go', tools });
  }
  expect(model.requests.map(({ tools }) => tools.map(({ name }) => name))).toEqual([
    ['delete_it', 'r-echo'],
    ['delete_it'],
    ['r-echo', 'delete_it'],
  ]);
});

test('S310 S312 ready connects; a tool that the server does not have is a mistake', async () => {
  const { app } = open([], [rawServer('raw').only('eko')]);
  await expect(app.ready()).rejects.toMatchObject({
    status: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/MCP server "raw" has no tool "eko"\. It has echo, /),
  });
});

test('S580 a tool that `except` or an approval names, and the server does not have, is a mistake', async () => {
  const { app } = open([], [rawServer('raw').except('remov')]);
  await expect(app.ready()).rejects.toMatchObject({
    status: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/MCP server "raw" has no tool "remov"\. It has remove, /),
  });
  const { app: other } = open([], []);
  other.defineAgent({
    name: 'desk',
    tools: [rawServer('raw')],
    use: [toolApproval(['remove'])],
  });
  await expect(other.ready()).rejects.toMatchObject({
    status: 'INVALID_ARGUMENT',
    message: expect.stringMatching(
      /names the tool "remove", which agent "desk" does not have\. It has .*raw_remove/,
    ),
  });
});

test('S311 tools of two sources with one name are refused, and the error names both', async () => {
  const { app } = open(
    [],
    [
      rawServer('one', '', { prefix: 'x_' }).only('echo'),
      rawServer('two', '', { prefix: 'x_' }).only('echo'),
    ],
  );
  await expect(app.ready()).rejects.toMatchObject({
    status: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/Two tools are called "x_echo": from "one" and "two"/),
  });
});

test('S314 names that providers do not take are made valid; those that collide are refused', async () => {
  const { app, model } = open(['a'], []);
  await app.generate({ prompt: 'Go', tools: [rawServer('raw', 'names')] });
  const names = model.requests[0]?.tools.map(({ name }) => name) ?? [];
  expect(names[0]).toBe('raw_p_th_list');
  expect(names[1]).toMatch(/^raw_x{51}_[0-9a-f]{8}$/);
  const colliding = app.generate({ prompt: 'Go', tools: [rawServer('raw', 'collide')] });
  await expect(colliding).rejects.toThrow(/"read file" and "read\/file"/);
});

test('S312 S317 a server that does not start is reported with its last output; other servers keep working', async () => {
  const { app, agent, errors } = open(
    [call('down_echo', { text: '1' }), repeat, call('raw_echo', { text: '2' }), repeat],
    // Time stands still, so that the next attempt is never due.
    [rawServer('down', 'exit', { clock: { ...systemClock, now: () => 1_000 } }), rawServer('raw')],
  );
  await app.ready();
  expect(errors).toHaveLength(1);
  expect(errors[0]?.[0]).toMatch(/MCP server "down" .*The secret key is missing\./);
  expect(errors[0]?.[1]).toEqual({ phase: 'tool', agent: 'chat', toolSource: 'down' });
  const { text } = await agent.run('Go');
  expect(text).toMatch(/There is no tool "down_echo".* The tools of down are not available now\./);
  expect(text).not.toMatch(/secret/);
  expect(errors).toHaveLength(2);
  expect(errors[1]?.[0]).toMatch(/The next attempt is in \d+ s\./);
  expect((await agent.run('Go')).text).toBe('echo 2');
});

test('S315 a command that does not exist and a URL where nothing listens are reported, and the turn ends', async () => {
  const { agent, errors } = open(
    ['Done'],
    [mcp('none', { command: '/does/not/exist' }), mcp('nobody', { url: 'http://127.0.0.1:9/mcp' })],
  );
  expect((await agent.run('Go')).text).toBe('Done');
  expect(errors.map(([message]) => message).sort()).toEqual([
    expect.stringMatching(/MCP server "nobody" cannot be reached: the connection attempt failed\./),
    expect.stringMatching(
      /MCP server "none" cannot be reached: the connection attempt failed\. .*ENOENT/,
    ),
  ]);
});

test('S315 a server that never answers is given up after the timeout', async () => {
  const { agent, errors } = open(['Done'], [rawServer('mute', 'silent', { connectTimeout: 500 })]);
  expect((await agent.run('Go')).text).toBe('Done');
  expect(errors[0]?.[0]).toMatch(/MCP server "mute" did not answer within 500 ms/);
});

test('S315 a tool that takes too long is an error for the model and for onError', async () => {
  const { agent, errors } = open(
    [call('raw_slow'), repeat],
    [rawServer('raw', '', { timeout: 300 })],
  );
  expect((await agent.run('Go')).text).toBe(
    'MCP server "raw" did not answer the call to "slow" in time.',
  );
  expect(errors).toMatchObject([[expect.any(String), { phase: 'tool', tool: 'raw_slow' }]]);
});

test('S315 a server that crashes in a call is started again for the next one', async () => {
  const { agent, errors } = open(
    [call('raw_crash'), repeat, call('raw_echo', { text: 'back' }), repeat],
    [rawServer('raw')],
  );
  expect((await agent.run('Go')).text).toMatch(
    /MCP server "raw" closed the connection during the call to "crash"\. Whether it had an effect is unknown\./,
  );
  expect(errors).toHaveLength(1);
  expect((await agent.run('Go')).text).toBe('echo back');
});

test('S315 50 MB and a flood of notifications end the connection, not the turn', async () => {
  const { agent, errors } = open(
    [call('raw_big'), repeat, call('raw_flood'), repeat, call('raw_echo', { text: 'ok' }), repeat],
    [rawServer('raw')],
  );
  expect((await agent.run('Go')).text).toMatch(
    /MCP server "raw" sent a message of more than 10485760 bytes/,
  );
  expect((await agent.run('Go')).text).toMatch(
    /MCP server "raw" sent more than 2000 notifications in a second\. It was disconnected\./,
  );
  expect((await agent.run('Go')).text).toBe('echo ok');
  expect(errors).toHaveLength(2);
});

test('S315 lines that are not JSON are skipped; a result and a list that are not valid are errors', async () => {
  const { agent, errors } = open(
    [
      call('raw_echo', { text: 'hi' }),
      repeat,
      call('raw_wrong'),
      repeat,
      call('shape_echo'),
      repeat,
    ],
    [rawServer('raw', 'garbage'), rawServer('list', 'list'), rawServer('shape', 'output')],
  );
  expect((await agent.run('Go')).text).toBe('echo hi');
  expect(errors.map(([message]) => message)).toEqual([
    expect.stringMatching(
      /MCP server "list" answered the list of its tools with something that is/,
    ),
  ]);
  expect((await agent.run('Go')).text).toBe(
    'MCP server "raw" answered the call to "wrong" with something that is not valid MCP.',
  );
  expect((await agent.run('Go')).text).toMatch(/result that does not fit its output schema/);
});

test('a tool whose schema is not valid is left out and reported; the others work', async () => {
  const { agent, errors } = open(
    [call('raw_echo', { text: 'hi' }), repeat],
    [rawServer('raw', 'schema')],
  );
  expect((await agent.run('Go')).text).toBe('echo hi');
  expect(errors[0]?.[0]).toMatch(/Tool "broken" of MCP server "raw" is left out: /);
});

test('arguments that do not fit the schema never reach the server', async () => {
  const { agent, errors } = open([call('raw_echo', { text: 1 }), repeat], [rawServer('raw')]);
  expect((await agent.run('Go')).text).toMatch(/The input of tool "raw_echo"/);
  expect(errors).toEqual([]);
});

test('S316 tools that change during a session are listed again for the next turn', async () => {
  const { agent, model } = open(
    [call('raw_change'), call('raw_echo', { text: 'hi' }), repeat, call('raw_added'), repeat],
    [rawServer('raw')],
  );
  expect((await agent.run('Go')).text).toMatch(/MCP server "raw" refused .*Unknown tool: echo/);
  expect((await agent.run('Go')).text).toBe('added');
  expect(model.requests.at(-1)?.tools.map(({ name }) => name)).toEqual(['raw_added']);
});

test('S313 a failed tool tells the model why; media and links come with the result', async () => {
  const { agent } = open([call('raw_fail'), repeat, call('raw_image'), repeat], [rawServer('raw')]);
  expect((await agent.run('Go')).text).toBe('No such file: a.txt');
  const { state } = await agent.run('Go');
  const part = state?.messages?.findLast(({ role }) => role === 'tool')?.content[0];
  expect(part).toMatchObject({
    toolResponse: {
      output: 'A picture',
      content: [
        { media: { url: 'data:image/png;base64,aGk=', contentType: 'image/png' } },
        { data: { resourceLink: { uri: 'docs://1', name: 'One' } } },
        { data: { resource: { uri: 'docs://2', text: 'two', mimeType: 'text/plain' } } },
      ],
    },
  });
});

test('a server gets the environment it is given, not that of the process', async () => {
  process.env.WAYMARK_TEST_SECRET = 'secret';
  const { agent } = open(
    [call('raw_environment'), repeat],
    [rawServer('raw', '', { env: { TOKEN: 'own' } })],
  );
  const { text } = await agent.run('Go');
  expect(text).toMatch(/\bTOKEN\b/);
  expect(text).not.toMatch(/WAYMARK_TEST_SECRET/);
  delete process.env.WAYMARK_TEST_SECRET;
});

test('annotations of a tool can decide about its approval', async () => {
  const raw = rawServer('raw');
  const { app } = open([call('raw_remove'), repeat, call('raw_echo', { text: 'hi' }), repeat], []);
  const careful = app.defineAgent({
    name: 'careful',
    system: 'Help.',
    tools: [raw],
    use: [toolApproval((_, { metadata }) => destructive(metadata))],
  });
  const asked = await careful.run('Go');
  expect(asked.finishReason).toBe('interrupted');
  const [interrupt] = asked.interrupts;
  expect(interrupt?.metadata).toEqual({ approval: { tool: 'raw_remove', input: {} } });
  if (!interrupt) throw new Error('No interrupt.');
  expect((await careful.resume(asked, interrupt.approve())).text).toBe('removed');
  expect((await careful.run('Go')).text).toBe('echo hi');
});

function destructive(metadata: object = {}): boolean {
  const { mcp: about } = metadata as { mcp?: { annotations?: { destructiveHint?: boolean } } };
  return about?.annotations?.destructiveHint === true;
}

test('S730 the last progress of several that come together is streamed after 100 ms', async () => {
  const clock = fakeClock();
  const { agent } = open([call('raw_progress')], [rawServer('raw', '', { clock })]);
  const caller = new AbortController();
  const seen: unknown[] = [];
  const turn = agent.stream('Go', { signal: caller.signal });
  const reading = (async () => {
    for await (const { modelChunk } of turn.stream) {
      for (const part of modelChunk?.content ?? []) {
        if ('toolResponse' in part) seen.push(part.toolResponse.output);
      }
    }
  })();
  await eventually(async () => {
    await clock.advance(100);
    expect(seen.at(-1)).toEqual({ progress: 4, total: 9 });
  });
  expect(seen[0]).toEqual({ progress: 1, total: 9 });
  caller.abort();
  await Promise.allSettled([reading, turn.output]);
});
