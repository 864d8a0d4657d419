import { fileURLToPath, pathToFileURL } from 'node:url';
import type { App } from '../../app.ts';
import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import type { ServeOptions } from '../../server/serve.ts';
import { shownPath } from './find-file.ts';

/** An app, loaded from a file. */
export interface LoadedApp {
  readonly app: App;
  /** What the file says about its model, for the screen. */
  readonly modelNote?: string;
  /** The options that `waymark serve` passes to the server, such as `auth`. */
  readonly serverOptions?: ServeOptions;
}

/** What an app is loaded for. One that only reads does not take over unfinished runs. */
export type AppUse = 'reading' | 'running';

/** Loads a file that exports `app`, and checks the app with `ready()`. */
export async function loadApp(path: string, cwd: string, use: AppUse): Promise<LoadedApp> {
  if (use === 'reading') process.env.WAYMARK_RECOVER = '0';
  const shown = shownPath(path, cwd);
  if (/\.[mc]?tsx?$/.test(path) && !process.features.typescript) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `Node cannot load ${shown}: it was started without support for TypeScript. Remove --no-strip-types from its options.`,
    );
  }
  const module = await load(path, shown, cwd);
  const app = module.app ?? module.default;
  if (!isApp(app)) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `${shown} does not export an app. Add \`export const app = waymark({ … })\`.`,
    );
  }
  await app.ready();
  const { modelNote, serverOptions } = module;
  return {
    app,
    ...(typeof modelNote === 'string' && { modelNote }),
    ...(typeof serverOptions === 'object' && serverOptions !== null && { serverOptions }),
  };
}

async function load(path: string, shown: string, cwd: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (cause) {
    if (isWaymarkError(cause)) throw cause;
    const { place, reason } = faultOf(cause, cwd);
    throw new WaymarkError('FAILED_PRECONDITION', `${place ?? shown}: ${reason}`, { cause });
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
