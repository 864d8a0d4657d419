import { expect } from 'vitest';
import type { ContractAgent } from './stage.ts';

/** What a caller without types may pass for an id. */
const notIds: readonly unknown[] = [undefined, null, 7, {}, ['a']];

/** What no event has for an id. */
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

/** Expects a watcher that names no event to be refused with one text, whatever is wrong. */
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

/** Expects every call of an agent that takes an id to refuse what is not a string. */
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
    fork: (id) => agent.fork(id),
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
  // Absent ids of an init are no ids; null and the like are bad ones.
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
