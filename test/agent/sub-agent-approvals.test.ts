import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { client } from '../../src/client/index.ts';
import {
  type Agent,
  agentTool,
  type Interrupt,
  type InterruptAnswer,
  memoryStore,
  toolApproval,
  waymark,
} from '../../src/index.ts';
import { createAgentStore } from '../../src/react/index.ts';
import { serve } from '../../src/server/index.ts';
import { type ScriptStep, scriptedModel } from '../../src/testing/index.ts';

/** A tool of the innermost agent that waits, asked for by `levels` agents above it. */
function openAgents(levels: number, calls = ['Oslo']) {
  const booked: { readonly city: string; readonly resumed: unknown }[] = [];
  const told: string[] = [];
  const app = waymark({
    store: memoryStore(),
    onInterrupt: ({ agent }) => void told.push(agent),
    onError: () => {},
  });
  const book = app.defineTool(
    { name: 'book', description: 'Books', input: z.object({ city: z.string().min(2) }) },
    async ({ city }, { interrupt, resumed }) => {
      if (resumed === undefined) return interrupt({ question: `Book ${city}?` });
      booked.push({ city, resumed });
      return { booked: city };
    },
  );
  const scripts: ReturnType<typeof scriptedModel>[] = [];
  const define = (name: string, steps: readonly ScriptStep[], tools: unknown[]): Agent => {
    const model = scriptedModel(steps);
    scripts.push(model);
    return app.defineAgent({ name, model, tools: tools as [] }) as unknown as Agent;
  };
  const agents = [
    define(
      'agent0',
      [{ toolCalls: calls.map((city) => ({ name: 'book', input: { city } })) }, 'Inner done.'],
      [book],
    ),
  ];
  for (let level = 1; level <= levels; level++) {
    const below = `agent${level - 1}`;
    const call: ScriptStep = { toolCalls: [{ name: below, input: { message: 'go' } }] };
    agents.push(
      define(`agent${level}`, [call, 'All done.'], [agentTool(agents[level - 1] as Agent)]),
    );
  }
  const top = agents[levels] as Agent;
  const waiting = async (): Promise<readonly string[]> => {
    const lists = await Promise.all(agents.map((agent) => agent.listInterrupts()));
    return lists.flatMap(({ items }) => items.map(({ agent }) => agent));
  };
  return { app, top, booked, told, waiting, inner: scripts[0] as (typeof scripts)[0] };
}

async function listen(app: Parameters<typeof serve>[0]) {
  const server = await serve(app, { port: 0, log: () => {}, grace: 100 });
  return { url: server.url, [Symbol.asyncDispose]: () => server.close() };
}

type Opened = ReturnType<typeof openAgents>;
type Answer = (request: Interrupt) => InterruptAnswer;

/** Asks the outermost agent, and answers its interrupts: each way that a user has. */
const ways: Record<string, (opened: Opened, answer: Answer) => Promise<unknown>> = {
  'in process': async ({ top }, answer) => await top.resume(await top.run('go'), answer),
  'over HTTP': async ({ app, top }, answer) => {
    await using server = await listen(app);
    const agent = client({ url: server.url, agent: top.name });
    return await agent.resume(await agent.run('go'), answer);
  },
  'in the store of React': async ({ app, top }, answer) => {
    await using server = await listen(app);
    const store = createAgentStore({ agent: client({ url: server.url, agent: top.name }) });
    await store.actions.send('go');
    return await store.actions.resume(answer);
  },
};

