import { describe, expect, test } from 'vitest';
import type { Workspace, WorkspaceFolder } from '../../workspace/contract/contract.ts';
import { contentsOf, fileOf, refused } from './kit.ts';

/** The lock of a folder, for a session that no other test has locked. */
export function lockContract(useWorkspace: () => Workspace): void {
  describe('the lock', () => {
    const open = async (): Promise<WorkspaceFolder> => {
      const workspace = useWorkspace();
      const folder = await workspace.open({ agent: 'a', sessionId: 'lock' });
      // In a shared folder, the lock of the other tests ends.
      if (!workspace.isPerSession)
        await (await folder.lock({ runId: 'test', attempt: 1 })).release();
      return folder;
    };

    test('is needed to change files', async () => {
      const folder = await open();
      const changes = [{ path: 'a', after: fileOf('1') }];
      await refused(folder.apply(changes, contentsOf('1')), 'FAILED_PRECONDITION');
      const lock = await folder.lock({ runId: 'r' });
      await folder.apply(changes, contentsOf('1'));
      await lock.release();
      await refused(folder.apply(changes, contentsOf('1')), 'FAILED_PRECONDITION');
    });

    test('excludes other owners until it is released as often as it was taken', async () => {
      const folder = await open();
      const first = await folder.lock({ runId: 'r' });
      const second = await folder.lock({ runId: 'r' });
      const error = await refused(folder.lock({ runId: 'other' }), 'ABORTED');
      expect(error.details).toEqual({ running: 'r' });
      await first.release();
      await first.release();
      await refused(folder.lock({ runId: 'other' }), 'ABORTED');
      await second.release();
      await (await folder.lock({ runId: 'other' })).release();
    });

    test('can be waited for', async () => {
      const folder = await open();
      const first = await folder.lock({ runId: 'r' });
      const order: string[] = [];
      const waiting = folder.lock({ runId: 'other' }, { wait: true }).then(async (lock) => {
        order.push('other');
        await lock.release();
      });
      const stopped = new AbortController();
      const impatient = folder.lock({ runId: 'third' }, { wait: true, signal: stopped.signal });
      stopped.abort();
      await refused(impatient, 'CANCELLED');
      order.push('first');
      await first.release();
      await waiting;
      expect(order).toEqual(['first', 'other']);
    });

    test('is taken over by a later attempt of the same run, and not by an earlier one', async () => {
      const folder = await open();
      const first = await folder.lock({ runId: 'r', attempt: 1 });
      const second = await folder.lock({ runId: 'r', attempt: 2 });
      expect(first.lost.aborted).toBe(true);
      expect(second.lost.aborted).toBe(false);
      await refused(folder.lock({ runId: 'r', attempt: 1 }), 'ABORTED');
      await refused(folder.lock({ runId: 'r', attempt: 1 }, { wait: true }), 'ABORTED');
      await first.release();
      await refused(folder.lock({ runId: 'other' }), 'ABORTED');
      await second.release();
      await (await folder.lock({ runId: 'other' })).release();
    });
  });
}
