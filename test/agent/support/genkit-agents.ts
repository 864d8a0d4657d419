import type { Message, Part } from 'waymark';
import { type Agent, type App, memoryStore, WaymarkError, waymark } from 'waymark';
import { z } from 'zod';
import type { Chunk, Input } from '../../../src/protocol/turn.ts';
import { toGenkitChunk, toGenkitStatus } from '../../../src/server/genkit/shapes.ts';

/** One answer of the model: a text, its tool calls, or the chunks of a text. */
export type ModelAnswer =
  | string
  | { readonly chunks: readonly string[] }
  | { readonly calls: readonly (readonly [name: string, ref: string, input: object])[] };

/** What came of one connection: its chunks and output, or the status with which it was refused. */
export interface Sent {
  readonly chunks: readonly Record<string, unknown>[];
  readonly output?: Awaited<ReturnType<Agent['run']>>;
  readonly refused?: string;
}

/** The agents that Genkit's behaviour spec asks its implementations for, and the calls it makes on them. */
export function genkitAgents(): {
  readonly app: App;
  readonly agent: (name: string) => Agent;
  readonly send: (
    name: string,
    inputs: readonly Input[],
    more?: { readonly init?: object; readonly answers?: readonly ModelAnswer[] },
  ) => Promise<Sent>;
  readonly statusOf: (name: string, snapshotId: string) => Promise<string | undefined>;
} {
  const script: ModelAnswer[] = [];
  const app = waymark({ store: memoryStore(), onError: () => {} });
  const model = app.defineModel({ name: 'programmable' }, async (_, call) => {
    const answer = script.shift() ?? '';
    if (typeof answer === 'object' && 'chunks' in answer) {
      for (const text of answer.chunks) await call.stream({ content: [{ text }] });
    }
    return { message: { role: 'model', content: partsOf(answer) }, finishReason: 'stop' };
  });
  const testTool = app.defineTool(
    { name: 'testTool', description: 'A tool', input: z.object({}) },
    async () => 'tool called',
  );
  const interruptTool = app.defineInterrupt({
    name: 'interruptTool',
    description: 'Asks',
    input: z.object({ query: z.string() }),
    output: z.object({ answer: z.string() }),
  });
  const restartTool = app.defineTool(
    { name: 'restartTool', description: 'Confirms', input: z.object({ action: z.string() }) },
    async ({ action }, { interrupt, resumed }) => {
      if (resumed === undefined) interrupt({ confirm: action });
      return { result: action };
    },
  );
  app.defineAgent({ name: 'promptAgent', model, store: false });
  app.defineAgent({ name: 'promptAgentWithStore', model });
  app.defineAgent({ name: 'promptAgentWithTools', model, store: false, tools: [testTool] });
  app.defineAgent({ name: 'promptAgentWithInterrupt', model, tools: [interruptTool] });
  app.defineAgent({ name: 'promptAgentWithRestartTool', model, tools: [restartTool] });
  defineCustomAgents(app);
  const agent = (name: string): Agent => app.agent(name) as Agent;
  return {
    app,
    agent,
    async send(name, inputs, { init = {}, answers = [] } = {}) {
      script.push(...answers);
      const streams = answers.some((each) => typeof each === 'object' && 'chunks' in each);
      const chunks: Record<string, unknown>[] = [];
      const connection = agent(name).streamBidi(init);
      try {
        for (const input of inputs) await connection.send(input);
        connection.close();
        for await (const chunk of connection.receive()) {
          const shown = toGenkitChunk(chunk as Chunk);
          // Waymark also streams the answers of models that do not stream.
          const isWhole = chunk.modelChunk?.role === 'model' && !streams;
          if (shown && !isWhole) chunks.push(shown as Record<string, unknown>);
        }
        return { chunks, output: await connection.output() };
      } catch (error) {
        return { chunks, refused: (error as WaymarkError).status };
      }
    },
    async statusOf(name, snapshotId) {
      const { status } = (await agent(name).getSnapshot(snapshotId)) ?? {};
      return status && toGenkitStatus(status);
    },
  };
}

function partsOf(answer: ModelAnswer): Part[] {
  if (typeof answer === 'string') return [{ text: answer }];
  if ('chunks' in answer) return [{ text: answer.chunks.join('') }];
  return answer.calls.map(([name, ref, input]) => ({
    toolRequest: { name, ref, input: input as never },
  }));
}

const done: { message: Message } = { message: { role: 'model', content: [{ text: 'done' }] } };

function defineCustomAgents(app: App): void {
  const counter = z.object({ counter: z.number(), status: z.string().optional() });
  app.defineCustomAgent({ name: 'customAgentBlocking' }, (session) =>
    session.run(async (_, { signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    }),
  );
  app.defineCustomAgent({ name: 'customAgentFailing' }, (session) =>
    session.run(async () => {
      // The text of an error that is not a WaymarkError is never stored.
      throw new WaymarkError('INTERNAL', 'intentional failure');
    }),
  );
  app.defineCustomAgent({ name: 'customAgentWithArtifacts', store: false }, async (session) => {
    await session.run(async () => {
      for (const [name, text] of [
        ['doc1', 'v1'],
        ['doc1', 'v2'],
        ['doc2', 'other'],
      ] as const) {
        session.addArtifacts({ name, parts: [{ text }] });
      }
    });
    return { ...done, artifacts: [...session.artifacts] };
  });
  app.defineCustomAgent({ name: 'customAgentWithArtifactsStore' }, async (session) => {
    await session.run(async () => {
      const n = session.artifacts.length + 1;
      session.addArtifacts({ name: `doc${n}`, parts: [{ text: `content${n}` }] });
    });
    return { ...done, artifacts: [...session.artifacts] };
  });
  for (const [name, store] of [
    ['customAgentWithCustomState', { store: false }],
    ['customAgentWithCustomStateStore', {}],
  ] as const) {
    app.defineCustomAgent({ name, state: counter, ...store }, async (session) => {
      await session.run(async () => {
        session.setCustom({ counter: (session.custom?.counter ?? 0) + 1 });
      });
      return done;
    });
  }
  app.defineCustomAgent(
    { name: 'customAgentWithMultiCustomState', state: counter, store: false },
    async (session) => {
      await session.run(async () => {
        session.setCustom({ counter: 1, status: 'working' });
        session.setCustom({ counter: 2, status: 'working' });
        session.setCustom({ counter: 2, status: 'done' });
      });
      return done;
    },
  );
}
