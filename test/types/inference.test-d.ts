import { type } from 'arktype';
import * as v from 'valibot';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { type Agent, type Json, type Output, type Tool, tool, waymark } from '../../src/index.ts';
import { on } from '../../src/session/policy.ts';

const app = waymark();
const state = z.object({ topics: z.array(z.string()) });

test('S19 the state types the session, the snapshots, the init and the policy', async () => {
  const chat = app.defineAgent({ name: 'chat', state });
  const output = await chat.runText('hi');
  expectTypeOf(output.state?.custom).toEqualTypeOf<{ topics: string[] } | undefined>();
  const snapshot = await chat.getSnapshot({ sessionId: 's' });
  expectTypeOf(snapshot?.state?.custom).toEqualTypeOf<{ topics: string[] } | undefined>();
  const session = await chat.getSession('s');
  expectTypeOf(session?.state?.custom).toEqualTypeOf<{ topics: string[] } | undefined>();
  expectTypeOf((await chat.wait('id')).state?.custom).toEqualTypeOf<
    { topics: string[] } | undefined
  >();
  expectTypeOf(chat.chat().state?.custom).toEqualTypeOf<{ topics: string[] } | undefined>();
  void chat.runText('hi', { state: { custom: { topics: ['a'] } } });
  // @ts-expect-error topics are strings
  void chat.runText('hi', { state: { custom: { topics: [1] } } });
  app.defineAgent({
    name: 'policy',
    state,
    snapshot: (chance) => {
      expectTypeOf(chance.state.custom).toEqualTypeOf<{ topics: string[] } | undefined>();
      expectTypeOf(chance.prevState?.custom).toEqualTypeOf<{ topics: string[] } | undefined>();
      return chance.state.custom?.topics.length === 1;
    },
  });
});

test('S19 S66 the ready-made policies fit any agent', () => {
  app.defineAgent({ name: 'on', state, snapshot: on('turnEnd') });
  app.defineAgent({ name: 'always', state, snapshot: 'always' });
  // @ts-expect-error there is no such event
  app.defineAgent({ name: 'wrong', state, snapshot: on('lunch') });
});

test('S19 S12 S153 an initial state makes the custom state and its draft non-optional', () => {
  app.defineCustomAgent({ name: 'a', state }, (session) => {
    expectTypeOf(session.custom).toEqualTypeOf<
      { readonly topics: readonly string[] } | undefined
    >();
    session.setCustom({ topics: [] });
    // @ts-expect-error not the schema's
    session.setCustom({ topics: 1 });
    session.updateCustom((draft) => {
      expectTypeOf(draft).toEqualTypeOf<{ topics: string[] } | undefined>();
      // @ts-expect-error there may be no custom state yet
      draft.topics.push('a');
    });
    session.updateCustom((draft) => ({ topics: [...(draft?.topics ?? []), 'a'] }));
    session.updateCustom((draft) => draft ?? { topics: [] });
    // @ts-expect-error not the schema's
    session.updateCustom(() => ({ topics: 1 }));
  });
  app.defineCustomAgent({ name: 'b', state, initialState: { topics: [] } }, (session) => {
    expectTypeOf(session.custom).toEqualTypeOf<{ readonly topics: readonly string[] }>();
    // @ts-expect-error it is frozen: updateCustom changes it
    session.custom.topics.push('a');
    session.setCustom({ ...session.custom });
    session.updateCustom((draft) => {
      expectTypeOf(draft).toEqualTypeOf<{ topics: string[] }>();
      draft.topics.push('a');
    });
    session.updateCustom(({ topics }) => void topics.push('a'));
  });
  // @ts-expect-error not the schema's
  app.defineCustomAgent({ name: 'c', state, initialState: { topics: 1 } }, () => {});
  app.defineAgent({
    name: 'd',
    state,
    initialState: { topics: [] },
    system: ({ state: custom }) => custom.topics.join(),
  });
});

