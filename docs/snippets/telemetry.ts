import assert from 'node:assert/strict';
import { type Logger, memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel(['Hello.']);
const store = memoryStore();

// #region content
const app = waymark({
  store,
  model,
  telemetry: { content: true, userId: true },
});
// #endregion
await app.close();

const lines: string[] = [];
const log = (_fields: object, message: string): void => void lines.push(message);
const logger: Logger = { info: log, error: log };

// #region logger
const logged = waymark({ store, model, logger });
// #endregion
await logged.defineAgent({ name: 'chat' }).run('Hi');
await logged.close();
assert.deepEqual(lines, ['turn 0 of chat: stop']);
