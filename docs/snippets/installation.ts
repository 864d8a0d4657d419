import assert from 'node:assert/strict';
import { fallback, retry } from 'waymark';

// #region providers

import { anthropic } from '@ai-sdk/anthropic';
import { google } from '@ai-sdk/google';
import { createOpenAI, openai } from '@ai-sdk/openai';

const gpt = openai('gpt-5'); // OPENAI_API_KEY
const claude = anthropic('claude-sonnet-4-5'); // ANTHROPIC_API_KEY
const gemini = google('gemini-2.5-flash'); // GOOGLE_GENERATIVE_AI_API_KEY
// #endregion

// #region local
const ollama = createOpenAI({ baseURL: 'http://127.0.0.1:11434/v1', apiKey: 'none' });
const local = ollama.chat('llama3.2'); // uses the Chat Completions API
// #endregion

// #region use
const app = waymark({ model: gpt, store: memoryStore() }); // the app's default
app.defineAgent({ name: 'chat', system: 'Be brief.' });
app.defineAgent({ name: 'planner', model: claude }); // for one agent
app.defineAgent({
  name: 'steady',
  use: [retry({ attempts: 3 }), fallback([gemini, local])], // when the provider fails
});

// #endregion

// #region offline

import { memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';

const script = scriptedModel({
  patterns: [[/^hi\b/i, 'Hello.']],
  otherwise: 'I only know my script.', // the reply to every other message
});
const offline = waymark({ model: script, store: memoryStore() });
const chat = offline.defineAgent({ name: 'chat' });

const hello = await chat.run('Hi');
console.log(hello.text); // Hello.
const next = await chat.run('What else?', { sessionId: hello.sessionId });
console.log(next.text); // I only know my script.
// #endregion
assert.equal(hello.text, 'Hello.');
assert.equal(next.text, 'I only know my script.');
await app.close();
await offline.close();
