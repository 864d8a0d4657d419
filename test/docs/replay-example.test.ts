/** The check of docs/replay.md, which is a test itself. */
import { afterAll, beforeAll } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';

const app = waymark({
  store: memoryStore(),
  model: scriptedModel({ patterns: [], otherwise: 'Hello.' }),
});
beforeAll(async () => {
  await app.defineAgent({ name: 'trip', system: 'Plan trips.' }).run('hello');
});
afterAll(() => app.close());

// #region check

import { expect, test } from 'vitest';
import { replay, scriptedModelFrom } from 'waymark/replay';
import 'waymark/replay/vitest';

test('stored sessions are answered as recorded', async () => {
  const report = await replay(app, {
    sessions: { agent: 'trip' },
    with: (session) => ({ model: scriptedModelFrom(session) }),
  });
  expect(report).toMatchRecording({ ignore: ['/custom/updatedAt'] });
});
// #endregion