test('S19 any schema library, and JSON Schema as JSON', () => {
  app.defineCustomAgent({ name: 'v', state: v.object({ n: v.number() }) }, (session) => {
    expectTypeOf(session.custom).toEqualTypeOf<{ readonly n: number } | undefined>();
  });
  app.defineCustomAgent({ name: 'a', state: type({ n: 'number' }) }, (session) => {
    expectTypeOf(session.custom).toEqualTypeOf<{ readonly n: number } | undefined>();
  });
});

test('S19 the status types the responder and the chunks', async () => {
  const status = z.object({ phase: z.enum(['thinking', 'writing']) });
  const agent = app.defineCustomAgent({ name: 'agent', status }, (session, { respond }) =>
    session.run(async () => {
      await respond.status({ phase: 'thinking' });
      // @ts-expect-error no such phase
      await respond.status({ phase: 'sleeping' });
      await respond.send({ status: { phase: 'writing' } });
    }),
  );
  for await (const chunk of agent.streamText('hi').stream) {
    expectTypeOf(chunk.status).toEqualTypeOf<{ phase: 'thinking' | 'writing' } | undefined>();
  }
  for await (const event of agent.watch('id')) {
    if (event.type !== 'chunk') continue;
    expectTypeOf(event.chunk.status).toEqualTypeOf<{ phase: 'thinking' | 'writing' } | undefined>();
  }
});

test('S19 structured output types the output', async () => {
  const agent = app.defineAgent({
    name: 'agent',
    output: { schema: z.object({ title: z.string(), steps: z.array(z.string()) }) },
  });
  const { output } = await agent.runText('hi');
  expectTypeOf(output).toEqualTypeOf<{ title: string; steps: string[] }>();
  const graceful = await agent.run('hi', { throwOnError: false });
  expectTypeOf(graceful.output).toEqualTypeOf<{ title: string; steps: string[] } | undefined>();
});

test('S19 a tool’s input, output and context are typed by its declaration', () => {
  app.defineTool(
    {
      name: 'weather',
      description: 'Weather.',
      input: z.object({ city: z.string(), days: z.number().default(1) }),
    },
    (input, context) => {
      expectTypeOf(input).toEqualTypeOf<{ city: string; days: number }>();
      expectTypeOf(context.signal).toEqualTypeOf<AbortSignal>();
      expectTypeOf(context.idempotencyKey).toEqualTypeOf<string>();
      expectTypeOf(context.session.id).toEqualTypeOf<string>();
      expectTypeOf(context.session.custom).toEqualTypeOf<unknown>();
      expectTypeOf(context.interrupt).returns.toEqualTypeOf<never>();
      return input.city;
    },
  );
  app.defineTool(
    { name: 'count', description: 'Counts.', output: z.object({ n: z.number() }) },
    // @ts-expect-error not the output's
    () => ({ n: 'one' }),
  );
});

test('S246 the state of a tool types its session, and only agents with such a state take it', () => {
  const input = z.object({ topic: z.string() });
  const note = app.defineTool(
    { name: 'note', description: 'Notes.', input, state },
    (given, context) => {
      expectTypeOf(given).toEqualTypeOf<{ topic: string }>();
      expectTypeOf(context.session.custom).toEqualTypeOf<{ readonly topics: readonly string[] }>();
      context.session.updateCustom((draft) => void draft.topics.push(given.topic));
      // @ts-expect-error topics are strings
      context.session.setCustom({ topics: [1] });
      return given.topic.length;
    },
  );
  expectTypeOf(note).toEqualTypeOf<Tool<{ topic: string }, number, { topics: string[] }>>();
  const initialState = { topics: [] };
  app.defineAgent({ name: 's1', state, initialState, tools: [note, 'other'] });
  // More fields than the tool needs.
  const wide = z.object({ topics: z.array(z.string()), city: z.string() });
  app.defineAgent({
    name: 's2',
    state: wide,
    initialState: { topics: [], city: '' },
    tools: [note],
  });
  const numbers = z.object({ topics: z.array(z.number()) });
  // @ts-expect-error its topics are numbers
  app.defineAgent({ name: 's3', state: numbers, initialState, tools: [note] });
  // @ts-expect-error it has no state
  app.defineAgent({ name: 's4', tools: [note] });
  // @ts-expect-error its sessions start without a state
  app.defineAgent({ name: 's5', state, tools: [note] });

  const start = tool(
    { name: 'start', description: '', state: state.optional() },
    (_, { session }) => {
      expectTypeOf(session.custom).toEqualTypeOf<
        { readonly topics: readonly string[] } | undefined
      >();
    },
  );
  app.defineAgent({ name: 's6', state, tools: [start] });
  app.defineAgent({ name: 's7', state, initialState, tools: [start, note] });

  const plain = tool({ name: 'plain', description: '' }, (_, { session }) => session.id);
  expectTypeOf(plain).toExtend<Tool>();
  app.defineAgent({ name: 's8', tools: [plain] });
  app.defineAgent({ name: 's9', state: numbers, tools: [plain] });
  // A custom agent passes tools to generate inside its turns.
  void app.generate({ prompt: 'hi', tools: [note, plain] });
});

