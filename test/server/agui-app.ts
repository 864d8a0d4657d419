import { type App, agentTool, memoryStore, toolApproval, waymark } from '../../src/index.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';

/** A model that does what the user's message says. */
function model(): ReturnType<typeof scriptedModel> {
  let calls = 0;
  const call = (name: string, input: object = {}) => ({
    toolCalls: [{ name, ref: `call-${++calls}`, input: input as never }],
  });
  return scriptedModel({
    patterns: [
      [/^hang/, { chunks: ['It ', 'hangs'], hang: true }],
      [/fail$/, { text: 'Before', error: new Error('secret of the model') }],
      [/^think/, { reasoning: 'Hm.', chunks: ['Thought', ' well.'] }],
      [/^weather in (\w+)/, ([, city]) => ({ text: 'Let me look.', ...call('weather', { city }) })],
      [/^note (\w+)/, ([, text]) => call('note', { text })],
      [/^map of (\w+)/, ([, city]) => call('show_map', { city })],
      [
        /^delete it and map/,
        () => ({
          toolCalls: [
            ...call('delete', { file: 'b' }).toolCalls,
            ...call('show_map', { city: 'Rome' }).toolCalls,
          ],
        }),
      ],
      [/^delete (\w+)/, ([, file]) => call('delete', { file })],
      [/^ask me/, () => call('question', { text: 'Which colour?' })],
      [/^research (\w+)/, ([, topic]) => call('researcher', { message: `weather in ${topic}` })],
    ],
    otherwise: ({ messages }) => {
      const said = messages.filter(({ role }) => role === 'user');
      return { chunks: ['You said ', `${said.length} things.`] };
    },
  });
}

/** An app with an agent for everything that AG-UI carries. */
export function createAguiApp({ store = memoryStore() }: { readonly store?: Store } = {}): App {
  const app = waymark({ model: model(), store, claimTtl: 60_000, onError: () => {} });
  const object = (properties: object) => ({ type: 'object', properties }) as const;
  const weather = app.defineTool(
    {
      name: 'weather',
      description: 'The weather of a city',
      input: object({ city: { type: 'string' } }),
    },
    async (input) => `Sunny in ${(input as { city: string }).city}`,
  );
  const note = app.defineTool(
    { name: 'note', description: 'Takes a note', input: object({ text: { type: 'string' } }) },
    async (input, { session }) => {
      const { text } = input as { text: string };
      session.updateCustom((custom) => {
        (custom as { notes: string[] }).notes.push(text);
      });
      session.updateCustom((custom) => {
        (custom as { last?: string }).last = text;
      });
      session.addArtifacts({ name: 'notes.md', parts: [{ text: `# ${text}` }] });
      return { noted: text };
    },
  );
  const remove = app.defineTool(
    { name: 'delete', description: 'Deletes a file', input: object({ file: { type: 'string' } }) },
    async (input) => `deleted ${(input as { file: string }).file}`,
  );
  const question = app.defineInterrupt({
    name: 'question',
    description: 'Asks the user',
    input: object({ text: { type: 'string' } }),
    output: { type: 'string' },
  });
  const researcher = app.defineAgent({
    name: 'researcher',
    description: 'Looks things up',
    tools: [weather],
  });
  app.defineAgent({
    name: 'chat',
    description: 'Does what it is told',
    state: object({ notes: { type: 'array' }, last: { type: 'string' } }),
    initialState: { notes: [] },
    tools: [weather, note, remove, question, agentTool(researcher)],
    use: [toolApproval(['delete'])],
  });
  app.defineAgent({ name: 'held', description: 'Has no store', store: false });
  return app;
}

/** A tool of the page. */
export const showMap = {
  name: 'show_map',
  description: 'Shows a map on the page',
  parameters: object({ city: { type: 'string' } }),
};

function object(properties: object): { readonly type: 'object'; readonly properties: object } {
  return { type: 'object', properties };
}
