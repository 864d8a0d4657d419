import { afterAll, expect, test } from 'vitest';
import { bundleWorker, startWorker } from './cloudflare/start.ts';

/** More databases than there are tests. */
const databases = Array.from({ length: 700 }, (_, at) => `DB${at}`);
const worker = await startWorker(await bundleWorker('d1-suites.ts'), {
  unsafeEvalBinding: 'EVAL',
  d1Databases: databases,
});
afterAll(() => worker.dispose());

const names = (await (await fetch(worker.url)).json()) as readonly string[];

test('the suites are there', () => expect(names.length).toBeGreaterThan(300));

for (const [at, name] of names.entries()) {
  test(name, async ({ skip }) => {
    const response = await fetch(`${worker.url}/?at=${at}`, {
      // workerd may close a connection that has been idle.
      headers: { connection: 'close' },
    });
    const { result, error = '' } = (await response.json()) as Answer;
    if (result === 'skipped') skip();
    if (result !== 'passed') expect.fail(error);
  });
}

interface Answer {
  readonly result: string;
  readonly error?: string;
}