test('S246 a prompt with such a tool fits the same agents', () => {
  const note = tool({ name: 'note', description: '', state }, () => 1);
  const prompt = app.definePrompt({ name: 'noting', tools: [note, 'other'] });
  const plain = app.definePrompt({ name: 'plain', system: 'Hi.' });
  app.defineAgent({ name: 'p1', state, initialState: { topics: [] }, prompt });
  app.defineAgent({ name: 'p2', state, initialState: { topics: [] }, prompt: plain });
  app.defineAgent({ name: 'p3', prompt: plain });
  // @ts-expect-error it has no state
  app.defineAgent({ name: 'p4', prompt });
});

test('S711 dates in the results of tools and steps are typed as their text', async () => {
  const due = tool({ name: 'due', description: 'Says when.' }, () => ({
    at: new Date(),
    list: [{ at: new Date(), no: 1 }],
    note: undefined as string | undefined,
  }));
  expectTypeOf<Awaited<ReturnType<typeof due.run>>>().toEqualTypeOf<{
    at: string;
    list: { at: string; no: number }[];
    note: string | undefined;
  }>();
  app.defineCustomAgent({ name: 'dated' }, async (session) => {
    expectTypeOf(await session.step('now', () => new Date())).toEqualTypeOf<string>();
    expectTypeOf(await session.step('json', (): Json => 1)).toEqualTypeOf<Json>();
  });
});

test('S19 the prompt types its input', () => {
  const prompt = app.definePrompt({
    name: 'role',
    input: z.object({ role: z.string() }),
    system: '{{role}}',
  });
  app.defineAgent({ name: 'a', prompt, promptInput: { role: 'poet' } });
  // @ts-expect-error a role is a string
  app.defineAgent({ name: 'b', prompt, promptInput: { role: 1 } });
  // @ts-expect-error there is no such input
  app.defineAgent({ name: 'c', prompt, promptInput: { rule: 'x' } });
});

test('S19 what has no schema is JSON, never any', async () => {
  const bare = app.defineAgent({ name: 'bare' });
  const output = await bare.runText('hi');
  expectTypeOf(output.state?.custom).toEqualTypeOf<Json | undefined>();
  for await (const chunk of bare.streamText('hi').stream) {
    expectTypeOf(chunk.status).toEqualTypeOf<Json | undefined>();
  }
  const named = await app.agent('bare').runText('hi');
  expectTypeOf(named.output).not.toBeAny();
  expectTypeOf(named.state?.custom).not.toBeAny();
});

test('S19 every agent is an Agent, and what it gives an Output', () => {
  const takes = (agent: Agent): Promise<Output> => agent.runText('hi');
  void takes(app.defineAgent({ name: 'bare' }));
  void takes(app.defineAgent({ name: 'typed', state, initialState: { topics: [] } }));
  void takes(app.defineCustomAgent({ name: 'own' }, () => Promise.resolve({})));
});
