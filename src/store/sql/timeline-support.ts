import type { TimelineSupport } from '../contract/store.ts';
import { eraseSession } from './retention/erase.ts';
import { indexSome, searchesText } from './sessions/search.ts';
import { getSession, listOwners, listSessions, updateSession } from './sessions/sessions.ts';
import { listSnapshots } from './snapshots/list-snapshots.ts';
import { readSnapshot } from './snapshots/locate.ts';
import { fork, label, restore } from './snapshots/timeline.ts';
import type { SqlContext } from './sql-context.ts';

/** Sessions and their trees. */
export function timelineSupport({ db, state, gcScheduler }: SqlContext): TimelineSupport {
  return {
    async getSession(scope, sessionId, options = {}) {
      const info = await db.read(() => getSession(scope, sessionId, state));
      if (options.state !== true || info?.headId === undefined) return info;
      const head = await db.read(() => readSnapshot(scope, { sessionId }, state, options));
      const { state: latest, messageRange } = head ?? {};
      return { ...info, ...(latest && { state: latest }), ...(messageRange && { messageRange }) };
    },
    async listSessions(scope, options = {}) {
      if (searchesText(options.query, state)) {
        // It can be made again, so it need not outlive a power cut.
        while (await db.write(() => indexSome(scope, state), { durable: false }));
      }
      return await db.read(() => listSessions(scope, options, state));
    },
    listOwners: (options = {}) => db.read(() => listOwners(options)),
    updateSession: (scope, sessionId, change) =>
      db.write(() => updateSession(scope, sessionId, change, state)),
    async deleteSession(scope, sessionId) {
      const erased = await db.write(() => eraseSession(scope, sessionId));
      if (erased === undefined) return false;
      db.tell(erased.hints);
      await gcScheduler.now();
      await db.scrub();
      return true;
    },
    listSnapshots: (scope, sessionId, options = {}) =>
      db.read(() => listSnapshots(scope, sessionId, options, state)),
    async restore(scope, snapshotId, options = {}) {
      const snapshot = await db.write(() => restore(scope, snapshotId, options, state));
      db.tell([{ kind: 'run', id: snapshotId }]);
      return snapshot;
    },
    fork: (scope, snapshotId, target) => db.write(() => fork(scope, snapshotId, target, state)),
    async label(scope, snapshotId, text, { expectHead } = {}) {
      const change = { text, expectHead };
      const snapshot = await db.write(() => label(scope, snapshotId, change, state));
      db.tell([{ kind: 'run', id: snapshotId }]);
      return snapshot;
    },
  };
}
