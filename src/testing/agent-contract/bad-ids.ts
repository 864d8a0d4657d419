import { expect } from 'vitest';
import type { ContractAgent } from './stage.ts';

/** Values that an untyped caller may pass as an id. */
const notIds: readonly unknown[] = [undefined, null, 7, {}, ['a']];

/** Values that are not valid event ids. */
const notEventIds: readonly unknown[] = [
  '',
  '1',
  '1.',
  '.1',
  '1.2.3',
  '-1.0',
  '1.-1',
  ' 1.2',
  '1.2 ',
  '1,2',
  '1e3.1',
  '0x1.1',
  '1.1234567890',
  '1234567890.1',
  'a.b',
  null,
  1.42,
  {},
];

/** Expects `watch` to reject every invalid event id with the same message. */
export async function expectCursorsChecked(agent: ContractAgent, id: string): Promise<void> {
  for (const after of notEventIds) {
    const events = agent.watch(id, { after: after as string });
    await expect(
      events[Symbol.asyncIterator]().next(),
      `after ${JSON.stringify(after)}`,
    ).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/ is not the id of an event\. Expected attempt\.sequence/),
    });
  }
}

/** Expects every agent method that takes an id to reject values that are not strings. */
export async function expectIdsChecked(agent: ContractAgent, snapshotId: string): Promise<void> {
  const calls: Record<string, (id: never) => Promise<unknown>> = {
    'getSnapshot snapshotId': (id) => agent.getSnapshot({ snapshotId: id }),
    'getSnapshot sessionId': (id) => agent.getSnapshot({ sessionId: id }),
    'getSnapshot lookup': (lookup) => agent.getSnapshot(lookup),
    listSnapshots: (id) => agent.listSnapshots(id),
    getSession: (id) => agent.getSession(id),
    updateSession: (id) => agent.updateSession(id, {}),
    deleteSession: (id) => agent.deleteSession(id),
    wait: (id) => agent.wait(id),
    watch: (id) => agent.watch(id)[Symbol.asyncIterator]().next(),
    abort: (id) => agent.abort(id),
    retryRun: (id) => agent.retryRun(id),
    restore: (id) => agent.restore(id),
    'restore with undo': (id) => agent.restore(id, { undo: true }),
    planUndo: (id) => agent.planUndo(id),
    fork: (id) => agent.fork(id),
    edit: (id) => agent.edit(id, { custom: {} }),
    listFiles: (id) => agent.listFiles({ snapshotId: id }),
    openFile: (id) => agent.openFile({ snapshotId: id }, 'name'),
    'diff from': (id) => agent.diff(id, snapshotId),
    'diff to': (id) => agent.diff(snapshotId, id),
    label: (id) => agent.label(id, 'l'),
  };
  for (const [name, call] of Object.entries(calls)) {
    for (const bad of notIds) {
      await expect(call(bad as never), `${name}(${JSON.stringify(bad)})`).rejects.toMatchObject({
        name: 'WaymarkError',
        status: 'INVALID_ARGUMENT',
      });
    }
  }
  // Omitted ids of an init are allowed; null and similar values are not.
  for (const bad of notIds.filter((each) => each !== undefined)) {
    const starts: Record<string, object> = {
      'run snapshotId': { snapshotId: bad },
      'run sessionId': { sessionId: bad },
    };
    for (const [name, start] of Object.entries(starts)) {
      const call = agent.run({ message: { role: 'user', content: [{ text: 'hi' }] } }, start);
      await expect(call, `${name} ${JSON.stringify(bad)}`).rejects.toMatchObject({
        status: 'INVALID_ARGUMENT',
      });
    }
    const target = { sessionId: bad as string };
    await expect(agent.fork(snapshotId, target), 'fork to').rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
    });
  }
}
