import { type ChildProcess, fork } from 'node:child_process';
import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { ErrorBody } from '../../core/error.ts';
import type { Served } from './serve-file.ts';

/** Events of the serving process, for the screen. */
export interface SuperviseEvents {
  serving(served: Served, isRestart: boolean): void;
  failed(error: ErrorBody, stack: string | undefined): void;
  /** The process exited on its own. */
  died(code: number | null): void;
  changed(path: string): void;
}

/** How long a process may take to close before it is killed, in milliseconds. */
const closeTimeoutMs = 6_000;

/** Runs the serving process, and restarts it when a file that it loaded changes. */
export class Supervisor {
  readonly #args: readonly string[];
  readonly #events: SuperviseEvents;
  readonly #watch = new FileWatch((path) => void this.#restart(path));
  #child: ChildProcess | undefined;
  #port: number | undefined;
  #restarting: Promise<void> | undefined;
  #isAgain = false;
  #isClosed = false;

  /** `args`: the command line of the serving process, without its port. */
  constructor(args: readonly string[], events: SuperviseEvents) {
    this.#args = args;
    this.#events = events;
  }

  start(path: string): void {
    this.#watch.add(path);
    this.#fork();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#watch.close();
    await this.#stop();
  }

  /** Kills the serving process. */
  kill(): void {
    this.#child?.kill('SIGKILL');
  }

  #fork(): void {
    // A restart keeps the port, so that open pages reconnect.
    const port = this.#port === undefined ? [] : ['--port', String(this.#port)];
    const entry = process.argv[1] ?? '';
    const child = fork(entry, [...this.#args, ...port], {
      env: { ...process.env, [childMark]: '1' },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#child = child;
    let isSaid = false;
    child.on('message', (message: ChildMessage) => {
      if (message.type !== 'loaded') isSaid = true;
      this.#receive(message);
    });
    child.on('exit', (code) => {
      if (this.#child !== child) return;
      this.#child = undefined;
      if (!this.#isClosed && (code !== 0 || !isSaid)) this.#events.died(code);
    });
  }

  #receive(message: ChildMessage): void {
    if (this.#isClosed) return;
    if (message.type === 'loaded') this.#watch.add(message.path);
    else if (message.type === 'failed') this.#events.failed(message.error, message.stack);
    else {
      const isRestart = this.#port !== undefined;
      this.#port = message.served.port;
      this.#events.serving(message.served, isRestart);
    }
  }

  async #restart(path: string): Promise<void> {
    if (this.#restarting !== undefined) {
      this.#isAgain = true;
      return;
    }
    this.#events.changed(path);
    this.#restarting = this.#stop();
    await this.#restarting;
    this.#restarting = undefined;
    if (this.#isClosed) return;
    this.#fork();
    if (!this.#isAgain) return;
    this.#isAgain = false;
    await this.#restart(path);
  }

  async #stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    const message: ParentMessage = { type: 'close' };
    // With a callback, a child that has just died is no unhandled error; its exit is awaited below.
    if (child.connected) child.send(message, () => {});
    const timer = setTimeout(() => child.kill('SIGKILL'), closeTimeoutMs);
    await ended;
    clearTimeout(timer);
  }
}

/** Debounce, in milliseconds: editors write a file in several steps. */
const debounceMs = 80;

/** Watches files; calls once for a burst of changes. */
class FileWatch {
  readonly #onChange: (path: string) => void;
  readonly #folders = new Map<
    string,
    { readonly watcher: FSWatcher; readonly names: Set<string> }
  >();
  #timer: NodeJS.Timeout | undefined;

  constructor(onChange: (path: string) => void) {
    this.#onChange = onChange;
  }

  /** Adds a file. Its folder is watched, because many editors replace the file. */
  add(path: string): void {
    const folder = dirname(path);
    const known = this.#folders.get(folder);
    if (known) {
      known.names.add(basename(path));
      return;
    }
    const names = new Set([basename(path)]);
    try {
      const watcher = watch(folder, (_, name) => {
        if (name !== null && names.has(name)) this.#changed(path, name);
      });
      watcher.on('error', () => watcher.close());
      this.#folders.set(folder, { watcher, names });
    } catch {
      // Without a watcher there is no reload; everything else works.
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const { watcher } of this.#folders.values()) watcher.close();
    this.#folders.clear();
  }

  #changed(sibling: string, name: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#onChange(`${dirname(sibling)}/${name}`), debounceMs);
  }
}

/** A message of the serving process to its supervisor. */
export type ChildMessage =
  | { readonly type: 'loaded'; readonly path: string }
  | { readonly type: 'serving'; readonly served: Served }
  | { readonly type: 'failed'; readonly error: ErrorBody; readonly stack?: string };

/** A message of the supervisor. */
export interface ParentMessage {
  readonly type: 'close';
}

/** Set in the environment of the serving process. */
export const childMark = 'WAYMARK_DEV_CHILD';
