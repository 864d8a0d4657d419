import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Held, ServerSetup, Target } from './attack.ts';
import type { LoopMeasure } from './watch-loop.ts';

/** A target, and what only the runner asks it. */
export interface RunningTarget extends Target {
  /** How the event loop did since this was last asked; the work of `settle` and `clear` does not count. */
  measure(): Promise<LoopMeasure>;
  /** Deletes sessions and collects garbage; tells how much memory is left. */
  clear(): Promise<{ readonly memoryBytes: number }>;
  /** Errors that no request should cause. */
  failures(): Promise<readonly string[]>;
  /** Why the process ended, if it did. */
  readonly ended: string | undefined;
  stop(): Promise<void>;
}

/** Starts a server in a process of its own. */
export async function startTarget(setup: ServerSetup): Promise<RunningTarget> {
  const child = fork(new URL('./server.ts', import.meta.url), [JSON.stringify(setup)], {
    execArgv: ['--expose-gc', '--max-old-space-size=1024', '--no-warnings'],
    serialization: 'json',
  });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  let ended: string | undefined;
  child.once('exit', (code, signal) => {
    ended = `ended with ${signal ?? code}`;
  });
  const ask = questions(child);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    get ended() {
      return ended;
    },
    async settle() {
      closeIdleConnections();
      return (await ask('settle')) as Held;
    },
    handles: () => ask('handles') as Promise<number>,
    disconnect: (principal) => ask('disconnect', { principal }) as Promise<number>,
    measure: () => ask('measure') as Promise<LoopMeasure>,
    clear: () => ask('clear') as ReturnType<RunningTarget['clear']>,
    failures: async () => (ended === undefined ? ((await ask('failures')) as string[]) : []),
    async stop() {
      if (ended !== undefined) return;
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

// `fetch` keeps connections for a minute after their last request, and the server as long. They are no leak of either.
function closeIdleConnections(): void {
  const key = Symbol.for('undici.globalDispatcher.1');
  const holder = globalThis as unknown as Record<symbol, { close(): Promise<void> } | undefined>;
  const used = holder[key];
  if (used === undefined) return;
  holder[key] = new (used.constructor as new () => typeof used)();
  // Those that are in use end with their request.
  used.close().catch(() => {});
}

function questions(child: ChildProcess): (ask: string, more?: object) => Promise<unknown> {
  const open = new Map<number, PromiseWithResolvers<unknown>>();
  let count = 0;
  child.on('message', (message: { id?: number; answer?: unknown }) => {
    if (message.id === undefined) return;
    open.get(message.id)?.resolve(message.answer);
    open.delete(message.id);
  });
  child.once('exit', () => {
    for (const { reject } of open.values()) reject(new Error('The server has ended.'));
  });
  return (ask, more = {}) => {
    if (!child.connected) return Promise.reject(new Error('The server has ended.'));
    const id = count++;
    const answered = Promise.withResolvers<unknown>();
    open.set(id, answered);
    child.send({ id, ask, ...more });
    return answered.promise;
  };
}
