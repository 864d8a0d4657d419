import assert from 'node:assert/strict';

// #region hello

import { openai } from '@ai-sdk/openai';
import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';

const app = waymark({ model: openai('gpt-5'), store: sqliteStore('hello.db') });
const chat = app.defineAgent({ name: 'chat', system: 'You plan trips.' });

const answer = await chat.run('Two days in Lisbon');
console.log(answer.text);

// #endregion
assert.notEqual(answer.text, '');
await app.close();
