import { describe, expect, test } from 'vitest';
import { emptyState, hashState } from '../../session/session-state.ts';
import type { RunEvent } from '../../store/contract/store.ts';
import { exchange, heard, refused, type UseKit } from './kit.ts';

/** Events of an attempt, numbered. */
function events(attempt: number, from: number, to: number): RunEvent[] {
  return Array.from({ length: to - from }, (_, n) => ({
    attempt,
    seq: from + n,
    chunk: { status: { n: from + n, text: 'ä\u0000' } },
  }));
}

/** Past and live events of a run. */
export function eventContract(useKit: UseKit): void {
  describe('events', () => {
    test('are read in order, from any cursor, without gap or repeat', async () => {
      const { claim, events: log, scope } = useKit();
      const held = await claim('s', { mode: 'accepted' });
      const appended = events(1, 0, 10);
      await log.append(held, appended.slice(0, 3));
      await log.append(held, appended.slice(3, 4));
      await log.append(held, []);
      await log.append(held, appended.slice(4));
      const all = await log.read(scope, held.runId, { limit: 100 });
      expect(all).toEqual({ events: appended, ended: false });
      const read: RunEvent[] = [];
      for (;;) {
        const after = read.at(-1);
        const page = await log.read(scope, held.runId, { limit: 3, ...(after && { after }) });
        if (!page?.events.length) break;
        expect(page.events.length).toBeLessThanOrEqual(3);
        read.push(...page.events);
      }
      expect(read).toEqual(appended);
    });

    test('a run without events is known while it is open', async () => {
      const { claim, events: log, scope, id } = useKit();
      const held = await claim('s', { mode: 'accepted' });
      const nothing = { events: [], ended: false };
      expect(await log.read(scope, held.runId, { limit: 10 })).toEqual(nothing);
      expect(await log.read(scope, id(), { limit: 10 })).toBeUndefined();
      expect(await log.read(scope, 'no id', { limit: 10 })).toBeUndefined();
      const other = { ...scope, owner: 'other' };
      expect(await log.read(other, held.runId, { limit: 10 })).toBeUndefined();
      await log.append(held, events(1, 0, 1));
      expect(await log.read(other, held.runId, { limit: 10 })).toBeUndefined();
    });

    test('the last ones come with the end of the run, and `ended` with the last page only', async () => {
      const { claim, commit, events: log, scope, runs } = useKit();
      const held = await claim('s', { mode: 'accepted' });
      const appended = events(1, 0, 5);
      await log.append(held, appended.slice(0, 4));
      await commit(held, { events: appended.slice(4) });
      const first = await log.read(scope, held.runId, { limit: 3 });
      expect(first).toEqual({ events: appended.slice(0, 3), ended: false });
      const after = { attempt: 1, seq: 2 };
      const last = await log.read(scope, held.runId, { after, limit: 3 });
      expect(last).toEqual({ events: appended.slice(3), ended: true });
      const end = { attempt: 1, seq: 4 };
      const none = await log.read(scope, held.runId, { after: end, limit: 3 });
      expect(none).toEqual({ events: [], ended: true });
      const next = await claim('s', { mode: 'accepted' });
      await log.append(next, events(1, 0, 1));
      await runs.release(next, events(1, 1, 2));
      expect(await log.read(scope, next.runId, { limit: 3 })).toEqual({
        events: events(1, 0, 2),
        ended: true,
      });
    });

    test('of a stale attempt are rejected; the next attempt appends after them', async () => {
      const { claim, commit, events: log, scope, runs } = useKit();
      const held = await claim('s', { mode: 'accepted' });
      await log.append(held, events(1, 0, 3));
      await runs.handOver(held);
      const request = { agents: [scope.agent], worker: 'w', ttl: 60_000, limit: 1 };
      const [taken] = await runs.takeOver(request);
      await refused(log.append(held, events(1, 3, 4)), 'ABORTED');
      const next = taken?.claim ?? held;
      await log.append(next, events(2, 0, 2));
      const all = await log.read(scope, held.runId, { limit: 100 });
      expect(all?.events).toEqual([...events(1, 0, 3), ...events(2, 0, 2)]);
      const after = { attempt: 1, seq: 7 };
      const later = await log.read(scope, held.runId, { after, limit: 1 });
      expect(later?.events).toEqual(events(2, 0, 1));
      await commit(next);
      await refused(log.append(next, events(2, 2, 3)), 'ABORTED');
    });

    test('S168: events that come with a checkpoint are there with it, once and in order', async () => {
      const { claim, events: log, scope, runs } = useKit();
      const held = await claim('s', { mode: 'accepted' });
      const state = exchange(emptyState, 'x');
      const write = { state, stateHash: hashState(state), inputsDone: 0, midTurn: true };
      const base = await runs.checkpoint(held, { ...write, events: events(1, 0, 2) });
      const hints = heard((listener) => log.onEvents(held.runId, listener));
      // Some were already written by a flush whose response was lost.
      await log.append(held, events(1, 2, 4));
      await hints.next();
      await runs.checkpoint(held, { ...write, base, events: events(1, 3, 6) });
      await hints.next();
      await runs.checkpoint(held, { ...write, base, events: [] });
      const read = await log.read(scope, held.runId, { limit: 100 });
      expect(read).toEqual({ events: events(1, 0, 6), ended: false });
      const late = { ...write, events: events(1, 6, 7) };
      await refused(runs.checkpoint({ ...held, attempt: 2 }, late), 'ABORTED');
      expect(await log.read(scope, held.runId, { limit: 100 })).toEqual(read);
      hints.leave();
    });

    test('S168: events that come with a detach are there with it', async () => {
      const { claim, events: log, scope, runs } = useKit();
      const held = await claim('s');
      const request = { mode: 'detached', inputs: [] } as const;
      const late = { ...held, attempt: 2 };
      await refused(runs.detach(late, request, undefined, events(1, 0, 1)), 'ABORTED');
      await runs.detach(held, request, undefined, events(1, 0, 3));
      await log.append(held, events(1, 3, 4));
      const read = await log.read(scope, held.runId, { limit: 100 });
      expect(read).toEqual({ events: events(1, 0, 4), ended: false });
    });

    test('a commit that is refused appends nothing', async () => {
      const { claim, commit, events: log, scope } = useKit();
      const held = await claim('s', { mode: 'accepted' });
      await log.append(held, events(1, 0, 1));
      const write = { events: events(1, 1, 2) };
      await refused(commit({ ...held, attempt: 2 }, write), 'ABORTED');
      await refused(commit(held, { ...write, snapshotId: 'no id' }), 'INVALID_ARGUMENT');
      const read = await log.read(scope, held.runId, { limit: 10 });
      expect(read?.events).toEqual(events(1, 0, 1));
    });

    test('a listener is notified of new events and of the end', async () => {
      const { claim, commit, events: log } = useKit();
      const held = await claim('s', { mode: 'accepted' });
      const hints = heard((listener) => log.onEvents(held.runId, listener));
      await log.append(held, events(1, 0, 1));
      await hints.next();
      await commit(held);
      await hints.next();
      hints.leave();
    });
  });
}
