import { reportText } from '../../agent/spec/error-reports.ts';
import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import type { LogEntry } from '../../server/http/log.ts';
import type { RunningServer } from '../../server/serve.ts';
import { closeApp } from '../source/close-app.ts';
import { loadApp } from '../source/load-app.ts';
import { studioFolder } from './studio-folder.ts';

/** How a file of agents is served. */
export interface ServeFileOptions {
  readonly path: string;
  readonly cwd: string;
  readonly host: string;
  /** Absent: 3000, or any free one when that is taken. */
  readonly port?: number;
  /** Takes one line for each thing that went wrong; with `verbose`, for each request. */
  readonly log: (line: string) => void;
  readonly verbose: boolean;
}

/** What is served, for the screen. */
export interface Served {
  readonly url: string;
  readonly port: number;
  readonly studio: boolean;
  readonly agents: readonly { readonly name: string; readonly description?: string }[];
  /** The kinds of store in use; without one, sessions are kept nowhere. */
  readonly stores: readonly string[];
  readonly modelNote?: string;
}

/** A file that is being served. */
export interface ServedFile {
  readonly served: Served;
  close(): Promise<void>;
}

/** Loads a file of agents and serves its app. */
export async function serveFile(options: ServeFileOptions): Promise<ServedFile> {
  const { app, modelNote } = await loadApp(options.path, options.cwd, 'running');
  const agents = app.agents();
  app.subscribeToErrors?.((error, info) => options.log(reportText(error, info)));
  const studio = studioFolder();
  const server = await listen(options, async (port) => {
    const { serve } = await loadServer();
    return await serve(app, {
      host: options.host,
      port,
      grace: 1_000,
      log: toLines(options),
      ...(studio !== undefined && { studio }),
    });
  }).catch(async (error: unknown) => {
    await app.close({ deadlineMs: 0 });
    throw error;
  });
  const stores = new Set(agents.map(({ metadata }) => metadata.store ?? ''));
  return {
    served: {
      url: server.url,
      port: server.port,
      studio: studio !== undefined,
      agents: agents.map(({ name, description }) =>
        description === undefined ? { name } : { name, description },
      ),
      stores: [...stores].filter((name) => name !== ''),
      ...(modelNote !== undefined && { modelNote }),
    },
    async close() {
      await server.close();
      await closeApp(app);
    },
  };
}

async function listen(
  { port }: ServeFileOptions,
  serve: (port: number) => Promise<RunningServer>,
): Promise<RunningServer> {
  if (port !== undefined) return await serve(port);
  try {
    return await serve(3000);
  } catch (error) {
    if (isWaymarkError(error) && error.status === 'UNAVAILABLE') return await serve(0);
    throw error;
  }
}

async function loadServer(): Promise<typeof import('../../server/serve.ts')> {
  try {
    return await import('../../server/serve.ts');
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'ERR_MODULE_NOT_FOUND')) {
      throw cause;
    }
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      'Serving needs three more packages: npm install hono @hono/node-server ws.',
      { cause },
    );
  }
}

function toLines({ log, verbose }: ServeFileOptions): (entry: LogEntry) => void {
  return (entry) => {
    // What fails in the app has been shown as text.
    if (entry.msg === 'failed' && 'phase' in entry) return;
    if (verbose) log(JSON.stringify(entry));
    else if (entry.level === 'error') log(errorLine(entry));
  };
}

// Faults of agents and tools are the reason to run this, so they are shown with what they said.
function errorLine({ msg, error, method, path }: LogEntry): string {
  const where = [method, path].filter(Boolean).join(' ');
  const headline = [`✗ ${msg}`, where].filter(Boolean).join(': ');
  return [headline, ...describedLines(error)].join('\n');
}

// What the server's log holds of an error, with its causes.
function describedLines(error: unknown): string[] {
  if (typeof error !== 'object' || error === null) return [];
  const { stack, message, cause } = error as Readonly<Record<string, unknown>>;
  const [first = '', ...rest] = describedLines(cause);
  const causes = first === '' ? [] : [`Caused by: ${first}`, ...rest];
  return [String(stack ?? message ?? ''), ...causes];
}
