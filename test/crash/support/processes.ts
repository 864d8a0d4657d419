import { bundleChild } from '../../support/bundle-child.ts';
import { startProcess, type TestProcess } from '../../support/child-process.ts';
import { freeze } from '../../support/freeze.ts';
import type { WorkerOptions } from '../crash-worker.ts';
import type { Place } from './agents.ts';

/** A worker process of the tests' own. */
export interface Worker {
  readonly pid: number;
  /** The name under which Postgres knows its connections. */
  readonly name: string;
  /** Gives it a command. */
  say(line: string): void;
  /** The next line that begins with this word, without the word. Rejects when the process ends or reports an error before. */
  hear(word: string): Promise<string>;
  /** kill -9; resolves when it has ended. */
  kill(): Promise<void>;
  /** Stops and continues it, as a machine that sleeps does. */
  readonly freeze: () => Promise<void>;
  readonly thaw: () => void;
}

let workers = 0;
const script = new URL('../crash-worker.ts', import.meta.url);

/** Starts a process, whose files may not become larger than so. It is of use as soon as it has said `ready`. */
export function startWorker(
  options: WorkerOptions,
  limits: { readonly fileKilobytes?: number } = {},
): Worker {
  const name = `worker-${++workers}`;
  const child = startProcess(
    [bundleChild(script), JSON.stringify({ ...options, place: named(options.place, name) })],
    limits,
  );
  return {
    pid: child.pid,
    name,
    say: (line) => child.send(line),
    hear: (word) => hear(child, word),
    async kill() {
      await child.end();
    },
    freeze: () =>
      freeze(child, /sqlite|libsql/.test(options.place.kind) ? options.place.at : undefined),
    thaw: () => child.signal('SIGCONT'),
  };
}

function named(place: Place, name: string): Place {
  return place.kind === 'postgres'
    ? { ...place, at: `${place.at}&application_name=${name}` }
    : place;
}

async function hear(child: TestProcess, word: string): Promise<string> {
  const said = await child.take((line) => {
    const [first = ''] = line.split(' ');
    return first === word || first === 'failed'
      ? { first, rest: line.slice(first.length + 1) }
      : undefined;
  }, `"${word}"`);
  if (said.first === word) return said.rest;
  throw new Error(`No "${word}", but: ${said.rest}`);
}