describe.each(Object.entries(ways))('S590 an interrupt of a sub-agent %s', (_, run) => {
  test.each([1, 2, 3])(
    'is approved through %i levels, and nothing waits any more',
    async (levels) => {
      const opened = openAgents(levels);
      expect(await run(opened, (request) => request.approve())).toMatchObject({
        finishReason: 'stop',
        text: 'All done.',
      });
      expect(opened.booked).toEqual([{ city: 'Oslo', resumed: true }]);
      expect(await opened.waiting()).toEqual([]);
    },
  );

  test('is declined: the tool does not run, and the model of the sub-agent gets the reason', async () => {
    const opened = openAgents(2);
    expect(await run(opened, (request) => request.decline('Too far.'))).toMatchObject({
      finishReason: 'stop',
    });
    expect(opened.booked).toEqual([]);
    const said = JSON.stringify(opened.inner.requests[1]?.messages);
    expect(said).toContain('The user declined. The reason: Too far.');
    expect(await opened.waiting()).toEqual([]);
  });

  test('is approved with another input', async () => {
    const opened = openAgents(2);
    await run(opened, (request) => request.approve({ input: { city: 'Bergen' } }));
    expect(opened.booked).toEqual([{ city: 'Bergen', resumed: true }]);
    expect(await opened.waiting()).toEqual([]);
  });

  test('is answered in place of the tool', async () => {
    const opened = openAgents(2);
    await run(opened, (request) => request.respond({ booked: 'by phone' }));
    expect(opened.booked).toEqual([]);
    expect(JSON.stringify(opened.inner.requests[1]?.messages)).toContain('by phone');
    expect(await opened.waiting()).toEqual([]);
  });

  test('gives its tool the value of an approval', async () => {
    const opened = openAgents(2);
    await run(opened, (request) => request.approve({ resumed: { by: 'ann' } }));
    expect(opened.booked).toEqual([{ city: 'Oslo', resumed: { by: 'ann' } }]);
  });

  test('is answered call by call', async () => {
    const opened = openAgents(2, ['Oslo', 'Rome']);
    const answer: Answer = (request) => {
      if (request.interrupts.length > 0) return request.resume(answer);
      const { city } = request.input as { city: string };
      return city === 'Oslo' ? request.approve() : request.decline();
    };
    await run(opened, answer);
    expect(opened.booked).toEqual([{ city: 'Oslo', resumed: true }]);
    expect(await opened.waiting()).toEqual([]);
  });
});

test('S590 a client that restarts the call with `true` approves what waits inside', async () => {
  const { top, booked, waiting } = openAgents(2);
  const asked = await top.run('go');
  const restart = asked.interrupts.map(({ request: { toolRequest } }) => ({ toolRequest }));
  await top.resume(asked, { restart });
  expect(booked).toEqual([{ city: 'Oslo', resumed: true }]);
  expect(await waiting()).toEqual([]);
});

test('S590 answers that the sub-agent would refuse leave its interrupt open', async () => {
  const { top, booked } = openAgents(2);
  const asked = await top.run('go');
  const refused = { status: 'INVALID_ARGUMENT' };
  await expect(
    top.resume(asked, (request) => request.approve({ input: { city: '' } })),
  ).rejects.toMatchObject(refused);
  await expect(
    top.resume(asked, (request) => request.approve({ resumed: { restart: true } })),
  ).rejects.toMatchObject(refused);
  await expect(
    top.resume(asked, (request) => request.approve({ resumed: { respond: [] } })),
  ).rejects.toMatchObject(refused);
  await top.resume(asked, (request) => request.approve());
  expect(booked).toHaveLength(1);
});

test('S590 one output or input for several calls is refused before it is sent', async () => {
  const { top } = openAgents(1, ['Oslo', 'Rome']);
  const [request] = (await top.run('go')).interrupts;
  expect(request?.interrupts.map(({ input }) => input)).toEqual([
    { city: 'Oslo' },
    { city: 'Rome' },
  ]);
  expect(() => request?.respond('x')).toThrow(/2 tool calls of sub-agent "agent0" wait/);
  expect(() => request?.approve({ input: { city: 'Rome' } })).toThrow(/request\.resume/);
  expect(() => request?.interrupts[0]?.resume((each) => each.approve())).toThrow(/no sub-agent/);
});

test('S590 what waits inside a sub-agent is listed and told once, also after another message', async () => {
  const { top, told, waiting } = openAgents(2);
  const asked = await top.run('go');
  expect(await waiting()).toEqual(['agent2']);
  await expect.poll(() => told).toEqual(['agent2']);
  await top.run('never mind', { sessionId: asked.sessionId });
  expect(await waiting()).toEqual([]);
});

