// The server under attack, started by target.ts with `--expose-gc`. It tells its port and watches itself.
import { readdirSync } from 'node:fs';
import { systemClock } from '../../src/core/time.ts';
import type { Model } from '../../src/generate/model.ts';
import { memoryStore } from '../../src/index.ts';
import { serve } from '../../src/server/index.ts';
import { rawServer } from '../mcp/support/raw.ts';
import { createTestApp, talkative } from '../server/kit.ts';
import type { ServerSetup } from './attack.ts';
import { watchLoop } from './watch-loop.ts';

const {
  auth = true,
  limits,
  refused,
  hostileMcp,
} = JSON.parse(process.argv[2] ?? '{}') as ServerSetup;

let timers = 0;
const clock: typeof systemClock = {
  ...systemClock,
  every(ms, fn) {
    const stop = systemClock.every(ms, fn);
    timers++;
    let isStopped = false;
    return () => {
      if (!isStopped) timers--;
      isStopped = true;
      stop();
    };
  },
};

// A scripted model keeps what it was asked, for tests to look at; a long attack would look like a leak.
const scripted = talkative();
const model: Model = {
  ...scripted,
  run(request, call) {
    (scripted.requests as unknown[]).length = 0;
    return scripted.run(request, call);
  },
};
const store = memoryStore();
const app = createTestApp({ model, store });
if (hostileMcp) app.defineAgent({ name: 'tooled', tools: [rawServer('raw', 'hostile')] });
await app.ready();
const failures: string[] = [];
const server = await serve(app, {
  port: 0,
  grace: 0,
  clock,
  reflection: true,
  agui: true,
  openai: { allow: ['tools'] },
  keepAlive: 1000,
  ...(limits && { limits }),
  ...(auth && {
    auth: (request: Request) => {
      const [, principal] = /^Bearer (ann|bob|user-\d+)$/.exec(
        request.headers.get('authorization') ?? '',
      ) ?? [undefined, undefined];
      return principal === undefined ? undefined : { principal };
    },
  }),
  ...(refused !== undefined && {
    authorize: ({ operation }: { operation: string }) => operation !== refused,
  }),
  log: (entry) => {
    // A model that fails is reported too, with its phase; of a request nothing may fail.
    if (entry.msg === 'failed' && entry.phase === undefined)
      failures.push(JSON.stringify(entry).slice(0, 2000));
  },
});
const loop = watchLoop();
const handlesAtStart = countHandles();
process.send?.({ port: server.port });
process.on('disconnect', () => process.exit());

const owners = ['ann', 'bob', ...Array.from({ length: 20 }, (_, at) => `user-${at}`)];

// Deletes what requests have stored: that is no leak.
async function deleteSessions(): Promise<void> {
  for (const agent of app.agents()) {
    if (agent.metadata.stateManagement === 'client') continue;
    for (const name of [undefined, ...owners]) {
      const owner = name === undefined ? {} : { owner: name };
      for (const { snapshotId } of (await agent.listRuns(owner)).items) {
        await agent.abort(snapshotId, owner);
      }
      for (;;) {
        const { items } = await agent.listSessions({ ...owner, limit: 200 });
        if (items.length === 0) break;
        for (const { sessionId } of items) {
          await agent.deleteSession(sessionId, owner).catch(() => {});
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }
}

// What was spent in a session outlives it, and only goes with its owner. All sessions are deleted before, one by one, so that
// this does not hide what a deletion leaves behind.
async function eraseSpend(): Promise<void> {
  for (const owner of owners) await store.maintenance?.eraseOwner(owner);
}

const { gc } = globalThis as { gc?: (options?: { readonly flavor: 'last-resort' }) => void };

async function clear(): Promise<object> {
  await deleteSessions();
  gc?.();
  // What finalizers have let go is collected by the next.
  await new Promise((resolve) => setImmediate(resolve));
  gc?.();
  return { memoryBytes: process.memoryUsage.rss() };
}

async function settle(): Promise<object> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    await deleteSessions();
    const health = await (await fetch(`${server.url}/healthz`)).json();
    if (health.streams === 0 && health.turns === 0) break;
    if (Date.now() > deadline) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  // Clients keep idle connections for some seconds. Two may stay: this process asks for the health, and so does the probe.
  const idleUntil = Date.now() + 10_000;
  while (countHandles() > handlesAtStart + 3 && Date.now() < idleUntil) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await eraseSpend();
  // Some things go with a timer of their own; the smallest of some looks counts.
  let heapBytes = Number.POSITIVE_INFINITY;
  for (let at = 0; at < 5; at++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    // The usual flavor keeps the 3.8 MB with which Node strips types, and some later collection lets them go: a leak of that
    // size between two looks was not seen.
    gc?.({ flavor: 'last-resort' });
    heapBytes = Math.min(heapBytes, process.memoryUsage().heapUsed);
  }
  return { heapBytes, handles: countHandles(), timers };
}

function countHandles(): number {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return process.getActiveResourcesInfo().length;
  }
}

interface Question {
  readonly id: number;
  readonly ask: 'settle' | 'clear' | 'measure' | 'failures' | 'handles' | 'disconnect';
  readonly principal?: string;
}

process.on('message', async ({ id, ask, principal }: Question) => {
  const answers = {
    settle: () => loop.uncounted(settle),
    clear: () => loop.uncounted(clear),
    measure: loop.measure,
    failures: () => failures.splice(0),
    handles: countHandles,
    disconnect: () => server.disconnect(principal ?? ''),
  };
  process.send?.({ id, answer: await answers[ask]() });
});
