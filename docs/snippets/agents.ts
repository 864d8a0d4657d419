import assert from 'node:assert/strict';
import {
  isTurnError,
  lastMessages,
  memoryStore,
  retry,
  textOf,
  tokenBudget,
  toolApproval,
  WaymarkError,
  waymark,
} from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const model = scriptedModel({
  patterns: [[/extract/, '{"city":"Oslo","days":3}']],
  otherwise: 'Good.',
});
const app = waymark({ model, store: memoryStore() });

// #region model
const echo = app.defineModel({ name: 'echo' }, async ({ messages }, { stream }) => {
  const last = messages.at(-1);
  const content = [{ text: `You said: ${last ? textOf(last) : ''}` }];
  await stream({ content });
  return { message: { role: 'model', content }, finishReason: 'stop' };
});

const parrot = app.defineAgent({ name: 'parrot', model: echo });
// #endregion
assert.equal(textOf((await parrot.run('hi')).message ?? { content: [] }), 'You said: hi');

// #region system
app.defineAgent({
  name: 'guide',
  state: z.object({ city: z.string(), likes: z.array(z.string()) }),
  initialState: { city: 'Lisbon', likes: [] },
  // A template that reads the custom state of the session …
  system:
    'You are a guide to {{@state.city}}. The traveller likes {{#each @state.likes}}{{this}} {{/each}}.',
});

app.defineAgent({
  name: 'host',
  state: z.object({ name: z.string() }),
  initialState: { name: 'Ada' },
  // … or a function that gets the state and the caller's context.
  system: ({ state, context }) => `You talk to ${state.name} (${context.language ?? 'en'}).`,
});
// #endregion
await app.agent('guide').run('hi');
assert.match(textOf(model.requests.at(-1)?.messages[0] ?? { content: [] }), /guide to Lisbon/);
await app.agent('host').run('hi', { context: { language: 'pt' } });
assert.match(textOf(model.requests.at(-1)?.messages[0] ?? { content: [] }), /talk to Ada \(pt\)/);

// #region tools
const search = app.defineTool(
  {
    name: 'search',
    description: 'Searches the catalogue',
    input: z.object({ query: z.string() }),
    output: z.array(z.string()),
  },
  async ({ query }, { signal, context, idempotencyKey, stream }) => {
    signal.throwIfAborted();
    await stream({ searching: query }); // sent to clients, not to the model
    return [`${query} for ${context.user ?? 'guest'} (${idempotencyKey.length > 0})`];
  },
);

app.defineAgent({
  name: 'shop',
  tools: [search],
  toolChoice: 'auto',
  maxTurns: 5, // rounds of tool calls (tool iterations) within one turn
  use: [toolApproval(['search']), retry({ attempts: 3 })],
});
// #endregion

// #region output
const extractor = app.defineAgent({
  name: 'extractor',
  output: { schema: z.object({ city: z.string(), days: z.number() }) },
});

const { output } = await extractor.run('extract: three days in Oslo');
output?.city.toUpperCase(); // typed by the schema
// #endregion
assert.deepEqual(output, { city: 'Oslo', days: 3 });

// #region prompt
const review = app.definePrompt({
  name: 'review',
  input: z.object({ language: z.string() }),
  system: 'You review {{language}} code.',
  config: { temperature: 0.2 },
});

app.defineAgent({
  name: 'reviewer',
  prompt: review,
  promptInput: { language: 'TypeScript' }, // validated here, against the prompt's schema
  config: { temperature: 0 }, // overrides the prompt's
});
// #endregion
await app.agent('reviewer').run('hi');
assert.match(textOf(model.requests.at(-1)?.messages[0] ?? { content: [] }), /TypeScript code/);

// #region history
app.defineAgent({ name: 'recent', history: lastMessages(20) });
app.defineAgent({ name: 'frugal', history: tokenBudget({ maxTokens: 8_000 }) });
app.defineAgent({ name: 'summing', compact: { whenTokens: 100_000, keepTokens: 20_000 } });
// #endregion

// #region limits
app.defineAgent({
  name: 'bounded',
  limits: {
    turn: { timeout: 60_000, tokens: 50_000, toolCalls: 20 },
    session: { tokens: 1_000_000 },
  },
});
// #endregion
for (const name of ['recent', 'frugal', 'summing', 'bounded']) {
  assert.equal((await app.agent(name).run('hi')).finishReason, 'stop');
}

// #region connection
const conn = parrot.streamBidi();
await conn.sendText('one');
for await (const chunk of conn.turn()) if (chunk.turnEnd) console.log(chunk.turnEnd.snapshotId);
await conn.sendText('two');
const end = await conn.output(); // closes the input and waits for queued inputs
// #endregion
assert.equal(end.snapshotIds?.length, 2);

// #region chat
const talk = parrot.chat();
await talk.send('one');
await talk.send('two'); // continues the same session
// #endregion
assert.ok(talk.sessionId);
await app.ready();
await app.close();

const captured: unknown[] = [];
const tracker = {
  capture: (error: unknown, { phase }: { readonly phase: string }) => captured.push([error, phase]),
};
// #region errors
const shop = waymark({
  // info: phase, agent, sessionId, runId, turnIndex, and tool or model
  onError: (error, info) => tracker.capture(error, info),
});

const clerk = shop.defineCustomAgent({ name: 'clerk' }, (session) =>
  session.run(() => {
    throw new TypeError('my bug is here');
  }),
);

try {
  await clerk.run('Two pears, please');
} catch (error) {
  if (!isTurnError(error)) throw error;
  console.log(error.status, error.message, error.cause); // INTERNAL my bug is here TypeError: …
  console.log(error.output.snapshotId); // the last good snapshot, if there is one
  console.log(JSON.stringify(error)); // {"status":"INTERNAL","message":"An unexpected error occurred."}
}

// Without try: the output of a failed turn has `error`.
const { error } = await clerk.run('Two pears, please', { throwOnError: false });
// #endregion
assert.ok(error?.cause instanceof TypeError);
assert.deepEqual(captured.at(-1), [error.cause, 'turn']);
assert.ok(!JSON.stringify(error).includes('bug'));

assert.throws(() => readOrders('db-7.internal', new Error('timeout')));
function readOrders(host: string, reason: unknown): never {
  // #region public-message
  throw new WaymarkError('UNAVAILABLE', `No answer from ${host}.`, {
    publicMessage: 'Orders cannot be read right now. Try again.',
    cause: reason,
  });
  // #endregion
}
await shop.close();
