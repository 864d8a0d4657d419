import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { reportText } from '../../agent/contract/error-reports.ts';
import type { LogEntry } from '../../server/http/log.ts';
import type { RunningServer } from '../../server/serve.ts';
import { packageRoot } from '../package-root.ts';
import { closeApp, loadApp } from '../source/load-app.ts';
import { isPortInUse, startServer } from '../source/load-server.ts';
import type { Terminal } from '../terminal.ts';
import { oneLine, safe } from '../text/format.ts';

/** The port of `waymark dev`, unless it is in use. */
const defaultPort = 3000;

export interface ServeFileOptions {
  readonly path: string;
  readonly cwd: string;
  readonly host: string;
  /** Absent: 3000, or a free port when that is in use. */
  readonly port: number | undefined;
  /** Takes a line for each failure; with `verbose`, also for each request. */
  readonly log: (line: string) => void;
  readonly verbose: boolean;
}

/** The facts about a server that has started, for the screen; they go from one process to another as JSON. */
export type Served = Awaited<ReturnType<typeof serveFile>>['served'];

export async function serveFile(options: ServeFileOptions) {
  const { path, cwd, host, port } = options;
  const { app, modelNote } = await loadApp(path, cwd, 'running');
  const agents = app.agents();
  app.subscribeToErrors?.((error, info) => options.log(reportText(error, info)));
  const studio = studioFolder();
  const listen = (at: number): Promise<RunningServer> =>
    startServer(app, {
      host,
      port: at,
      grace: 1_000,
      log: toLines(options),
      ...(studio !== undefined && { studio, studioData: join(cwd, '.waymark', 'studio') }),
    });
  const server = await listen(port ?? defaultPort)
    .catch(async (error: unknown) => {
      if (port === undefined && isPortInUse(error)) return await listen(0);
      throw error;
    })
    .catch(async (error: unknown) => {
      await app.close({ grace: 0 });
      throw error;
    });
  const stores = new Set(agents.map(({ metadata }) => metadata.store ?? ''));
  const served = {
    url: server.url,
    port: server.port,
    /** The default port was in use. */
    isOtherPort: port === undefined && server.port !== defaultPort,
    studio: studio !== undefined,
    agents: agents.map(({ name, description }) => ({ name, description })),
    /** The kinds of store in use; empty: sessions are not stored. */
    stores: [...stores].filter((name) => name !== ''),
    modelNote,
  };
  return {
    served,
    async close(): Promise<void> {
      await server.close();
      await closeApp(app);
    },
  };
}

function toLines({ log, verbose }: ServeFileOptions): (entry: LogEntry) => void {
  return (entry) => {
    // Failures of the app are printed as text.
    if (entry.msg === 'failed' && 'phase' in entry) return;
    if (verbose) log(JSON.stringify(entry));
    else if (entry.level === 'error') log(errorLine(entry));
  };
}

// Developers need the original message and stack.
function errorLine({ msg, error, method, path }: LogEntry): string {
  const where = [method, path].filter(Boolean).join(' ');
  const headline = [`✗ ${msg}`, where].filter(Boolean).join(': ');
  return [headline, ...describedLines(error)].join('\n');
}

function describedLines(error: unknown): string[] {
  if (typeof error !== 'object' || error === null) return [];
  const { stack, message, cause } = error as Readonly<Record<string, unknown>>;
  const [first = '', ...rest] = describedLines(cause);
  const causes = first === '' ? [] : [`Caused by: ${first}`, ...rest];
  return [String(stack ?? message ?? ''), ...causes];
}

/** The folder of the built Studio; `undefined` when it was not built. */
function studioFolder(): string | undefined {
  const folder = join(packageRoot(), 'dist', 'studio');
  return existsSync(join(folder, 'index.html')) ? folder : undefined;
}

/** The text of the screen once the server has started. */
export function servedText(served: Served, { style }: Pick<Terminal, 'style'>): string {
  const { url, agents, stores, modelNote, studio, isOtherPort } = served;
  const width = Math.max(0, ...agents.map(({ name }) => name.length));
  const facts = [
    ['Studio', studio ? style.accent(`${url}/studio/`) : style.dim('not built')],
    ['Server', style.accent(url) + (isOtherPort ? `  (port ${defaultPort} is in use)` : '')],
    ['Model', modelNote === undefined ? '' : safe(modelNote)],
    ['Store', storeText(stores)],
  ].filter(([, value]) => value !== '');
  return [
    '',
    ...facts.map(([name = '', value = '']) => `  ${style.bold(name.padEnd(7))} ${value}`),
    '',
    ...agents.map(({ name, description = '' }) =>
      `  ${style.accent(name.padEnd(width))}  ${style.dim(oneLine(description, 90))}`.trimEnd(),
    ),
    '',
  ].join('\n');
}

function storeText(stores: readonly string[]): string {
  if (stores.length === 0) return 'none: clients keep the sessions';
  const isMemory = stores.includes('memory');
  return `${stores.join(', ')}${isMemory ? ' (memory: sessions are lost on restart)' : ''}`;
}