/** The sides on which an agent is called. */
const sides: Record<string, (app: App, agent: Agent) => Promise<Side>> = {
  'in process': async (_, agent) => ({ agent, [Symbol.asyncDispose]: async () => {} }),
  'over HTTP': async (app, agent) => {
    const { url, ...server } = await listen(app);
    return { agent: client({ url, agent: agent.name }) as unknown as Agent, ...server };
  },
};

type App = ReturnType<typeof waymark>;
type Side = AsyncDisposable & { readonly agent: Agent };

/** Agents that call each other, where each call of a sub-agent needs an approval. */
function openHeld(levels: number) {
  const app = waymark({ store: memoryStore(), onError: () => {} });
  const booked: string[] = [];
  const book = app.defineTool(
    { name: 'book', description: 'Books', input: z.object({ city: z.string() }) },
    async ({ city }, { interrupt, resumed }) => {
      if (resumed === undefined) return interrupt({ question: `Book ${city}?` });
      booked.push(city);
      return { booked: city };
    },
  );
  const inner = scriptedModel([
    { toolCalls: [{ name: 'book', input: { city: 'Oslo' } }] },
    'Inner done.',
  ]);
  let top = app.defineAgent({ name: 'agent0', model: inner, tools: [book] }) as unknown as Agent;
  let outer = inner;
  for (let level = 1; level <= levels; level++) {
    const { name } = top;
    outer = scriptedModel([{ toolCalls: [{ name, input: { message: 'go' } }] }, 'All done.']);
    top = app.defineAgent({
      name: `agent${level}`,
      model: outer,
      tools: [agentTool(top)],
      use: [toolApproval([name])],
    }) as unknown as Agent;
  }
  return { app, top, booked, inner, outer };
}

/** What the innermost waiting call has asked. */
function askedBy(request: Interrupt | undefined): unknown {
  return request?.interrupts[0] ? askedBy(request.interrupts[0]) : request?.metadata;
}

describe.each(Object.entries(sides))('S590 an approval of a sub-agent %s', (_, open) => {
  test.each([1, 2])('starts it, through %i levels, and it can wait itself', async (levels) => {
    const { app, top, booked, inner } = openHeld(levels);
    await using side = await open(app, top);
    let output = await side.agent.run('go');
    for (let level = levels - 1; level >= 0; level--) {
      expect(askedBy(output.interrupts[0])).toEqual({
        approval: { tool: `agent${level}`, input: { message: 'go' } },
      });
      expect(inner.requests).toEqual([]);
      output = await side.agent.resume(output, (request) => request.approve());
    }
    expect(askedBy(output.interrupts[0])).toMatchObject({ question: 'Book Oslo?' });
    expect(booked).toEqual([]);
    output = await side.agent.resume(output, (request) => request.approve());
    expect(output).toMatchObject({ finishReason: 'stop', text: 'All done.' });
    expect(booked).toEqual(['Oslo']);
    expect((await top.listInterrupts()).items).toEqual([]);
  });

  test('starts it with another message', async () => {
    const { app, top, inner } = openHeld(1);
    await using side = await open(app, top);
    const asked = await side.agent.run('go');
    await side.agent.resume(asked, (request) =>
      request.approve({ input: { message: 'to Bergen' } }),
    );
    expect(JSON.stringify(inner.requests[0]?.messages)).toContain('to Bergen');
  });

  test.each<[string, Answer, string]>([
    [
      'declined',
      (request) => request.decline('Too far.'),
      'The user declined. The reason: Too far.',
    ],
    [
      'refused by a value',
      (request) => request.approve({ resumed: { approved: false, reason: 'Too far.' } }),
      'The user did not approve tool \\"agent0\\". The reason: Too far.',
    ],
    ['answered', (request) => request.respond('Closed today.'), 'Closed today.'],
  ])('is %s: the sub-agent does not start', async (_how, answer, said) => {
    const { app, top, inner, outer } = openHeld(1);
    await using side = await open(app, top);
    const output = await side.agent.resume(await side.agent.run('go'), answer);
    expect(output).toMatchObject({ finishReason: 'stop', text: 'All done.' });
    expect(inner.requests).toEqual([]);
    expect(JSON.stringify(outer.requests[1]?.messages)).toContain(said);
  });
});

