import { type ChildProcess, fork } from 'node:child_process';
import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { ErrorBody } from '../../core/error.ts';
import type { Served } from './serve-file.ts';

/** A message of the serving process to its supervisor. */
export type ChildMessage =
  | { readonly type: 'loaded'; readonly path: string }
  | { readonly type: 'serving'; readonly served: Served }
  | { readonly type: 'failed'; readonly error: ErrorBody; readonly stack: string | undefined };

export interface SuperviseEvents {
  serving(served: Served, isRestart: boolean): void;
  failed(error: ErrorBody, stack: string | undefined): void;
  /** The process exited on its own. */
  died(code: number | null): void;
  changed(path: string): void;
}

/** Set in the environment of the serving process. */
export const childMark = 'WAYMARK_DEV_CHILD';

/** How long a process may take to close before it is killed, in milliseconds. */
const closeTimeoutMs = 6_000;

/** Debounce, in milliseconds: editors write a file in several steps. */
const debounceMs = 80;

/** Runs the serving process of a file, and restarts it when a file that it loaded changes. `args`: its command line, without its port. */
export function supervise(path: string, args: readonly string[], events: SuperviseEvents) {
  let child: ChildProcess | undefined;
  let port: number | undefined;
  let isRestarting = false;
  let isAgain = false;
  let isClosed = false;

  const start = (): void => {
    // A restart keeps the port, so that open pages reconnect.
    const fixed = port === undefined ? [] : ['--port', String(port)];
    const started = fork(process.argv[1] ?? '', [...args, ...fixed], {
      env: { ...process.env, [childMark]: '1' },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    child = started;
    let isSaid = false;
    started.on('message', (message: ChildMessage) => {
      if (message.type !== 'loaded') isSaid = true;
      if (!isClosed) receive(message);
    });
    started.on('exit', (code) => {
      if (child !== started) return;
      child = undefined;
      if (!isClosed && (code !== 0 || !isSaid)) events.died(code);
    });
  };
  const receive = (message: ChildMessage): void => {
    if (message.type === 'loaded') files.add(message.path);
    else if (message.type === 'failed') events.failed(message.error, message.stack);
    else {
      const isRestart = port !== undefined;
      port = message.served.port;
      events.serving(message.served, isRestart);
    }
  };
  const stop = async (): Promise<void> => {
    const stopped = child;
    if (stopped === undefined || stopped.exitCode !== null || stopped.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => stopped.once('exit', () => resolve()));
    // With a callback, a child that has just died is no unhandled error; its exit is awaited below.
    if (stopped.connected) stopped.send('close', () => {});
    const timer = setTimeout(() => stopped.kill('SIGKILL'), closeTimeoutMs);
    await ended;
    clearTimeout(timer);
  };
  const restart = async (changed: string): Promise<void> => {
    isAgain = isRestarting;
    if (isRestarting) return;
    events.changed(changed);
    isRestarting = true;
    await stop();
    isRestarting = false;
    if (isClosed) return;
    start();
    if (isAgain) await restart(changed);
  };

  const files = watchFiles((changed) => void restart(changed));
  files.add(path);
  start();
  return {
    kill: () => void child?.kill('SIGKILL'),
    async close(): Promise<void> {
      isClosed = true;
      files.close();
      await stop();
    },
  };
}

/** Watches files; calls once for a burst of changes. */
function watchFiles(onChange: (path: string) => void) {
  const folders = new Map<string, { readonly watcher: FSWatcher; readonly names: Set<string> }>();
  let timer: NodeJS.Timeout | undefined;
  return {
    /** Adds a file. Its folder is watched, because many editors replace the file. */
    add(path: string): void {
      const folder = dirname(path);
      const known = folders.get(folder);
      if (known) {
        known.names.add(basename(path));
        return;
      }
      const names = new Set([basename(path)]);
      try {
        const watcher = watch(folder, (_, name) => {
          if (name === null || !names.has(name)) return;
          clearTimeout(timer);
          timer = setTimeout(() => onChange(`${folder}/${name}`), debounceMs);
        });
        watcher.on('error', () => watcher.close());
        folders.set(folder, { watcher, names });
      } catch {
        // Without a watcher there is no reload; everything else works.
      }
    },
    close(): void {
      clearTimeout(timer);
      for (const { watcher } of folders.values()) watcher.close();
      folders.clear();
    },
  };
}
