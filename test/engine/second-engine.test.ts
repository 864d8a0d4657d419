import {
  type Engine,
  type EngineEnv,
  type HandOver,
  memoryStore,
  type Recovery,
  WaymarkError,
  waymark,
} from 'waymark';
import { engineContract } from 'waymark/testing/contract';

/** A queue as somebody else might have one: ids, in the order they came. */
interface Queue {
  readonly ids: string[];
}

const name = 'list/';

/** An engine written against what the package exports and nothing else: as short as one can be that dispatches. */
function listEngine(queue: Queue, { slots = 4, most = 100 } = {}): Engine {
  let env: EngineEnv | undefined;
  let recovery: Recovery | undefined;
  let stops: (() => void)[] = [];
  const active = new Set<string>();

  const look = async ({ claim, worker, background, report }: EngineEnv): Promise<void> => {
    const runIds = queue.ids.splice(0, Math.max(0, slots - active.size));
    for (const runId of runIds) active.add(runId);
    const claimed = await claim({ runIds, waitingAs: name, worker: `${name}${worker}` });
    for (const runId of runIds) {
      const found = claimed.find(({ run }) => run.runId === runId);
      const work = async (): Promise<void> => {
        const outcome = await found?.goOn();
        if (outcome === 'left') queue.ids.push(runId);
      };
      background(
        work()
          .catch((error: unknown) => report(error))
          .finally(() => active.delete(runId)),
      );
    }
  };

  return {
    name: 'list',
    dispatcher: {
      async admit() {
        if (queue.ids.length < most) return;
        throw new WaymarkError('RESOURCE_EXHAUSTED', 'Full.', { details: { retryAfter: 1 } });
      },
      handOver: ({ runId }): HandOver => {
        queue.ids.push(runId);
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
      // Hints may be lost, and ids may be in the list a moment before their runs are let go of.
      stops = [to.onHandedOver(again), to.clock.every(50, again)];
      recovery?.start();
    },
    stop() {
      for (const stop of stops) stop();
      stops = [];
      recovery?.stop();
    },
    recover: async () => (await recovery?.look()) ?? 0,
    status: async () => ({ engine: 'list', running: active.size, waiting: queue.ids.length }),
  };
}

engineContract(
  'a second',
  async () => {
    const store = memoryStore();
    const queue: Queue = { ids: [] };
    return {
      // The store is shared, and must outlive each of them.
      createApp: ({ work }) =>
        waymark({
          store: { ...store, close: async () => {} },
          engine: listEngine(queue),
          work,
          claimTtl: 500,
        }),
      close: async () => {},
    };
  },
  { dispatches: true },
);