/** A custom agent that waits in its handler, below an agent over a prompt. */
function openGate() {
  const app = waymark({ store: memoryStore(), onError: () => {} });
  const review = { name: 'review', ref: 'r1', input: { page: 1 } };
  const gate = app.defineCustomAgent({ name: 'gate' }, (session) =>
    session.run(async ({ resume }) => {
      if (resume === undefined) {
        const asked = { toolRequest: review, metadata: { interrupt: { question: 'Good?' } } };
        session.addMessages({ role: 'model', content: [asked] });
        return;
      }
      const { output } = resume.respond?.[0]?.toolResponse ?? {};
      session.addMessages(
        { role: 'tool', content: [{ toolResponse: { name: 'review', ref: 'r1', output } }] },
        { role: 'model', content: [{ text: `The review says ${String(output)}.` }] },
      );
    }),
  );
  const model = scriptedModel([
    { toolCalls: [{ name: 'gate', input: { message: 'go' } }] },
    'All done.',
  ]);
  const top = app.defineAgent({ name: 'top', model, tools: [agentTool(gate)] });
  return { app, top: top as unknown as Agent, model, review };
}

/** A custom agent that passes its answers on to an agent over a prompt, below another agent over a prompt. */
function openPassing() {
  const { app, top: inner, booked } = openAgents(0);
  const tools = [agentTool(inner)];
  const own = scriptedModel([
    { toolCalls: [{ name: 'agent0', ref: 'a0', input: { message: 'go' } }] },
    'Passed on.',
  ]);
  const gate = app.defineCustomAgent({ name: 'gate' }, (session) =>
    session.run(async ({ resume }, { signal }) => {
      const { messages } = await app.generate({
        model: own,
        messages: session.messages,
        tools,
        signal,
        ...(resume && { resume }),
      });
      session.addMessages(...messages);
    }),
  );
  const model = scriptedModel([
    { toolCalls: [{ name: 'gate', input: { message: 'go' } }] },
    'All done.',
  ]);
  const top = app.defineAgent({ name: 'top', model, tools: [agentTool(gate)] });
  return { app, top: top as unknown as Agent, booked };
}

describe.each(Object.entries(sides))('S590 a wrong answer to a custom sub-agent %s', (_, open) => {
  test('leaves its interrupt open', async () => {
    const { app, top, model, review } = openGate();
    await using side = await open(app, top);
    const asked = await side.agent.run('go');
    const wrong = [
      { respond: [{ toolResponse: { name: 'review', ref: 'WRONG' } }] },
      { respond: [{ toolResponse: { name: 'review' } }] },
      { respond: [{ toolResponse: { name: 'other', ref: 'r1' } }] },
      { respond: [] },
      { restart: [{ toolRequest: { ...review, input: { page: 2 } } }] },
    ];
    for (const resumed of wrong) {
      await expect(
        side.agent.resume(asked, (request) => request.approve({ resumed })),
      ).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    }
    const done = await side.agent.resume(asked, (request) => request.respond('yes'));
    expect(done).toMatchObject({ finishReason: 'stop', text: 'All done.' });
    expect(JSON.stringify(model.requests[1]?.messages)).toContain('The review says yes.');
  });

  test('leaves open what waits in an agent below it', async () => {
    const { app, top, booked } = openPassing();
    await using side = await open(app, top);
    const asked = await side.agent.run('go');
    const [waiting] = asked.interrupts[0]?.interrupts ?? [];
    const { toolRequest } = waiting?.request ?? {};
    const respond = [{ toolResponse: { name: 'book', ref: 'WRONG' } }];
    const resumed = { restart: [{ toolRequest, metadata: { resumed: { respond } } }] };
    await expect(
      side.agent.resume(asked, (request) => request.approve({ resumed: resumed as never })),
    ).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    const done = await side.agent.resume(asked, (request) => request.approve());
    expect(done).toMatchObject({ finishReason: 'stop', text: 'All done.' });
    expect(booked).toEqual([{ city: 'Oslo', resumed: true }]);
  });
});
