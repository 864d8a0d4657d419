import { serve } from '../../../src/server/index.ts';
import { openQueueApp, type QueueAppOptions } from './agents.ts';

/** What a process of the tests does: works on runs, or serves and only accepts. */
export interface ChildOptions extends Omit<QueueAppOptions, 'onError'> {
  readonly role: 'worker' | 'server';
  /** Milliseconds that what runs may take after a SIGTERM. */
  readonly drainMs?: number;
}

const { role, drainMs = 0, ...options } = JSON.parse(process.argv[2] ?? '{}') as ChildOptions;
const opened = openQueueApp({
  ...options,
  work: role === 'worker',
  onError(error) {
    if (process.env.CHILD_LOG === '1') console.error(process.pid, error);
  },
});
await opened.app.ready();
const server = role === 'server' ? await serve(opened.app, { port: 0 }) : undefined;
process.once('SIGTERM', async () => {
  await server?.close();
  await opened.close(drainMs);
  process.exit(0);
});
process.stdout.write(`ready ${server?.url ?? ''}\n`);
