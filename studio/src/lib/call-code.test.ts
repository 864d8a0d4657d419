import { expect, test } from 'vitest';
import { waymark } from '../../../src/index.ts';
import { literal, toCode } from './call-code.ts';
import type { ModelCall } from './model-calls.ts';

/** Runs code as the body of an async function with an app. */
function run(code: string, app: unknown): Promise<unknown> {
  return new Function('app', `return (async () => { ${code} return message; })();`)(app);
}

test('a literal is the same value again', () => {
  const value = {
    text: 'it\'s "quoted"\nand \\ split \u2028 here',
    'odd key': [1, -2.5, true, null, { deep: [] }, {}],
    list: Array.from({ length: 30 }, (_, n) => `item ${n}`),
  };
  expect(new Function(`return ${literal(value)};`)()).toEqual(value);
});

test('copied code makes the same call again', async () => {
  const asked: unknown[] = [];
  const app = waymark({});
  app.defineModel({ name: 'script' }, async (request) => {
    asked.push(request);
    return { message: { role: 'model', content: [{ text: 'Done.' }] }, finishReason: 'stop' };
  });
  const call: ModelCall = {
    model: 'script',
    request: {
      messages: [
        { role: 'system', content: [{ text: 'Be brief.' }] },
        { role: 'user', content: [{ text: 'Who\'s "there"?' }] },
      ],
      tools: [],
      config: { temperature: 0.3, headers: { authorization: '(not recorded)' } },
    },
  };
  const code = toCode(call);
  expect(code).not.toContain('authorization');
  expect(await run(code, app)).toMatchObject({ role: 'model', content: [{ text: 'Done.' }] });
  expect(asked).toMatchObject([{ messages: call.request.messages, config: { temperature: 0.3 } }]);
  await app.close();
});
