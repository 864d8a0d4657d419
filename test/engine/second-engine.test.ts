import { memoryStore, type Scope, WaymarkError, waymark } from 'waymark';
import type { Engine, EngineEnv, QueueHandoff, Recovery } from 'waymark/engine';
import { engineContract } from 'waymark/testing/contract';

// #region engine
/** A minimal queue: the scope and id of each run, in order of arrival. */
type Queue = { readonly runId: string; readonly scope: Scope }[];

const name = 'list/';

/** A minimal engine, written only with the exports of the package. */
function listEngine(queue: Queue, { slots = 4, most = 100 } = {}): Engine {
  let env: EngineEnv | undefined;
  let recovery: Recovery | undefined;
  let stops: (() => void)[] = [];
  const active = new Set<string>();

  const look = async ({ claim, worker, isOpen, background, report }: EngineEnv): Promise<void> => {
    const next = queue.splice(0, Math.max(0, slots - active.size));
    const runIds = next.map(({ runId }) => runId);
    for (const runId of runIds) active.add(runId);
    const claimed = await claim({ runIds, waitingAs: name, worker: `${name}${worker}` });
    for (const each of next) {
      const work = async (): Promise<void> => {
        const outcome = await claimed.find(({ run }) => run.runId === each.runId)?.execute();
        // The run may still be held by the process that accepted it, or by its previous worker.
        if (outcome !== 'ended' && (await isOpen(each.scope, each.runId))) queue.push(each);
      };
      background(
        work()
          .catch((error: unknown) => report(error))
          .finally(() => active.delete(each.runId)),
      );
    }
  };

  return {
    name: 'list',
    dispatcher: {
      async admit() {
        if (queue.length < most) return;
        throw new WaymarkError('RESOURCE_EXHAUSTED', 'Full.', { details: { retryAfter: 1 } });
      },
      handOver: ({ runId, scope }): QueueHandoff => {
        queue.push({ runId, scope });
        return { worker: name };
      },
    },
    attach(to) {
      env = to;
      recovery = to.recovery({ exceptWorker: name });
    },
    start() {
      const to = env;
      if (to === undefined || stops.length > 0) return;
      const again = (): void => void look(to).catch((error: unknown) => to.report(error));
      // Notifications can be lost, so poll as well.
      stops = [to.onHandedOver(again), to.clock.every(50, again)];
      recovery?.start();
    },
    stop() {
      for (const stop of stops) stop();
      stops = [];
      recovery?.stop();
    },
    recover: async () => (await recovery?.look()) ?? 0,
    status: async () => ({ engine: 'list', running: active.size, waiting: queue.length }),
  };
}
// #endregion

engineContract(
  'a second',
  async () => {
    const store = memoryStore();
    const queue: Queue = [];
    return {
      // The store is shared, and must outlive each of them.
      createApp: ({ work }) =>
        waymark({
          store: { ...store, close: async () => {} },
          engine: listEngine(queue),
          work,
        }),
      close: async () => {},
    };
  },
  { dispatches: true },
);
