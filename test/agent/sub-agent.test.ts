import { describe, expect, test } from 'vitest';
import type { Message } from '../../src/index.ts';
import { agentTool, backgroundAgentTools, memoryStore, waymark } from '../../src/index.ts';
import type { ToolRequestPart } from '../../src/messages/index.ts';
import { type ScriptStep, scriptedModel } from '../../src/testing/index.ts';

const ask = (message: string): ScriptStep => ({
  toolCalls: [{ name: 'helper', input: { message } }],
});

/** An app with a parent that asks a helper, each on its own script. */
function household(parent: readonly ScriptStep[], helper: readonly ScriptStep[]) {
  const app = waymark({ store: memoryStore() });
  const confirm = app.defineInterrupt({ name: 'confirm', description: 'Asks a person.' });
  const helperModel = scriptedModel(helper);
  const parentModel = scriptedModel(parent);
  const helperAgent = app.defineAgent({ name: 'helper', model: helperModel, tools: [confirm] });
  const parentAgent = app.defineAgent({
    name: 'parent',
    model: parentModel,
    tools: [agentTool(helperAgent), ...backgroundAgentTools(helperAgent, { name: 'job' })],
  });
  return { app, helper: helperAgent, parent: parentAgent, helperModel, parentModel };
}

async function collect<Item>(stream: AsyncIterable<Item>): Promise<Item[]> {
  const chunks: Item[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

function lastToolOutput(messages: readonly Message[]): unknown {
  const tool = messages.findLast(({ role }) => role === 'tool');
  const part = tool?.content[0];
  return part !== undefined && 'toolResponse' in part ? part.toolResponse.output : undefined;
}

describe('an agent in the foreground of another', () => {
  test('answers as a tool, in a session of its own that names who started it', async () => {
    const { parent, helper, parentModel } = household([ask('sum up'), 'Done.'], ['The sum is 4.']);
    const output = await parent.runText('go');
    expect(lastToolOutput(parentModel.requests[1]?.messages ?? [])).toBe('The sum is 4.');
    const { items } = await helper.listSessions();
    expect(items).toMatchObject([
      {
        startedBy: { agent: 'parent', sessionId: output.sessionId, snapshotId: output.snapshotId },
      },
    ]);
  });

  test('its chunks come through marked with its name, and its turn ends nobody else’s', async () => {
    const { parent } = household([ask('x'), 'Done.'], [{ chunks: ['in', 'side'] }]);
    const chunks = await collect(parent.streamText('go').stream);
    const inner = chunks.filter(({ agent }) => agent === 'helper');
    expect(inner.map(({ modelChunk }) => modelChunk?.content[0])).toEqual([
      { text: 'in' },
      { text: 'side' },
    ]);
    expect(chunks.filter(({ turnEnd }) => turnEnd !== undefined)).toHaveLength(1);
  });

  test('the parent’s usage counts what it used', async () => {
    const usage = { inputTokens: 100, outputTokens: 10, totalTokens: 110 };
    const { parent } = household(
      [
        { toolCalls: [{ name: 'helper', input: { message: 'x' } }], usage: { totalTokens: 1 } },
        { text: 'ok', usage: { totalTokens: 1 } },
      ],
      [{ text: 'spent', usage }],
    );
    const output = await parent.runText('go');
    expect(output.usage?.totalTokens).toBe(112);
  });

  test('its artifacts arrive under its name', async () => {
    const app = waymark({ store: memoryStore() });
    const painter = app.defineCustomAgent({ name: 'painter' }, async (session, { respond }) => {
      await session.run(async () => {
        await respond.artifact({ name: 'sky.svg', parts: [{ text: '<svg/>' }] });
        session.addArtifacts({ name: 'notes.txt', parts: [{ text: 'quietly' }] });
      });
    });
    const model = scriptedModel([
      { toolCalls: [{ name: 'painter', input: { message: 'sky' } }] },
      'Painted.',
    ]);
    const parent = app.defineAgent({ name: 'parent', model, tools: [agentTool(painter)] });
    const { artifacts } = await parent.runText('go');
    expect(artifacts?.map(({ name }) => name).sort()).toEqual([
      'painter/notes.txt',
      'painter/sky.svg',
    ]);
  });

  test('S150: its artifacts come once, marked with its name, whether sent, added or without a name', async () => {
    const app = waymark({ store: memoryStore() });
    const painter = app.defineCustomAgent({ name: 'painter' }, async (session, { respond }) => {
      await session.run(async () => {
        await respond.artifact({ parts: [{ text: 'no name' }] });
        session.addArtifacts({ name: 'notes.txt', parts: [] });
      });
      session.addArtifacts({ name: 'late.txt', parts: [] });
    });
    const model = scriptedModel([
      { toolCalls: [{ name: 'painter', input: { message: 'sky' } }] },
      'Painted.',
    ]);
    const parent = app.defineAgent({ name: 'parent', model, tools: [agentTool(painter)] });
    const turn = parent.streamText('go');
    const streamed: unknown[] = [];
    for await (const { artifact, agent } of turn.stream) {
      if (artifact !== undefined) streamed.push([agent, artifact.name]);
    }
    const { artifacts } = await turn.output;
    expect(streamed).toEqual([
      ['painter', undefined],
      ['painter', 'painter/notes.txt'],
      ['painter', 'painter/late.txt'],
    ]);
    expect(artifacts?.map(({ name }) => name)).toEqual([
      undefined,
      'painter/notes.txt',
      'painter/late.txt',
    ]);
  });

  test('its failure is an error that the parent’s model reads', async () => {
    const { parent, parentModel } = household(
      [ask('x'), 'Never mind.'],
      [{ error: new Error('secret detail') }],
    );
    const output = await parent.runText('go');
    expect(output.finishReason).toBe('stop');
    const said = JSON.stringify(lastToolOutput(parentModel.requests[1]?.messages ?? []));
    expect(said).toContain('helper');
    expect(said).not.toContain('secret');
  });

  test('its interrupt is the parent’s, and a restart with the answer goes on inside it', async () => {
    const { parent, helper } = household(
      [ask('pay'), 'All paid.'],
      [{ toolCalls: [{ name: 'confirm', ref: 'c1' }] }, 'Paid.'],
    );
    const waiting = await parent.runText('go');
    expect(waiting.finishReason).toBe('interrupted');
    const request = waiting.message?.content.find(
      (part): part is ToolRequestPart => 'toolRequest' in part,
    );
    expect(request?.metadata?.interrupt).toMatchObject({
      agent: 'helper',
      requests: [{ toolRequest: { name: 'confirm', ref: 'c1' } }],
    });
    if (request === undefined) throw new Error('no request');
    const resumed = { respond: [{ toolResponse: { name: 'confirm', ref: 'c1', output: 'yes' } }] };
    const restart = [{ toolRequest: request.toolRequest, metadata: { resumed } }];
    const output = await parent.run({ resume: { restart } }, { sessionId: waiting.sessionId });
    expect(output.message?.content).toEqual([{ text: 'All paid.' }]);
    const { items } = await helper.listSessions();
    expect(items).toMatchObject([{ turnCount: 2 }]);
  });

  test('a stop of the parent reaches it and keeps what both have said', async () => {
    const { parent, helper, helperModel } = household(
      [ask('x')],
      [{ chunks: ['half'], hang: true }],
    );
    const connection = parent.streamBidi();
    await connection.sendText('go');
    for await (const chunk of connection.receive()) if (chunk.agent === 'helper') break;
    connection.abort();
    const output = await connection.output();
    expect(output.finishReason).toBe('aborted');
    expect(helperModel.stops).toBe(1);
    const [session] = (await helper.listSessions()).items;
    const inner = await helper.getSession(session?.sessionId ?? '');
    expect(inner?.state?.messages?.at(-1)).toMatchObject({
      role: 'model',
      content: [{ text: 'half' }],
    });
  });

  test('erasing the parent’s session erases its sub-agents’ sessions', async () => {
    const { parent, helper } = household([ask('x'), 'Done.'], ['ok']);
    const { sessionId } = await parent.runText('go');
    await parent.deleteSession(sessionId);
    expect((await helper.listSessions()).items).toEqual([]);
  });

  test('an agent of an agent is named by the way to it', async () => {
    const app = waymark({ store: memoryStore() });
    const say = (text: string) => scriptedModel([text]);
    const inner = app.defineAgent({ name: 'inner', model: say('deep') });
    const middle = app.defineAgent({
      name: 'middle',
      model: scriptedModel([{ toolCalls: [{ name: 'inner', input: { message: 'x' } }] }, 'm']),
      tools: [agentTool(inner)],
    });
    const outer = app.defineAgent({
      name: 'outer',
      model: scriptedModel([{ toolCalls: [{ name: 'middle', input: { message: 'x' } }] }, 'o']),
      tools: [agentTool(middle)],
    });
    const chunks = await collect(outer.streamText('go').stream);
    expect(new Set(chunks.flatMap(({ agent }) => agent ?? []))).toEqual(
      new Set(['middle', 'middle/inner']),
    );
  });
});

describe('an agent in the background of another', () => {
  const start: ScriptStep = { toolCalls: [{ name: 'job_start', input: { message: 'long' } }] };
  const callWith = (name: string, messages: readonly Message[]) => {
    const { runId } = lastToolOutput(messages) as { runId: string };
    return { toolCalls: [{ name, input: { runId } }] };
  };
  const with_ =
    (name: string): ScriptStep =>
    ({ messages }) =>
      callWith(name, messages);

  test('is started, and waited for', async () => {
    const { parent, parentModel } = household([start, with_('job_wait'), 'Done.'], ['result']);
    await parent.runText('go');
    expect(lastToolOutput(parentModel.requests[2]?.messages ?? [])).toEqual({
      status: 'succeeded',
      text: 'result',
    });
  });

  test('is checked on while it runs, and aborted', async () => {
    const { parent, parentModel, helperModel } = household(
      [
        start,
        with_('job_check'),
        'ok',
        ({ messages }) => callWith('job_abort', earlier(messages)),
        'stopped',
      ],
      [{ chunks: ['…'], hang: true }],
    );
    const first = await parent.runText('go');
    expect(lastToolOutput(parentModel.requests[2]?.messages ?? [])).toMatchObject({
      status: 'pending',
    });
    await parent.runText('stop it', { sessionId: first.sessionId });
    expect(lastToolOutput(parentModel.requests[4]?.messages ?? [])).toEqual({ status: 'aborted' });
    await expect.poll(() => helperModel.stops).toBe(1);
  });

  /** The conversation as it was when the job had just been started. */
  function earlier(messages: readonly Message[]): readonly Message[] {
    return messages.slice(0, messages.findIndex(({ role }) => role === 'tool') + 1);
  }

  test('a run that does not exist is said to be unknown', async () => {
    const { parent, parentModel } = household(
      [
        {
          toolCalls: [
            { name: 'job_check', input: { runId: '01a1dd17-6974-77c1-8a3b-e098aad51b38' } },
          ],
        },
        'ok',
      ],
      [],
    );
    await parent.runText('go');
    expect(JSON.stringify(lastToolOutput(parentModel.requests[1]?.messages ?? []))).toContain(
      'No run',
    );
  });

  test('needs a store that can abort', () => {
    const app = waymark();
    const helper = app.defineAgent({ name: 'helper', model: scriptedModel([]) });
    expect(() => backgroundAgentTools(helper)).toThrow(/cannot work in the background/);
  });
});
