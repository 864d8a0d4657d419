import { existsSync, statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { reportHeadline, reportText } from '../../agent/contract/error-reports.ts';
import type { App } from '../../app.ts';
import { failedPrecondition, isWaymarkError, messageOf, WaymarkError } from '../../core/error.ts';
import { systemClock, waitAtMost } from '../../core/time.ts';
import type { ServeOptions } from '../../server/serve.ts';
import { oneLine, safe } from '../text/format.ts';

/** The purpose of loading an app. One that only reads does not take over unfinished runs. */
export type AppUse = 'reading' | 'running';

/** Loads the app that a file exports, or one of the usual files, and checks it with `ready()`. A `query` makes it another module. */
export async function loadApp(file: string | undefined, cwd: string, use: AppUse, query = '') {
  if (use === 'reading') process.env.WAYMARK_RECOVER = '0';
  const path = findAgentsFile(file, cwd);
  const shown = shownPath(path, cwd);
  if (/\.[mc]?tsx?$/.test(path) && !process.features.typescript) {
    throw failedPrecondition(
      `Node cannot load ${shown}: it was started without support for TypeScript. Remove --no-strip-types from its options.`,
    );
  }
  const module = await load(`${pathToFileURL(path).href}${query}`, shown, cwd);
  const app = module.app ?? module.default;
  if (!isApp(app)) {
    throw failedPrecondition(
      `${shown} does not export an app. Add \`export const app = waymark({ … })\`.`,
    );
  }
  await app.ready();
  const { modelNote, serverOptions } = module;
  return {
    app,
    /** The path of the file, for messages. */
    shown,
    /** A note of the file about its model, for the screen. */
    modelNote: typeof modelNote === 'string' ? modelNote : undefined,
    /** The options that `waymark serve` passes to the server, such as `auth`. */
    serverOptions: (typeof serverOptions === 'object' ? (serverOptions ?? {}) : {}) as ServeOptions,
  };
}

async function load(url: string, shown: string, cwd: string): Promise<Record<string, unknown>> {
  try {
    return (await import(url)) as Record<string, unknown>;
  } catch (cause) {
    if (isWaymarkError(cause)) throw cause;
    const { place, reason } = faultOf(cause, cwd);
    throw failedPrecondition(`${place ?? shown}: ${reason}`, { cause });
  }
}

// The error while the user's module loaded, and the line of their code if it is known.
function faultOf(
  cause: unknown,
  cwd: string,
): { readonly place?: string; readonly reason: string } {
  if (!(cause instanceof Error)) return { reason: `it threw ${String(cause)}.` };
  const missing = /Cannot find package '([^']+)'/.exec(cause.message)?.[1];
  if (missing !== undefined) {
    return { reason: `the package "${missing}" is not installed. Run "npm install ${missing}".` };
  }
  const [first = ''] = cause.message.split('\n');
  const reason = `${(first || cause.name).replace(/\.$/, '')}.`;
  const [, file = '', line] =
    /(?:^|\(|\s)((?:file:\/)?\/[^\s():]+):(\d+)/.exec(cause.stack ?? '') ?? [];
  if (file === '' || file.includes('/node_modules/')) return { reason };
  const path = file.startsWith('file:') ? fileURLToPath(file) : file;
  return { place: `${shownPath(path, cwd)}:${line}`, reason };
}

// Checked by shape: it may come from another copy of this package.
function isApp(value: unknown): value is App {
  const { agents, ready, close } = (value ?? {}) as Partial<App>;
  return [agents, ready, close].every((method) => typeof method === 'function');
}

/** The default files, in this order. */
const usualFiles = ['agents.ts', 'agents.js', 'agents.mjs', 'src/agents.ts', 'src/agents.js'];

/** The given file, or the first default file that exists. */
export function findAgentsFile(given: string | undefined, cwd: string): string {
  if (given !== undefined) {
    const path = resolve(cwd, given);
    if (isFile(path)) return path;
    throw new WaymarkError('NOT_FOUND', `There is no file ${given}.`);
  }
  const found = usualFiles.map((name) => resolve(cwd, name)).find(isFile);
  if (found !== undefined) return found;
  throw new WaymarkError(
    'NOT_FOUND',
    `There is no file with an app here (${usualFiles.join(', ')}). Name a file with --file or a server with --url, or create a project with "waymark init".`,
  );
}

/** A path relative to the current folder, where it is below it. */
export function shownPath(path: string, cwd: string): string {
  const short = relative(cwd, path);
  return short.startsWith('..') ? path : short;
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}

/** How long running turns may take to finish when a command ends. */
const defaultGrace = 2_000;
/** How long closing may take after that, in milliseconds. */
const timeoutMs = 4_000;

/** Closes the app of a command. A store that hangs or cannot be reached does not keep the shell waiting. */
export async function closeApp(app: App, grace = defaultGrace): Promise<void> {
  await waitAtMost(systemClock, grace + timeoutMs, app.close({ grace }));
}

/**
 * Prints failures of a loaded app: with `--debug` all of them with their stacks, otherwise one line for those that the
 * command does not print itself.
 */
export function showErrors(app: App, note: (line: string) => void, isDebug: boolean): void {
  // An app of an older version of this package has no such method.
  app.subscribeToErrors?.((error, info) => {
    if (isDebug) note(safe(reportText(error, info)));
    else if (info.phase === 'hook' || info.phase === 'run') {
      note(safe(`${reportHeadline(info)}: ${oneLine(messageOf(error), 200)}`));
    }
  });
}
