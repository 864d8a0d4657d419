import assert from 'node:assert/strict';
import { memoryStore, textOf, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const store = memoryStore();
const model = scriptedModel({
  patterns: [
    [/tea/, { toolCalls: [{ name: 'remember', input: { text: 'Prefers tea', topic: 'drinks' } }] }],
  ],
  otherwise: 'Tea, as always?',
  afterTools: () => 'I will remember that.',
});

// #region define
const app = waymark({ model, store });

const facts = app.defineMemory({
  name: 'facts',
  schema: z.object({ text: z.string(), topic: z.string().optional() }),
  scope: 'owner',
  description: 'Remember lasting facts about the user, one per entry.',
});
const assistant = app.defineAgent({ name: 'assistant', memory: facts });

const first = await assistant.run('I prefer tea.', { owner: 'ada' });
await assistant.run('What can I get you?', { owner: 'ada' }); // another session
// #endregion
assert.match(JSON.stringify(model.requests.at(-1)?.messages[0]), /Prefers tea/);

// #region calls
const [hit] = await facts.search('tea', { owner: 'ada' });
console.log(hit?.value.text, hit?.score, hit?.source?.sessionId);

const { id } = await facts.add({ text: 'Works in Lisbon' }, { owner: 'ada' });
await facts.update(id, { text: 'Works in Porto' }, { owner: 'ada' });
const versions = await facts.history(id, { owner: 'ada' }); // oldest first
const { items } = await facts.list({ owner: 'ada' }); // newest first
await facts.forget(id, { owner: 'ada' }); // deletes the entry for good
// #endregion
assert.equal(hit?.source?.sessionId, first.sessionId);
assert.equal(versions.length, 2);
assert.equal(items.length, 2);

// #region as-of
await facts.add({ text: 'Has a dog' }, { owner: 'ada' });
const then = await facts.list({ owner: 'ada', asOf: first }); // without the dog
// #endregion
assert.deepEqual(
  then.items.map(({ value }) => value.text),
  ['Prefers tea'],
);

// #region delete
await assistant.deleteSession(first.sessionId, { owner: 'ada' }); // and what came from it
await facts.prune({ owner: 'ada', olderThan: 365 * 86_400_000, keepLast: 1_000 });
await store.maintenance?.eraseOwner('ada');
// #endregion
assert.deepEqual((await facts.list({ owner: 'ada' })).items, []);

// #region shared
const handbook = app.defineMemory({
  name: 'handbook',
  schema: z.object({ text: z.string() }),
  scope: 'app',
  canWrite: (context) => context.role === 'editor',
});
const helper = app.defineAgent({ name: 'helper', memory: handbook });
// #endregion
assert.equal(helper.name, 'helper');

async function embedTexts(texts: readonly string[]): Promise<number[][]> {
  return texts.map((text) => [text.length, 1]);
}
// #region embed
const notes = app.defineMemory({
  name: 'notes',
  schema: z.object({ text: z.string() }),
  embed: embedTexts, // or a model: openai.embedding('text-embedding-3-small')
});
// #endregion
assert.equal(notes.name, 'notes');

// #region extract
const habits = app.defineMemory({
  name: 'habits',
  schema: z.object({ text: z.string() }),
  extract: ({ messages, known }) =>
    messages
      .filter(({ role }) => role === 'user')
      .map((message) => ({ text: textOf(message) }))
      .filter(({ text }) => /always|never/.test(text))
      .filter(({ text }) => !known.some(({ value }) => value.text === text)),
});
// #endregion
assert.equal(habits.name, 'habits');

// #region client
const listed = await assistant.memory.list({ owner: 'ada', query: 'tea' });
const added = await assistant.memory.add({ text: 'Prefers tea' }, { owner: 'ada' });
// #endregion
assert.equal(listed.items.length, 0);
assert.equal(added.createdAt.length, 24);
