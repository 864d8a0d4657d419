import {
  type App,
  agentTool,
  memoryStore,
  type Transform,
  WaymarkError,
  waymark,
} from '../../src/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { memoryWorkspace, workspaceTools } from '../../src/workspace/index.ts';
import { testWebhooks } from './kit.ts';

/** A text that the agents put everywhere, and that must not leave. */
export const canary = 'canaryk7f3q91zx2';

/** What the transforms below leave in its place. */
export const mask = '(hidden)';

/** A value without the canary, wherever it is in it. */
function redact<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value).replaceAll(canary, mask)) as Value;
}

// The content of a file does not pass the state, so its artifact is removed.
const state: Transform['state'] = (whole) =>
  redact({ ...whole, artifacts: whole.artifacts?.filter(({ name }) => name !== 'file.txt') ?? [] });

const chunk: Transform['chunk'] = (given) =>
  given.artifact?.name === 'file.txt' ? undefined : redact(given);

/** Transforms that redact: as they were written before there were hooks for the rest, and with all hooks. */
export const transforms: Readonly<Record<'old' | 'complete', Transform>> = {
  old: { state, chunk },
  complete: { state, chunk, output: redact, title: redact, error: redact },
};

const object = (properties: object) => ({ type: 'object', properties }) as const;

/** An app whose agents put the canary into everything that they can. */
export function createCanaryApp(transform: Transform): App {
  const model = scriptedModel({
    patterns: [
      [
        /^everything/,
        {
          reasoning: `Hm, ${canary}.`,
          text: `I look for ${canary}.`,
          parts: [{ data: { canary } }, { custom: { canary } }],
          toolCalls: [
            { name: 'spill', input: { text: canary } },
            { name: 'inner', input: { message: 'tell' } },
            { name: 'broken', input: { text: canary } },
          ],
        },
      ],
      [/^tell/, `It is ${canary}.`],
      [/^ask/, { text: canary, toolCalls: [{ name: 'confirm', input: { text: canary } }] }],
      [/^question/, { toolCalls: [{ name: 'question', input: { text: canary } }] }],
      [
        /^fail/,
        {
          text: canary,
          error: new WaymarkError('RESOURCE_EXHAUSTED', `No more ${canary}.`, {
            details: { canary, list: [canary] },
          }),
        },
      ],
      [
        /^write/,
        {
          toolCalls: [
            { name: 'write', input: { path: 'notes.txt', content: `Of ${canary}\n` } },
            { name: 'write', input: { path: `${canary}.txt`, content: 'x' } },
            { name: 'remember', input: { text: `About ${canary}` } },
          ],
        },
      ],
      [/^bad/, `This is no JSON: ${canary}`],
      [/^hang/, { chunks: [`Wait for ${canary}`, '.'], hang: true }],
    ],
    afterTools: () => JSON.stringify({ answer: canary }),
    otherwise: JSON.stringify({ answer: canary }),
  });
  const app = waymark({
    model,
    store: memoryStore(),
    onError: () => {},
    webhooks: testWebhooks,
  });
  const spill = app.defineTool(
    { name: 'spill', description: 'Spills', input: object({ text: { type: 'string' } }) },
    async (_, { session, stream }) => {
      await stream({ canary });
      session.updateCustom((custom) => {
        (custom as { secret?: string }).secret = canary;
      });
      session.addArtifacts({ name: 'notes.md', parts: [{ text: canary }], metadata: { canary } });
      await session.saveFile({
        name: 'file.txt',
        data: new TextEncoder().encode(canary),
        contentType: 'text/plain',
      });
      return { found: canary };
    },
  );
  const broken = app.defineTool(
    { name: 'broken', description: 'Fails', input: object({ text: { type: 'string' } }) },
    () => {
      throw new WaymarkError('UNAVAILABLE', `Cannot reach ${canary}.`, { details: { canary } });
    },
  );
  const confirm = app.defineTool(
    { name: 'confirm', description: 'Asks', input: object({ text: { type: 'string' } }) },
    (_, { interrupt, resumed }) => {
      if (resumed === undefined) interrupt({ canary });
      return { canary };
    },
  );
  const question = app.defineInterrupt({
    name: 'question',
    description: 'Asks the user',
    input: object({ text: { type: 'string' } }),
  });
  const inner = app.defineAgent({ name: 'inner', description: 'Tells' });
  const memory = app.defineMemory({ name: 'facts', schema: object({ text: { type: 'string' } }) });
  const options = {
    initialState: { secret: canary },
    title: () => `About ${canary}`,
    transform,
  };
  app.defineAgent({
    ...options,
    name: 'chat',
    tools: [spill, broken, confirm, question, agentTool(inner)],
    output: { schema: object({ answer: { type: 'string' } }) },
  });
  app.defineAgent({
    ...options,
    name: 'files',
    memory,
    workspace: memoryWorkspace({ files: { 'plain.txt': 'x' } }),
    tools: [workspaceTools()],
  });
  app.defineAgent({
    ...options,
    name: 'held',
    store: false,
    clientState: { secret: 'a secret of thirty-two characters' },
    output: { schema: object({ answer: { type: 'string' } }) },
  });
  app.defineCustomAgent(
    { ...options, name: 'custom', description: 'Its output is not in its message' },
    async (session, { respond }) => {
      await session.run(async () => {
        await respond.status({ canary });
        await respond.modelChunk({ role: 'model', content: [{ text: canary }] });
        const { found } = await session.step('look', () => ({ found: canary }));
        session.addMessages({ role: 'model', content: [{ text: found }] });
        return { output: { canary } };
      });
      return { output: { canary, of: 'handler' } };
    },
  );
  return app;
}

/** Forms of the canary that would show in a response: as text, and within base64, wherever it begins there. */
const forms: readonly string[] = [
  canary,
  ...[0, 1, 2].map((before) =>
    Buffer.from('\0'.repeat(before) + canary)
      .toString('base64')
      .slice(before === 0 ? 0 : before + 1)
      .slice(0, -4),
  ),
];

/** The surroundings of the canary in a text; `undefined` if it is not there. */
export function leakIn(text: string): string | undefined {
  for (const form of forms) {
    const at = text.indexOf(form);
    if (at >= 0) return text.slice(Math.max(0, at - 200), at + 60);
  }
  return undefined;
}
