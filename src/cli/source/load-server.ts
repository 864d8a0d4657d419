import { failedPrecondition, hasStatus, WaymarkError } from '../../core/error.ts';
import type { ServedApp } from '../../server/http/served-app.ts';
import type { RunningServer, ServeOptions } from '../../server/serve.ts';

/** Starts a server. Missing packages and a port in use are errors that say what to do. */
export async function startServer(app: ServedApp, options: ServeOptions): Promise<RunningServer> {
  const { serve } = await orExplain(() => import('../../server/serve.ts'));
  try {
    return await serve(app, options);
  } catch (error) {
    const { port = 3000, host = '127.0.0.1' } = options;
    if (!isPortInUse(error)) throw error;
    throw new WaymarkError(
      'UNAVAILABLE',
      `Port ${port} on ${host} is in use. Stop the other process, or choose another port with --port.`,
      { cause: error, details: { portInUse: port } },
    );
  }
}

/** Whether a server could not start because another process listens on its port. */
export function isPortInUse(error: unknown): boolean {
  if (!hasStatus(error, 'UNAVAILABLE')) return false;
  const { cause, details } = error;
  const isListed = typeof details === 'object' && details !== null && 'portInUse' in details;
  const code = typeof cause === 'object' && cause !== null && 'code' in cause && cause.code;
  return isListed || code === 'EADDRINUSE';
}

/** Loads a part of the server; missing packages are an error that says what to install. */
export async function orExplain<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'ERR_MODULE_NOT_FOUND')) {
      throw cause;
    }
    throw failedPrecondition(
      'The server needs three more packages. Run "npm install hono @hono/node-server ws".',
      { cause },
    );
  }
}

/** For an option or a variable with a port. */
export const port = {
  takes: 'a port from 0 to 65535',
  read: (text: string) =>
    /^\d+$/.test(text.trim()) && Number(text) <= 65_535 ? Number(text) : undefined,
};
