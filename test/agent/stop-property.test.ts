import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Agent } from '../../src/agent/contract/agent.ts';
import type { Model } from '../../src/generate/model.ts';
import type { Part } from '../../src/protocol/message.ts';
import type { Chunk } from '../../src/protocol/turn.ts';
import { must, openApp, type TestApp, told, unexpected } from './support/kit.ts';
import { expectValid } from './support/valid.ts';

/** One answer of the model: pieces of text, then tools. */
interface Answer {
  readonly pieces: readonly string[];
  readonly tools: readonly ToolKind[];
}

type ToolKind = 'quick' | 'slow' | 'deaf' | 'failing';

interface Plan {
  /** The answers of each turn; the last one of a turn has no tools. */
  readonly turns: readonly (readonly Answer[])[];
  /** Chunks that the reader reads before it stops. */
  readonly stopAfter: number;
  readonly how: 'connection' | 'signal' | 'id';
}

const pieces = fc.array(fc.stringMatching(/^[a-z ]{1,6}$/), { maxLength: 4 });
const tools = fc.array(fc.constantFrom<ToolKind>('quick', 'slow', 'deaf', 'failing'), {
  minLength: 1,
  maxLength: 3,
});
const answers = fc
  .tuple(
    fc.array(fc.record({ pieces, tools }), { maxLength: 2 }),
    fc.array(fc.stringMatching(/^[a-z ]{1,6}$/), { minLength: 1, maxLength: 4 }),
  )
  .map(([rounds, last]): Answer[] => [...rounds, { pieces: last, tools: [] }]);
const plans: fc.Arbitrary<Plan> = fc.record({
  turns: fc.array(answers, { minLength: 1, maxLength: 3 }),
  stopAfter: fc.nat({ max: 25 }),
  how: fc.constantFrom('connection', 'signal', 'id'),
});

interface Call {
  readonly signal: AbortSignal;
  ended: boolean;
}

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A model that speaks one piece per turn of the event loop, and tools of all tempers. All of them note what they see. */
function openStage(app: TestApp, { turns }: Plan): { model: Model; calls: Call[]; after: Model } {
  const calls: Call[] = [];
  const script = turns.flat();
  let next = 0;
  const begin = (signal: AbortSignal): Call => {
    const call = { signal, ended: false };
    calls.push(call);
    return call;
  };
  const model = app.defineModel({ name: 'speaker' }, async (_request, { stream, signal }) => {
    const call = begin(signal);
    const answer = must(script[next++]);
    const content: Part[] = [];
    const say = async (part: Part): Promise<void> => {
      await tick();
      if (signal.aborted) throw new Error('stopped');
      content.push(part);
      await stream({ content: [part] });
    };
    for (const text of answer.pieces) await say({ text });
    for (const [at, name] of answer.tools.entries()) {
      await say({ toolRequest: { name, ref: `${next}.${at}`, input: {} } });
    }
    await tick();
    call.ended = true;
    return { message: { role: 'model', content }, finishReason: 'stop' };
  });
  const after = app.defineModel({ name: 'after' }, async () => ({
    message: { role: 'model', content: [{ text: 'after' }] },
    finishReason: 'stop',
  }));
  for (const name of ['quick', 'slow', 'deaf', 'failing'] as const) {
    app.defineTool({ name, description: name }, async (_input, { signal }) => {
      const call = begin(signal);
      for (let n = 0; n < (name === 'quick' ? 1 : 4); n++) {
        await tick();
        if (signal.aborted && name !== 'deaf') throw new Error('stopped');
      }
      call.ended = true;
      if (name === 'failing') throw new Error('on purpose');
      return name;
    });
  }
  return { model, calls, after };
}

function promptAgent(app: TestApp, model: Model): Agent {
  return app.defineAgent({
    name: 'chat',
    model,
    tools: ['quick', 'slow', 'deaf', 'failing'],
    maxTurns: 20,
  }) as unknown as Agent;
}

