import assert from 'node:assert/strict';
import { memoryStore, textOf, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const model = scriptedModel({ patterns: [], otherwise: 'Hello.' });
const app = waymark({ model, store: memoryStore() });

// #region genkit
const chat = app.defineAgent({
  name: 'chat', // ai.definePrompt and ai.definePromptAgent in one call
  system: 'You are a helpful assistant.',
  state: z.object({ topics: z.array(z.string()) }),
});
const { sessionId } = await chat.run('hello');
// #endregion

// #region langgraph
// thread_id is the session's id, checkpoint_id the snapshot's.
const latest = await chat.getSession(sessionId); // getState
const history = await chat.listSnapshots(sessionId, { includeOrphaned: true }); // getStateHistory
const [first] = history.items;
const replayed = await chat.run('Try again', { ...(first && { from: first }) });
// #endregion
assert.ok(latest && replayed.snapshotId);

// #region ai-sdk
const { text } = await app.generate({ prompt: 'Say hello' }); // generateText
const { stream, response } = app.generateStream({ prompt: 'Say hello' }); // streamText
for await (const chunk of stream) process.stdout.write(chunk.text);
const { message } = await response;
// #endregion
assert.equal(text, 'Hello.');
assert.equal(message && textOf(message), 'Hello.');
await app.close();
