import { expect } from 'vitest';
import type { SnapshotRef } from '../../api/turn-values.ts';
import type { Stage } from './stage.ts';

/** Expects every call that takes a snapshot or a session to take an output, a snapshot or an id. */
export async function expectRefs({ agent }: Stage): Promise<void> {
  const output = await agent.run('one');
  const { snapshotId = '', sessionId } = output;
  const snapshot = (await agent.getSnapshot(snapshotId)) ?? expect.fail('no snapshot');
  const ofSnapshot: Record<string, (ref: SnapshotRef) => Promise<unknown>> = {
    getSnapshot: (ref) => agent.getSnapshot(ref),
    wait: (ref) => agent.wait(ref),
    watch: async (ref) => {
      for await (const event of agent.watch(ref)) if (event.type === 'end') return event.snapshot;
      return undefined;
    },
    restore: (ref) => agent.restore(ref),
    planUndo: (ref) => agent.planUndo(ref),
    'restore with undo': (ref) => agent.restore(ref, { undo: true }),
    label: (ref) => agent.label(ref, 'kept'),
    fork: async (ref) => (await agent.fork(ref)).stateHash === snapshot.stateHash && snapshot,
    'diff from': async (ref) => ({ snapshotId: (await agent.diff(ref, snapshotId)).from }),
    'diff to': async (ref) => ({ snapshotId: (await agent.diff(snapshotId, ref)).to }),
    attach: async (ref) => ({ snapshotId: agent.attach(ref).id }),
    abort: async (ref) => ({ ...snapshot, status: await agent.abort(ref) }),
  };
  for (const [name, call] of Object.entries(ofSnapshot)) {
    for (const ref of [snapshotId, output, snapshot]) {
      expect(await call(ref), name).toMatchObject({ snapshotId });
    }
  }
  const session = (await agent.getSession(output)) ?? expect.fail('no session');
  expect(session).toMatchObject({ sessionId, headId: snapshotId });
  for (const ref of [sessionId, output, snapshot, session]) {
    expect(await agent.getSession(ref)).toMatchObject({ sessionId, state: session.state });
    expect((await agent.listSnapshots(ref)).items).toHaveLength(1);
    expect(await agent.updateSession(ref, { title: 'Kept' })).toMatchObject({ sessionId });
  }
  await expectSessionNamed({ agent }, sessionId, snapshotId);
  expect(await agent.deleteSession(output)).toBe(true);
  expect(await agent.getSession(output)).toBeUndefined();
}

/** A call that takes a snapshot and gets the id of a session says so, and names the head. */
async function expectSessionNamed(
  { agent }: Pick<Stage, 'agent'>,
  sessionId: string,
  headId: string,
): Promise<void> {
  const calls: Record<string, () => Promise<unknown>> = {
    restore: () => agent.restore(sessionId),
    planUndo: () => agent.planUndo(sessionId),
    fork: () => agent.fork(sessionId),
    label: () => agent.label(sessionId, 'l'),
    edit: () => agent.edit(sessionId, { removeArtifacts: [] }),
    diff: () => agent.diff(headId, sessionId),
    run: () => agent.run('two', { from: sessionId }),
  };
  for (const [name, call] of Object.entries(calls)) {
    await expect(call(), name).rejects.toMatchObject({
      status: 'NOT_FOUND',
      message: `"${sessionId}" is the id of a session, not of a snapshot. Its head is "${headId}".`,
    });
  }
}
