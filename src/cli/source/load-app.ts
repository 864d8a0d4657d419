import { fileURLToPath, pathToFileURL } from 'node:url';
import type { App } from '../../app.ts';
import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import { shownPath } from './find-file.ts';

/** An app out of a file of agents. */
export interface LoadedApp {
  readonly app: App;
  /** What the file says about its model, for the person in front of the screen. */
  readonly modelNote?: string;
}

/** Loads a file that exports `app`, and has the app check itself. */
export async function loadApp(path: string, cwd: string): Promise<LoadedApp> {
  const shown = shownPath(path, cwd);
  if (/\.[mc]?tsx?$/.test(path) && !process.features.typescript) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `Node ${process.version} cannot load ${shown}: TypeScript needs Node 22.18 or newer.`,
    );
  }
  const module = await load(path, shown);
  const app = module.app ?? module.default;
  if (!isApp(app)) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `${shown} exports no app. Write \`export const app = waymark({ … })\` in it.`,
    );
  }
  await app.ready();
  const { modelNote } = module;
  return typeof modelNote === 'string' ? { app, modelNote } : { app };
}

async function load(path: string, shown: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (cause) {
    if (isWaymarkError(cause)) throw cause;
    throw new WaymarkError('FAILED_PRECONDITION', `${shown}: ${reasonOf(cause, path)}`, { cause });
  }
}

// What went wrong while a module of the user's loaded, and on which line of theirs if that is known.
function reasonOf(cause: unknown, path: string): string {
  if (!(cause instanceof Error)) return `it threw ${String(cause)}.`;
  const missing = /Cannot find package '([^']+)'/.exec(cause.message)?.[1];
  if (missing !== undefined) return `it needs the package "${missing}": npm install ${missing}.`;
  const [first = cause.name] = cause.message.split('\n');
  const stack = cause.stack ?? '';
  const place = /(file:\/\/\S+?|\/\S+?):(\d+)(?::\d+)?\)?$/m.exec(stack);
  const file = place?.[1]?.startsWith('file:') ? fileURLToPath(place[1]) : place?.[1];
  const where = place && file === path ? ` (line ${place[2]})` : '';
  return `${first.replace(/\.$/, '')}${where}.`;
}

// By its shape, as it may come from another copy of this package.
function isApp(value: unknown): value is App {
  return (
    typeof value === 'object' &&
    value !== null &&
    'agents' in value &&
    typeof value.agents === 'function' &&
    'ready' in value &&
    typeof value.ready === 'function' &&
    'close' in value
  );
}
