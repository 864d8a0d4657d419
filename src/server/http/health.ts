import { internalsOf } from '../../agent/define/create-agent.ts';
import { WaymarkError } from '../../core/error.ts';
import { type Clock, withTimeout } from '../../core/time.ts';
import type { SnapshotStore } from '../../store/contract/store.ts';
import { jsonResponse } from './answer.ts';
import { describeError } from './log.ts';
import type { Router, ServerContext } from './server-context.ts';

/** Milliseconds for which an answer of the engine or the store is passed on, and that a request waits for one. */
const keepMs = 250;
const waitMs = 2000;

/** No snapshot has this id. */
const noSnapshot = '00000000-0000-7000-8000-000000000000';

/**
 * `GET /healthz`: the process is alive and takes requests; costs next to nothing and needs no login. `GET /readyz`: the store
 * answers as well. Both are 503 once the server is shutting down.
 */
export function mountHealth(router: Router, serverContext: ServerContext): void {
  const { app, clock, lifetime, log, streams, turns } = serverContext;
  // A server whose queue does not answer still takes turns that a caller waits for.
  const engineStatus = atMostEvery(clock, async () => app.engine?.status().catch(() => undefined));
  const storeAnswers = atMostEvery(clock, () => askStores(serverContext));

  router.get('/healthz', async () => {
    lifetime.checkOpen();
    const engine = app.engine && (await engineStatus().catch(() => undefined));
    return jsonResponse({ status: 'ok', streams: streams.size, turns: turns.size, engine });
  });

  router.get('/readyz', async () => {
    if (lifetime.closing.aborted) throw notReady('draining', 'The server is shutting down.');
    try {
      await storeAnswers();
    } catch (error) {
      log('error', 'store does not answer', { error: describeError(error) });
      throw notReady('store', 'The store does not answer.');
    }
    return jsonResponse({ status: 'ready' });
  });
}

// A look for a snapshot that does not exist: the least that every store can do.
async function askStores({ app }: ServerContext): Promise<void> {
  const asked = new Set<SnapshotStore>();
  for (const agent of app.agents()) {
    const { store } = internalsOf(agent).spec;
    if (!store || asked.has(store)) continue;
    asked.add(store);
    await store.getSnapshot({ agent: agent.name }, { snapshotId: noSnapshot });
  }
}

function notReady(reason: 'draining' | 'store', message: string): WaymarkError {
  return new WaymarkError('UNAVAILABLE', message, { details: { reason, retryAfter: 1 } });
}

/**
 * Asks at most once every `keepMs`, and never twice at the same time: however many callers there are, what is asked has one
 * caller. A caller waits no longer than `waitMs`.
 */
function atMostEvery<T>(clock: Clock, ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined;
  let answeredAt: number | undefined;
  return async () => {
    if (answeredAt !== undefined && Math.abs(clock.now() - answeredAt) >= keepMs) asked = undefined;
    if (!asked) {
      answeredAt = undefined;
      const answer = ask();
      asked = answer;
      const done = (): void => {
        if (asked === answer) answeredAt = clock.now();
      };
      answer.then(done, done);
    }
    return await withTimeout(asked, {
      clock,
      ms: waitMs,
      error: () => new WaymarkError('DEADLINE_EXCEEDED', `No answer within ${waitMs} ms.`),
    });
  };
}