/** Adds the messages of its generate call itself, when that has come to its end. */
function customAgent(app: TestApp, model: Model): Agent {
  return app.defineCustomAgent({ name: 'chat' }, (session, { respond, model: own = model }) =>
    session.run(async (_input, { signal }) => {
      const { messages } = await app.generate({
        model: own,
        messages: session.messages,
        tools: ['quick', 'slow', 'deaf', 'failing'],
        maxTurns: 20,
        signal,
        onChunk: respond.modelChunk,
      });
      session.addMessages(...messages);
    }),
  ) as unknown as Agent;
}

function textOf({ modelChunk }: Chunk): string {
  if (modelChunk?.role === 'tool') return '';
  return (modelChunk?.content ?? []).map((part) => ('text' in part ? part.text : '')).join('');
}

async function stopSomewhere(
  plan: Plan,
  define: (app: TestApp, model: Model) => Agent,
): Promise<void> {
  await using app = openApp();
  const { model, calls, after } = openStage(app, plan);
  const agent = define(app, model);
  const caller = new AbortController();
  const connection = agent.streamBidi({ signal: caller.signal });
  for (const [at] of plan.turns.entries()) await connection.sendText(`turn ${at}`);
  connection.close();

  let read = 0;
  let seen = '';
  let running: string | undefined;
  for await (const chunk of connection.receive()) {
    if (chunk.turnStart) {
      seen = '';
      running = chunk.turnStart.snapshotId;
    }
    seen += textOf(chunk as Chunk);
    if (++read <= plan.stopAfter) continue;
    if (plan.how === 'connection') connection.abort();
    else if (plan.how === 'signal') caller.abort();
    else await agent.abort(must(running));
    break;
  }
  const ends: string[] = [];
  for await (const { turnEnd, turnStart } of connection.receive()) {
    if (turnStart) seen = '';
    if (turnEnd) ends.push(turnEnd.finishReason ?? '');
  }
  const output = await connection.output();
  const isStopped = output.finishReason === 'aborted';
  expect(output.error).toBeUndefined();
  expect(['stop', 'aborted']).toContain(output.finishReason);
  expect(ends.filter((reason) => reason === 'aborted').length).toBeLessThanOrEqual(1);

  // Whatever had not come to its end has heard of it.
  for (const { signal, ended } of calls) expect(ended || signal.aborted).toBe(true);

  const { sessionId, snapshotId = '' } = output;
  const { state, status, finishReason } = must(await agent.getSnapshot({ snapshotId }));
  const messages = state?.messages ?? [];
  expect({ status, finishReason }).toEqual({
    status: 'succeeded',
    finishReason: output.finishReason,
  });
  expectValid(messages);
  // What the reader saw of the stopped turn is in the answer that was kept.
  const from = messages.findLastIndex(({ role }) => role === 'user');
  const kept = messages
    .slice(from)
    .filter(({ role }) => role === 'model')
    .flatMap(({ content }) => content)
    .map((part) => ('text' in part ? part.text : ''))
    .join('');
  if (isStopped) expect(kept.startsWith(seen)).toBe(true);

  const next = await agent.runText('and now?', { sessionId, model: after });
  expect(next).toMatchObject({ finishReason: 'stop' });
  const { state: later } = must(await agent.getSnapshot({ sessionId }));
  expectValid(later?.messages ?? []);
  expect(told(later?.messages).slice(-2)).toEqual(['user: and now?', 'model: after']);
  expect(unexpected(app)).toEqual([]);
}

const runs = process.env.LONG === '1' ? 200 : 100;

test('S55 S54 S53 a prompt agent with tools can be stopped at any chunk of any turn', async () => {
  await fc.assert(
    fc.asyncProperty(plans, (plan) => stopSomewhere(plan, promptAgent)),
    { numRuns: runs },
  );
});

test('S55 S54 S53 a custom agent can be stopped at any chunk of any turn', async () => {
  await fc.assert(
    fc.asyncProperty(plans, (plan) => stopSomewhere(plan, customAgent)),
    { numRuns: runs },
  );
});
