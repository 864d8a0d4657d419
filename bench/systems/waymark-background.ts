import { textOf, waymark } from 'waymark';
import { aborted, type OpenBackground, waitForSignal } from './background.ts';
import { openStore } from './waymark.ts';

/** Waymark as it comes: a claim without a heartbeat is taken over after five seconds. */
export const open: OpenBackground = async (variant, place, onModel) => {
  const store = await openStore(variant, place);
  if (store === undefined) throw new Error('Runs in the background need a store.');
  const app = waymark({ store });
  app.defineModel({ name: 'instant' }, async ({ messages }, { signal }) => {
    const last = messages.at(-1);
    if (last && textOf(last) === waitForSignal) {
      onModel('called');
      await aborted(signal);
      onModel('stopped');
    }
    return { message: { role: 'model', content: [{ text: 'Done.' }] }, finishReason: 'stop' };
  });
  const agent = app.defineAgent({ name: 'bench', model: 'instant' });
  await app.ready();
  return {
    async detach(text) {
      const connection = agent.streamBidi();
      const message = { role: 'user' as const, content: [{ text }] };
      const { snapshotId = '' } = await connection.detach({ message });
      if (text === waitForSignal) void agent.wait(snapshotId).then(() => onModel('ended'));
      return snapshotId;
    },
    async lastSeen(id) {
      const { items: runs } = await agent.listRuns();
      return Date.parse(runs.find(({ snapshotId }) => snapshotId === id)?.heartbeatAt ?? '');
    },
    abort: async (id) => void (await agent.abort(id)),
    close: () => app.close({ grace: 0 }),
  };
};
