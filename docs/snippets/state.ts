import assert from 'node:assert/strict';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({
  patterns: [
    [/add (\w+)/, ([, item = 'tea']) => ({ toolCalls: [{ name: 'add_item', input: { item } }] })],
  ],
  afterTools: () => 'Added.',
  otherwise: 'Hello.',
});

// #region define

import { memoryStore, waymark } from 'waymark';
import { z } from 'zod';

const cart = z.object({ items: z.array(z.string()) });

const app = waymark({ model, store: memoryStore() });
const addItem = app.defineTool(
  {
    name: 'add_item',
    description: 'Adds to the cart',
    input: z.object({ item: z.string() }),
    state: cart,
  },
  ({ item }, { session }) => {
    session.updateCustom((draft) => {
      draft.items.push(item);
    });
    session.addArtifacts({
      name: 'receipt.txt',
      parts: [{ text: session.custom.items.join('\n') }],
    });
    return session.custom.items.length;
  },
);

const shop = app.defineAgent({
  name: 'shop',
  tools: [addItem],
  state: cart,
  initialState: { items: [] },
});
// #endregion

// #region patches
const { stream, output } = shop.stream('add tea');
for await (const { customPatch, artifact } of stream) {
  if (customPatch) console.log(customPatch);
  if (artifact) console.log(artifact.name);
}
// [{ op: 'replace', path: '', value: { items: ['tea'] } }]     the first patch of a turn replaces the whole document
// receipt.txt
// #endregion
const first = await output;
assert.deepEqual(first.artifacts, [{ name: 'receipt.txt', parts: [{ text: 'tea' }] }]);

// #region read
const session = await shop.getSession(first); // an output, a snapshot or a session id
session?.state?.custom?.items; // string[]
// #endregion
assert.deepEqual(session?.state?.custom, { items: ['tea'] });

const video = new Blob(['the frames of a video'], { type: 'video/mp4' });
// #region files
const studio = app.defineCustomAgent({ name: 'studio' }, async (session) => {
  await session.run(async () => {
    await session.saveFile({
      name: 'clip.mp4',
      contentType: 'video/mp4',
      data: video.stream(), // such as the body of a `fetch` response
    });
  });
});

const made = await studio.run('make a clip');
const { stream: frames, size } = await studio.openFile(made, 'clip.mp4');
await new Response(frames).bytes(); // or pipe it: nothing is read before it is asked for
// #endregion
assert.equal(size, 21);

// #region client
const stateless = app.defineAgent({
  name: 'stateless',
  store: false,
  clientState: {
    secret: process.env.STATE_SECRET ?? '32 bytes or more, in real life from the environment',
    maxAge: 24 * 60 * 60 * 1000, // optional: reject states that are older than a day
    bindOwner: true, // optional: accept a state only from the owner it was issued to
  },
});

const { state = {} } = await stateless.run('hello');
// Send the state back to continue. It is signed: a modified state is PERMISSION_DENIED.
const again = await stateless.run('and again', { state });
// #endregion
assert.equal(again.state?.messages?.length, 4);
const forged = { ...again.state, messages: [] };
await assert.rejects(stateless.run('trust me', { state: forged }), {
  status: 'PERMISSION_DENIED',
});

// #region transform
app.defineAgent({
  name: 'private',
  transform: {
    state: ({ custom: _, ...rest }) => rest, // the custom state stays on the server
    chunk: (chunk) => (chunk.status === undefined ? chunk : undefined),
    title: (title) => title, // without this hook, no titles are sent
  },
});
// #endregion

// #region redact
const redact = (text: string): string => text.replaceAll(/\b(?:\d{4} ?){4}\b/g, '****');
const redactAll = <Value>(value: Value): Value => JSON.parse(redact(JSON.stringify(value)));

app.defineAgent({
  name: 'cards',
  transform: {
    state: redactAll, // messages, custom state and artifacts, wherever they are read
    chunk: redactAll, // what is streamed
    output: redactAll, // structured outputs
    title: redact,
    error: redactAll, // the message and details of failed turns
  },
});
// #endregion

// #region upgrade
app.defineAgent({
  name: 'grown',
  state: z.object({ items: z.array(z.object({ name: z.string(), count: z.number() })) }),
  // Sessions of an earlier version stored only names.
  upgradeState: (old) => ({
    items: cart.parse(old).items.map((name) => ({ name, count: 1 })),
  }),
});
// #endregion
await app.close();
