import { expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';

test('a snapshot that is read while its turn ends has the input, and not only the state before it', async () => {
  const store = memoryStore();
  const { runs } = store;
  if (runs === undefined) expect.fail('no runs');
  const hold = Promise.withResolvers<void>();
  let ended: (() => Promise<unknown>) | undefined;
  // The turn ends between the read of the snapshot and that of its run.
  const getRun: typeof runs.getRun = async (...args) => {
    const wait = ended;
    ended = undefined;
    await wait?.();
    return await runs.getRun(...args);
  };
  const app = waymark({ store: { ...store, runs: { ...runs, getRun } } });
  const agent = app.defineCustomAgent({ name: 'slow' }, async (session) => {
    await session.run(async () => {
      await hold.promise;
      session.addMessages({ role: 'model', content: [{ text: 'done' }] });
    });
  });
  const run = await agent.start('hello');
  ended = async () => {
    hold.resolve();
    await run.wait();
  };
  const read = await agent.getSnapshot({ snapshotId: run.id });
  expect(read?.state?.messages?.map(({ role }) => role)).toEqual(['user', 'model']);
  await app.close();
});
